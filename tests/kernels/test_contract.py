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
bits = np.ones((3, 1), np.uint64)
bit = bits[:1].copy()
real = np.ones(3)
none, ends = np.empty(0, np.int64), np.array([0, 3])
unit, rows, near = np.full((1, 4), 0.5, np.float32), np.array([[0, 1, 2]]), np.zeros((1, 3), np.uint16)
chain = np.full(3, -1, np.int32)
links = chain, chain[:0], chain[:0]


def unknown(count=3):
    return np.full(count, np.nan, np.float32)


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
    return {**arguments, **changed}


def max_sim(**changed):
    arguments = {"query": bits, "weights": scales, "codes": bits, "offsets": np.array([0, 3]), "dimension": 64}
    return kernels.max_sim(**{**arguments, **changed})


def look_up(candidates=none, offsets=None, scores=None, **changed):
    scores = unknown(len(candidates)) if scores is None else scores
    offsets = np.array([0, len(candidates)]) if offsets is None else offsets
    return kernels.bm25_for_rows(**bm25(**changed), offsets=offsets, candidates=candidates, scores=scores)


def coverage(**changed):
    arguments = {name: bm25()[name] for name in ("rows", "starts", "ends", "slice_offsets", "idf")}
    return kernels.word_coverage(
        **{**arguments, "words": np.array([0]), "offsets": ends, "candidates": np.arange(3), **changed}
    )


def cosines(**changed):
    arguments = {
        "queries": unit,
        "offsets": ends,
        "rows": rows[0],
        "first_place": np.arange(3),
        "parts": np.ones(3, np.int32),
        "codes": codes,
        "scales": scales,
        "cosines": unknown(),
    }
    return kernels.row_cosines(**{**arguments, **changed})


def rescored(**changed):
    arguments = {"queries": unit, "codes": codes, "scales": scales, "rows": rows, "distances": near, "size": 3, "k": 3}
    return kernels.rescore_shortlist(**{**arguments, **changed})


def join(**changed):
    one = {"first_rows": rows, "first_values": unit[:, :3].copy(), "first_counts": np.array([3])}
    other = {"second_rows": rows, "second_values": unit[:, :3].copy(), "second_counts": np.array([0])}
    return kernels.join_candidates(**{**one, **other, **changed})


def expand(**changed):
    arguments = {
        "offsets": ends,
        "rows": rows[0],
        "first": unknown(),
        "second": unknown(),
        "scores": real,
        "best": 2,
        "previous": chain,
        "following": chain,
        "heads": chain,
        "nexts": links[1],
        "targets": links[2],
        "mask": None,
    }
    return kernels.expand_candidates(**{**arguments, **changed})


def spread(**changed):
    arguments = {
        "offsets": ends,
        "rows": rows[0],
        "scores": real,
        "previous": chain,
        "following": chain,
        "sources": np.full(3, -1),
        "heads": chain,
        "nexts": links[1],
        "targets": links[2],
        "strengths": unknown(0),
        "mask": None,
        "near": 1.0,
        "far": 0.7,
    }
    return kernels.spread_activation(**{**arguments, **changed})


def top(**changed):
    scratch = changed.pop("scratch", np.zeros(3, np.float32))
    return kernels.bm25_top_k(**bm25(**changed), mask=None, scratch=scratch, k=1)


