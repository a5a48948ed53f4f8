"""Numeric kernels of Recallite: NumPy arrays in, NumPy arrays out, compiled by numba where it is installed.

Every function checks its arguments once and raises `KernelError` for those it refuses. The engine calls `recall`, and
the others for single tasks; `cosine_top_k` and `reciprocal_rank_fusion` are here for users alone.
"""

from recallite_kernels.arguments import CONTENT as CONTENT
from recallite_kernels.arguments import NAMED as NAMED
from recallite_kernels.arguments import RESIDUAL_STEPS as RESIDUAL_STEPS
from recallite_kernels.arguments import Forest as Forest
from recallite_kernels.arguments import Graph as Graph
from recallite_kernels.arguments import Postings as Postings
from recallite_kernels.arguments import Records as Records
from recallite_kernels.ascending import pack_ascending as pack_ascending
from recallite_kernels.ascending import unpack_ascending as unpack_ascending
from recallite_kernels.composition import postings_of as postings_of
from recallite_kernels.composition import smoothed_idf as smoothed_idf
from recallite_kernels.contract import LANES as LANES
from recallite_kernels.contract import KernelError as KernelError
from recallite_kernels.dispatch import KernelStatus as KernelStatus
from recallite_kernels.dispatch import cached as cached
from recallite_kernels.dispatch import start_background as start_background
from recallite_kernels.dispatch import status as status
from recallite_kernels.dispatch import warmup as warmup
from recallite_kernels.forest import check_forest as check_forest
from recallite_kernels.forest import forest_scores as forest_scores
from recallite_kernels.lexical import bm25_top_k as bm25_top_k
from recallite_kernels.lexical import invert as invert
from recallite_kernels.parameters import check_parameters as check_parameters
from recallite_kernels.pooling import pool_tokens as pool_tokens
from recallite_kernels.ranking import decay as decay
from recallite_kernels.ranking import maximal_marginal_relevance as maximal_marginal_relevance
from recallite_kernels.ranking import reciprocal_rank_fusion as reciprocal_rank_fusion
from recallite_kernels.recalls import DONE as DONE
from recallite_kernels.recalls import ROOM as ROOM
from recallite_kernels.recalls import recall as recall
from recallite_kernels.signals import EVIDENCE as EVIDENCE
from recallite_kernels.signals import FEATURES as FEATURES
from recallite_kernels.signals import REASONS as REASONS
from recallite_kernels.signals import SIGNALS as SIGNALS
from recallite_kernels.signals import Evidence as Evidence
from recallite_kernels.signals import RankParameters as RankParameters
from recallite_kernels.signals import Signals as Signals
from recallite_kernels.signals import reason_bits as reason_bits
from recallite_kernels.vectors import cosine_top_k as cosine_top_k
from recallite_kernels.vectors import hamming_shortlist as hamming_shortlist
from recallite_kernels.vectors import quantize_int8 as quantize_int8
from recallite_kernels.vectors import rescore_shortlist as rescore_shortlist
from recallite_kernels.vectors import sketch as sketch
from recallite_kernels.vectors import sketch_blocks as sketch_blocks
from recallite_kernels.view import ABSENT as ABSENT
from recallite_kernels.view import FIGURES as FIGURES
from recallite_kernels.view import SCAN_ALL as SCAN_ALL
from recallite_kernels.view import UNCOUNTED as UNCOUNTED
from recallite_kernels.view import Asking as Asking
from recallite_kernels.view import Hits as Hits
from recallite_kernels.view import Plan as Plan
from recallite_kernels.view import Stated as Stated
from recallite_kernels.view import Terms as Terms
from recallite_kernels.view import Vectors as Vectors
from recallite_kernels.view import View as View
from recallite_kernels.view import Workspace as Workspace
from recallite_kernels.view import hits as hits
from recallite_kernels.view import workspace as workspace
from recallite_kernels.words import count_words as count_words
from recallite_kernels.words import distinct_chunks as distinct_chunks
from recallite_kernels.words import sum_ngrams as sum_ngrams
