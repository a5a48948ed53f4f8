"""Cases are timed in turn, checked, saved and rendered; the cheap ones run on a few lines."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import saving
from benchmarks.cases import write_cost
from benchmarks.harness import report, running
from benchmarks.harness.case import Case, Context, Figures, Timing
from benchmarks.harness.measure import interleaved, percentiles, rates, same


def test_ways_take_turns_and_the_first_of_a_round_changes():
    called = []
    ways = {name: lambda number, name=name: called.append((number, name)) for name in "abc"}
    rows = interleaved(Timing("t", ways, rounds=2, warm_up=1))
    assert called == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a"), (2, "c"), (2, "a"), (2, "b")]
    assert rows["a"]["times the first"] == 1.0
    assert rows["a"]["more than it, ms"] == 0.0


def test_a_check_gets_the_answers_after_the_warm_up_and_adds_columns():
    seen = []
    timing = Timing("t", {"a": lambda number: number}, 2, 3, lambda answers: seen.append(answers) or {"a": {"x": 7}})
    assert interleaved(timing)["a"]["x"] == 7
    assert seen == [{"a": [3, 4]}]


def test_ways_that_answer_differently_are_refused():
    assert same({"a": [1, 2], "b": [1, 2]}) == {}
    with pytest.raises(SystemExit, match="round 1: a answers 2, b answers 3"):
        same({"a": [1, 2], "b": [1, 3]})


def test_percentiles_are_interpolated():
    figures = {"p50_ms": 2.5, "p95_ms": 3.85, "p99_ms": 3.97, "max_ms": 4.0, "calls": 4}
    assert percentiles([4.0, 1.0, 2.0, 3.0]) == figures
    assert set(rates({"a": lambda: None}, 5)["a"]) == {"seconds", "records a second"}


def test_a_run_is_saved_beside_those_of_other_sizes_and_rendered(tmp_path):
    def tables(state, context):
        yield Figures("table", {"one": {"recall@10": 0.5, "ms": 12.3, "equal": True}, "other": {"ms": 1.234}})

    case = Case("made up", "nothing", lambda _: nullcontext(), tables)
    for records in (1000, 20):
        found = running.run(case, Context(records, 3, tmp_path))
        report.save(case.name, str(records), found, tmp_path / "out.json")
    saved = saving.read(tmp_path / "out.json")
    lines = report.markdown(saved).splitlines()
    assert lines[:2] == ["20 records:", ""]
    assert lines[2:6] == [
        "| table | recall@10 | ms | equal |",
        "| --- | ---: | ---: | ---: |",
        "| one | 0.500 | 12 | yes |",
        "| other |  | 1.23 |  |",
    ]
    assert "1,000 records:" in lines
    assert report.rows(saved, "table", "20")["other"] == {"ms": 1.234}
    with pytest.raises(saving.NotMeasured):
        report.markdown({})


@pytest.fixture
def made_up(monkeypatch):
    """A case of which only the folder of its data matters; its folders are in the list."""
    folders = []

    def setup(context):
        folders.append(context.folder)
        return nullcontext()

    case = Case("made up", "nothing", setup, lambda state, context: [Figures("table", {"one": {"ms": 1.0}})])
    monkeypatch.setattr(running, "find", lambda name: case)
    return folders


def test_a_folder_for_work_is_made(made_up, tmp_path, capsys):
    work, out = tmp_path / "new" / "deep", tmp_path / "out.json"
    running.main(["latency", "--records", "20", "--work", str(work), "--out", str(out)])
    assert [folder.parent for folder in made_up] == [work]
    assert "20 records, " in capsys.readouterr().out


def test_nothing_saved_is_said_and_not_rendered(made_up, tmp_path):
    out = tmp_path / "out.json"
    with pytest.raises(SystemExit, match="has no result of made up: run it without --render first"):
        running.main(["latency", "--render", "--out", str(out)])
    assert made_up == []
    assert not out.exists()


def test_every_case_says_what_it_answers_and_its_saved_result_renders(capsys):
    running.main(["list"])
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [running.find(name).name for name in running.names()]
    for name in running.names():
        if saved := saving.read(saving.RESULTS / f"{name}.json"):
            assert set(saved["runs"]) >= {str(saved["runs"][key]["records"]) for key in saved["runs"]}
            assert report.markdown(saved)


CHEAP = ["documents_small", "embedding", "filters", "latency", "recall_cost", "stages", "write_cost"]
SERVED = ["postgres"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHEAP, *SERVED])
def test_a_case_runs_on_a_few_lines(name, tmp_path, capsys):
    if name in SERVED:
        pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
    out = tmp_path / "out.json"
    running.main([name, "--records", "300", "--rounds", "2", "--few", "5", "--out", str(out)])
    assert saving.read(out)["runs"]["300"]["tables"]
    assert "300 " in capsys.readouterr().out


def test_a_changed_line_differs_in_its_last_number_or_word():
    assert write_cost.changed("Room 7 holds 12 chairs") == "Room 7 holds 13 chairs"
    assert write_cost.changed("The key is upstairs") == "The key is elsewhere."
