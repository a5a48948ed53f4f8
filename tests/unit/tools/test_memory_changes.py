"""What the tool memory says of facts that changed: what holds now, what was before, and how to undo it."""

from __future__ import annotations

import pytest

from recallite import tools
from recallite.model.records import NewRecord
from recallite.text.quotes import NOTICE

OSLO, BERGEN = "Dana lives in Oslo", "Dana lives in Bergen now"


@pytest.fixture
def use(embedded):
    """`use("write", text="...")` of the tool memory."""
    return lambda action, **fields: tools.call("memory", {"action": action, **fields}, memory=embedded)


@pytest.fixture
def moved(use):
    """The ids of an old fact and of the one in its place."""
    old = use("write", text=OSLO)["id"]
    return old, use("write", text=BERGEN, supersedes=[old])["id"]


def test_a_write_says_what_it_superseded(use):
    old = use("write", text=OSLO)["id"]
    written = use("write", text=BERGEN, supersedes=[old])
    assert (written["outcome"], written["notice"]) == ("created", NOTICE)
    ((was),) = written["was"]
    assert (was["id"], was["text"]) == (old, OSLO)
    assert was["until"].endswith("Z")
    assert "was" not in use("write", text="The office plants are watered on Fridays")


QUESTION = {"query": "Where does Dana live?"}


@pytest.mark.parametrize(("action", "fields"), [("search", QUESTION), ("recall", QUESTION), ("list", {})])
def test_results_hold_now_and_say_what_was_before(use, moved, action, fields):
    old, new = moved
    (found,) = use(action, **fields)["results"]
    assert (found["id"], found["text"]) == (new, BERGEN)
    assert [(was["id"], was["text"]) for was in found["was"]] == [(old, OSLO)]
    assert {"until", "superseded_by"}.isdisjoint(found)


def test_nothing_is_added_to_what_never_changed(use):
    use("write", text=OSLO)
    for action, fields in (("search", {"query": "Oslo"}), ("recall", {"query": "Oslo"}), ("list", {})):
        (found,) = use(action, **fields)["results"]
        assert {"was", "until", "superseded_by"}.isdisjoint(found)


def test_recall_at_a_past_time_says_until_when_that_held(use, embedded):
    old = embedded.remember(OSLO, valid_from="2024-03-01")
    new = embedded.remember(NewRecord(BERGEN, valid_from="2026-06-10", supersedes=old.id))
    (then,) = use("recall", query="Where does Dana live?", valid_at="2025-01-01T00:00:00Z")["results"]
    assert (then["text"], then["until"]) == (OSLO, "2026-06-10T00:00:00Z")
    assert then["superseded_by"] == [new.id]
    error = use("recall", query="Where does Dana live?", valid_at="some time ago")["error"]
    assert (error["type"], error["field"]) == ("invalid_value", "valid_at")


def test_history_shows_what_was_and_what_holds(use, moved, embedded):
    old, new = moved
    embedded.update(new, text="Dana lives in Bergen, in Nordnes")
    for id in moved:
        versions = use("history", id=id)["results"]
        assert [each["text"] for each in versions] == [OSLO, BERGEN, "Dana lives in Bergen, in Nordnes"]
        assert [each["id"] for each in versions] == [old, new, new]
        assert [each["until"] is None for each in versions] == [False, False, True]


def test_a_model_supersedes_and_takes_it_back(use):
    old, new = (use("write", text=text)["id"] for text in ("The party is on the roof", "We meet in the cellar"))
    assert use("supersede", id=new, supersedes=[old]) == {"outcome": "superseded", "id": new}
    assert [each["id"] for each in use("list")["results"]] == [new]
    assert use("restore", id=old) == {"outcome": "restored", "id": old}
    assert {each["id"] for each in use("list")["results"]} == {old, new}


def test_what_a_removed_memory_superseded_holds_again(use, moved):
    old, new = moved
    removed = use("remove", id=new)
    assert ([each["id"] for each in removed["holds_again"]], removed["notice"]) == ([old], NOTICE)
    assert "holds again" in removed["advice"]
    assert [each["text"] for each in use("list")["results"]] == [OSLO]
    assert use("remove", id=old) == {"outcome": "removed", "id": old}


def test_a_chain_is_removed_as_a_whole_where_that_is_asked(use, moved, embedded):
    _, new = moved
    assert use("remove", id=new, chain=True) == {"outcome": "removed", "id": new, "also_forgotten": 1}
    assert embedded.count(include_superseded=True) == 0


def test_mistakes_are_answered_and_change_nothing(use, moved):
    old, new = moved
    other = use("write", text="The office plants are watered on Fridays")["id"]
    for fields, type in (
        ({"id": new, "supersedes": [new]}, "invalid_value"),
        ({"id": old, "supersedes": [new]}, "invalid_value"),
        ({"id": other, "supersedes": [old]}, "invalid_value"),
        ({"id": other, "supersedes": []}, "invalid_value"),
        ({"id": other, "supersedes": ["nothing"]}, "not_found"),
        ({"id": "nothing", "supersedes": [other]}, "not_found"),
        ({"id": other, "supersedes": other}, "wrong_type"),
        ({"id": other}, "missing_field"),
    ):
        assert use("supersede", **fields)["error"]["type"] == type, fields
    assert "superseded by" in use("supersede", id=other, supersedes=[old])["error"]["message"]
    assert use("restore", id=new)["error"]["type"] == "invalid_value"
    assert use("history", id="nothing")["error"]["type"] == "not_found"
    assert use("write", text="x", supersedes=["nothing"])["error"]["type"] == "not_found"
    assert {each["id"] for each in use("list")["results"]} == {new, other}


def test_a_scope_confines_these_verbs_too(memory):
    def use(action, within, **fields):
        return tools.call("memory", {"action": action, **fields}, memory=memory, scope=within)

    ada, eve = (use("write", within, text="a secret")["id"] for within in ("/users/ada", "/users/eve"))
    for action, fields in (
        ("history", {"id": ada}),
        ("restore", {"id": ada}),
        ("supersede", {"id": eve, "supersedes": [ada]}),
        ("write", {"text": "x", "supersedes": [ada]}),
    ):
        assert use(action, "/users/eve", **fields)["error"]["type"] == "not_found", action
    assert memory.get(ada).superseded_by == ()
