"""The comparison's pure parts, and two contenders from build to figures on a thousand made-up records."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import corpus, dataset, exact
from benchmarks.isolated_process import DidNotFinish, Failed, run
from benchmarks.peers import report
from benchmarks.peers.__main__ import hopeless
from benchmarks.peers.asking import measure
from benchmarks.peers.contender import Mode, content_words, reciprocal_rank_fusion
from benchmarks.peers.contenders import CONTENDERS
from tests.limits import LAST_RESORT_SECONDS


def test_why_a_contender_has_no_figures_is_told():
    reasons = {
        "chroma": {"did_not_finish": "ask", "limit_s": 300.0, "build_s": 250.0},
        "usearch": {"not_installed": ["usearch"]},
        "hnswlib": {"failed": "build: no"},
        "lancedb": {"not_tried": {"records": 1000, "build_s": 40.0}, "limit_s": 300.0},
    }
    assert {name: (report.in_short(result), report.is_settled(result)) for name, result in reasons.items()} == {
        "chroma": ("did not finish in 300 s, built in 250 s", True),
        "usearch": ("not installed: usearch", False),
        "hnswlib": ("failed: build: no", False),
        "lancedb": ("not tried within 300 s: 1,000 records took 40 s to build", False),
    }


def test_what_cannot_finish_is_not_tried():
    results = {"10": {"chroma": {"build_s": 500.0}}, "1000": {"chroma": {"build_s": 40.0}, "usearch": {}}}
    assert hopeless("chroma", 10_000, results, 300.0) == {
        "not_tried": {"records": 1000, "build_s": 40.0},
        "limit_s": 300.0,
    }
    assert hopeless("chroma", 10_000, results, 400.0) == {}
    assert hopeless("chroma", 10, results, 1.0) == {}
    assert hopeless("usearch", 10_000, results, 1.0) == {}


def test_ranks_are_fused():
    assert reciprocal_rank_fusion([1, 2, 3], [3, 4]) == [3, 1, 2, 4]
    assert len(reciprocal_rank_fusion(range(100), range(50, 150))) == 10


def test_content_words_leave_out_stop_words_unless_there_are_no_others():
    assert content_words('What is the "database" of Ada?') == ["database", "ada"]
    assert content_words("What is it?") == ["what", "is", "it"]


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


def test_a_graph_is_searched_no_wider_than_the_target_takes(data):
    asked = []

    def ask(_, vector):
        order = np.argsort(-(data.vectors @ vector))
        return order[:10] if asked[-1] >= 48 else order[1:11]

    figures = measure("vector", Mode(ask, effort=asked.append, places=lambda found: found.tolist()), data, 0.95)
    assert figures["ef"] == asked[-1] == 48
    assert figures["reaches_target"]
    assert figures["recall@10"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recallite", "sqlite-vec + FTS5"])
def test_a_contender_is_built_and_asked_in_processes_of_its_own(data, tmp_path, name):
    assert CONTENDERS[name].missing() == []
    given = {"contender": name, "data": data.folder, "store": tmp_path, "target": 0.99}
    built = run("benchmarks.peers.process", {"task": "build", **given}, limit_s=LAST_RESORT_SECONDS)
    assert built["disk_mb"] > 1
    asked = run("benchmarks.peers.process", {"task": "ask", **given}, limit_s=LAST_RESORT_SECONDS)
    assert asked["open_s"] > 0
    vector = asked["modes"]["vector"]
    assert vector["recall@10"] >= 0.99
    assert vector.get("equals_exact", True)
    assert list(vector["filters"]) == list(dataset.FILTERS)
    assert all(filtered["recall@10"] >= 0.99 for filtered in vector["filters"].values())
    assert asked["modes"]["hybrid"]["calls"] == len(data.questions)
