"""Numeric kernels of Recollect: NumPy arrays in, NumPy arrays out, compiled by numba where it is installed.

Every function checks its arguments once and raises `KernelError` for those it refuses. The engine does not call
`cosine_top_k`, `reciprocal_rank_fusion`, `word_coverage` and `forest_scores`; they are here for users.
"""

from recollect_kernels.arguments import NEVER as NEVER
from recollect_kernels.arguments import Asked as Asked
from recollect_kernels.arguments import Codes as Codes
from recollect_kernels.arguments import Forest as Forest
from recollect_kernels.arguments import Graph as Graph
from recollect_kernels.arguments import Lists as Lists
from recollect_kernels.arguments import Mentions as Mentions
from recollect_kernels.arguments import Postings as Postings
from recollect_kernels.arguments import Records as Records
from recollect_kernels.arguments import Sketches as Sketches
from recollect_kernels.arguments import Statements as Statements
from recollect_kernels.arguments import Tokens as Tokens
from recollect_kernels.arguments import Weighed as Weighed
from recollect_kernels.arguments import WordSlices as WordSlices
from recollect_kernels.changes import order_changes as order_changes
from recollect_kernels.contract import LANES as LANES
from recollect_kernels.contract import KernelError as KernelError
from recollect_kernels.dispatch import KernelStatus as KernelStatus
from recollect_kernels.dispatch import cached as cached
from recollect_kernels.dispatch import start_background as start_background
from recollect_kernels.dispatch import status as status
from recollect_kernels.dispatch import warmup as warmup
from recollect_kernels.evidence import Assessed as Assessed
from recollect_kernels.evidence import assess as assess
from recollect_kernels.forest import Reordered as Reordered
from recollect_kernels.forest import check_forest as check_forest
from recollect_kernels.forest import forest_scores as forest_scores
from recollect_kernels.forest import rank_by_forest as rank_by_forest
from recollect_kernels.lexical import allowed_in_slices as allowed_in_slices
from recollect_kernels.lexical import bm25_for_rows as bm25_for_rows
from recollect_kernels.lexical import bm25_top_k as bm25_top_k
from recollect_kernels.lexical import invert as invert
from recollect_kernels.lexical import word_coverage as word_coverage
from recollect_kernels.pooling import pool_tokens as pool_tokens
from recollect_kernels.rank import check_parameters as check_parameters
from recollect_kernels.rank import rank_candidates as rank_candidates
from recollect_kernels.ranking import decay as decay
from recollect_kernels.ranking import maximal_marginal_relevance as maximal_marginal_relevance
from recollect_kernels.ranking import reciprocal_rank_fusion as reciprocal_rank_fusion
from recollect_kernels.score_bounds import score_bound_candidates as score_bound_candidates
from recollect_kernels.signals import EVIDENCE as EVIDENCE
from recollect_kernels.signals import FEATURES as FEATURES
from recollect_kernels.signals import REASONS as REASONS
from recollect_kernels.signals import SIGNALS as SIGNALS
from recollect_kernels.signals import Evidence as Evidence
from recollect_kernels.signals import Features as Features
from recollect_kernels.signals import RankParameters as RankParameters
from recollect_kernels.signals import Signals as Signals
from recollect_kernels.signals import reason_bits as reason_bits
from recollect_kernels.vectors import cosine_top_k as cosine_top_k
from recollect_kernels.vectors import hamming_shortlist as hamming_shortlist
from recollect_kernels.vectors import quantize_int8 as quantize_int8
from recollect_kernels.vectors import rescore_shortlist as rescore_shortlist
from recollect_kernels.vectors import sketch as sketch
from recollect_kernels.vectors import sketch_blocks as sketch_blocks
