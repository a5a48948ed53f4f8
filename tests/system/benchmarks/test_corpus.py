"""Lines and questions that all benchmarks share."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks import corpus


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
