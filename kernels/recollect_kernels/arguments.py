"""What `rank_candidates` takes, in groups that belong together."""

from __future__ import annotations

from typing import NamedTuple

from recollect_kernels.contract import F32, I8, I32, I64, U8, U64

SIGNALS = ("cosine", "bm25", "rerank", "fused", "spread", "lift", "linked", "decay", "score")


class Lists(NamedTuple):
    """The best rows of each query by vector and by keyword: as `join_candidates` takes them."""

    vector_rows: I64
    cosines: F32
    vector_counts: I64
    keyword_rows: I64
    bm25: F32
    keyword_counts: I64


class Codes(NamedTuple):
    """Queries float32 (q, d) and the int8 codes that `row_cosines` takes. What it measures is cut to ceilings (q,)."""

    queries: F32
    ceilings: F32
    first_place: I64
    parts: I32
    codes: I8
    scales: F32


class Sketches(NamedTuple):
    """Sketches uint64 (places, words) and those of the queries (q, words).

    limits int64 (steps + 1,): the greatest Hamming distance at which a cosine may still reach i / steps.
    """

    queries: U64
    sketches: U64
    limits: I64


class Postings(NamedTuple):
    """What the kernels of `recollect_kernels.lexical` take first."""

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
    """Chains, links and sources by row, as `recollect_kernels.graph` has them; an empty mask allows every row."""

    previous: I32
    following: I32
    sources: I64
    heads: I32
    nexts: I32
    targets: I32
    strengths: F32
    mask: U8


class Records(NamedTuple):
    """By row: the key that breaks ties, int64; created_at in microseconds, int64; importance, float32."""

    keys: I64
    created_at: I64
    importance: F32


class Choices(NamedTuple):
    """The numbers of a scoring.

    - vector_weight, keyword_weight: shares of cosine and of BM25 divided by the query's maximum
    - rrf_k: 0 or more fuses by reciprocal rank instead; -1 does not. A cosine or a BM25 of 0 or less has no rank, nor
      has a cosine below `ranked_share` of the query's best. The scores of what has a rank are normalised to [0.4, 1.0];
      what has none gets 0.4 where a weighted signal is above 0, and 0 where none is
    - expanded: of how many of the best the neighbours join
    - neighbor_weight, source_weight: shares of the strongest neighbour and of the source's best three; `near` and
      `far` are what a neighbour one and two places away passes on; `lone_share` of its own score stands for what a
      record without neighbours cannot have
    - clock: the moment ages are measured from, microseconds; half_life_days (infinite: no decay), decay_floor,
      exponential (1: e^(-age / half_life), 0: 0.5^(age / half_life))
    - importance_weight: importance 1 multiplies by 1 + weight, importance 0 by 1 - weight
    - stand_in: 1 lets BM25 divided by the query's maximum stand as the fused score of a record that no cosine can be
      measured of (no codes, or none of its own); not with rrf_k
    - additive: 1 adds instead of multiplying: semantic_weight times the score after spreading, cut to [0, 1],
      recency_weight times the decay and importance_weight times the importance, the weights divided by their sum
    """

    vector_weight: float
    keyword_weight: float
    rrf_k: float
    expanded: int
    neighbor_weight: float
    source_weight: float
    near: float
    far: float
    lone_share: float
    clock: int
    half_life_days: float
    decay_floor: float
    exponential: int
    importance_weight: float
    stand_in: int = 0
    additive: int = 0
    semantic_weight: float = 0.0
    recency_weight: float = 0.0
    ranked_share: float = 0.0
