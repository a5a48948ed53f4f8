"""The kernels in Python and NumPy, without a compiler: the typed truth, and the answer until the JIT is ready."""

from recollect_kernels.python_backend.graph import spread, spread_chain
from recollect_kernels.python_backend.lexical import (
    bm25_for_rows,
    bm25_scores,
    bm25_top_k,
    invert,
    scan_forward,
)
from recollect_kernels.python_backend.look import max_sim
from recollect_kernels.python_backend.ranking import (
    decay,
    group_top_mean,
    maximal_marginal_relevance,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.python_backend.vectors import (
    cosine_top_k,
    cosine_top_k_many,
    hamming_distances,
    hamming_select,
    quantize_int8,
    rescore,
    rescore_int8,
    sketch,
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
