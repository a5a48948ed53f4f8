"""eval."""

from __future__ import annotations

import ast
import inspect
import json
import re

import pytest

from recallite.recall import explain, request
from recallite_eval.commands import _REMEDIES
from tests.system.docs.snippets import ROOT

QUESTIONS = """\ufeff{"question": "which database?", "expected": ["We migrated the database to MySQL"]}

{"question": "when are deployments?", "expected": ["on tuesday"], "id": "deploy"}
{"question": "what is served?", "expected": ["the canteen"], "scope": "/infra", "id": "lunch"}
{"question": "who is the database?", "expected": []}
{"question": "database", "expected": ["The database is PostgreSQL"]}
"""


@pytest.fixture
def stored(remember):
    """Three memories; the ids by name."""
    return {
        "mysql": remember("We migrated the database to MySQL", "--scope", "/infra/db"),
        "deploy": remember("Deployments happen on Tuesday", "--scope", "/infra"),
        "lunch": remember("The canteen serves\tsoup\x1b[31m", "--scope", "/home"),
    }


@pytest.fixture
def questions(tmp_path):
    """The path of a file of questions."""
    path = tmp_path / "questions.jsonl"
    path.write_text(QUESTIONS, encoding="utf-8")
    return path


def test_eval_prints_figures_losses_and_what_is_not_stored(run, stored, questions):
    done = run("eval", questions, "-k", 3)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3 questions with an answer and 1 without; the first 3 hits of each\n")
    assert re.search(r"^ *settings *\nrecall@3 +0\.667 *\nhit@3 +0\.667 *\nhit@1 +0\.667 *\nMRR ", done.out, re.M)
    assert re.search(r"^filter +1 +the question's filter, a scope or a time hides it", done.out, re.M)
    assert "missed\nlunch  what is served?\n    expected: The canteen serves soup�[31m\n" in done.out
    assert "    filter: it is outside the scope /infra\n" in done.out
    assert "6  The database is PostgreSQL: no memory has this text or id\n" in done.out
    assert f"    most similar: We migrated the database to MySQL ({stored['mysql']})\n" in done.out
    assert re.search(r"^0\.1 +\d of 2, \d of 1 *$", done.out, re.M)
    assert "keeps 95 % of the right hits\n" in done.out


def test_eval_compares_two_sets_of_options(run, stored, questions):
    done = run(
        "eval", questions, "--set", "neighbor_boost=0", "--against", "scope=/home", "--against", "mmr-lambda=0.5"
    )
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^ +neighbor_boost=0 +scope=/home mmr_lambda=0\.5 *$", done.out, re.M)
    assert "scope=/home mmr_lambda=0.5, question by question\n" in done.out
    assert "recall@10: better at 0, worse at 2, equal at 1; -0.667 (95 % interval " in done.out
    assert "sign test p = 0.5): this may be chance\n" in done.out
    assert re.search(r"^1 +1 +- +which database\?", done.out, re.M)
    assert "missed with neighbor_boost=0\n" in done.out
    both = run("eval", questions, "--against", "scope=/home", "--json").json
    assert both["against"]["options"] == {"scope": "/home"}
    assert [each["worse"] for each in both["comparisons"]] == [["1", "deploy"]] * 2


def test_eval_json_and_the_saved_report_are_the_whole_evaluation(run, stored, questions, tmp_path, db):
    out = tmp_path / "report.json"
    done = run("eval", questions, "--json", "--out", out, "--as-of", "2999-01-01")
    assert done.code == 0
    assert json.loads(out.read_text("utf-8")) == done.json
    assert done.json["results"][0]["expected"][0] == {
        "expected": "We migrated the database to MySQL", "id": stored["mysql"], "rank": 1, "candidate_rank": None,
        "text": "We migrated the database to MySQL", "stage": "returned", "reason": "",
        "confidence": done.json["results"][0]["confidence"],
    }  # fmt: skip
    assert done.json["options"] == {"as_of": "2999-01-01"}
    assert "is the store itself" in run("eval", questions, "--out", db).err


def test_eval_compares_with_an_earlier_report(run, stored, questions, tmp_path):
    out = tmp_path / "before.json"
    assert run("eval", questions, "--set", "min_confidence=1", "--out", out).code == 0
    done = run("eval", questions, "--against-report", out)
    assert re.search(r"^ +settings +before\.json *$", done.out, re.M)
    assert "before.json, question by question\n" in done.out
    assert "recall@10: better at 0, worse at 2, equal at 1" in done.out
    both = run("eval", questions, "--against-report", out, "--against", "neighbor_boost=0")
    assert (both.code, "give --against or --against-report, not both" in both.err) == (2, True)
    for wrong in (questions, tmp_path / "none.json"):
        refused = run("eval", questions, "--against-report", wrong)
        assert (refused.code, "is no report that eval --out wrote" in refused.err) == (2, True)


