"""Numeric kernels of Recallite: NumPy arrays in, NumPy arrays out, compiled by numba where it is installed.

Every function checks its arguments once and raises `KernelError` for those it refuses. The engine does not call
`cosine_top_k`, `reciprocal_rank_fusion`, `word_coverage` and `forest_scores`; they are here for users.
"""

from recallite_kernels.arguments import NEVER as NEVER
from recallite_kernels.arguments import Asked as Asked
from recallite_kernels.arguments import Codes as Codes
from recallite_kernels.arguments import Forest as Forest
from recallite_kernels.arguments import Graph as Graph
from recallite_kernels.arguments import Lists as Lists
from recallite_kernels.arguments import Mentions as Mentions
from recallite_kernels.arguments import Postings as Postings
from recallite_kernels.arguments import Records as Records
from recallite_kernels.arguments import Sketches as Sketches
from recallite_kernels.arguments import Statements as Statements
from recallite_kernels.arguments import Tokens as Tokens
from recallite_kernels.arguments import Weighed as Weighed
from recallite_kernels.arguments import WordSlices as WordSlices
from recallite_kernels.changes import order_changes as order_changes
from recallite_kernels.contract import LANES as LANES
from recallite_kernels.contract import KernelError as KernelError
from recallite_kernels.dispatch import KernelStatus as KernelStatus
from recallite_kernels.dispatch import cached as cached
from recallite_kernels.dispatch import start_background as start_background
from recallite_kernels.dispatch import status as status
from recallite_kernels.dispatch import warmup as warmup
from recallite_kernels.evidence import Assessed as Assessed
from recallite_kernels.evidence import assess as assess
from recallite_kernels.forest import Reordered as Reordered
from recallite_kernels.forest import check_forest as check_forest
from recallite_kernels.forest import forest_scores as forest_scores
from recallite_kernels.forest import rank_by_forest as rank_by_forest
from recallite_kernels.lexical import allowed_in_slices as allowed_in_slices
from recallite_kernels.lexical import bm25_for_rows as bm25_for_rows
from recallite_kernels.lexical import bm25_top_k as bm25_top_k
from recallite_kernels.lexical import invert as invert
from recallite_kernels.lexical import word_coverage as word_coverage
from recallite_kernels.pooling import pool_tokens as pool_tokens
from recallite_kernels.rank import check_parameters as check_parameters
from recallite_kernels.rank import rank_candidates as rank_candidates
from recallite_kernels.ranking import decay as decay
from recallite_kernels.ranking import maximal_marginal_relevance as maximal_marginal_relevance
from recallite_kernels.ranking import reciprocal_rank_fusion as reciprocal_rank_fusion
from recallite_kernels.score_bounds import score_bound_candidates as score_bound_candidates
from recallite_kernels.signals import EVIDENCE as EVIDENCE
from recallite_kernels.signals import FEATURES as FEATURES
from recallite_kernels.signals import REASONS as REASONS
from recallite_kernels.signals import SIGNALS as SIGNALS
from recallite_kernels.signals import Evidence as Evidence
from recallite_kernels.signals import Features as Features
from recallite_kernels.signals import RankParameters as RankParameters
from recallite_kernels.signals import Signals as Signals
from recallite_kernels.signals import reason_bits as reason_bits
from recallite_kernels.vectors import cosine_top_k as cosine_top_k
from recallite_kernels.vectors import hamming_shortlist as hamming_shortlist
from recallite_kernels.vectors import quantize_int8 as quantize_int8
from recallite_kernels.vectors import rescore_shortlist as rescore_shortlist
from recallite_kernels.vectors import sketch as sketch
from recallite_kernels.vectors import sketch_blocks as sketch_blocks
