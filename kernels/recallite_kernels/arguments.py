"""Groups of arguments that belong together."""

# Annotations are not postponed: a NamedTuple compiles each that is text, 3 ms of every process.
from typing import NamedTuple

import numpy as np

from recallite_kernels.contract import F32, F64, I8, I32, I64, U8, U32, U64


class Lists(NamedTuple):
    """The best rows of a question by vector and by keyword, int64 (k,), each once, with their values, float32 (k,)."""

    vector_rows: I64
    cosines: F32
    keyword_rows: I64
    bm25: F32


class Codes(NamedTuple):
    """A question's vector, float32 (d,) of unit length, empty without one, and the int8 vectors of all records.

    Record r has the parts[r] (int32 (n,)) vectors from first_place[r] (int64 (n,)) on, or, if both are empty, vector r
    if there is one; vector p is codes[p] * scales[p], codes int8 (places, d), scales float32 (places,); or with
    residuals, int8 (places, d) and else empty, (codes[p] + residuals[p] / 254) * scales[p]. A measured cosine never
    exceeds the ceiling.
    """

    query: F32
    ceiling: float
    first_place: I64
    parts: I32
    codes: I8
    scales: F32
    residuals: I8 = np.empty((0, 0), np.int8)


class Tokens(NamedTuple):
    """1-bit codes, as `sketch` makes them, of the tokens of a question and of vectors, which reranking compares.

    The question has the tokens queries, uint64 (t, w), with the shares weights float32 (t,). Vector p has
    codes[starts[p]:starts[p + 1]], w words a token: starts int64 (places + 1,), codes uint64 (all words,). Two codes
    that differ in h of `width` bits have the similarity 1 - 2 h / width.
    """

    queries: U64
    weights: F32
    starts: I64
    codes: U64
    width: int


class Postings(NamedTuple):
    """Postings in shared buffers, and the slices of them that each query reads: see `recallite_kernels.lexical`."""

    rows: I32
    counts: U8
    starts: I64
    ends: I64
    idf: F32
    slice_offsets: I64
    lengths: F32
    average_length: float
    k1: float
    b: float


class Graph(NamedTuple):
    """Chains, links and sources by row; an empty mask allows every row.

    previous and following int32 (n,) are the rows before and after in the same source, -1 for none; sources int32
    (n,), -1 for none, and below that a run of rows that spreads as a source does, and is none where hits are grouped.
    Links are linked lists: heads int32 (n,), empty without links, is the index of a row's first link, nexts int32
    (e,) that of the next one, -1 for none; targets int32 (e,) is the linked row, -1 for a removed link; strengths
    float32 (e,).
    """

    previous: I32
    following: I32
    sources: I32
    heads: I32
    nexts: I32
    targets: I32
    strengths: F32
    mask: U8


NEVER = 2**63 - 1
"""A time that does not come."""
AUTHORITY_STEP = 1 << 59
"""Microseconds, more than all times span: what a lower authority says comes before all that a higher one does."""
OVER_STEP = 1 << 58
"""The same for what says itself that it is over, and of one authority."""
OVER, ENDED, DENIED = 1, 1, 2
"""The frame of such a row, in its last place, and its values: all of it has ended, or what it says holds no longer."""


class Records(NamedTuple):
    """Columns by row: the key that breaks ties, int64; created_at in microseconds, int64; importance, float32.

    moments, moments_until int64 (n,): when what the record tells happened, from and until before, in microseconds;
    NEVER for a moment or an open end. resolved uint8 (n,): 1 where that was found in the text; such a record is of the
    time at which it was created as well. authorities uint8 (n,): whose word it is, 0 the highest. speakers int32
    (n, 2): the numbers of the first and the last word of its context where that is a name, -1 for none; empty where no
    record has any.
    """

    keys: I64
    created_at: I64
    importance: F32
    moments: I64
    moments_until: I64
    resolved: U8
    authorities: U8
    speakers: I32


class Mentions(NamedTuple):
    """Words, int32, that a question names, and times from begins to ends, int64 in microseconds.

    fades int64: how long after its end a time still counts, less and less.
    """

    names: I32
    begins: I64
    ends: I64
    fades: I64


class Forest(NamedTuple):
    """Complete binary trees of one depth d, each with n = 2^d - 1 nodes in order of breadth.

    Node i asks whether feature nodes[tree, i], uint8 (trees, n), is above thresholds[tree, i], float64 (trees, n): then
    2 i + 2 follows, else 2 i + 1. Leaves are float64 (trees, n + 1). A threshold of infinity always goes left.
    """

    nodes: U8
    thresholds: F64
    leaves: F64


class Weighed(NamedTuple):
    """Records that are weighed as answers to a question.

    By record: rows int64 (m,), signals float64 (signals, m), lengths float32 (m,) in words, and ranks float64 (m,), the
    number of candidates that score more. `words` of the question count, and the store has `records`.
    """

    rows: I64
    signals: F64
    lengths: F32
    ranks: F64
    words: float
    records: float


class WordSlices(NamedTuple):
    """The postings of the words of a question.

    idf float32 (w,) and roles uint8 (w,), as `Asking` has them, are by word; the slices are rows[starts[s]:ends[s]],
    rows int32 ascending in each, and words[s], int64, is the word of slice s.
    """

    rows: I32
    starts: I64
    ends: I64
    words: I64
    idf: F32
    roles: U8


class Statements(NamedTuple):
    """Things that candidates give a value, best candidate first.

    frames uint32 (m, s) are hashes of the things, 0 for none, and values uint32 (m, s) those of the values. moments
    int64 (m,): when a statement began to hold; keys int64 (m,), no two alike, break ties: the greater is later.
    """

    frames: U32
    values: U32
    moments: I64
    keys: I64


CONTENT, NAMED = 1, 2
"""The roles of a question's words besides 0, one that only asks: what it is about, and a name or a number."""
RESIDUAL_STEPS = 254
"""Steps of a residual within one step of a code."""
