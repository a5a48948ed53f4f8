"""Vector kernels in NumPy. Large matrices are walked in blocks that stay in the cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect_kernels.contract import F32, I8, I32, I64, NO_MASK, U8, U16, U64

BLOCK_ROWS = 8192
# Outside these a float32 sum of squares may have lost digits to under- or overflow.
LEAST_SQUARE, GREATEST_SQUARE = 1e-30, 1e30


def sketch(vectors: F32) -> U64:
    n, d = vectors.shape
    words = -(-d // 64)
    packed = np.zeros((n, words * 8), np.uint8)
    packed[:, : -(-d // 8)] = np.packbits(vectors > 0, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False).reshape(n, words)


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    n, d = vectors.shape
    codes = np.empty((n, d), np.int8)
    scales = np.empty(n, np.float32)
    for start in range(0, n, BLOCK_ROWS):
        block = vectors[start : start + BLOCK_ROWS]
        greatest = np.maximum(block.max(axis=1, initial=0), -block.min(axis=1, initial=0))
        scale = (greatest / np.float64(127)).astype(np.float32)
        scales[start : start + len(block)] = scale
        # In float64, as the JIT: codes that lie half way must fall alike. A denormal scale has few digits: clip.
        wide = scale.astype(np.float64)
        inverse = np.divide(1.0, wide, out=np.zeros(len(block)), where=wide > 0)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.rint(block * inverse[:, None])
            codes[start : start + len(block)] = np.nan_to_num(np.clip(scaled, -127, 127))
    return codes, scales


def hamming_shortlist(
    queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
) -> tuple[I64, U16]:
    size = min(size, stop - start)
    rows, nearest = np.empty((len(queries), size), np.int64), np.empty((len(queries), size), np.uint16)
    distances = np.empty(stop - start, np.uint16)
    for place, query in enumerate(queries):
        for first in range(start, stop, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, stop)
            block = sketches[allowed[first:last]] if listed else sketches[first:last]
            distances[first - start : last - start] = bit_count(block ^ query).sum(axis=1, dtype=np.uint16)
        # Sorted by distance and place in one key; only the nearest are sorted.
        key = distances.astype(np.int64) << 32 | np.arange(stop - start)
        chosen = np.sort(np.partition(key, size - 1)[:size] if 0 < size < len(key) else key)
        at = chosen & 0xFFFFFFFF
        rows[place] = allowed[at + start] if listed else at + start
        nearest[place] = distances[at]
    return rows, nearest


def rescore_shortlist(
    queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
) -> tuple[I64, F32]:
    found, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    for place, query in enumerate(queries):
        chosen = rows[place]
        if len(chosen) > size:
            chosen = chosen[np.argsort(distances[place], kind="stable")[:size]]
        chosen = np.sort(chosen)
        scores = _dots_int8(query, codes, scales, chosen)
        if not np.isfinite(scores).all():
            found[place], cosines[place] = 0, np.nan
            continue
        scores = np.clip(scores, -1, 1)
        order = best(scores, k)
        found[place], cosines[place] = chosen[order], scores[order]
    return found, cosines


def row_cosines(
    queries: F32, offsets: I64, rows: I64, first_place: I64, parts: I32, codes: I8, scales: F32, cosines: F32
) -> None:
    for query, start, stop in zip(queries, offsets, offsets[1:], strict=False):
        at = start + np.flatnonzero(np.isnan(cosines[start:stop]))
        counts = parts[rows[at]].astype(np.int64)
        cosines[at] = 0
        at, counts = at[counts > 0], counts[counts > 0]
        starts = np.cumsum(counts) - counts
        places = np.repeat(first_place[rows[at]] - starts, counts) + np.arange(counts.sum())
        if len(at):
            scores = _dots_int8(query, codes, scales, places)
            scores = np.where(np.isfinite(scores), np.clip(scores, -1, 1), np.float32(np.nan))
            cosines[at] = np.maximum.reduceat(scores, starts)


def _dots_int8(query: F32, codes: I8, scales: F32, places: I64) -> F32:
    # Not a BLAS product: there the last bit of a dot depends on its place, and equal vectors would not tie.
    dots: F32 = np.einsum("ij,j->i", codes[places].astype(np.float32), query) * scales[places]
    return dots


def rescore(query: F32, vectors: F32, rows: I64) -> F32:
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        scores[part] = cosines(query, vectors[rows[part]])
    return scores


def cosine_top_k(query: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    rows = np.flatnonzero(mask) if mask.size else None
    n = len(vectors) if rows is None else len(rows)
    scores = np.empty(n, np.float32)
    for start in range(0, n, BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        scores[part] = cosines(query, vectors[part] if rows is None else vectors[rows[part]])
    found = top_k(scores, k, NO_MASK)
    if found is None or rows is None:
        return found
    return rows[found[0]].astype(np.int64, copy=False), found[1]


def cosine_top_k_many(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    count = len(queries)
    best_rows, best_scores = np.empty((count, 0), np.int64), np.empty((count, 0), np.float32)
    allowed = np.flatnonzero(mask).astype(np.int64) if mask.size else np.arange(len(vectors), dtype=np.int64)
    for start in range(0, len(allowed), BLOCK_ROWS):
        rows = allowed[start : start + BLOCK_ROWS]
        block = vectors[rows] if mask.size else vectors[start : start + len(rows)]
        scores = cosines(queries, block)
        if not np.isfinite(scores).all():
            return None
        # Earlier rows stand first, so that an equal score of a later block never displaces them.
        all_scores = np.concatenate([best_scores, scores], axis=1)
        all_rows = np.concatenate([best_rows, np.broadcast_to(rows, scores.shape)], axis=1)
        keep = min(k, all_scores.shape[1])
        best_rows, best_scores = np.empty((count, keep), np.int64), np.empty((count, keep), np.float32)
        for query in range(count):
            order = best(all_scores[query], keep)
            best_rows[query], best_scores[query] = all_rows[query][order], all_scores[query][order]
    return best_rows, best_scores


def top_k(scores: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    if not np.isfinite(scores).all():
        return None
    if not mask.size:
        order = best(scores, k)
        return order, scores[order]
    allowed = np.flatnonzero(mask)
    order = allowed[best(scores[allowed], k)].astype(np.int64, copy=False)
    return order, scores[order]


def best(scores: F32, k: int) -> I64:
    """Indices of the k greatest, descending, ties by ascending index."""
    n = len(scores)
    k = min(k, n)
    if k == 0:
        return np.empty(0, np.int64)
    chosen: NDArray[np.int64]
    if k == n:
        chosen = np.arange(n, dtype=np.int64)
    else:
        least = np.partition(scores, n - k)[n - k]
        above = np.flatnonzero(scores > least)
        equal = np.flatnonzero(scores == least)[: k - len(above)]
        chosen = np.sort(np.concatenate([above, equal])).astype(np.int64, copy=False)
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def cosines(queries: F32, block: F32) -> F32:
    """Cosines of unit queries with the rows of a block: (rows,) for one query, (queries, rows) for many."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", block, block)
        dots: F32 = queries @ block.T
        safe = (squares > LEAST_SQUARE) & (squares < GREATEST_SQUARE)
        if safe.all():
            dots /= np.sqrt(squares)
            return dots
        scores: F32 = np.divide(dots, np.sqrt(squares), out=np.zeros_like(dots), where=safe)
        wide = block[~safe].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        scores[..., ~safe] = (queries.astype(np.float64) @ wide.T) / np.where(norms == 0, 1.0, norms)
    return scores


def bit_count(words: U64) -> U8:
    if hasattr(np, "bitwise_count"):
        counts: U8 = np.bitwise_count(words)
        return counts
    # numpy 1.26 has no popcount: a table of 65,536 bytes, four look-ups a word.
    parts: U8 = _sixteen_bits()[words.view(np.uint16)].reshape(*words.shape, 4)
    summed: U8 = parts.sum(axis=-1, dtype=np.uint8)
    return summed


_TABLE: list[U8] = []


def _sixteen_bits() -> U8:
    if not _TABLE:
        byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
        _TABLE.append((byte[:, None] + byte[None, :]).ravel())
    return _TABLE[0]