def test_eval_reads_standard_input_and_short_ids(run, stored):
    line = json.dumps({"question": "which database?", "expected": [stored["mysql"][-8:]]})
    done = run("eval", "-", "--json", stdin=f"\ufeff\n{line}\n")
    assert (done.code, done.json["figures"]["recall"], done.json["results"][0]["id"]) == (0, 1.0, "2")


def test_eval_without_a_question_that_counts_is_exit_1(run, stored):
    done = run("eval", "-", stdin='{"question": "which database?", "expected": ["We use Oracle"]}\n')
    assert done.code == 1
    assert "no question could be counted" in done.err
    assert "1  We use Oracle: no memory has this text or id\n" in done.out
    assert run("eval", "-", stdin='{"question": "which database?", "expected": []}\n').code == 0


def test_eval_writes_what_rules_superseded_and_restore_undid(run, remember):
    old, new = remember("The tram costs 2 euros"), remember("The tram costs 3 euros now")
    assert run("eval", "--undone").code == 1
    run("restore", old)
    done = run("eval", "--undone")
    assert (done.code, done.err) == (0, "")
    (line,) = done.out.splitlines()
    pair = json.loads(line)
    assert (pair["old"], pair["new"]) == ("The tram costs 2 euros", "The tram costs 3 euros now")
    assert (pair["old_id"], pair["new_id"]) == (old, new)
    assert pair["reason"]
    assert pair["undone_at"].endswith("Z")
    assert run("eval", "--undone", "--json").json == [pair]


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        ((), "", "give a file of questions, - for standard input, or --undone"),
        (("-", "--undone"), "", "--undone asks no questions: leave the file out"),
        (("-",), "{}\n", "line 1: question is missing"),
        (("-",), "\n", "there is no question in the input"),
        (("none.jsonl",), "", "none.jsonl cannot be read"),
        (("-", "--against", "limit=3"), "", "--against is 'limit=3': give name=value with one of "),
        (("-", "--against", "keyword"), "", "--against is 'keyword': give name=value with one of "),
        (("-", "--against", "mode=fuzzy"), '{"question": "x", "expected": []}', "mode is 'fuzzy'"),
        (("-", "--set", "neighbor_boost=-1"), '{"question": "x", "expected": []}', "neighbor_boost is -1"),
        (("-", "-k", "0"), '{"question": "x", "expected": []}', "k is 0"),
    ],
)
def test_eval_refuses_what_is_wrong(run, empty, arguments, stdin, said):
    done = run("eval", *arguments, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_eval_shows_as_many_missed_questions_as_are_wanted(run, stored):
    lines = [json.dumps({"question": f"zebra {n}", "expected": ["Tuesday"], "id": f"q{n}"}) for n in range(5)]
    done = run("eval", "-", "--missed", "2", stdin="\n".join(lines))
    assert [line for line in done.out.splitlines() if line.startswith("q")] == ["q0  zebra 0", "q1  zebra 1"]
    assert done.err == "3 more missed questions: --missed shows them, and --json or --out the whole report\n"
    assert "zebra" not in run("eval", "-", "--missed", "0", stdin="\n".join(lines)).out


def test_eval_takes_the_options_of_recall(run, stored, questions):
    for name in request.RecallOptions.__annotations__.keys() - {"filter"}:
        done = run("eval", questions, "--against", f"{name}=1")
        assert f"--against is '{name}=1'" not in done.err


def test_eval_on_a_terminal_fits_its_width(run, stored, questions, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    shown = run("eval", questions).out
    assert "\x1b[1m" in shown
    assert "soup�[31m" in shown


def stages():
    """The stages that an explanation may name as those that dropped a memory."""
    tree = ast.parse(inspect.getsource(explain))
    tuples = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
    ]
    named = [each.elts[0] for each in tuples]
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)]
    named += [each.value.elts[0] for each in assigned if ast.unparse(each.targets[0]).startswith("(stage,")]
    named += [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "stage"]
    return {node.value for node in named if isinstance(node, ast.Constant)} - {"returned"}


def test_every_stage_has_a_remedy_in_the_report_and_on_the_page():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8").split("| lost at |")[1].split("\n\n")[0]
    assert stages() >= {"filter", "candidates", "threshold", "diversify", "group", "limit", "token_budget"}
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+) \|", page, re.M)))
    assert stages() == _REMEDIES.keys() == set(listed)
