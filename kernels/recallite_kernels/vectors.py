"""Vector kernels (float32): sketch, shortlist, rescore, exact cosine. Scores descend, ties by ascending row."""

from __future__ import annotations

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import F32, I8, I64, LANES, U16, U64, KernelError, Mask, array

NO_ROWS: I64 = np.empty(0, np.int64)
NO_ROWS.flags.writeable = False


def sketch(vectors: F32) -> U64:
    """One bit per component, set where it is above 0.

    vectors float32 (n, d) -> uint64 (n, ceil(d / 64)); component j is bit j % 64 (least significant first) of
    word j // 64, so that the little-endian bytes equal sqlite-vec's `vec_quantize_binary`. NaN and infinity are
    refused.
    """
    array("vectors", vectors, contract.f32, None, None)
    sketches = dispatch.active.sketch(vectors)
    if sketches is None:
        raise contract.not_finite("vectors", vectors)
    return sketches


def sketch_blocks(sketches: U64) -> U64:
    """Sketches in blocks of 16 rows, word by word, so that a processor counts the bits of several rows at a time.

    uint64 (n, w) -> (ceil(n / 16), w, 16): row r is [r // 16, :, r % 16]. Rows beyond n are 0.
    """
    n, words = array("sketches", sketches, contract.u64, None, None).shape
    whole = n // LANES * LANES
    blocks = np.zeros((-(-n // LANES), words, LANES), np.uint64)
    blocks[: n // LANES] = sketches[:whole].reshape(n // LANES, LANES, words).transpose(0, 2, 1)
    if whole < n:
        blocks[-1, :, : n - whole] = sketches[whole:].T
    return blocks


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    """Symmetric int8 per row: value = code * scale, the largest magnitude of a row is code 127.

    vectors float32 (n, d) -> int8 (n, d), float32 (n,). A zero row has scale 0.
    """
    array("vectors", vectors, contract.f32, None, None)
    codes, scales = dispatch.active.quantize_int8(vectors)
    contract.finite_scores(scales, "vectors")
    return codes, scales


def hamming_shortlist(
    queries: U64, sketches: U64, allowed: I64 | None, start: int, stop: int, size: int, *, checked: bool = False
) -> tuple[I64, U16]:
    """The `size` rows nearest to each query in Hamming distance: rows int64 (q, s), distances uint16 (q, s).

    queries uint64 (q, w), sketches uint64 (blocks, w, 16) as `sketch_blocks` makes them. Of rows start to stop, or of
    the rows that allowed[start:stop] names, int64; a pool of threads can share them. s is `size` or as many as there
    are. Nearest first, ties by ascending row, of `allowed` by the place there: the same where it ascends. `checked`:
    see `recallite_kernels.lexical`.
    """
    listed, rows = allowed is not None, NO_ROWS if allowed is None else allowed
    if not checked:
        array("queries", queries, contract.u64, None, None)
        words = queries.shape[1]
        if not 1 <= words <= 1023:
            raise KernelError(f"queries: {words} words; wanted 1 to 1023 (distances are uint16)")
        array("sketches", sketches, contract.u64, None, words, LANES)
        array("allowed", rows, contract.i64, None)
        count = rows.shape[0] if listed else sketches.shape[0] * LANES
        stop = contract.whole("stop", stop, 0, count)
        start = contract.whole("start", start, 0, stop)
        size = min(contract.whole("size", size, 1), max(count, 1))
    shortlist = dispatch.active.hamming_shortlist(queries, sketches, rows, listed, start, stop, size)
    if shortlist is None:
        raise contract.out_of_range("allowed", rows[start:stop], sketches.shape[0] * LANES)
    return shortlist


def rescore_shortlist(
    queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int, *, checked: bool = False
) -> tuple[I64, F32]:
    """The k best of each query's shortlist by cosine from int8 codes: rows int64 (q, k'), cosines float32 (q, k').

    queries float32 (q, d) of unit length, codes int8 (n, d), scales float32 (n,). rows int64 (q, s) with distances
    uint16 (q, s) are those of `hamming_shortlist`, of several blocks side by side: only the `size` nearest of them
    are rescored. Best first, ties by ascending row. `checked`: see `recallite_kernels.lexical`.
    """
    if not checked:
        array("queries", queries, contract.f32, None, None)
        contract.finite("queries", queries)
        array("codes", codes, contract.i8, None, queries.shape[1])
        array("scales", scales, contract.f32, codes.shape[0])
        array("rows", rows, contract.i64, queries.shape[0], None)
        array("distances", distances, contract.u16, *rows.shape)
        contract.indices("rows", rows.ravel(), codes.shape[0])
        size, k = contract.whole("size", size, 1), contract.whole("k", k, 1)
    size = min(size, max(rows.shape[1], 1))
    k = min(k, size, rows.shape[1])
    nearest, cosines = dispatch.active.rescore_shortlist(queries, codes, scales, rows, distances, size, k)
    contract.finite_scores(cosines, "scales")
    return nearest, cosines


def cosine_top_k(queries: F32, vectors: F32, k: int, mask: Mask | None = None) -> tuple[I64, F32]:
    """The k best rows of each query by exact cosine, in one blocked scan; a zero vector scores 0.

    A score depends on its query and row alone: a query gets the same ones by itself and among others.

    queries float32 (q, d), vectors float32 (n, d), mask bytes (n,) or None. Returns rows int64 (q, k') and scores
    float32 (q, k'), best first; k' is at most the number of allowed rows.
    """
    array("queries", queries, contract.f32, None, None)
    array("vectors", vectors, contract.f32, None, queries.shape[1])
    n = vectors.shape[0]
    checked = contract.mask(mask, n)
    k = min(contract.whole("k", k, 1), int(np.count_nonzero(checked)) if checked.size else n)
    nearest = dispatch.active.cosine_top_k(unit("queries", queries), vectors, k, checked)
    if nearest is None:
        raise KernelError("vectors: holds NaN or infinity; wanted finite numbers")
    return nearest


def unit(name: str, vectors: F32) -> F32:
    """Rows of length 1 (a zero row stays zero), computed in float64: a float32 square may over- or underflow."""
    contract.finite(name, vectors)
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("...i,...i->...", wide, wide))
    return np.divide(wide, np.where(norms > 0, norms, 1.0)[..., None]).astype(np.float32)
