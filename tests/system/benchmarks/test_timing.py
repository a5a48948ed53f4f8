"""Ways, commits and libraries are timed in turn and compared by the rounds they share."""

from __future__ import annotations

import math

import pytest

from benchmarks import corpus, dataset, saving
from benchmarks.compare.__main__ import compare
from benchmarks.compare.figures import Rounds, differing
from benchmarks.compare.side import ROOT, checked_out
from benchmarks.compare.ways import WAYS
from benchmarks.harness import report, running
from benchmarks.harness.case import Timing
from benchmarks.harness.measure import interleaved, percentiles, same
from benchmarks.peers.__main__ import chosen, summary


def test_ways_take_turns_and_the_first_of_a_round_changes():
    called = []
    ways = {name: lambda number, name=name: called.append((number, name)) for name in "abc"}
    rows = interleaved(Timing("t", ways, rounds=2, warm_up=1))
    assert called == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a"), (2, "c"), (2, "a"), (2, "b")]
    assert rows["a"]["times the first"] == 1.0
    assert rows["a"]["more than it, ms"] == 0.0


def test_ways_that_answer_differently_are_refused():
    assert same({"a": [1, 2], "b": [1, 2]}) == {}
    with pytest.raises(SystemExit, match="round 1: a answers 2, b answers 3"):
        same({"a": [1, 2], "b": [1, 3]})


def test_percentiles_are_interpolated():
    figures = {"p50_ms": 2.5, "p95_ms": 3.85, "p99_ms": 3.97, "max_ms": 4.0, "calls": 4}
    assert percentiles([4.0, 1.0, 2.0, 3.0]) == figures


def test_every_case_says_what_it_answers_and_its_saved_result_renders(capsys):
    running.main(["list"])
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [running.find(name).name for name in running.names()]
    for name in running.names():
        if saved := saving.read(saving.RESULTS / f"{name}.json"):
            assert report.markdown(saved)


CHEAP = ["documents_small", "embedding", "filters", "postgres", "recall_cost", "stages", "write_cost"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_a_case_runs_on_a_few_lines(name, tmp_path, capsys):
    if name == "postgres":
        pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
    out = tmp_path / "out.json"
    running.main([name, "--records", "300", "--rounds", "2", "--few", "5", "--out", str(out)])
    assert saving.read(out)["runs"]["300"]["tables"]
    assert "300 " in capsys.readouterr().out


ANSWER = {"places": [3, 1], "scores": [0.9, 0.5], "gaps": [], "reasons": [["semantic"], ["keyword"]]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"scores": [0.9000009, 0.5]}, []),
        ({"scores": [0.9000011, 0.5]}, ["scores"]),
        ({"places": [1, 3]}, ["order"]),
        ({"places": [3, 2]}, ["hits"]),
        ({"places": [3], "scores": [0.9], "reasons": [["semantic"]]}, ["hits"]),
        ({"gaps": ["nothing about kettles"]}, ["gaps"]),
        ({"reasons": [["keyword"], ["keyword"]]}, ["reasons"]),
    ],
    ids=["equal", "rounding", "a score", "swapped", "another record", "shorter", "a gap", "a reason"],
)
def test_what_two_answers_do_not_share_is_named(change, expected):
    assert differing(ANSWER, {**ANSWER, **change}) == expected


def test_the_ratio_is_the_median_of_the_rounds_ratios():
    rounds = Rounds()
    for base, now in (([2.0, 2.0, 9.0], [1.0, 1.0, 1.0]), ([8.0], [2.0]), ([1.0], [3.0])):
        answers = [ANSWER] * len(base)
        rounds.add(
            range(len(base)),
            {"ms": base, "processor_ms": base, "answers": answers},
            {"ms": now, "processor_ms": now, "answers": [{**ANSWER, "gaps": ["x"]}, *answers[1:]]},
        )
    figures = rounds.figures()
    assert (figures["ratio"], figures["ratio_quartiles"], figures["processor_ratio"]) == (0.5, [0.375, 1.75], 0.5)
    assert (figures["questions"], figures["questions_that_differ"], figures["differ_in"]) == (3, 1, {"gaps": 1})
    assert (figures["base"]["p50_ms"], figures["now"]["p50_ms"]) == (2.0, 1.0)


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_this_commit_against_itself_answers_the_same_in_every_way(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_KERNELS", "python")
    lines, vectors = corpus.read_lines(None, 70), corpus.mixture(70, 384)
    data = dataset.write(tmp_path / "records-60", lines[:60], vectors[:60], lines[60:], vectors[60:])
    with checked_out("HEAD") as (_, tree):
        found = compare(tree, data, tmp_path / "work", rounds=2, questions=4)
    assert list(found["ways"]) == list(WAYS)
    assert {(each["questions"], each["questions_that_differ"]) for each in found["ways"].values()} == {(8, 0)}


def test_the_quickest_effort_that_reaches_a_target_is_used_and_the_best_if_none_does():
    sweep = [
        {"effort": effort, "p50_ms": p50, "recall": [recall, recall, math.nan]}
        for effort, p50, recall in ((10, 0.1, 0.9), (20, 0.3, 0.96), (30, 0.2, 0.97))
    ]
    assert chosen(sweep)["efforts"] == {".95": 30, ".99": 30}


def test_a_figure_is_the_median_of_rounds_and_says_their_range():
    rounds = [{"p50_ms": p50, "p99_ms": 9.0, "calls": 10, "recall": [p50 / 4, math.nan]} for p50 in (1.0, 4.0, 2.0)]
    assert summary(rounds) == {
        "p50_ms": 2.0, "p99_ms": 9.0, "low_ms": 1.0, "high_ms": 4.0, "calls": 30, "recall@10": 0.5833,
    }  # fmt: skip