def shortlist(queries=bit, sketches=bits, allowed=None, start=0, stop=3, size=2):
    return kernels.hamming_shortlist(queries, sketches, allowed, start, stop, size)


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
    ("rows: dtype int32; wanted int64", lambda: kernels.rescore(vector, matrix, np.zeros(1, np.int32))),
    ("queries: 0 words; wanted 1 to 1023", lambda: shortlist(np.ones((1, 0), np.uint64), np.ones((3, 0), np.uint64))),
    ("queries: 1024 words", lambda: shortlist(np.ones((1, 1024), np.uint64), np.ones((3, 1024), np.uint64))),
    ("queries: shape (1,); wanted (any, any)", lambda: shortlist(bits[0])),
    ("queries: dtype int64; wanted uint64", lambda: shortlist(bits.astype(np.int64))),
    ("sketches: shape (3, 2); wanted (any, 1)", lambda: shortlist(sketches=np.ones((3, 2), np.uint64))),
    ("size: 0; wanted at least 1", lambda: shortlist(size=0)),
    ("stop: 4; wanted from 0 to 3", lambda: shortlist(stop=4)),
    ("stop: 3; wanted from 0 to 2", lambda: shortlist(allowed=np.array([0, 2]))),
    ("start: 3; wanted from 0 to 2", lambda: shortlist(start=3, stop=2)),
    ("start: -1; wanted from 0 to 3", lambda: shortlist(start=-1)),
    ("allowed: spans 1 to 3; wanted ascending, 0 to 2", lambda: shortlist(allowed=np.array([1, 2, 3]))),
    ("allowed: spans -1 to 2", lambda: shortlist(allowed=np.array([-1, 1, 2]))),
    ("allowed: spans 2 to 0", lambda: shortlist(allowed=np.array([2, 1, 0]))),
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
    ("queries: inf at (0, 0)", lambda: cosines(queries=np.array([[np.inf, 0, 0, 0]], np.float32))),
    ("parts: dtype int64; wanted int32", lambda: cosines(parts=np.ones(3, np.int64))),
    ("rows: holds 3; wanted 0 to 2", lambda: cosines(rows=np.array([0, 1, 3]))),
    ("offsets: shape (3,); wanted (2)", lambda: cosines(offsets=np.array([0, 1, 3]))),
    ("cosines: read-only", lambda: cosines(cosines=read_only())),
    ("cosines: dtype float64; wanted float32", lambda: cosines(cosines=real * np.nan)),
    ("first_place, parts: name a place outside 0 to 2", lambda: cosines(first_place=np.array([0, 1, 3]))),
    ("first_place, parts: name a place outside 0 to 2", lambda: cosines(parts=np.array([1, 1, 2], np.int32))),
    ("starts, ends: a slice is out of order or of range", lambda: top(ends=np.array([3]))),
    ("starts, ends: a slice is out of order or of range", lambda: look_up(starts=np.array([-1]))),
    ("starts, ends: a slice is out of order or of range", lambda: top(starts=np.array([2]), ends=np.array([1]))),
    ("rows: span 0 to 3", lambda: look_up(rows=np.array([0, 3], np.int32))),
    ("rows: span -1 to 2", lambda: top(rows=np.array([-1, 2], np.int32))),
    ("slice_offsets: not CSR offsets; wanted ascending int64 from 0 to 1", lambda: top(slice_offsets=np.array([0, 2]))),
    ("slice_offsets: not CSR offsets", lambda: top(slice_offsets=none)),
    ("candidates: holds 3", lambda: look_up(np.array([3]))),
    ("candidates: holds -1", lambda: look_up(np.array([-1]))),
    ("offsets: shape (3,); wanted (2)", lambda: look_up(np.array([0]), np.array([0, 0, 1]))),
    ("offsets: not CSR offsets", lambda: look_up(np.array([0]), np.array([0, 2]))),
    ("scores: read-only", lambda: look_up(np.array([0]), scores=read_only(1))),
    ("scores: shape (2,); wanted (1)", lambda: look_up(np.array([0]), scores=unknown(2))),
    ("idf: holds -1.0; wanted 0 or more", lambda: look_up(idf=-np.ones(1, np.float32))),
    ("idf: nan at 0", lambda: top(idf=np.full(1, np.nan, np.float32))),
    ("idf: shape (2,); wanted (1)", lambda: top(idf=np.ones(2, np.float32))),
    ("counts: shape (1,); wanted (2)", lambda: top(counts=np.ones(1, np.uint8))),
    ("average_length: 0.0; wanted finite, above 0", lambda: look_up(average_length=0.0)),
    ("k1: nan; wanted finite", lambda: look_up(k1=float("nan"))),
    ("b: 1.5; wanted finite, at least 0, at most 1", lambda: look_up(b=1.5)),
    ("scratch: shape (2,); wanted (3)", lambda: top(scratch=np.zeros(2, np.float32))),
    ("scratch: read-only", lambda: top(scratch=read_only())),
    ("words: holds 1; wanted 0 to 0", lambda: coverage(words=np.array([1]))),
    ("words: shape (2,); wanted (1)", lambda: coverage(words=np.array([0, 0]))),
    ("idf: inf at 0", lambda: coverage(idf=np.full(1, np.inf, np.float32))),
    ("offsets: not CSR offsets", lambda: coverage(offsets=np.array([1, 3]))),
    ("candidates: dtype int32; wanted int64", lambda: coverage(candidates=np.arange(3, dtype=np.int32))),
    (
        "mask: dtype float32; wanted uint8",
        lambda: kernels.allowed_in_slices(chain, np.array([0]), np.array([0]), scales),
    ),
    (
        "rows: span -1 to -1; wanted 0 to 2",
        lambda: kernels.allowed_in_slices(chain, np.array([0]), np.array([3]), np.ones(3, np.uint8)),
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
    (
        "offsets: not CSR offsets; wanted ascending int64 from 0 to 2",
        lambda: kernels.weighted_fusion(np.ones((3, 2)), real, np.zeros(3, np.uint8), np.array([0, 3])),
    ),
    ("codes: shape (3, 2); wanted (any, 1)", lambda: max_sim(codes=np.ones((3, 2), np.uint64))),
    ("weights: shape (1,); wanted (3)", lambda: max_sim(weights=np.ones(1, np.float32))),
    ("weights: nan at 0", lambda: max_sim(weights=np.full(3, np.nan, np.float32))),
    ("offsets: not CSR offsets", lambda: max_sim(offsets=np.array([0, 2]))),
    ("dimension: 65; wanted from 1 to 64", lambda: max_sim(dimension=65)),
    ("first_counts: spans 4 to 4; wanted 0 to 3", lambda: join(first_counts=np.array([4]))),
    ("second_counts: spans -1 to -1; wanted 0 to 3", lambda: join(second_counts=np.array([-1]))),
    ("first_values: shape (1, 2); wanted (1, 3)", lambda: join(first_values=unit[:, :2].copy())),
    ("second_rows: dtype int32; wanted int64", lambda: join(second_rows=rows.astype(np.int32))),
    ("second_rows: shape (2, 3); wanted (1, any)", lambda: join(second_rows=np.zeros((2, 3), np.int64))),
    ("rows: holds 3; wanted 0 to 2", lambda: expand(rows=np.array([0, 1, 3]))),
    ("offsets: not CSR offsets", lambda: expand(offsets=np.array([0, 2, 1, 3]))),
    ("scores: nan at 1", lambda: expand(scores=np.array([1, np.nan, 1]))),
    ("first: shape (2,); wanted (3)", lambda: expand(first=unknown(2))),
    ("best: 0; wanted at least 1", lambda: expand(best=0)),
    ("following: shape (2,); wanted (3)", lambda: expand(following=chain[:2])),
    ("heads: shape (0,); wanted (3)", lambda: expand(heads=chain[:0])),
    ("targets: shape (3,); wanted (0)", lambda: expand(targets=chain)),
    ("mask: shape (2,); wanted (3)", lambda: expand(mask=np.ones(2, np.uint8))),
    ("previous, following, links: name a row of 3 or more", lambda: expand(previous=np.array([3, -1, -1], np.int32))),
    ("scores: inf at 0", lambda: kernels.order_by_score(ends, np.array([np.inf, 1, 1]), np.arange(3))),
    ("keys: shape (2,); wanted (3)", lambda: kernels.order_by_score(ends, real, np.arange(2))),
    ("offsets: not CSR offsets", lambda: kernels.order_by_score(ends[:1], real, np.arange(3))),
    ("rows: not strictly ascending", lambda: spread(rows=np.array([0, 2, 1]))),
    ("rows: holds -1; wanted 0 to 2", lambda: spread(rows=np.array([-1, 0, 1]))),
    ("scores: nan at 0", lambda: spread(scores=np.array([np.nan, 1, 1]))),
    ("sources: dtype int32; wanted int64", lambda: spread(sources=chain)),
    ("strengths: shape (3,); wanted (0)", lambda: spread(strengths=scales)),
    ("near: 1.1; wanted finite, at least 0, at most 1", lambda: spread(near=1.1)),
    ("far: nan; wanted finite", lambda: spread(far=float("nan"))),
    ("previous, following", lambda: spread(following=np.array([-1, -1, 3], np.int32))),
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
