"""Numeric kernels of Recollect: NumPy arrays in, NumPy arrays out, JIT where numba is there.

Every function checks its arguments once and raises `KernelError` for those it refuses.
"""

from recollect_kernels.dispatch import KernelStatus, cached, start_background, status, warmup
from recollect_kernels.errors import KernelError
from recollect_kernels.graph import spread, spread_chain
from recollect_kernels.lexical import bm25_for_rows, bm25_scores, bm25_top_k, invert, scan_forward
from recollect_kernels.look import max_sim
from recollect_kernels.ranking import (
    decay,
    group_top_mean,
    maximal_marginal_relevance,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.vectors import (
    cosine_top_k,
    cosine_top_k_many,
    hamming_distances,
    hamming_select,
    hamming_shortlist,
    quantize_int8,
    rescore,
    rescore_int8,
    sketch,
    top_k,
)

__all__ = [
    "KernelError",
    "KernelStatus",
    "bm25_for_rows",
    "bm25_scores",
    "bm25_top_k",
    "cached",
    "cosine_top_k",
    "cosine_top_k_many",
    "decay",
    "group_top_mean",
    "hamming_distances",
    "hamming_select",
    "hamming_shortlist",
    "invert",
    "max_sim",
    "maximal_marginal_relevance",
    "normalise_scores",
    "quantize_int8",
    "reciprocal_rank_fusion",
    "rescore",
    "rescore_int8",
    "scan_forward",
    "sketch",
    "spread",
    "spread_chain",
    "start_background",
    "status",
    "top_k",
    "warmup",
    "weighted_fusion",
]
