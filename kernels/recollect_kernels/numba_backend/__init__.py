"""The kernels compiled by numba. Importing this compiles nothing; `_jit.Kernel.load` does."""

from recollect_kernels.numba_backend.candidates import expand_candidates, join_candidates, order_by_score
from recollect_kernels.numba_backend.contenders import contenders
from recollect_kernels.numba_backend.graph import spread_activation
from recollect_kernels.numba_backend.hamming import hamming_shortlist, sketch
from recollect_kernels.numba_backend.lexical import allowed_in_slices, bm25_for_rows, bm25_top_k, invert, word_coverage
from recollect_kernels.numba_backend.look import max_sim
from recollect_kernels.numba_backend.pooling import pool_tokens
from recollect_kernels.numba_backend.rank import rank_candidates
from recollect_kernels.numba_backend.ranking import (
    decay,
    maximal_marginal_relevance,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.numba_backend.vectors import (
    cosine_top_k,
    cosine_top_k_many,
    quantize_int8,
    rescore,
    rescore_shortlist,
    row_cosines,
    top_k,
)

__all__ = [
    "allowed_in_slices",
    "bm25_for_rows",
    "bm25_top_k",
    "contenders",
    "cosine_top_k",
    "cosine_top_k_many",
    "decay",
    "expand_candidates",
    "hamming_shortlist",
    "invert",
    "join_candidates",
    "max_sim",
    "maximal_marginal_relevance",
    "normalise_scores",
    "order_by_score",
    "pool_tokens",
    "quantize_int8",
    "rank_candidates",
    "reciprocal_rank_fusion",
    "rescore",
    "rescore_shortlist",
    "row_cosines",
    "sketch",
    "spread_activation",
    "top_k",
    "weighted_fusion",
    "word_coverage",
]
