"""The contract between the checked functions and a backend: arguments are already checked, masks are never None
(an empty one allows every row), queries of a cosine are unit vectors or zero, and both backends answer alike.

None instead of a result says that a NaN or an infinity was met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from recollect_kernels.contract import F32, F64, I8, I32, I64, U8, U16, U64

if TYPE_CHECKING:
    from recollect_kernels.arguments import Choices, Codes, Graph, Lists, Postings, Records, Sketches


class Backend(Protocol):
    def sketch(self, vectors: F32) -> U64: ...
    def quantize_int8(self, vectors: F32) -> tuple[I8, F32]: ...
    def hamming_shortlist(
        self, queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
    ) -> tuple[I64, U16]: ...
    def rescore_shortlist(
        self, queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
    ) -> tuple[I64, F32]: ...
    def row_cosines(
        self, queries: F32, offsets: I64, rows: I64, first_place: I64, parts: I32, codes: I8, scales: F32, cosines: F32
    ) -> None: ...
    def rescore(self, query: F32, vectors: F32, rows: I64) -> F32: ...
    def cosine_top_k(self, query: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None: ...
    def cosine_top_k_many(self, queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None: ...
    def top_k(self, scores: F32, k: int, mask: U8) -> tuple[I64, F32] | None: ...
    def max_sim(self, query: U64, weights: F32, codes: U64, offsets: I64, dimension: int) -> F32: ...

    def bm25_top_k(
        self, rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, slice_offsets: I64, lengths: F32,
        average_length: float, k1: float, b: float, mask: U8, scratch: F32, k: int,
    ) -> tuple[I64, F32, I64] | None: ...  # fmt: skip
    def bm25_for_rows(
        self, rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, slice_offsets: I64, lengths: F32,
        average_length: float, k1: float, b: float, offsets: I64, candidates: I64, scores: F32,
    ) -> None: ...  # fmt: skip
    def word_coverage(
        self, rows: I32, starts: I64, ends: I64, words: I64, slice_offsets: I64, idf: F32, offsets: I64,
        candidates: I64,
    ) -> tuple[F64, U8]: ...  # fmt: skip
    def allowed_in_slices(self, rows: I32, starts: I64, ends: I64, mask: U8) -> I64: ...
    def invert(self, term_ids: I32, counts: U8, offsets: I64, first_row: int) -> tuple[I32, I64, I32, U8]: ...

    def join_candidates(
        self, first_rows: I64, first_values: F32, first_counts: I64, second_rows: I64, second_values: F32,
        second_counts: I64,
    ) -> tuple[I64, I64, F32, F32] | None: ...  # fmt: skip
    def expand_candidates(
        self, offsets: I64, rows: I64, first: F32, second: F32, scores: F64, best: int, previous: I32, following: I32,
        heads: I32, nexts: I32, targets: I32, mask: U8,
    ) -> tuple[I64, I64, F32, F32] | None: ...  # fmt: skip
    def rank_candidates(
        self, lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, choices: Choices,
        look: F64,
    ) -> tuple[I64, I64, F64, I64] | None: ...  # fmt: skip
    def contenders(
        self, offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches,
        mask: U8, records: Records, choices: Choices,
    ) -> tuple[I64, I64] | None: ...  # fmt: skip
    def order_by_score(self, offsets: I64, scores: F64, keys: I64) -> I64: ...
    def spread_activation(
        self, offsets: I64, rows: I64, scores: F64, previous: I32, following: I32, sources: I64, heads: I32,
        nexts: I32, targets: I32, strengths: F32, mask: U8, near: float, far: float,
    ) -> tuple[F64, F64, F64, I64] | None: ...  # fmt: skip

    def pool_tokens(self, codes: I8, scales: F32, token_ids: I64, offsets: I64) -> F32: ...

    def weighted_fusion(self, signals: F64, weights: F64, normalise: U8, offsets: I64) -> F64: ...
    def reciprocal_rank_fusion(self, ranks: I64, weights: F64, k: float) -> F64: ...
    def normalise_scores(self, scores: F64, low: float, high: float) -> F64: ...
    def decay(self, ages_days: F64, half_life_days: float, floor: float, exponential: bool) -> F64: ...
    def maximal_marginal_relevance(
        self, relevance: F64, token_ids: I32, offsets: I64, mmr_lambda: float, k: int
    ) -> I64: ...
