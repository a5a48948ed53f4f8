"""The tool memory on a real store with the bundled model: results as the systems it comes from print them."""

from __future__ import annotations

import json

import pytest

from recallite import Memory, Settings, tools
from recallite.errors import InvalidInput, StoreClosed
from recallite.text.quotes import NOTICE
from tests.raising import raises
from tests.unit.core.memory.support import ONLY_STORES, supersede_by_rule

PLAIN = Settings(embedder="none")


@pytest.fixture
def use(embedded):
    """`use("write", text="...")` of the tool memory."""
    return lambda action, **fields: tools.call("memory", {"action": action, **fields}, memory=embedded)


def results(answer):
    assert "error" not in answer, answer
    return answer["results"]


def test_reeve_write_and_search(use):
    written = use("write", text="User prefers dark mode and minimal UI", tags=["preferences", "ui"])
    assert written["outcome"] == "created"
    use("write", text="The ferry to Lisbon leaves at nine")
    found = use("search", query="What does the user prefer for UI design?", limit=5)
    best = found["results"][0]
    assert (best["text"], best["tags"]) == ("User prefers dark mode and minimal UI", ["preferences", "ui"])
    assert 0 < best["score"] <= 1
    assert 0 < best["confidence"] <= 1
    assert best["created_at"].endswith("Z")
    assert (best["id"], best["scope"], best["source"]) == (written["id"], "/", None)
    assert found["notice"] == NOTICE


def test_hermes_recall(use):
    use(
        "write", text="We migrated from PostgreSQL to MySQL last week", scope="/infrastructure/database",
        importance=0.8,
    )  # fmt: skip
    use("write", text="The office plants are watered on Fridays", importance=0.1)
    found = use("recall", limit=5, query="What database are we using?")
    best = found["results"][0]
    assert best["text"] == "We migrated from PostgreSQL to MySQL last week"
    assert best["scope"] == "/infrastructure/database"
    assert best["importance"] == 0.8
    assert {"semantic", "importance"} <= set(best["match_reasons"])
    assert best["evidence_gaps"] == []
    assert use("recall", query="zeppelin hangar")["results"] == []
    assert set(best) >= {
        "text",
        "scope",
        "importance",
        "score",
        "confidence",
        "match_reasons",
        "evidence_gaps",
        "created_at",
        "id",
    }


@pytest.mark.parametrize("action", ["search", "recall"])
def test_an_answer_without_results_says_what_is_missing(use, action):
    """Two fresh memories reach the score that closes a gap, whatever they are about."""
    use("write", text="Nora's exam is in June")
    use("write", text="Snow is forecast for Thursday")
    for question in ("When does the next comet pass?", "Who repaired the harpsichord?", "zeppelin hangar"):
        answer = use(action, query=question)
        assert answer["results"] == []
        assert any(question.rstrip("?").rpartition(" ")[2] in gap for gap in answer["evidence_gaps"]), answer
    assert use(action, query="When is Nora's exam?")["results"][0]["text"] == "Nora's exam is in June"


def test_hermes_composite_score(use):
    use("write", text="We migrated from PostgreSQL to MySQL", importance=0.9)
    (hit,) = results(use("recall", query="We migrated from PostgreSQL to MySQL"))
    assert hit["score"] == pytest.approx(0.5 * 1 + 0.3 * 1 + 0.2 * 0.9, abs=1e-3)


def test_replace_by_old_text(use, embedded):
    id = use("write", text="We use PostgreSQL 15")["id"]
    use("write", text="We use Redis for queues")
    assert use("replace", old_text="PostgreSQL", text="We use MySQL 8") == {"outcome": "replaced", "id": id}
    assert embedded.get(id).text == "We use MySQL 8"
    assert results(use("search", query="Which SQL database?"))[0]["text"] == "We use MySQL 8"


