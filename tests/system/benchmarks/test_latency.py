"""What the latency run is built from: figures, rankings compared, lines made up, work in a process of its own."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from benchmarks import corpus
from benchmarks.latency.agreement import differences
from benchmarks.latency.figures import percentiles
from benchmarks.latency.newprocess import run

RANKING = [("a", 0.9), ("b", 0.8), ("c", 0.5)]


def test_percentiles_are_interpolated():
    assert percentiles([4.0, 1.0, 2.0, 3.0]) == {
        "p50_ms": 2.5,
        "p95_ms": 3.85,
        "p99_ms": 3.97,
        "max_ms": 4.0,
        "calls": 4,
    }


@pytest.mark.parametrize(
    "other",
    [
        RANKING,
        [("a", 0.900004), ("b", 0.8), ("c", 0.5)],
        [("a", 0.9), ("b", 0.8), ("d", 0.500004)],
    ],
    ids=["equal", "rounding", "a tie at the end"],
)
def test_rankings_agree_within_rounding(other):
    assert differences(RANKING, other) == []


@pytest.mark.parametrize(
    "other",
    [
        [("b", 0.9), ("a", 0.8), ("c", 0.5)],
        [("a", 0.9), ("b", 0.8)],
        [("a", 0.9), ("d", 0.8), ("c", 0.5)],
        [("a", 0.9), ("b", 0.8), ("c", 0.4)],
        [],
    ],
    ids=["swapped", "shorter", "another record", "another score", "empty"],
)
def test_rankings_that_differ_are_told_apart(other):
    assert differences(RANKING, other)


def test_two_empty_rankings_agree():
    assert differences([], []) == []


def test_made_up_lines_are_the_same_every_time():
    lines = list(islice(corpus.synthetic_lines(), 50))
    assert lines == list(islice(corpus.synthetic_lines(), 50))
    assert all(8 <= len(line.split()) <= 60 for line in lines)
    assert lines != list(islice(corpus.synthetic_lines(seed=1), 50))


def test_queries_are_distinct_short_and_ask_first():
    asked = corpus.queries(["one two", "is it?", "one two", " ".join("abcdefghijklmnop")], 10)
    assert asked == ["is it?", "one two", "e f g h i j k l m n o p"]


def test_too_short_a_corpus_is_refused(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\n\n two \n")
    assert corpus.read_lines(path, 2) == ["one", "two"]
    with pytest.raises(SystemExit, match="has 2 lines of text; 3 are needed"):
        corpus.read_lines(path, 3)


def test_a_mixture_is_of_unit_vectors():
    vectors = corpus.mixture(200, 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_new_process_tells_how_long_its_import_took():
    result = run("import")
    assert 0 < result["import_ms"] < result["process_ms"]
    assert result["numpy_loaded"] is False


def test_a_failure_in_the_new_process_is_raised_here():
    with pytest.raises(RuntimeError, match="recall failed in its own process"):
        run("recall", {"path": "/", "query": "x"})
