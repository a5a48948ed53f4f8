"""What is refused, on both backends alike, and that the message says what was wrong and what is wanted."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import recallite_kernels as kernels
from recallite_kernels import KernelError
from recallite_kernels.protocol import Backend

pytestmark = pytest.mark.usefixtures("backend")

vector = np.ones(4, np.float32)
matrix = np.ones((3, 4), np.float32)
codes, scales = np.ones((3, 4), np.int8), np.ones(3, np.float32)
bits = np.ones((3, 1), np.uint64)
bit = bits[:1].copy()
real = np.ones(3)
none, ends = np.empty(0, np.int64), np.array([0, 3])
unit, rows, near = np.full((1, 4), 0.5, np.float32), np.array([[0, 1, 2]]), np.zeros((1, 3), np.uint16)
chain = np.full(3, -1, np.int32)
links = chain, chain[:0], chain[:0]


def unknown(count=3):
    return np.full(count, np.nan, np.float32)


def spoilt(value):
    vectors = matrix.copy()
    vectors[1, 2] = value
    return vectors


def read_only(count=3):
    return np.frombuffer(b"\0" * 4 * count, np.float32)


def bm25(**changed):
    arguments = {
        "rows": np.array([0, 2], np.int32),
        "counts": np.ones(2, np.uint8),
        "starts": np.array([0]),
        "ends": np.array([2]),
        "idf": np.ones(1, np.float32),
        "slice_offsets": np.array([0, 1]),
        "lengths": np.ones(3, np.float32),
        "average_length": 1.0,
        "k1": 1.2,
        "b": 0.75,
    }
    return kernels.Postings(**{**arguments, **changed})


def rescored(**changed):
    arguments = {"queries": unit, "codes": codes, "scales": scales, "rows": rows, "distances": near, "size": 3, "k": 3}
    return kernels.rescore_shortlist(**{**arguments, **changed})


def checked(**changed):
    chosen = kernels.RankParameters(0.6, 0.4, -1.0, 0, 0.4, 0.5, 1.0, 0.7, 0.8, 0, 90.0, 0.5, 0, 0.2)
    return kernels.check_parameters(chosen._replace(**changed))


def full_forest(leaf):
    """Two trees of one node, whose leaves are all the same."""
    return kernels.Forest(np.zeros((2, 1), np.uint8), np.zeros((2, 1)), np.full((2, 2), leaf))


def top(**changed):
    scratch = changed.pop("scratch", np.zeros(3, np.float32))
    return kernels.bm25_top_k(bm25(**changed), mask=None, scratch=scratch, k=1)


def shortlist(queries=bit, sketches=bits, allowed=None, start=0, stop=3, size=2):
    sketches = kernels.sketch_blocks(sketches) if sketches.ndim == 2 else sketches
    return kernels.hamming_shortlist(queries, sketches, allowed, start, stop, size)


OUT_OF_ORDER = "rows: a slice is out of order or of range; wanted strictly ascending rows from 0 to 2"
REFUSED = [
    ("vectors: nan at (1, 2); wanted finite", lambda: kernels.sketch(spoilt(np.nan))),
    ("vectors: -inf at (1, 2); wanted finite", lambda: kernels.sketch(spoilt(-np.inf))),
    ("vectors: list; wanted a numpy array of float32", lambda: kernels.sketch([[1.0]])),
    ("vectors: dtype float64; wanted float32", lambda: kernels.sketch(matrix.astype(np.float64))),
    ("vectors: dtype >f4; wanted float32", lambda: kernels.sketch(matrix.astype(">f4"))),
    ("vectors: shape (4,); wanted (any, any)", lambda: kernels.sketch(vector)),
    ("vectors: not C-contiguous", lambda: kernels.sketch(matrix[:, ::2])),
    ("vectors: not C-contiguous", lambda: kernels.sketch(np.asfortranarray(np.ones((2, 2), np.float32)))),
    ("vectors: shape (3, 4); wanted (any, 3)", lambda: kernels.cosine_top_k(unit[:, :3].copy(), matrix, 1)),
    ("k: 0; wanted at least 1", lambda: kernels.cosine_top_k(unit, matrix, 0)),
    ("mask: shape (2,); wanted (3)", lambda: kernels.cosine_top_k(unit, matrix, 1, np.ones(2, np.uint8))),
    ("queries: 0 words; wanted 1 to 1023", lambda: shortlist(np.ones((1, 0), np.uint64), np.ones((3, 0), np.uint64))),
    ("queries: 1024 words", lambda: shortlist(np.ones((1, 1024), np.uint64), np.ones((3, 1024), np.uint64))),
    ("queries: shape (1,); wanted (any, any)", lambda: shortlist(bits[0])),
    ("queries: dtype int64; wanted uint64", lambda: shortlist(bits.astype(np.int64))),
    ("sketches: shape (1, 2, 16); wanted (any, 1, 16)", lambda: shortlist(sketches=np.ones((3, 2), np.uint64))),
    ("sketches: shape (3,); wanted (any, any)", lambda: kernels.sketch_blocks(bits.ravel())),
    ("size: 0; wanted at least 1", lambda: shortlist(size=0)),
    ("stop: 17; wanted from 0 to 16", lambda: shortlist(stop=17)),
    ("stop: 3; wanted from 0 to 2", lambda: shortlist(allowed=np.array([0, 2]))),
    ("start: 3; wanted from 0 to 2", lambda: shortlist(start=3, stop=2)),
    ("start: -1; wanted from 0 to 3", lambda: shortlist(start=-1)),
    ("allowed: holds 16; wanted 0 to 15", lambda: shortlist(allowed=np.array([1, 2, 16]))),
    ("allowed: holds -1; wanted 0 to 15", lambda: shortlist(allowed=np.array([1, -1, 2]))),
    ("allowed: holds 70; wanted 0 to 15", lambda: shortlist(allowed=np.array([0, 70, 2]))),
    ("allowed: dtype uint8; wanted int64", lambda: shortlist(allowed=np.ones(3, np.uint8))),
    ("queries: nan at (0, 1)", lambda: rescored(queries=np.array([[0, np.nan, 0, 1]], np.float32))),
    ("codes: shape (3, 4); wanted (any, 2)", lambda: rescored(queries=np.ones((1, 2), np.float32))),
    ("scales: shape (2,); wanted (3)", lambda: rescored(scales=scales[:2])),
    ("rows: shape (1, 3); wanted (2, any)", lambda: rescored(queries=np.ones((2, 4), np.float32))),
    ("rows: holds 3; wanted 0 to 2", lambda: rescored(rows=np.array([[0, 1, 3]]))),
    ("rows: holds -1; wanted 0 to 2", lambda: rescored(rows=np.array([[0, -1, 1]]))),
    ("distances: shape (1, 2); wanted (1, 3)", lambda: rescored(distances=near[:, :2].copy())),
    ("distances: dtype int64; wanted uint16", lambda: rescored(distances=near.astype(np.int64))),
    ("size: 0; wanted at least 1", lambda: rescored(size=0)),
    ("k: 0; wanted at least 1", lambda: rescored(k=0)),
    ("starts, ends: a slice is out of order or of range", lambda: top(ends=np.array([3]))),
    ("starts, ends: a slice is out of order or of range", lambda: top(starts=np.array([-1]))),
    ("starts, ends: a slice is out of order or of range", lambda: top(starts=np.array([2]), ends=np.array([1]))),
    (OUT_OF_ORDER, lambda: top(rows=np.array([0, 3], np.int32))),
    (OUT_OF_ORDER, lambda: top(rows=np.array([2, 2], np.int32))),
    (OUT_OF_ORDER, lambda: top(rows=np.array([-1, 2], np.int32))),
    (OUT_OF_ORDER, lambda: top(rows=np.array([2, 0], np.int32))),
    (OUT_OF_ORDER, lambda: top(rows=np.array([0, 2**31 - 1, 2], np.int32), counts=np.ones(3, np.uint8), ends=ends[1:])),
    ("slice_offsets: not CSR offsets; wanted ascending int64 from 0 to 1", lambda: top(slice_offsets=np.array([0, 2]))),
    ("slice_offsets: not CSR offsets", lambda: top(slice_offsets=none)),
    ("idf: holds -1.0; wanted 0 or more", lambda: top(idf=-np.ones(1, np.float32))),
    ("idf: nan at 0", lambda: top(idf=np.full(1, np.nan, np.float32))),
    ("idf: shape (2,); wanted (1)", lambda: top(idf=np.ones(2, np.float32))),
    ("counts: shape (1,); wanted (2)", lambda: top(counts=np.ones(1, np.uint8))),
    ("average_length: 0.0; wanted finite, above 0", lambda: top(average_length=0.0)),
    ("k1: nan; wanted finite", lambda: top(k1=float("nan"))),
    ("b: 1.5; wanted finite, at least 0, at most 1", lambda: top(b=1.5)),
    ("scratch: shape (2,); wanted (3)", lambda: top(scratch=np.zeros(2, np.float32))),
    ("scratch: read-only", lambda: top(scratch=read_only())),
    (
        "offsets: not CSR offsets",
        lambda: kernels.invert(np.zeros(2, np.int32), np.ones(2, np.uint8), np.array([0, 2, 1, 2]), 0),
    ),
    (
        "term_ids: holds -1; wanted 0 or more",
        lambda: kernels.invert(np.full(1, -1, np.int32), np.ones(1, np.uint8), np.array([0, 1]), 0),
    ),
    (
        "first_row: 2147483647; wanted from 0 to 2147483646",
        lambda: kernels.invert(np.zeros(1, np.int32), np.ones(1, np.uint8), np.array([0, 1]), 2**31 - 1),
    ),
    (
        "out[0]: shape (2,); wanted (1)",
        lambda: kernels.invert(
            np.zeros(1, np.int32),
            np.ones(1, np.uint8),
            np.array([0, 1]),
            0,
            (np.empty(2, np.int32), np.empty(1, np.uint8)),
        ),
    ),
    ("ranks: holds -1", lambda: kernels.reciprocal_rank_fusion(np.array([[-1]]), np.ones(1))),
    ("half_life_days: 0.0; wanted finite, above 0", lambda: kernels.decay(real, 0.0)),
    ("floor: 2.0", lambda: kernels.decay(real, 30.0, 2.0)),
    ('form: \'linear\'; wanted "half_life" or "exp"', lambda: kernels.decay(real, 30.0, 0.0, "linear")),
    (
        "mmr_lambda: 1.1",
        lambda: kernels.maximal_marginal_relevance(real, none.astype(np.int32), np.zeros(4, np.int64), 1.1, 1),
    ),
    ("k: -2; wanted at least 1", lambda: kernels.cosine_top_k(unit, matrix, -2)),
    ("k: 1.5; wanted a whole number", lambda: kernels.cosine_top_k(unit, matrix, 1.5)),
    ("mask: dtype int64; wanted uint8", lambda: kernels.cosine_top_k(unit, matrix, 1, np.ones(3, np.int64))),
    ("weights: [0.0]; wanted none negative", lambda: kernels.reciprocal_rank_fusion(np.array([[1]]), np.zeros(1))),
    ("parameters.rerank_depth: -1; wanted from 0 to", lambda: checked(rerank_depth=-1)),
    ("parameters.rerank_weight: inf; wanted finite", lambda: checked(rerank_weight=np.inf)),
    ("parameters.expansion_depth: 1.5; wanted a whole number", lambda: checked(expansion_depth=1.5)),
    ("parameters.expansion_depth: 100", lambda: checked(expansion_depth=10**30)),
    ("parameters.clock: '1'; wanted a whole number", lambda: checked(clock="1")),
    ("parameters.clock: 9223372036854775808; wanted from", lambda: checked(clock=2**63)),
    ("parameters.near: None; wanted a number", lambda: checked(near=None)),
    ("parameters.near: '1'; wanted a number", lambda: checked(near="1")),
    ("parameters.far: [1]; wanted a number", lambda: checked(far=[1])),
    ("parameters.far: nan; wanted finite", lambda: checked(far=float("nan"))),
    ("parameters.lone_share: 1000", lambda: checked(lone_share=10**400)),
    (
        "parameters.vector_weight: 1e+308; wanted finite, at least 0, at most 1e+100",
        lambda: checked(vector_weight=1e308),
    ),
    ("parameters.importance_weight: -0.1; wanted", lambda: checked(importance_weight=-0.1)),
    ("parameters.half_life_days: 0.0; wanted finite, at least 1e-09", lambda: checked(half_life_days=0.0)),
    ("parameters.decay_floor: 1.5; wanted finite, at least 0, at most 1", lambda: checked(decay_floor=1.5)),
    ("parameters.rrf_k: inf; wanted finite", lambda: checked(rrf_k=np.inf)),
    ("parameters.exponential: 2; wanted from 0 to 1", lambda: checked(exponential=2)),
    ("parameters: vector_weight and keyword_weight are 0", lambda: checked(vector_weight=0, keyword_weight=0.0)),
    ("parameters: the weights of the sum are 0", lambda: checked(weighted_sum=1, importance_weight=0.0)),
    (
        "weights: [1e+308, 1e+308]; wanted none negative and a finite sum",
        lambda: kernels.reciprocal_rank_fusion(np.ones((2, 1), np.int64), np.full(2, 1e308), 0.0),
    ),
    ("k1: 1e+308; wanted finite, at least 0", lambda: top(k1=1e308)),
    ("k1 * b / average_length: inf; wanted finite", lambda: top(average_length=5e-324)),
    ("leaves: holds NaN or infinity", lambda: kernels.forest_scores(np.zeros((1, 1)), full_forest(1e308))),
    ("parameters.date_weight: -0.1; wanted finite, at least 0", lambda: checked(date_weight=-0.1)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message for message, _ in REFUSED])
def test_the_message_names_what_was_wrong(message, call):
    with pytest.raises(KernelError, match="^" + re.escape(message)):
        call()


def test_an_unaligned_array_is_refused():
    unaligned = np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float64)
    with pytest.raises(KernelError, match="not C-contiguous and aligned"):
        kernels.decay(unaligned, 30.0)


def test_every_kernel_of_the_registry_is_public():
    registered = {name for name in vars(Backend) if not name.startswith("_")}
    public = {name for name, each in vars(kernels).items() if inspect.isfunction(each)}
    assert public == registered | {
        "cached", "check_forest", "check_parameters", "hits", "pack_ascending", "postings_of", "reason_bits",
        "sketch_blocks", "smoothed_idf", "start_background", "status", "warmup", "workspace",
    }  # fmt: skip
    assert issubclass(KernelError, ValueError)
