"""Lexical kernels: BM25 over in-memory postings, and the inversion that builds postings.

Postings live in shared buffers: `rows` int32 (p,) and `counts` uint8 (p,), a term's occurrences in a document.
A query is a run of slices: `starts`, `ends` int64 (s,) into the buffers and `idf` float32 (s,); a term may have
several slices, one per segment. Query i has the slices slice_offsets[i]:slice_offsets[i + 1], int64 (q + 1,). The rows
within a slice ascend strictly and are below n. `lengths` float32 (n,) holds the length of each document in terms, 0 or
more; it is not walked, and a score that is not finite is refused. Slices add up in the order given: documents that
contain the same terms tie exactly.

Checking all that takes longer than looking up a few rows. `checked=True`, here and in other kernels that the engine
calls, says that the arguments are known to fit, as those of an index that was checked when it was loaded; then only
results are checked.

BM25 (Robertson and Zaragoza, 2009): a slice adds idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)).
"""

from __future__ import annotations

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Postings
from recallite_kernels.contract import F32, F64, I32, I64, U8, KernelError, Mask, array
from recallite_kernels.groups import check_group

MOST = 1e30
"""More than any real parameter of BM25, and far from the end of float32."""


def bm25_top_k(
    postings: Postings, mask: Mask | None, scratch: F32, k: int, *, checked: bool = False
) -> tuple[I64, F32, I64]:
    """The k best documents of each query with a score above 0.

    mask bytes (n,) or None. `scratch` float32 (n,) is all zero on entry and on return, also when an error is raised;
    one per thread. Returns rows int64 (q, k), scores float32 (q, k), best first, ties by ascending row, and how many
    of them count, int64 (q,).
    """
    if not checked:
        postings = check_postings(postings, in_order=True)  # the kernel checks the order as it reads
        if contract.output("scratch", scratch, contract.f32, postings.lengths.shape[0]).any():
            raise KernelError("scratch: not zero; wanted zeros, as each call leaves them")
        k = contract.whole("k", k, 1)
    n = postings.lengths.shape[0]
    allowed = contract.mask(mask, n)
    found = dispatch.active.bm25_top_k(postings, allowed, scratch, min(k, n), checked)
    if found is None:
        if not _in_order(postings.rows, postings.starts, postings.ends, n):
            raise _disorder(n)
        raise KernelError("lengths: a score is not finite; wanted finite lengths of 0 or more")
    return found


def bm25_for_rows(postings: Postings, offsets: I64, candidates: I64, scores: F32) -> None:
    """BM25 of given documents only, each looked up in each slice, written where `scores` is NaN.

    Query i asks for candidates[offsets[i]:offsets[i + 1]], int64 (m,); scores float32 (m,).
    """
    postings = check_postings(postings)
    contract.indices("candidates", candidates, postings.lengths.shape[0])
    contract.offsets("offsets", offsets, candidates.shape[0], postings.slice_offsets.shape[0] - 1)
    contract.output("scores", scores, contract.f32, candidates.shape[0])
    dispatch.active.bm25_for_rows(postings, offsets, candidates, scores)
    contract.finite_scores(scores, "lengths")


def word_coverage(
    rows: I32, starts: I64, ends: I64, words: I64, slice_offsets: I64, idf: F32, offsets: I64, candidates: I64
) -> tuple[F64, U8]:  # fmt: skip
    """The sum of the IDF of the query's words that each candidate contains, and which words any of them contains.

    words int64 (s,) says which word each slice belongs to, idf float32 (w,) is by word, candidates int64 (m,) with
    offsets int64 (q + 1,) by query -> float64 (m,), uint8 (w,).
    """
    check_slices(rows, starts, ends)
    contract.offsets("slice_offsets", slice_offsets, starts.shape[0])
    refuse_disorder(rows, starts, ends, 2**31)
    contract.finite("idf", array("idf", idf, contract.f32, None))
    contract.indices("words", words, idf.shape[0], starts.shape[0])
    contract.indices("candidates", candidates, 2**31)
    contract.offsets("offsets", offsets, candidates.shape[0], slice_offsets.shape[0] - 1)
    return dispatch.active.word_coverage(rows, starts, ends, words, slice_offsets, idf, offsets, candidates)