def test_remove_by_old_text_and_by_id(use, embedded):
    first, second = (use("write", text=text)["id"] for text in ("We use PostgreSQL", "We use Redis"))
    assert use("remove", old_text="Redis") == {"outcome": "removed", "id": second}
    assert use("remove", id=first) == {"outcome": "removed", "id": first}
    assert embedded.count() == 0


def test_old_text_that_several_hold_lists_them(use, embedded):
    ids = {use("write", text=f"We use {name}")["id"] for name in ("PostgreSQL", "Redis")}
    for action, more in (("replace", {"text": "x"}), ("remove", {})):
        error = use(action, old_text="We use", **more)["error"]
        assert (error["type"], error["field"]) == ("ambiguous", "old_text")
        assert {each["id"] for each in error["candidates"]} == ids
        assert error["notice"] == NOTICE
        assert {each["text"] for each in error["candidates"]} == {"We use PostgreSQL", "We use Redis"}
    assert embedded.count() == 2


def test_many_candidates_are_not_all_listed(use):
    for number in range(8):
        use("write", text=f"note number {number} " + "x" * 1000)
    error = use("remove", old_text="note number")["error"]
    assert error["message"].startswith("more than 5 memories hold 'note number'")
    assert [len(each["text"]) for each in error["candidates"]] == [200] * 5


@pytest.mark.parametrize(("action", "more"), [("replace", {"text": "x"}), ("remove", {})])
def test_nothing_to_replace_or_remove(use, action, more):
    assert use(action, old_text="nowhere", **more)["error"]["type"] == "not_found"
    error = use(action, id="018f0000-0000-7000-8000-000000000000", **more)["error"]
    assert (error["type"], error["field"]) == ("not_found", "id")
    for wrong in ({}, {"id": "x", "old_text": "y"}):
        error = use(action, **wrong, **more)["error"]
        assert (error["type"], error["allowed"]) == ("missing_field", ["old_text", "id"])


def test_other_kinds_are_not_its_business(use, embedded):
    chunk = embedded.remember("A chunk of a manual about databases", kind="chunk")
    assert results(use("list")) == results(use("search", query="databases")) == []
    assert use("remove", id=chunk.id)["error"]["type"] == "not_found"
    assert use("remove", old_text="manual")["error"]["type"] == "not_found"
    assert embedded.count() == 1


def test_list_pages_newest_first(use):
    for number in range(5):
        use("write", text=f"note {number}", tags=["even" if number % 2 == 0 else "odd"])
    assert [each["text"] for each in results(use("list", limit=2))] == ["note 4", "note 3"]
    assert [each["text"] for each in results(use("list", limit=2, offset=4))] == ["note 0"]
    assert [each["text"] for each in results(use("list", tags=["odd"]))] == ["note 3", "note 1"]


def test_results_name_what_supersedes_and_what_contradicts_them(use, embedded):
    texts = ("The tram to the harbour is line 4", "The bus to the harbour is line 11", "The shed is grey", "A red shed")
    tram, bus, grey, red = (embedded.remember(text, policy=ONLY_STORES).id for text in texts)
    assert "replaced" not in use("list")
    supersede_by_rule(embedded, tram, bus)
    embedded.supersede(grey, red)
    listed = use("list")
    assert listed["replaced"] == 1
    assert [(each["id"], each.get("superseded_by"), "until" in each) for each in listed["results"]] == [
        (red, None, False), (bus, None, False), (tram, [bus], False),
    ]  # fmt: skip
    found = {each["id"]: each for each in results(use("recall", query="Which line goes to the harbour?"))}
    assert (found[tram]["superseded_by"], found[bus].get("superseded_by")) == ([bus], None)
    embedded.restore(tram)
    embedded.link(bus, tram, type="contradicts")
    found = {each["id"]: each for each in results(use("recall", query="Which line goes to the harbour?"))}
    assert (found[tram]["contradicts"], found[bus]["contradicts"]) == ([bus], [tram])


