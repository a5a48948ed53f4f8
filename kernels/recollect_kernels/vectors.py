"""Vector kernels (float32): sketch, shortlist, rescore, exact cosine. Scores descend, ties by ascending row."""

from __future__ import annotations

import numpy as np

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F32, I8, I64, U16, U64, Mask, array
from recollect_kernels.errors import KernelError


def sketch(vectors: F32) -> U64:
    """One bit per component, set where it is above 0.

    vectors float32 (n, d) -> uint64 (n, ceil(d / 64)); component j is bit j % 64 (least significant first) of
    word j // 64, so that the little-endian bytes equal sqlite-vec's `vec_quantize_binary`.
    """
    array("vectors", vectors, contract.f32, None, None)
    return dispatch.active.sketch(vectors)


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    """Symmetric int8 per row: value = code * scale, the largest magnitude of a row is code 127.

    vectors float32 (n, d) -> int8 (n, d), float32 (n,). A zero row has scale 0.
    """
    array("vectors", vectors, contract.f32, None, None)
    codes, scales = dispatch.active.quantize_int8(vectors)
    contract.finite_scores(scales, "vectors")
    return codes, scales


def hamming_distances(
    query: U64, sketches: U64, mask: Mask | None, start: int, stop: int, out: U16, histogram: I64
) -> None:
    """Hamming distance of rows start to stop, so that a pool of threads can share the rows.

    query uint64 (w,), sketches uint64 (n, w), mask bytes (n,) or None, out uint16 (n,), histogram int64
    (64 w + 2,). Writes out[start:stop], 65535 where the mask is 0, and adds the count of each allowed distance to
    `histogram`: one per thread, summed for `hamming_select`.
    """
    array("query", query, contract.u64, None)
    words = query.shape[0]
    if not 1 <= words <= 1023:
        raise KernelError(f"query: {words} words; wanted 1 to 1023 (distances are uint16)")
    array("sketches", sketches, contract.u64, None, words)
    n = sketches.shape[0]
    checked = contract.mask(mask, n)
    contract.output("out", out, contract.u16, n)
    contract.output("histogram", histogram, contract.i64, 64 * words + 2)
    stop = contract.whole("stop", stop, 0, n)
    start = contract.whole("start", start, 0, stop)
    if start == stop:
        return
    part = checked[start:stop] if checked.size else checked
    dispatch.active.hamming_distances(query, sketches[start:stop], part, out[start:stop], histogram)


def hamming_select(distances: U16, mask: Mask | None, histogram: I64, m: int) -> I64:
    """The m nearest rows from `hamming_distances`: ascending distance, ties by ascending row.

    distances uint16 (n,), histogram int64 (64 w + 2,), summed over the blocks. `mask` is the one the distances
    were taken under; they carry it already (65535), so it is checked for its length only.
    """
    array("distances", distances, contract.u16, None)
    contract.mask(mask, distances.shape[0])
    array("histogram", histogram, contract.i64, None)
    m = contract.whole("m", m, 1)
    counted = int(histogram.sum())
    if counted > distances.shape[0] or (histogram.size and int(histogram.min()) < 0):
        raise KernelError(f"histogram: counts {counted} of {distances.shape[0]} rows; wanted the rows allowed")
    return dispatch.active.hamming_select(distances, histogram, min(m, counted))


def hamming_shortlist(query: U64, sketches: U64, mask: Mask | None, m: int) -> I64:
    """The m rows nearest in Hamming distance, fewer if fewer are allowed: int64, ties by ascending row."""
    m = contract.whole("m", m, 1)
    array("query", query, contract.u64, None)
    array("sketches", sketches, contract.u64, None, None)
    n = sketches.shape[0]
    out = np.empty(n, np.uint16)
    histogram = np.zeros(64 * query.shape[0] + 2, np.int64)
    hamming_distances(query, sketches, mask, 0, n, out, histogram)
    return dispatch.active.hamming_select(out, histogram, min(m, int(histogram.sum())))


def rescore_int8(query: F32, codes: I8, scales: F32, rows: I64) -> F32:
    """Dot product of a float query with the int8 codes of given rows, times their scale.

    query float32 (d,), codes int8 (n, d), scales float32 (n,), rows int64 (m,) -> float32 (m,). For unit vectors
    this is the cosine to within the quantisation.
    """
    array("query", query, contract.f32, None)
    contract.finite("query", query)
    array("codes", codes, contract.i8, None, query.shape[0])
    array("scales", scales, contract.f32, codes.shape[0])
    contract.indices("rows", rows, codes.shape[0])
    scores = dispatch.active.rescore_int8(query, codes, scales, rows)
    contract.finite_scores(scores, "scales")
    return scores


def rescore(query: F32, vectors: F32, rows: I64) -> F32:
    """Exact cosine of the query with given rows; a zero vector scores 0.

    query float32 (d,), vectors float32 (n, d), rows int64 (m,) -> float32 (m,).
    """
    array("query", query, contract.f32, None)
    array("vectors", vectors, contract.f32, None, query.shape[0])
    contract.indices("rows", rows, vectors.shape[0])
    scores = dispatch.active.rescore(unit("query", query), vectors, rows)
    contract.finite_scores(scores, "vectors")
    return scores


def cosine_top_k(query: F32, vectors: F32, k: int, mask: Mask | None = None) -> tuple[I64, F32]:
    """The k best rows by exact cosine: rows int64 (k',), scores float32 (k',); k' is clamped to the rows allowed.

    query float32 (d,), vectors float32 (n, d), mask bytes (n,) or None.
    """
    array("query", query, contract.f32, None)
    array("vectors", vectors, contract.f32, None, query.shape[0])
    n = vectors.shape[0]
    k = min(contract.whole("k", k, 1), n)
    checked = contract.mask(mask, n)
    found = dispatch.active.cosine_top_k(unit("query", query), vectors, k, checked)
    return _refuse_rows(found, "vectors")


def cosine_top_k_many(queries: F32, vectors: F32, k: int, mask: Mask | None = None) -> tuple[I64, F32]:
    """`cosine_top_k` for many queries in one blocked scan: rows int64 (q, k'), scores float32 (q, k')."""
    array("queries", queries, contract.f32, None, None)
    array("vectors", vectors, contract.f32, None, queries.shape[1])
    n = vectors.shape[0]
    checked = contract.mask(mask, n)
    k = min(contract.whole("k", k, 1), int(np.count_nonzero(checked)) if checked.size else n)
    found = dispatch.active.cosine_top_k_many(unit("queries", queries), vectors, k, checked)
    return _refuse_rows(found, "vectors")


def top_k(scores: F32, k: int, mask: Mask | None = None) -> tuple[I64, F32]:
    """The k greatest scores: rows int64 (k',), scores float32 (k',), descending, ties by ascending index."""
    array("scores", scores, contract.f32, None)
    n = scores.shape[0]
    k = min(contract.whole("k", k, 1), n)
    return _refuse_rows(dispatch.active.top_k(scores, k, contract.mask(mask, n)), "scores")


def unit(name: str, vectors: F32) -> F32:
    """Rows of length 1 (a zero row stays zero), computed in float64 so that no float32 square over- or underflows."""
    contract.finite(name, vectors)
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("...i,...i->...", wide, wide))
    return np.divide(wide, np.where(norms > 0, norms, 1.0)[..., None]).astype(np.float32)


def _refuse_rows(found: tuple[I64, F32] | None, of: str) -> tuple[I64, F32]:
    if found is None:
        raise KernelError(f"{of}: holds NaN or infinity; wanted finite numbers")
    return found