def allowed_in_slices(rows: I32, starts: I64, ends: I64, mask: Mask) -> I64:
    """How many rows of each slice have a mask byte that is not 0: mask (n,) -> int64 (s,)."""
    if not isinstance(mask, np.ndarray) or mask.ndim != 1:
        raise KernelError("mask: wanted a numpy array of uint8 with one dimension")
    checked = contract.mask(mask, len(mask))
    check_slices(rows, starts, ends)
    allowed = dispatch.active.allowed_in_slices(rows, starts, ends, checked)
    if allowed is None:
        raise _disorder(len(checked))
    return allowed


def invert(
    term_ids: I32, counts: U8, offsets: I64, first_row: int, out: tuple[I32, U8] | None = None
) -> tuple[I32, I64, I32, U8]:
    """Forward lists -> one inverted segment, by counting sort.

    term_ids int32 (t,) not negative, counts uint8 (t,), offsets int64 (m + 1,); document i becomes row
    first_row + i. Returns terms int32 (u,) ascending, starts int64 (u + 1,), rows int32 (t,), counts uint8 (t,):
    the postings of terms[j] are rows[starts[j]:starts[j + 1]], ascending. `out` are arrays for rows and counts.
    """
    array("term_ids", term_ids, contract.i32, None)
    array("counts", counts, contract.u8, term_ids.shape[0])
    contract.offsets("offsets", offsets, term_ids.shape[0])
    first_row = contract.whole("first_row", first_row, 0, 2**31 - offsets.shape[0])
    if term_ids.size and int(term_ids.min()) < 0:
        raise KernelError(f"term_ids: holds {int(term_ids.min())}; wanted 0 or more")
    if out is not None:
        if not isinstance(out, tuple) or len(out) != 2:
            raise KernelError(f"out: {type(out).__name__}; wanted a tuple of two arrays, for rows and counts")
        contract.output("out[0]", out[0], contract.i32, term_ids.shape[0])
        contract.output("out[1]", out[1], contract.u8, term_ids.shape[0])
    return dispatch.active.invert(term_ids, counts, offsets, first_row, out)


def check_postings(postings: Postings, *, in_order: bool = False) -> Postings:
    """Refuse postings that a kernel cannot read; the order of rows is not checked where they are known to be in it."""
    postings = check_group(postings, Postings)
    rows, counts, starts, ends, idf, slice_offsets, lengths, average_length, k1, b = postings
    check_slices(rows, starts, ends, slice_offsets)
    array("counts", counts, contract.u8, rows.shape[0])
    array("idf", idf, contract.f32, starts.shape[0])
    if not in_order:
        refuse_disorder(rows, starts, ends, lengths.shape[0])
    contract.finite("idf", idf)
    if idf.size and float(idf.min()) < 0:
        raise KernelError(f"idf: holds {float(idf.min())}; wanted 0 or more")
    check_bm25(k1, b, average_length)
    return postings


def check_bm25(k1: float, b: float, average_length: float) -> None:
    """Refuse parameters that make no finite score."""
    contract.real("k1", k1, low=0.0, high=MOST)
    contract.real("b", b, low=0.0, high=1.0)
    contract.real("average_length", average_length, above=0.0)
    contract.real("k1 * b / average_length", k1 * b / average_length, high=MOST)  # finite in float32 too


def check_slices(rows: I32, starts: I64, ends: I64, slice_offsets: I64 | None = None) -> None:
    """Refuse slices that are out of order or of range."""
    array("rows", rows, contract.i32, None)
    array("starts", starts, contract.i64, None)
    array("ends", ends, contract.i64, starts.shape[0])
    if slice_offsets is not None:
        contract.offsets("slice_offsets", slice_offsets, starts.shape[0])
    size = rows.shape[0]
    if starts.size and not (int(starts.min()) >= 0 and bool((starts <= ends).all()) and int(ends.max()) <= size):
        raise KernelError(f"starts, ends: a slice is out of order or of range; wanted 0 <= start <= end <= {size}")


def refuse_disorder(rows: I32, starts: I64, ends: I64, n: int, name: str = "rows") -> None:
    """Refuse slices whose rows do not ascend strictly from 0 to below n."""
    if not _in_order(rows, starts, ends, n):
        raise _disorder(n, name)


def _in_order(rows: I32, starts: I64, ends: I64, n: int) -> bool:
    """Whether the rows of each slice ascend strictly from 0 to below n."""
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        part = rows[start:end]
        if start < end and not (part.item(0) >= 0 and part.item(-1) < n and bool((part[1:] > part[:-1]).all())):
            return False
    return True


def _disorder(n: int, name: str = "rows") -> KernelError:
    return KernelError(
        f"{name}: a slice is out of order or of range; wanted strictly ascending {name} from 0 to {n - 1}"
    )