def test_a_write_says_what_it_did(use):
    first = use("write", text="The server is called hermes")
    assert (first["outcome"], first["merged_into"]) == ("created", None)


def test_contradictions_are_reported(path):
    with Memory(path, settings=Settings(profile="hermes")) as memory:
        old = tools.call("memory", {"action": "write", "text": "The deploy runs at night"}, memory=memory)
        new = tools.call("memory", {"action": "write", "text": "The deploy does not run at night"}, memory=memory)
    assert [each["id"] for each in new["contradictions"]] == [old["id"]]
    assert new["notice"] == NOTICE


def test_the_scope_of_the_call_overrides_the_models_own(memory):
    def use(action, within, **fields):
        return tools.call("memory", {"action": action, **fields}, memory=memory, scope=within)

    written = use("write", "/users/ada", text="ada's secret", scope="/users/eve")
    assert written["scope"] == "/users/ada"
    assert memory.get(written["id"]).scope == "/users/ada"
    assert results(use("list", "/users/eve", scope="/users/ada")) == []
    assert results(use("search", "/users/eve", query="secret", scope="/")) == []
    assert results(use("recall", "/users/eve", query="secret", scope="/users/ada")) == []
    assert use("remove", "/users/eve", id=written["id"])["error"]["type"] == "not_found"
    assert use("replace", "/users/eve", old_text="secret", text="x")["error"]["type"] == "not_found"
    assert [each["scope"] for each in results(use("list", "/users/ada"))] == ["/users/ada"]
    assert use("remove", "/users/ada", old_text="secret")["outcome"] == "removed"


def test_the_models_scope_holds_where_the_call_gives_none(memory):
    tools.call("memory", {"action": "write", "text": "a fact of b", "scope": "/a/b"}, memory=memory)
    for scope, count in (("/a", 1), ("/a/b", 1), ("/ab", 0), (None, 1)):
        found = results(tools.call("memory", {"action": "list", "scope": scope}, memory=memory))
        assert [each["scope"] for each in found] == ["/a/b"] * count


def test_a_scoped_memory_stays_in_its_scope(memory):
    handle = memory.scoped("/tenants/acme")
    written = tools.call("memory", {"action": "write", "text": "x", "scope": "/notes"}, memory=handle)
    assert written["scope"] == "/notes"
    assert memory.get(written["id"]).scope == "/tenants/acme/notes"


def test_arguments_may_be_json_text(memory):
    arguments = '{"action": "write", "text": "caf\\u00e9 \\ud83e\\udde0", "tags": null}'
    assert tools.call("memory", arguments, memory=memory)["outcome"] == "created"
    assert memory.list()[0].text == "café 🧠"


def test_results_are_json(use):
    use("write", text="one")
    for action, fields in (("list", {}), ("search", {"query": "one"}), ("recall", {"query": "one"})):
        answer = use(action, **fields)
        assert json.loads(json.dumps(answer)) == answer


def test_programming_errors_are_raised(memory):
    with pytest.raises(InvalidInput, match="give a Memory"):
        tools.call("memory", {"action": "list"}, memory=None)
    with raises(InvalidInput, "filter"):
        tools.call("memory", {"action": "list"}, memory=memory, scope="no-slash")
    memory.close()
    with pytest.raises(StoreClosed):
        tools.call("memory", {"action": "list"}, memory=memory)


@pytest.mark.parametrize(
    "correction",
    ["Deploy on Friday (status: cancelled)", "2027-05-01: Deploy on Friday", "Deploy on Friday (owner: Bob)",
     '{"text": "Deploy on Friday", "context": "No longer true"}'],
)  # fmt: skip
def test_a_correction_that_quotes_a_memory_is_stored(memory, correction):
    for content in ("Deploy on Friday", correction):
        assert tools.call("memory", {"action": "write", "text": content}, memory=memory)["outcome"] == "created"
    assert memory.count() == 2
