"""The registry of kernels: each is a method of `Backend`, and a function of that name in a module of both backends.

Arguments are already checked: masks are never None (an empty one allows every row), queries of a cosine are unit
vectors or zero. Both backends give the same results; None instead of one means NaN, infinity, an index out of range or
rows out of order.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from recallite_kernels.arguments import Forest, Postings
from recallite_kernels.contract import F32, F64, I8, I32, I64, U8, U16, U64
from recallite_kernels.view import Asking, Hits, Plan, View, Workspace

_MODULES = "stages", "vectors", "hamming", "lexical", "pooling", "ranking", "forest", "words", "ascending"


class Backend(Protocol):
    def sketch(self, vectors: F32) -> U64 | None: ...
    def quantize_int8(self, vectors: F32) -> tuple[I8, F32]: ...
    def hamming_shortlist(
        self, queries: U64, sketches: U64, allowed: I64, listed: bool, start: int, stop: int, size: int
    ) -> tuple[I64, U16] | None: ...
    def rescore_shortlist(
        self, queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
    ) -> tuple[I64, F32]: ...
    def cosine_top_k(self, queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None: ...
    def pool_tokens(self, codes: I8, scales: F32, token_ids: I64, offsets: I64) -> F32: ...

    def bm25_top_k(
        self, postings: Postings, mask: U8, scratch: F32, k: int, in_order: bool
    ) -> tuple[I64, F32, I64] | None: ...
    def invert(
        self, term_ids: I32, counts: U8, offsets: I64, first_row: int, out: tuple[I32, U8] | None
    ) -> tuple[I32, I64, I32, U8]: ...

    def reciprocal_rank_fusion(self, ranks: I64, weights: F64, k: float) -> F64: ...
    def decay(self, ages_days: F64, half_life_days: float, floor: float, exponential: bool) -> F64: ...
    def maximal_marginal_relevance(
        self, relevance: F64, token_ids: I32, offsets: I64, mmr_lambda: float, k: int
    ) -> I64: ...
    def forest_scores(self, features: F64, forest: Forest) -> F64: ...
    def distinct_chunks(self, texts: U8, offsets: I64, folds: U8) -> tuple[U8, I32, I64]: ...
    def sum_ngrams(self, characters: I32, offsets: I64, weights: I8, shortest: int, longest: int) -> I64: ...
    def count_words(
        self, entries: I32, offsets: I64, words: I32, word_offsets: I64, flags: U8, vocabulary: int
    ) -> tuple[I32, U8, I64]: ...
    def unpack_ascending(self, packed: U16, offsets: I64) -> I32 | None: ...
    def recall(self, view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits) -> int: ...


NAMES = tuple(name for name in vars(Backend) if not name.startswith("_"))


def functions_of(package: str) -> dict[str, Callable[..., Any]]:
    """The functions that `Backend` names, from the modules of a backend's package."""
    modules = [importlib.import_module(f"{package}.{name}") for name in _MODULES]
    functions = {name: value for module in modules for name, value in vars(module).items() if _is_own(module, value)}
    return {name: functions[name] for name in NAMES if name in functions}


def _is_own(module: Any, value: Any) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__
