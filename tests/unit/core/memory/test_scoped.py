"""A scoped handle reads and writes nothing outside its scope, and cannot tell a foreign memory from a missing one."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest

from recallite import Filter, Memory
from recallite.errors import InvalidInput, NotFound, RecalliteError
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import state, unit


@pytest.fixture
def both(memory):
    """Memories inside and outside of /app, alike in all but the scope."""
    memory.inside = memory.remember_many(
        [
            {"text": f"apple inside {place}", "scope": scope, "vector": unit(place), "kind": "in", "tags": ["in"]}
            for place, scope in enumerate(["/app", "/app/x", "/app/x/y"])
        ]
    )
    memory.outside = memory.remember_many(
        [
            {"text": f"apple outside {place}", "scope": scope, "vector": unit(place), "kind": "out", "tags": ["out"]}
            for place, scope in enumerate(["/", "/apple", "/ap", "/app.x", "/other/app"])
        ]
    )
    memory.handle = memory.scoped("/app")
    return memory


def test_what_is_written_lands_inside(both):
    handle = both.handle
    (many,) = handle.remember_many([{"text": "three", "scope": "/deep/er"}])
    assert both.get(many).scope == "/app/deep/er"
    for write, scope in (
        (lambda: handle.remember("one"), "/app"),
        (lambda: handle.remember("two", scope="/x"), "/app/x"),
        (lambda: handle.scoped("/x").remember("four"), "/app/x"),
        (lambda: handle.scoped("/x").remember("five", scope="/y"), "/app/x/y"),
        (lambda: handle.update(many, scope="/z"), "/app/z"),
        (lambda: handle.update(many, scope="/"), "/app"),
    ):
        assert both.get(write().id).scope == scope


def test_a_handle_shows_scopes_as_it_takes_them(both):
    """What a handle shows can be given back to it; it once put its own scope before it a second time."""
    handle = both.handle
    stored = handle.remember("apple there", scope="/x/y")
    assert stored.scope == handle.get(stored.id).scope == handle.history(stored.id)[0].scope == "/x/y"
    (hit,) = (hit for hit in handle.recall("apple", limit=50) if hit.id == stored.id)
    assert hit.scope == "/x/y"
    assert {record.scope for record in handle.list()} == {"/", "/x", "/x/y"}
    assert stored.id in {record.id for record in handle.list(scope=stored.scope)}
    assert stored.id in {record.id for record in handle.list(where={"scope": stored.scope})}
    assert stored.id in {record.id for record in handle.list(where={"or": [{"scope": {"in": [stored.scope]}}]})}
    assert handle.update(stored.id, scope=stored.scope).scope == "/x/y"
    assert both.get(stored.id).scope == "/app/x/y"
    assert handle.scoped("/x").get(stored.id).scope == "/y"


@pytest.mark.parametrize("scope", ["..", "/..", "/../other", "other", "//other", "/./", "/x/../../other"])
def test_no_scope_leads_out(both, scope):
    for use in (
        lambda: both.handle.remember("x", scope=scope),
        lambda: both.handle.recall("apple", scope=scope),
        lambda: both.handle.forget(scope=scope),
        lambda: both.handle.list(scope=scope),
        lambda: both.handle.scoped(scope),
        lambda: both.handle.update(both.inside[0], scope=scope),
    ):
        with pytest.raises(RecalliteError):
            use()


def test_every_reading_verb_stays_inside(both):
    handle = both.handle
    inside = set(both.inside)
    now = datetime.now(UTC)
    for options in ({}, {"scope": "/"}, {"where": {"text": {"contains": "apple"}}}, {"as_of": now}):
        assert {hit.id for hit in handle.recall("apple", limit=50, **recall_arguments(options))} == inside
        assert {hit.id for hit in handle.recall("", vector=unit(1), limit=50, **recall_arguments(options))} == inside
        assert {record.id for record in handle.list(**options)} == inside
        assert handle.count(**options) == 3
    assert {hit.id for hit in handle.recall_many(["apple"], limit=50)[0]} == inside
    assert handle.recall("apple", kinds=["out"]) == []
    assert handle.recall("apple", tags=["out"]) == []
    assert handle.recall("apple", where={"scope": "/apple"}) == []
    assert handle.recall("apple", where={"or": [{"id": both.outside[0]}, {"scope": "/other/app"}]}) == []
    assert {hit.id for hit in handle.recall("apple", limit=50, scope="/x")} == set(both.inside[1:])


@pytest.mark.parametrize("place", range(5))
def test_a_foreign_id_is_a_missing_one_for_every_verb(both, place):
    foreign, missing, handle = both.outside[place], "01a00000-0000-7000-8000-000000000000", both.handle
    before = state(both)
    uses = (
        lambda each: handle.get(each),
        lambda each: handle.update(each, text="changed"),
        lambda each: handle.update(each, scope="/stolen"),
        lambda each: handle.forget(each),
        lambda each: handle.forget([both.inside[0], each]),
        lambda each: handle.history(each),
        lambda each: handle.neighbors(each),
        lambda each: handle.review.explain("apple", each),
        lambda each: handle.link(both.inside[0], each),
        lambda each: handle.link(each, both.inside[0]),
    )
    for use in uses:
        said = []
        for each in (foreign, missing):
            with pytest.raises(NotFound) as raised:
                use(each)
            said.append(str(raised.value).replace(each, "ID"))
        assert said[0] == said[1]
    assert state(both) == before


@pytest.mark.parametrize("record_id", ["", "x" * 1000, "\ud800", "nul\0", None, 3], ids=repr)
def test_an_id_of_any_shape_is_not_found(both, record_id):
    for use in (
        both.get,
        both.history,
        both.neighbors,
        both.handle.get,
        lambda each: both.update(each, text="x"),
        lambda each: both.review.explain("x", each),
        lambda each: both.link(each, both.inside[0]),
    ):
        with pytest.raises(NotFound):
            use(record_id)


def test_links_to_the_outside_are_not_seen_and_do_not_spread(both):
    alone = both.handle.recall("apple inside 0", profile={"half_life_days": 0})
    both.link(both.inside[0], both.outside[0])
    both.link(both.outside[1], both.inside[0])
    both.link(both.inside[0], both.inside[1])
    assert {link.target for link in both.handle.neighbors(both.inside[0])} == {both.inside[1]}
    assert len(both.neighbors(both.inside[0])) == 3
    assert {hit.id for hit in both.handle.recall("apple", limit=50)} == set(both.inside)
    assert {hit.id for hit in alone} == set(both.inside)


def test_forgetting_the_scope_leaves_the_rest(both):
    both.handle.forget(scope="/")
    assert {record.id for record in both.list()} == set(both.outside)
    assert both.handle.forget(tags=["out"]).records == 0
    assert both.handle.forget(kinds=["out"]).records == 0
    assert both.handle.forget(where={"kind": "out"}).records == 0
    assert both.count() == 5


def test_a_memory_that_moved_in_does_not_show_its_life_outside(memory):
    moved = memory.remember("secret of before", scope="/other")
    then = datetime.now(UTC)
    memory.update(moved.id, text="public now")
    memory.update(moved.id, scope="/app")
    handle = memory.scoped("/app")
    for chain in (False, True):
        assert [(version.text, version.scope) for version in handle.history(moved.id, chain=chain)] == [
            ("public now", "/")
        ]
        versions = memory.history(moved.id, chain=chain)
        assert [(version.text, version.scope) for version in versions] == [
            ("secret of before", "/"), ("public now", "/app"),
        ]  # fmt: skip
    assert handle.recall("secret", as_of=then) == handle.list(as_of=then) == []
    assert [hit.text for hit in memory.recall("secret", as_of=then)] == ["secret of before"]
    with pytest.raises(InvalidInput, match="version"):
        handle.restore(moved.id, -2)
    with pytest.raises(InvalidInput, match="current"):
        handle.restore(moved.id, 0)
    # Nor does the scope that it left show it.
    assert memory.forget(scope="/other").records == 0
    assert memory.scoped("/other").recall("secret", as_of=then) == []
    assert memory.scoped("/other").count(as_of=then) == 0
    lines = StringIO()
    handle.transfer.export(lines)
    assert "secret" not in lines.getvalue()
    lines = StringIO()
    memory.transfer.export(lines)
    assert "secret" in lines.getvalue()
    assert memory.store.verify().problems == ()
    assert memory.restore(moved.id, 0).text == "secret of before"
    assert handle.forget(moved.id).versions == 1, "the version outside is gone, and not counted"
    assert memory.count(as_of=then) == 0
    assert memory.recall("secret", as_of=then) == []


def test_a_memory_that_moves_within_a_scope_keeps_its_past_there(memory):
    moved = memory.remember("first", scope="/app/one", source="notes")
    memory.update(moved.id, text="second")
    memory.update(moved.id, scope="/app/two")
    app = memory.scoped("/app")
    versions = [("first", "/", "notes"), ("second", "/two", "notes")]
    assert [(version.text, version.scope, version.source) for version in app.history(moved.id)] == versions
    assert [version.text for version in memory.scoped("/app/two").history(moved.id)] == ["second"]
    assert memory.store.verify().problems == ()


def test_no_undone_pair_or_former_text_is_of_another_scope(memory):
    ben, ada = memory.scoped("/ben"), memory.scoped("/ada")
    old = ben.remember("The door code is 1111")
    new = ben.remember("The door code is 2222 now")
    assert new.supersedes == (old.id,)
    then = datetime.now(UTC)
    ben.restore(old.id)
    assert len(memory.review.undone()) == 1
    memory.update(new.id, scope="/ada")
    assert [hit.supersedes for hit in ada.recall("What is the door code?", as_of=then)] == [()]
    (hit,) = ben.recall("What is the door code?", filter=Filter(as_of=then, include_superseded=True))
    assert (hit.id, hit.superseded_by) == (old.id, ())
    assert hit.held_until is not None
    memory.update(old.id, text="The door code is not known", scope="/ada")
    assert ada.review.undone() == []
    assert [pair.old for pair in memory.review.undone()] == [old.text]


def test_figures_and_upkeep_of_a_handle_tell_nothing_of_the_rest(both, tmp_path):
    try:
        figures = both.handle.store.stats()
    except RecalliteError:
        figures = None
    if figures is not None:
        assert (figures.records, figures.kinds) == (3, {"in": 3})
    with pytest.raises(RecalliteError):
        both.handle.store.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_the_same_source_name_in_two_scopes_is_not_mixed(memory):
    a = memory.scoped("/a").remember(NewRecord("apple one", source="chat", position=0))
    memory.scoped("/b").remember(NewRecord("apple two", source="chat", position=1))
    (hit,) = memory.scoped("/a").recall("apple", diversify_by="one_per_source")
    assert (hit.id, hit.source.id) == (a.id, "chat")


def test_a_handle_says_where_it_is(both):
    assert "/app" in repr(both.handle)
    assert both.handle.path == both.path
    assert both.handle.settings == both.settings


# ── scopes that are only read ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shared(memory):
    """Tenants with a handbook that both read."""
    memory.handbook = memory.remember("apple refunds take 14 days", scope="/handbook/money").id
    memory.theirs = memory.remember("apple of tenant b", scope="/tenants/b").id
    memory.near = memory.remember("apple of a scope like it", scope="/handbooks").id
    memory.handle = memory.scoped("/tenants/a", reads="/handbook")
    memory.own = memory.handle.remember("apple of tenant a", scope="/x").id
    return memory


def test_a_handle_recalls_its_scope_and_those_that_it_reads(shared):
    handle = shared.handle
    for hits in (handle.recall("apple", limit=50), *handle.recall_many(["apple"], limit=50)):
        assert {hit.id: hit.scope for hit in hits} == {shared.own: "/x", shared.handbook: "//handbook/money"}
    assert [hit.id for hit in handle.recall("apple", scope="/", limit=50)] == [shared.own]
    assert [hit.id for hit in handle.recall("apple", where={"scope": {"contains": "//handbook"}})] == [shared.handbook]
    assert handle.get(shared.handbook).scope == "//handbook/money"
    assert [*handle.get([shared.handbook, shared.theirs, shared.own])] == [shared.handbook, shared.own]
    assert next(hit.id for hit in handle.semantic.search("apple refunds")) == shared.handbook
    shared.knowledge.ingest(b"Apple invoices are due in May", name="pay.md", scope="/handbook")
    (passage,) = handle.knowledge.search("Apple invoices", 1)
    assert (passage.scope, passage.metadata["document"][:4]) == ("//handbook", "doc_")
    assert "refunds" in handle.bootstrap(None, "apple refunds").text


def test_a_change_of_what_is_only_read_is_refused_as_such(shared):
    handle, book, before = shared.handle, shared.handbook, state(shared)
    for call in (
        lambda: handle.forget(book), lambda: handle.forget([shared.own, book]), lambda: handle.restore(book),
        lambda: handle.update(book, text="pear"), lambda: handle.update(book, renew=True),
        lambda: handle.supersede([shared.own], book), lambda: handle.link(shared.own, book),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=f"{book} is of a scope that is shared .*: it may be read, not changed"):
            call()
    assert state(shared) == before
    with pytest.raises(NotFound):
        handle.forget(shared.theirs)
    assert handle.forget(book, missing_ok=True).records == 0
    with pytest.raises(InvalidInput, match="forget with a receipt works on the whole file") as refused:
        handle.forget(shared.own, receipt=True)
    assert "/tenants" not in str(refused.value)
    everything = shared.scoped("/tenants/a", reads="/")
    assert everything.update(shared.own, importance=0.9).scope == "/x"


def test_what_is_only_read_is_not_written_and_nothing_else_is_seen(shared):
    handle, before = shared.handle, state(shared)
    for call in (
        lambda: handle.forget(shared.handbook), lambda: handle.update(shared.handbook, text="pear"),
        lambda: handle.supersede(shared.handbook, shared.own), lambda: handle.link(shared.own, shared.handbook),
        lambda: handle.remember("pear", scope="//handbook"), lambda: handle.recall("apple", scope="//tenants/b"),
        lambda: handle.recall("apple", scope="/tenants/b/../.."), lambda: handle.get(shared.theirs),
        lambda: handle.scoped("/x").get(shared.handbook), lambda: handle.scoped("//handbook"),
    ):  # fmt: skip
        with pytest.raises(RecalliteError):
            call()
    with pytest.raises(TypeError):
        handle.review.explain("apple", shared.theirs, shared=("/",))
    handle.forget(where={"text": {"contains": "refunds"}})
    assert [hit.id for hit in handle.scoped("/", reads="/handbook").recall("apple", limit=50)] == [shared.own]
    assert [hit.id for hit in handle.scoped("/x").recall("apple", limit=50)] == [shared.own]
    assert [record.id for record in handle.list()] == [shared.own]
    assert state(shared) == before
    handle.recall("apple")
    assert (shared.get(shared.handbook).access_count, shared.get(shared.own).access_count > 0) == (0, True)


def test_answers_are_those_of_a_file_with_these_scopes_alone(shared):
    alone = Memory(":memory:", settings=shared.settings)
    alone.remember("apple refunds take 14 days", scope="/handbook/money")
    alone.remember("apple of tenant a", scope="/tenants/a/x")
    found = [[(hit.text, round(hit.score, 5), round(hit.confidence, 5)) for hit in each.recall("apple refunds")]
             for each in (alone, shared.handle)]  # fmt: skip
    assert found[0] == found[1]
