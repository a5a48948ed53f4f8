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

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Postings
from recallite_kernels.contract import F32, I32, I64, U8, KernelError, Mask, array
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
        postings = _check_postings(postings)  # the kernel checks the order of rows as it reads them
        if contract.output("scratch", scratch, contract.f32, postings.lengths.shape[0]).any():
            raise KernelError("scratch: not zero; wanted zeros, as each call leaves them")
        k = contract.whole("k", k, 1)
    n = postings.lengths.shape[0]
    allowed = contract.mask(mask, n)
    best = dispatch.active.bm25_top_k(postings, allowed, scratch, min(k, n), checked)
    if best is None:
        if not _in_order(postings.rows, postings.starts, postings.ends, n):
            raise _disorder(n)
        raise KernelError("lengths: a score is not finite; wanted finite lengths of 0 or more")
    return best


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


def _check_postings(postings: Postings) -> Postings:
    postings = check_group(postings, Postings)
    rows, counts, starts, ends, idf, slice_offsets, _, average_length, k1, b = postings
    check_slices(rows, starts, ends, slice_offsets)
    array("counts", counts, contract.u8, rows.shape[0])
    array("idf", idf, contract.f32, starts.shape[0])
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
