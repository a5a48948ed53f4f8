"""The comparison's pure parts, and two contenders from build to figures on a thousand made-up records."""

from __future__ import annotations

import argparse
import json
import math

import numpy as np
import pytest

from benchmarks import corpus, dataset, exact
from benchmarks.isolated_process import DidNotFinish, Failed, run
from benchmarks.peers import report
from benchmarks.peers.__main__ import Rounds, built, chosen, folder_of, summary, write_words
from benchmarks.peers.contender import reciprocal_rank_fusion
from benchmarks.peers.plots import frontier
from tests.limits import LAST_RESORT_SECONDS


def test_ranks_are_fused():
    assert reciprocal_rank_fusion([1, 2, 3], [3, 4]) == [3, 1, 2, 4]
    assert len(reciprocal_rank_fusion(range(100), range(50, 150))) == 10


def test_questions_lose_their_stop_words_unless_there_are_no_others(tmp_path):
    questions = ['What is the "database" of Ada?', "What is it?"]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    data = dataset.Dataset(tmp_path)
    write_words(data)
    assert data.words == ["database ada", "what is it"]


def test_the_quickest_effort_that_reaches_a_target_is_used_and_the_best_if_none_does():
    sweep = [
        {"effort": effort, "p50_ms": p50, "recall": [recall, recall, math.nan]}
        for effort, p50, recall in ((10, 0.1, 0.9), (20, 0.3, 0.96), (30, 0.2, 0.97))
    ]
    assert chosen(sweep)["efforts"] == {".95": 30, ".99": 30}
    assert frontier(chosen(sweep)["curve"]) == [(pytest.approx(0.9), 0.1), (pytest.approx(0.97), 0.2)]


def test_a_figure_is_the_median_of_rounds_and_says_their_range():
    rounds = [{"p50_ms": p50, "p99_ms": 9.0, "calls": 10, "recall": [p50 / 4, math.nan]} for p50 in (1.0, 4.0, 2.0)]
    assert summary(rounds) == {
        "p50_ms": 2.0, "p99_ms": 9.0, "low_ms": 1.0, "high_ms": 4.0, "calls": 30, "recall@10": 0.5833,
    }  # fmt: skip


def test_variants_begin_with_the_real_vectors_and_stay_near_them():
    real = corpus.mixture(100, 384)
    vectors = corpus.varied(real, 250)
    assert np.array_equal(vectors[:100], real)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors[100:200] * real).sum(axis=1).mean() == pytest.approx(1 / np.sqrt(1 + 0.9**2), abs=0.01)
    assert np.array_equal(vectors, corpus.varied(real, 250))
    assert np.array_equal(corpus.varied(real, 40), real[:40])


def test_a_corpus_that_ends_early_asks_what_it_remembers(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(f"line {i}" for i in range(30_000)))
    lines, others = corpus.lines_and_others(path, 5_000)
    assert (lines[-1], others[0], len(others)) == ("line 4999", "line 5000", 20_000)
    lines, others = corpus.lines_and_others(path, 30_000)
    assert (len(lines), others[:2], len(others)) == (30_000, ["line 0", "line 1"], 30_000)


def test_recall_is_the_share_of_the_ten_nearest():
    vectors, asked = corpus.mixture(500, 16), corpus.mixture(5, 16, seed=1)
    order = np.argsort(-(asked.astype(np.float64) @ vectors.astype(np.float64).T), axis=1)
    tenth = exact.tenth_best(vectors, asked)
    assert exact.recall(vectors, asked, tenth, order[:, :10].tolist()).tolist() == [1.0] * 5
    assert exact.recall(vectors, asked, tenth, order[:, 2:12].tolist()).tolist() == [0.8] * 5
    assert exact.recall(vectors, asked, tenth, [[], [int(order[1, 0])] * 10]).tolist() == [0.0, 0.1]


def test_equal_vectors_are_equally_right():
    vectors = np.repeat(corpus.mixture(1, 16), 30, axis=0)
    tenth = exact.tenth_best(vectors, vectors[:1])
    assert exact.recall(vectors, vectors[:1], tenth, [list(range(20, 30))]).tolist() == [1.0]


def test_recall_under_a_filter_counts_what_it_keeps():
    vectors, asked = corpus.mixture(2000, 16), corpus.mixture(3, 16, seed=1)
    kept = dataset.parts(2000) < 1
    assert kept.sum() == 2
    tenth = exact.tenth_best(vectors, asked, kept)
    assert exact.recall(vectors, asked, tenth, [np.flatnonzero(kept).tolist()] * 3, 2).tolist() == [1.0] * 3


def test_a_process_is_ended_at_its_limit_and_its_failure_told_without_folders(tmp_path):
    with pytest.raises(DidNotFinish):
        run("benchmarks.peers.process", {}, limit_s=0.0)
    with pytest.raises(Failed, match=r"^FileNotFoundError: .*No such file or directory"):
        run(
            "benchmarks.peers.process",
            {"task": "build", "contender": "recallite", "data": tmp_path, "store": tmp_path},
            limit_s=60,
        )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A thousand records and sixty questions."""
    lines = corpus.read_lines(None, 1100)
    vectors = corpus.mixture(1100, 384)
    questions = corpus.queries(lines[1000:], 60)
    folder = tmp_path_factory.mktemp("data")
    return dataset.write(folder, lines[:1000], vectors[:1000], questions, vectors[1000 : 1000 + len(questions)])


@pytest.mark.slow
def test_contenders_are_built_and_asked_in_turns_in_processes_of_their_own(data, tmp_path):
    write_words(data)
    options = argparse.Namespace(limit=LAST_RESORT_SECONDS, python=[], count=5, seconds=0.5)
    names = ["recallite", "sqlite-vec + FTS5"]
    stores = tmp_path / "stores"
    results = {name: built(name, data, stores / folder_of(name), options) for name in names}
    results["nobody"] = {"failed": "build: no"}
    rounds = Rounds(results, data, stores, options)
    for number in range(2):
        rounds.ask(number)
    rounds.end()
    for name in names:
        result = results[name]
        assert "failed" not in result
        assert result["disk_mb"] > 1
        assert result["figures"]["vector .99"]["recall@10"] >= 0.98
        assert all(result["figures"][f"vector, {share}"]["recall@10"] >= 0.98 for share in dataset.FILTERS)
        assert result["figures"]["hybrid"]["calls"] == 5
        assert result["insert"]["calls"] > 0
    about = {"processor": "one", "cores": 1, "python": "3", "load": 0.0, "commit": "abc", "date": "today"}
    text = report.markdown({**about, "results": {"1000": {"rounds": 1, "contenders": results}}})
    assert "1,000 records, hybrid recall" in text
    assert "- nobody: build: no" in text
    assert "sqlite-vec + FTS5" in report.claims({"results": {"1000": {"contenders": results}}})
