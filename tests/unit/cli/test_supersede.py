"""remember --supersedes, supersede, restore, history, and how recall, list and get show what changed."""

from __future__ import annotations

import pytest

from recallite import Memory
from tests.unit.core.memory.support import supersede_by_rule

OSLO, BERGEN = "Dana lives in Oslo", "Dana lives in Bergen now"


@pytest.fixture
def moved(remember):
    """The ids of an old fact and of the one in its place."""
    old = remember(OSLO, "--valid-from", "2024-03-01")
    return old, remember(BERGEN, "--valid-from", "2026-06-10", "--supersedes", old)


def test_remember_says_what_it_supersedes(run, remember):
    old = remember(OSLO)
    done = run("remember", BERGEN, "--supersedes", old[-8:])
    new = done.out.strip()
    assert done.err == f"{new} supersedes {old}: history shows it, restore undoes it\n"
    assert run("get", new, "--json").json["supersedes"] == [old]
    several = run("remember", "one", "two", "--supersedes", new)
    assert (several.code, run("count").out) == (2, "1\n")


def test_recall_shows_what_holds_and_what_was(run, moved):
    old, new = moved
    line, before = (line.split("\t") for line in run("recall", "Where does Dana live?").out.splitlines())
    assert line[2:] == [new, BERGEN, f"was until 2026-06-10: {OSLO}"]
    assert before[2:] == [old, OSLO, f"superseded on 2026-06-10 by {new[-8:]}"]
    hit, _ = run("recall", "Where does Dana live?", "--json").json
    assert [(each["id"], each["held_until"]) for each in hit["supersedes"]] == [(old, "2026-06-10T00:00:00Z")]
    both = run("recall", "Where does Dana live?", "--include-superseded").out.splitlines()
    assert f"superseded on 2026-06-10 by {new[-8:]}" in "\n".join(both)
    assert len(both) == 2


def test_recall_at_another_time(run, moved):
    old, _ = moved
    (then,) = run("recall", "Where does Dana live?", "--valid-at", "2025-01-01", "--json").json
    assert (then["id"], then["held_until"]) == (old, "2026-06-10T00:00:00Z")
    assert run("recall", "Where does Dana live?", "--as-of", "2025-01-01", "--json").code == 1
    assert run("count", "--valid-at", "2025-01-01").out == "1\n"
    assert run("count", "--include-superseded").out == "2\n"


def test_list_and_get_show_intervals(run, moved, remember):
    old, new = moved
    listed = run("list")
    (line,) = listed.out.splitlines()
    assert line.split("\t")[4:] == ["2026-06-10", BERGEN]
    assert listed.err == "1 replaced memory is left out: --include-superseded shows them\n"
    counted = run("count")
    assert (counted.out, counted.err) == ("1\n", "1 replaced memory is left out: --include-superseded counts them\n")
    everything = run("list", "--include-superseded", "--order", "oldest")
    assert everything.err == run("count", "--include-superseded").err == ""
    lines = everything.out.splitlines()
    assert lines[0].split("\t")[4:] == [f"2024-03-01..2026-06-10, superseded by {new[-8:]}", OSLO]
    shown = dict(line.split("\t") for line in run("get", old).out.splitlines())
    assert (shown["held_until"], shown["superseded_by"]) == ("2026-06-10T00:00:00Z", new)
    remember("We use the meeting room on Mondays", "--valid-from", "2026-01-01", "--valid-until", "2026-01-31")
    assert run("list", "--limit", "1").out.split("\t")[4] == "2026-01-01..2026-02-01"


def test_what_rules_found_is_listed_with_its_reason_and_undone(run, remember, db):
    old, new = remember("The tram to the harbour is line 4"), remember("The bus to the harbour is line 11")
    with Memory(db) as memory:
        supersede_by_rule(memory, old, new)
    listed = run("list", "--order", "oldest")
    mark = f"superseded by {new[-8:]}, by rule (another value)"
    assert [line.split("\t")[4] for line in listed.out.splitlines()] == [mark, ""]
    assert listed.err == ""
    audited = run("audit", "replaced-by-rule")
    assert audited.code == 1
    assert [cell for cell in audited.out.rstrip("\n").split("\t") if old in cell or new in cell] == [
        old, f"{new} The bus to the harbour is line 11",
    ]  # fmt: skip
    assert "1 of them is superseded" in run("audit", "junk").err
    assert run("restore", old).code == 0
    assert run("audit", "replaced-by-rule").code == 0


def test_supersede_and_restore_by_ends_of_ids(run, remember):
    old, new, other = (remember(text) for text in ("The party is on the roof", "It is in the cellar", "Bring a coat"))
    done = run("supersede", old[-8:], new[-8:], "--reason", "rain", "--strength", "0.9")
    assert (done.code, done.out) == (0, f"{old}\t{new}\n")
    (link,) = run("neighbors", old, "--json").json
    assert (link["type"], link["reason"], link["strength"]) == ("supersedes", "rain", 0.9)
    again = run("supersede", old, other)
    assert again.code == 2
    assert f"superseded by {new}" in again.err
    assert run("restore", old[-8:]).out == f"{old}\tThe party is on the roof\n"
    assert run("count").out == "3\n"
    assert run("restore", old).code == 2


def test_forget_says_what_holds_again(run, moved):
    old, new = moved
    said = f"1 superseded memory holds again; --chain forgets what was superseded too\n{old} holds again: {OSLO}\n"
    assert run("forget", new).err == said
    assert run("list").out.split("\t")[0] == old
    assert run("forget", old).err == ""


def test_forget_with_chain_leaves_nothing_to_hold_again(run, moved):
    done = run("forget", moved[1], "--chain")
    assert (done.out, done.err) == ("2\tforgotten\n", "")
    assert run("count", "--include-superseded").out == "0\n"


def test_one_in_place_of_several_and_several_of_one(run, remember):
    first, second, third, fourth = (remember(text) for text in ("roof", "cellar", "garden", "street"))
    assert run("supersede", first, third, fourth, "--json").json["new"] == [third, fourth]
    assert run("supersede", third, second, "--also", fourth, "--at", "2100-01-01").code == 0
    listed = [line.split("\t")[0] for line in run("list").out.splitlines()]
    assert listed == [fourth, third, second]  # what begins in 2100 hides nothing yet
    assert next(each["text"] for each in run("history", first, "--json").json) == "roof"
    assert len(run("history", first, "--json").json) == 4


def test_history_of_a_chain_and_of_one_memory(run, moved):
    old, new = moved
    run("update", new, "--text", "Dana lives in Bergen, in Nordnes")
    rows = [line.split("\t") for line in run("history", old).out.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [
        (old, OSLO), (new, BERGEN), (new, "Dana lives in Bergen, in Nordnes"),
    ]  # fmt: skip
    assert rows[0][1:3] == ["2024-03-01 00:00:00Z", "2026-06-10 00:00:00Z"]
    assert rows[2][2] == "now"
    assert len(run("history", new, "--own").out.splitlines()) == 2
    assert run("restore", new, "--to", "0").out == f"{new}\t{BERGEN}\n"
