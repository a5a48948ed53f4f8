"""Records of any store: written, changed, purged, and found by filters."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from recallite.errors import StoreCorrupt
from recallite.model.filters import Filter
from recallite.store.sql.records import Access
from tests.unit.core.store.contract.support import EMBEDDER, NOW, parts, row, vector

HOUR = 3_600_000_000


def found(reader, chosen, now=NOW, **options):
    return [record.id for record in reader.records.find(chosen, now, **options)]


def test_row_ids_grow_and_are_never_used_again(store):
    with store.atomic() as writer:
        first, second = writer.records.insert([row("a"), row("b")], None)
        writer.records.delete([second])
        (third,) = writer.records.insert([row("c")], None)
        assert writer.records.insert([], None) == []
    assert first < second < third


def test_a_record_comes_back_as_it_was_written(store):
    written = row(
        "a", "Ada likes tea.", kind="fact", scope="/people", context="Tea", importance=0.75, pinned=True, topic="tea",
        source="diary", position=3, valid_from=NOW - HOUR, expires_at=NOW + HOUR, metadata='{"mood":"calm"}',
        tags=("z", "a"), access_count=2, accessed_at=NOW,
    )  # fmt: skip
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([written], None)
    with store.read() as reader:
        record = reader.records.get(row_id)
        shown = reader.records.fetch([row_id, row_id + 1])
    assert (record.id, record.text, record.kind, record.scope, record.context) == (
        "a", "Ada likes tea.", "fact", "/people", "Tea",
    )  # fmt: skip
    assert (record.importance, record.pinned, record.topic, record.source, record.position) == (
        0.75, True, "tea", "diary", 3,
    )  # fmt: skip
    assert (record.tags, record.metadata, record.access_count) == (("z", "a"), {"mood": "calm"}, 2)
    assert list(shown) == [row_id]
    assert shown[row_id].tags == ("z", "a")
    assert shown[row_id].valid_from == NOW - HOUR


def test_the_sources_of_records_are_named(store):
    with store.atomic() as writer:
        ids = writer.records.insert([row("a", source="diary"), row("b"), row("c", source="eip-3.md")], None)
    with store.read() as reader:
        named = reader.records.source_names(np.array([ids[2], ids[1], ids[0], ids[2] + 1]))
    assert named == ["eip-3.md", None, "diary", None]


def test_what_stands_is_marked_with_its_text(store):
    always, tea = "Always format dates as ISO", "I prefer tea"
    with store.atomic() as writer:
        rows = [row("a", always), row("b", tea, context="Ada"), row("c", "Tea"), row("d", tea)]
        ids = writer.records.insert(rows, None)
        writer.records.change_text(ids[3], row("d", "Coffee"), None)
        writer.records.delete([ids[2]])
    with store.read() as reader:
        standing = reader.records.standing()
        assert {key: standing[key] for key in ids[:2]} == {ids[0]: "instruction", ids[1]: "preference"}
        assert sorted(standing) == list(standing)
        assert list(standing.values()).count("preference") == 2  # the version that was closed is one still
        assert reader.records.standing(ids[1:]) == {ids[1]: "preference"}
        assert [record.standing for record in reader.records.history("d")] == ["preference", None]
        assert found(reader, Filter(where={"standing": "preference"})) == ["b"]
        assert reader.records.contexts(np.array([ids[1], ids[0], ids[2]])) == ["Ada", None, None]


def test_orders_limits_and_offsets(store):
    with store.atomic() as writer:
        writer.records.insert(
            [row(name, importance=level) for name, level in (("a", 0.1), ("b", 0.9), ("c", 0.5))], None
        )
    with store.read() as reader:
        assert found(reader, Filter(), order="oldest") == ["a", "b", "c"]
        assert found(reader, Filter(), order="newest", limit=2) == ["c", "b"]
        assert found(reader, Filter(), order="importance", limit=1, offset=1) == ["c"]


FILTERS = {
    "all": (Filter(), "abcd"),
    "scope": (Filter(scope="/app"), "ab"),
    "several scopes": (Filter(scope=["/app/x", "/apple"]), "bc"),
    "kinds": (Filter(kinds=["fact"]), "bc"),
    "tags": (Filter(tags=["x", "y"]), "ab"),
    "topic": (Filter(where={"topic": "t1"}), "a"),
    "no topic": (Filter(where={"topic": None}), "bd"),
    "source": (Filter(where={"source": "s"}), "d"),
    "importance": (Filter(where={"importance": {"gte": 0.5}}), "bd"),
    "metadata": (Filter(where={"metadata.n": {"gt": 1}}), "c"),
    "or and not": (Filter(where={"or": [{"topic": "t1"}, {"not": {"kind": "note"}}]}), "abc"),
    "since": (Filter(since="2025-06-15T15:06:40Z"), "abc"),
    "text": (Filter(where={"text": {"contains": "of b"}}), "b"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_admits_the_same_records_however_it_is_asked(store, name):
    chosen, expected = FILTERS[name]
    with store.atomic() as writer:
        ids = writer.records.insert(
            [
                row("a", scope="/app", tags=("x",), topic="t1", importance=0.25),
                row("b", scope="/app/x", tags=("y", "z"), kind="fact", importance=0.5),
                row("c", scope="/apple", kind="fact", topic="t2", metadata='{"n":2}', importance=0.25),
                row("d", source="s", valid_from=NOW - 24 * HOUR, metadata='{"n":1}', importance=0.75),
                row("e", expires_at=NOW - 1),
            ],
            None,
        )
    row_of = dict(zip("abcde", ids, strict=True))
    chosen = chosen.within("/")
    with store.read() as reader:
        assert found(reader, chosen) == list(expected)
        assert reader.records.matching_ids(chosen, NOW) == [row_of[name] for name in expected]
        assert reader.records.count(chosen, NOW) == len(expected)
        assert [name for name in row_of if reader.records.admits(chosen, NOW, row_of[name])] == list(expected)


def test_versions_of_a_filter(store):
    with store.atomic() as writer:
        first, _ = writer.records.insert([row("a", "old"), row("e", expires_at=NOW - 1)], None)
        writer.records.change_text(first, row("a", "new", recorded_from=NOW + HOUR), None)
    with store.read() as reader:
        texts = {
            versions: [record.text for record in reader.records.find(Filter(), NOW + HOUR, versions=versions)]
            for versions in ("current", "open", "expired", "closed", "any")
        }
    assert texts == {
        "current": ["new"], "open": ["new", "text of e"], "expired": ["text of e"], "closed": ["old"],
        "any": ["new", "text of e", "old"],
    }  # fmt: skip


def test_a_changed_text_keeps_its_row_and_closes_a_version(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", "red apple", tags=("t",))], None)
        writer.records.change_text(row_id, row("a", "green pear", recorded_from=NOW + HOUR), None)
    with store.read() as reader:
        assert [record.text for record in reader.records.history("a")] == ["red apple", "green pear"]
        closed, current = reader.records.version_ids("a")
        assert current == row_id
        assert reader.records.version_at(row_id, NOW) == closed
        assert reader.records.version_at(row_id, NOW + HOUR) == row_id
        assert reader.records.get(closed).tags == ("t",)
        numbers = reader.lexicon.lookup(["red", "pear"])
        assert numbers["red"] in reader.blocks.terms([closed]).terms
        assert numbers["pear"] in reader.blocks.terms([row_id]).terms
        assert numbers["red"] not in reader.blocks.terms([row_id]).terms


def test_a_text_can_be_changed_without_a_version_and_versions_be_purged(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", "one")], None)
        for number, text in enumerate(("two", "three")):
            writer.records.change_text(row_id, row("a", text, recorded_from=NOW + number + 1), None)
        assert writer.records.purge_versions([row_id]) == 2
        assert [record.text for record in writer.records.history("a")] == ["three"]
        writer.records.change_text(row_id, row("a", "four"), None, keep_version=False)
        assert [record.text for record in writer.records.history("a")] == ["four"]


def test_an_earlier_text_takes_its_place_among_the_versions(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", "middle", recorded_from=NOW)], None)
        writer.records.change_text(row_id, row("a", "last", recorded_from=NOW + 2 * HOUR), None)
        writer.records.insert_earlier(row_id, row("x", "between", recorded_from=NOW + HOUR), None)
    with store.read() as reader:
        history = reader.records.history("a")
    assert [record.text for record in history] == ["middle", "between", "last"]
    assert [record.recorded_until for record in history] == [*(record.recorded_from for record in history[1:]), None]


def test_columns_change_and_versions_follow_the_scope(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", "old", scope="/a", source="s", tags=("x",))], None)
        writer.records.change_text(row_id, row("a", "new", recorded_from=NOW + 1), None)
        writer.records.change_columns(row_id, {"scope": "/b", "importance": 0.9}, ("y",))
    with store.read() as reader:
        record = reader.records.get(row_id)
        assert (record.scope, record.source, record.importance, record.tags) == ("/b", "s", 0.9, ("y",))
        # On a server they are where their record is.
        closed, current = reader.records.history("a")
        assert (closed.scope in ("/", "/b"), current.scope) == (True, "/b")
        within = [each.text for each in (closed, current) if each.scope == "/b"]
        assert [each.text for each in reader.records.history("a", "/b")] == within
        assert reader.records.history("a", "/a") == []
        assert reader.records.find_ids(["a"], "/a") == {}
        assert reader.records.find_ids(["a"], "/b") == {"a": row_id}


@pytest.mark.parametrize("versions_first", [False, True])
def test_the_source_of_versions_in_another_scope_goes_with_them(store, versions_first):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", "old", scope="/a/b", source="s")], None)
        writer.records.change_text(row_id, row("a", "new", recorded_from=NOW + 1), None)
        writer.records.change_columns(row_id, {"scope": "/a/c"}, None)
        if versions_first:
            assert writer.records.purge_versions([row_id]) == 1
            assert len(writer.scopes.sources_named(["s"])) == 1
        writer.records.delete([row_id])
        assert writer.scopes.sources_named(["s"]) == []


def test_a_purged_record_leaves_nothing(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        first, second = writer.records.insert([row("a", vectors=(vector(1),), tags=("t",)), row("b")], embedder)
        writer.links.put([(first, second, "about", 0.5, NOW)])
        writer.records.change_text(first, row("a", "again", recorded_from=NOW + 1), None)
        assert writer.records.delete([first]) == 1
        assert writer.records.delete([]) == 0
        assert found(writer, Filter(), versions="any") == ["b"]
        assert writer.links.of(second, incoming=True, types=()) == []
        assert writer.vectors.of_record(first) == parts()
        assert writer.blocks.terms([first]).ids.tolist() == []


def test_what_is_current_by_id_text_and_topic(store):
    with store.atomic() as writer:
        ids = writer.records.insert(
            [
                row("a", "Same text", topic="t"),
                row("b", "same text.", topic="t", recorded_from=NOW - 1),
                row("c", "gone", topic="t", expires_at=NOW - 1),
            ],
            None,
        )
        keys = [row("x", "SAME TEXT").content_hash[:8]]
    with store.read() as reader:
        assert [each.public_id for each in reader.records.current(ids, NOW)] == ["a", "b"]
        assert [each.public_id for each in reader.records.current_by_text(keys, NOW)] == ["a", "b"]
        assert [each.public_id for each in reader.records.current_by_topic(["t"], NOW)] == ["b", "a"]
        assert reader.records.same_text("/", "note", row("x", "Same text").content_hash) == [ids[0]]
        assert reader.records.find_ids(["a", "c", "nobody"], "/").keys() == {"a", "c"}


def test_accesses_add_up_outside_the_feed(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a")], None)
        before = writer.changes.commit()
        writer.records.touch({"a": Access(row_id, 2, NOW), "nobody": Access(row_id, 1, NOW)})
        writer.records.touch({"a": Access(row_id, 1, NOW - HOUR)})
        writer.records.touch({"a": Access(row_id + 1, 1, NOW)})
        assert writer.changes.commit() == before
        record = writer.records.get(row_id)
    assert (record.access_count, record.accessed_at.timestamp()) == (3, NOW / 1e6)


def test_an_export_reads_versions_with_vectors_and_the_ids_of_what_a_person_may_edit(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        first, second = writer.records.insert(
            [row("a", "one", vectors=(vector(1),), scope="/x"), row("b", created_at=NOW + 31 * 24 * HOUR)], embedder
        )
        writer.records.change_text(first, row("a", "two", vectors=(vector(2),), recorded_from=NOW + 1), embedder)
        written = list(writer.records.versions(Filter(), embedder))
        editable = writer.records.editable_ids(Filter())
    assert [(each.record.text, each.vectors) for each in written] == [
        ("one", (vector(1),)), ("two", (vector(2),)), ("text of b", ()),
    ]  # fmt: skip
    assert editable == [first, second]


def test_scopes_that_hold_something(store):
    with store.atomic() as writer:
        writer.records.insert([row("a", scope="/a/b"), row("b", scope="/c")], None)
        writer.tiers.save_working("/a/empty", "{}", NOW)
        assert writer.scopes.inhabited((), 10) == ["/c", "/a/b"]
        assert writer.scopes.inhabited(("/a",), 10) == ["/a/b"]
        assert set(writer.scopes.within(["/a"])) == set(writer.scopes.ids(["/a/b", "/a/empty"]).values())


def test_metadata_that_is_no_json_is_damage(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", metadata="{")], None)
        with pytest.raises(StoreCorrupt, match="metadata of record 'a'"):
            writer.records.get(row_id)
        assert msgspec.json.decode(b"{}") == {}
