"""Lexical kernels: BM25 over in-memory postings, over forward lists, and the inversion that builds postings.

Postings live in shared buffers: `rows` int32 (p,) and `counts` uint8 (p,), a term's occurrences in a document.
A query is a list of slices: `starts`, `ends` int64 (s,) into the buffers and `idf` float32 (s,); a term may have
several slices, one per segment. The rows within a slice ascend strictly; `lengths` float32 (n,) holds the length of
each document in terms. Slices add up by descending idf, those of equal idf as given, so that documents that hold the
same terms tie exactly.

BM25 (Robertson and Zaragoza, 2009): a slice adds idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)).
"""

from __future__ import annotations

import numpy as np

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F32, I32, I64, U8, Mask, array
from recollect_kernels.errors import KernelError


def bm25_scores(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, out: F32,
) -> None:  # fmt: skip
    """Add the BM25 score of every document to `out`, float32 (n,), which the caller has set to zero."""
    average_length, k1, b = _postings(rows, counts, starts, ends, idf, lengths, average_length, k1, b)
    contract.output("out", out, contract.f32, lengths.shape[0])
    dispatch.active.bm25_scores(rows, counts, starts, ends, idf, lengths, average_length, k1, b, out)


def bm25_top_k(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, mask: Mask | None, scratch: F32, k: int,
) -> tuple[I64, F32]:  # fmt: skip
    """The k best documents with a score above 0: rows int64 (k',), scores float32 (k',), ties by ascending row.

    `scratch` float32 (n,) is all zero on entry and on return, also when an error is raised; one per thread.
    """
    average_length, k1, b = _postings(rows, counts, starts, ends, idf, lengths, average_length, k1, b)
    n = lengths.shape[0]
    contract.output("scratch", scratch, contract.f32, n)
    checked = contract.mask(mask, n)
    k = contract.whole("k", k, 1)
    k = min(k, n, int((ends - starts).sum()))
    if k <= 0:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    found = dispatch.active.bm25_top_k(
        rows, counts, starts, ends, idf, lengths, average_length, k1, b, checked, scratch, k
    )
    if found is None:
        raise KernelError("lengths: a score is not finite; wanted finite lengths of 0 or more")
    return found


def bm25_for_rows(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, candidates: I64,
) -> F32:  # fmt: skip
    """BM25 of given documents only, each looked up in each slice: candidates int64 (m,) -> float32 (m,)."""
    average_length, k1, b = _postings(rows, counts, starts, ends, idf, lengths, average_length, k1, b)
    contract.indices("candidates", candidates, lengths.shape[0])
    scores = dispatch.active.bm25_for_rows(rows, counts, starts, ends, idf, lengths, average_length, k1, b, candidates)
    contract.finite_scores(scores, "lengths")
    return scores


def scan_forward(
    term_ids: I32, counts: U8, offsets: I64, query_terms: I32, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float,
) -> F32:  # fmt: skip
    """BM25 of m documents in forward form, for the few that are not in the postings yet.

    Document i holds term_ids[offsets[i]:offsets[i + 1]] with their counts; offsets int64 (m + 1,), query_terms
    int32 (q,), idf float32 (q,), lengths float32 (m,) -> float32 (m,).
    """
    array("term_ids", term_ids, contract.i32, None)
    array("counts", counts, contract.u8, term_ids.shape[0])
    array("lengths", lengths, contract.f32, None)
    contract.offsets("offsets", offsets, term_ids.shape[0], lengths.shape[0])
    array("query_terms", query_terms, contract.i32, None)
    array("idf", idf, contract.f32, query_terms.shape[0])
    average_length, k1, b = _parameters(idf, average_length, k1, b)
    scores = dispatch.active.scan_forward(term_ids, counts, offsets, query_terms, idf, lengths, average_length, k1, b)
    contract.finite_scores(scores, "lengths")
    return scores


def invert(term_ids: I32, counts: U8, offsets: I64, first_row: int) -> tuple[I32, I64, I32, U8]:
    """Forward lists -> one inverted segment, by counting sort.

    term_ids int32 (t,) not negative, counts uint8 (t,), offsets int64 (m + 1,); document i becomes row
    first_row + i. Returns terms int32 (u,) ascending, starts int64 (u + 1,), rows int32 (t,), counts uint8 (t,):
    the postings of terms[j] are rows[starts[j]:starts[j + 1]], ascending.
    """
    array("term_ids", term_ids, contract.i32, None)
    array("counts", counts, contract.u8, term_ids.shape[0])
    contract.offsets("offsets", offsets, term_ids.shape[0])
    first_row = contract.whole("first_row", first_row, 0, 2**31 - offsets.shape[0])
    if term_ids.size and int(term_ids.min()) < 0:
        raise KernelError(f"term_ids: holds {int(term_ids.min())}; wanted 0 or more")
    return dispatch.active.invert(term_ids, counts, offsets, first_row)


def _postings(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float,
) -> tuple[float, float, float]:  # fmt: skip
    array("rows", rows, contract.i32, None)
    size = rows.shape[0]
    array("counts", counts, contract.u8, size)
    array("starts", starts, contract.i64, None)
    array("ends", ends, contract.i64, starts.shape[0])
    array("idf", idf, contract.f32, starts.shape[0])
    array("lengths", lengths, contract.f32, None)
    n = lengths.shape[0]
    # A query has a handful of slices: plain Python is faster here than NumPy.
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if not 0 <= start <= end <= size:
            raise KernelError(f"starts, ends: slice {index} is {start}:{end}; wanted 0 <= start <= end <= {size}")
        # Rows ascend within a slice, so its two ends bound it.
        if start < end and not 0 <= (first := rows.item(start)) <= (last := rows.item(end - 1)) < n:
            raise KernelError(f"rows: slice {index} spans {first} to {last}; wanted ascending, 0 to {n - 1}")
    return _parameters(idf, average_length, k1, b)


def _parameters(idf: F32, average_length: float, k1: float, b: float) -> tuple[float, float, float]:
    contract.finite("idf", idf)
    if idf.size and float(idf.min()) < 0:
        raise KernelError(f"idf: holds {float(idf.min())}; wanted 0 or more")
    return (
        contract.real("average_length", average_length, above=0.0),
        contract.real("k1", k1, low=0.0),
        contract.real("b", b, low=0.0, high=1.0),
    )
