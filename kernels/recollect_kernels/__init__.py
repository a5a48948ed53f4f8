"""Numeric kernels of Recollect: NumPy arrays in, NumPy arrays out, JIT where numba is there.

Every function checks its arguments once and raises `KernelError` for those it refuses.
"""

from recollect_kernels.arguments import Choices, Codes, Graph, Lists, Postings, Records, Sketches
from recollect_kernels.candidates import expand_candidates, join_candidates, order_by_score
from recollect_kernels.contenders import contenders
from recollect_kernels.dispatch import KernelStatus, cached, start_background, status, warmup
from recollect_kernels.errors import KernelError
from recollect_kernels.graph import spread_activation
from recollect_kernels.lexical import allowed_in_slices, bm25_for_rows, bm25_top_k, invert, word_coverage
from recollect_kernels.look import max_sim
from recollect_kernels.pooling import pool_tokens
from recollect_kernels.rank import rank_candidates
from recollect_kernels.ranking import (
    decay,
    maximal_marginal_relevance,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.vectors import (
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
    "Choices",
    "Codes",
    "Graph",
    "KernelError",
    "KernelStatus",
    "Lists",
    "Postings",
    "Records",
    "Sketches",
    "allowed_in_slices",
    "bm25_for_rows",
    "bm25_top_k",
    "cached",
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
    "start_background",
    "status",
    "top_k",
    "warmup",
    "weighted_fusion",
    "word_coverage",
]
