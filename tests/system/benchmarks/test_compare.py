"""Two commits in rounds: what is told of them, and this commit against itself on a small store."""

from __future__ import annotations

import pytest

from benchmarks import corpus, dataset
from benchmarks.compare.__main__ import compare
from benchmarks.compare.figures import Rounds, differing, markdown
from benchmarks.compare.side import ROOT, checked_out
from benchmarks.compare.ways import WAYS

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


def test_an_unknown_revision_is_refused():
    with pytest.raises(SystemExit, match="no-such-branch is no commit here"), checked_out("no-such-branch"):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_this_commit_against_itself_answers_the_same_in_every_way(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_KERNELS", "python")
    lines, vectors = corpus.read_lines(None, 70), corpus.mixture(70, 384)
    data = dataset.write(tmp_path / "records-60", lines[:60], vectors[:60], lines[60:], vectors[60:])
    with checked_out("HEAD") as (commit, tree):
        found = compare(tree, data, tmp_path / "work", rounds=2, questions=4)
        again = compare(tree, data, tmp_path / "work", rounds=1, names=["formula"], questions=1)
    assert not tree.exists()
    assert list(found["ways"]) == list(WAYS)
    assert {(each["questions"], each["questions_that_differ"]) for each in found["ways"].values()} == {(8, 0)}
    assert [["build_s" in each["opened"][side] for side in ("base", "now")] for each in (found, again)] == [
        [True, True],
        [False, False],
    ]
    about = {"processor": "A processor", "cores": 2, "python": "3.11", "rounds": 2, "questions_per_round": 4}
    found["ways"]["text"] = {"refused": {"base": "TypeError: recall has no such option"}}
    text = markdown({**about, "base": commit, "commit": "abc", "results": {"60": found}})
    assert "60 records" in text
    assert all(f"| {way} |" in text for way in WAYS)
    assert "missing in base: TypeError: recall has no such option" in text
