"""The kernels compiled by numba. Importing this compiles nothing; `_jit.Kernel.load` does."""

from recollect_kernels.numba_backend.graph import spread, spread_chain
from recollect_kernels.numba_backend.hamming import hamming_distances, hamming_select, sketch
from recollect_kernels.numba_backend.lexical import (
    bm25_for_rows,
    bm25_scores,
    bm25_top_k,
    invert,
    scan_forward,
)
from recollect_kernels.numba_backend.look import max_sim
from recollect_kernels.numba_backend.ranking import (
    decay,
    group_top_mean,
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
    rescore_int8,
    top_k,
)

__all__ = [
    "bm25_for_rows",
    "bm25_scores",
    "bm25_top_k",
    "cosine_top_k",
    "cosine_top_k_many",
    "decay",
    "group_top_mean",
    "hamming_distances",
    "hamming_select",
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
    "top_k",
    "weighted_fusion",
]
