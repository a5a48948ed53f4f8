"""The kernels in Python and NumPy, without a compiler: the typed truth, and the answer until the JIT is ready."""

from recollect_kernels.python_backend.candidates import expand_candidates, join_candidates, order_by_score
from recollect_kernels.python_backend.contenders import contenders
from recollect_kernels.python_backend.graph import spread_activation
from recollect_kernels.python_backend.lexical import allowed_in_slices, bm25_for_rows, bm25_top_k, invert, word_coverage
from recollect_kernels.python_backend.look import max_sim
from recollect_kernels.python_backend.pooling import pool_tokens
from recollect_kernels.python_backend.rank import rank_candidates
from recollect_kernels.python_backend.ranking import (
    decay,
    maximal_marginal_relevance,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.python_backend.vectors import (
    cosine_top_k,
    cosine_top_k_many,
    hamming_shortlist,
    quantize_int8,
    rescore,
    rescore_shortlist,
    row_cosines,
    sketch,
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
