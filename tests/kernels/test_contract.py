"""What is refused, on both backends alike, and that the message says what was wrong and what is wanted."""

from __future__ import annotations

import re

import numpy as np
import pytest

import recollect_kernels as kernels
from recollect_kernels import KernelError

pytestmark = pytest.mark.usefixtures("backend")

vector = np.ones(4, np.float32)
matrix = np.ones((3, 4), np.float32)
codes, scales = np.ones((3, 4), np.int8), np.ones(3, np.float32)
bits, word = np.ones((3, 1), np.uint64), np.ones(1, np.uint64)
real = np.ones(3)
none = np.empty(0, np.int64)


def bm25(**changed):
    arguments = {
        "rows": np.array([0, 2], np.int32),
        "counts": np.ones(2, np.uint8),
        "starts": np.array([0]),
        "ends": np.array([2]),
        "idf": np.ones(1, np.float32),
        "lengths": np.ones(3, np.float32),
        "average_length": 1.0,
        "k1": 1.2,
        "b": 0.75,
    }
    return {**arguments, **changed}


def max_sim(**changed):
    arguments = {"query": bits, "weights": scales, "codes": bits, "offsets": np.array([0, 3]), "dimension": 64}
    return kernels.max_sim(**{**arguments, **changed})


REFUSED = [
    ("vectors: list; wanted a numpy array of float32", lambda: kernels.sketch([[1.0]])),
    ("vectors: dtype float64; wanted float32", lambda: kernels.sketch(matrix.astype(np.float64))),
    ("vectors: dtype >f4; wanted float32", lambda: kernels.sketch(matrix.astype(">f4"))),
    ("vectors: shape (4,); wanted (any, any)", lambda: kernels.sketch(vector)),
    ("vectors: not C-contiguous", lambda: kernels.sketch(matrix[:, ::2])),
    ("vectors: not C-contiguous", lambda: kernels.sketch(np.asfortranarray(np.ones((2, 2), np.float32)))),
    ("vectors: shape (3, 4); wanted (any, 3)", lambda: kernels.cosine_top_k(vector[:3], matrix, 1)),
    ("k: 0; wanted at least 1", lambda: kernels.cosine_top_k(vector, matrix, 0)),
    ("k: -2; wanted at least 1", lambda: kernels.top_k(vector, -2)),
    ("k: 1.5; wanted a whole number", lambda: kernels.top_k(vector, 1.5)),
    ("mask: shape (2,); wanted (3)", lambda: kernels.cosine_top_k(vector, matrix, 1, np.ones(2, np.uint8))),
    ("mask: dtype int64; wanted uint8", lambda: kernels.top_k(scales, 1, np.ones(3, np.int64))),
    ("rows: holds 3; wanted 0 to 2", lambda: kernels.rescore(vector, matrix, np.array([0, 3]))),
    ("rows: holds -1; wanted 0 to 2", lambda: kernels.rescore_int8(vector, codes, scales, np.array([-1]))),
    ("rows: dtype int32; wanted int64", lambda: kernels.rescore(vector, matrix, np.zeros(1, np.int32))),
    ("query: 0 words; wanted 1 to 1023", lambda: kernels.hamming_shortlist(word[:0], bits[:, :0].copy(), None, 1)),
    ("m: 0; wanted at least 1", lambda: kernels.hamming_shortlist(word, bits, None, 0)),
    (
        "out: read-only",
        lambda: kernels.hamming_distances(
            word, bits, None, 0, 3, np.frombuffer(bytes(6), np.uint16), np.zeros(66, np.int64)
        ),
    ),
    (
        "stop: 4; wanted from 0 to 3",
        lambda: kernels.hamming_distances(word, bits, None, 0, 4, np.zeros(3, np.uint16), np.zeros(66, np.int64)),
    ),
    (
        "histogram: shape (65,); wanted (66)",
        lambda: kernels.hamming_distances(word, bits, None, 0, 3, np.zeros(3, np.uint16), np.zeros(65, np.int64)),
    ),
    (
        "histogram: counts 9 of 3 rows",
        lambda: kernels.hamming_select(np.zeros(3, np.uint16), None, np.full(1, 9), 2),
    ),
    (
        "starts, ends: slice 0 is 0:3; wanted 0 <= start <= end <= 2",
        lambda: kernels.bm25_for_rows(**bm25(ends=np.array([3])), candidates=none),
    ),
    (
        "rows: slice 0 spans 0 to 3",
        lambda: kernels.bm25_for_rows(**bm25(rows=np.array([0, 3], np.int32)), candidates=none),
    ),
    ("candidates: holds 3", lambda: kernels.bm25_for_rows(**bm25(), candidates=np.array([3]))),
    (
        "idf: holds -1.0; wanted 0 or more",
        lambda: kernels.bm25_for_rows(**bm25(idf=-np.ones(1, np.float32)), candidates=none),
    ),
    ("idf: nan at 0", lambda: kernels.bm25_for_rows(**bm25(idf=np.full(1, np.nan, np.float32)), candidates=none)),
    (
        "average_length: 0.0; wanted finite, above 0",
        lambda: kernels.bm25_for_rows(**bm25(average_length=0.0), candidates=none),
    ),
    ("k1: nan; wanted finite", lambda: kernels.bm25_for_rows(**bm25(k1=float("nan")), candidates=none)),
    (
        "b: 1.5; wanted finite, at least 0, at most 1",
        lambda: kernels.bm25_for_rows(**bm25(b=1.5), candidates=none),
    ),
    (
        "scratch: shape (2,); wanted (3)",
        lambda: kernels.bm25_top_k(**bm25(), mask=None, scratch=np.zeros(2, np.float32), k=1),
    ),
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
        "weights: [0.0, 0.0, 0.0]; wanted none negative",
        lambda: kernels.weighted_fusion(np.ones((3, 2)), real * 0, np.zeros(3, np.uint8)),
    ),
    (
        "signals: inf at (0, 1)",
        lambda: kernels.weighted_fusion(np.array([[1, np.inf]]), np.ones(1), np.ones(1, np.uint8)),
    ),
    ("ranks: holds -1", lambda: kernels.reciprocal_rank_fusion(np.array([[-1]]), np.ones(1))),
    ("scores: nan at 2", lambda: kernels.normalise_scores(np.array([1, 2, np.nan]))),
    ("high: 0.1; wanted finite, at least 0.4", lambda: kernels.normalise_scores(real, high=0.1)),
    ("half_life_days: 0.0; wanted finite, above 0", lambda: kernels.decay(real, 0.0)),
    ("floor: 2.0", lambda: kernels.decay(real, 30.0, 2.0)),
    ('form: \'linear\'; wanted "half_life" or "exp"', lambda: kernels.decay(real, 30.0, 0.0, "linear")),
    (
        "mmr_lambda: 1.1",
        lambda: kernels.maximal_marginal_relevance(real, none.astype(np.int32), np.zeros(4, np.int64), 1.1, 1),
    ),
    ("targets: holds 3", lambda: kernels.spread(real, np.array([0, 1, 1, 1]), np.array([3]), np.ones(1))),
    ("token_ids: holds 3; wanted 0 to 2", lambda: kernels.pool_tokens(codes, scales, np.array([3]), np.array([0, 1]))),
    ("offsets: not CSR offsets", lambda: kernels.pool_tokens(codes, scales, np.array([0]), np.array([0, 2]))),
    ("scales: shape (2,); wanted (3)", lambda: kernels.pool_tokens(codes, scales[:2], none, np.zeros(1, np.int64))),
    (
        "scales: holds NaN or infinity",
        lambda: kernels.pool_tokens(codes, scales * np.float32("nan"), np.array([0]), np.array([0, 1])),
    ),
    ("codes: shape (3, 2); wanted (any, 1)", lambda: max_sim(codes=np.ones((3, 2), np.uint64))),
    ("weights: shape (1,); wanted (3)", lambda: max_sim(weights=np.ones(1, np.float32))),
    ("weights: nan at 0", lambda: max_sim(weights=np.full(3, np.nan, np.float32))),
    ("offsets: not CSR offsets", lambda: max_sim(offsets=np.array([0, 2]))),
    ("dimension: 65; wanted from 1 to 64", lambda: max_sim(dimension=65)),
    ("top: 0", lambda: kernels.group_top_mean(real, np.zeros(3, np.int64), 0)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message for message, _ in REFUSED])
def test_the_message_names_what_was_wrong(message, call):
    with pytest.raises(KernelError, match="^" + re.escape(message)):
        call()


def test_an_unaligned_array_is_refused():
    unaligned = np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float32)
    with pytest.raises(KernelError, match="not C-contiguous and aligned"):
        kernels.top_k(unaligned, 1)


def test_everything_public_is_listed_and_nothing_else():
    public = {name for name in vars(kernels) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(kernels, name)).__name__ == "module"}
    assert public - modules == set(kernels.__all__)
    assert issubclass(KernelError, ValueError)
