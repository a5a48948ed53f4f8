"""Each verb, by what it returns and what it leaves behind."""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from recallite import Memory
from recallite.errors import InvalidInput, InvalidItem, NotFound
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import PLAIN, scored, state, unit

EVERYTHING = {
    "text": "a text", "scope": "/a/b", "kind": "note", "tags": ("x", "y"), "importance": 0.25, "metadata": {"k": [1]},
    "context": "a header", "topic": "a topic", "source": "a source", "position": 3,
    "created_at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), "valid_from": datetime(2025, 1, 1, tzinfo=UTC),
    "expires_at": datetime(2999, 1, 1, tzinfo=UTC), "pinned": True,
}  # fmt: skip


def test_remember_returns_the_record_as_get_will(memory):
    stored = memory.remember(NewRecord(**EVERYTHING))
    assert {name: getattr(stored, name) for name in EVERYTHING} == EVERYTHING
    assert stored.outcome == "created"
    assert (stored.recorded_from, stored.recorded_until, stored.access_count) == (EVERYTHING["created_at"], None, 0)
    again = memory.get(stored.id)
    assert again.outcome == "stored"
    assert {name: getattr(again, name) for name in EVERYTHING} == EVERYTHING
    assert memory.list() == [again]


def test_ids_are_uuid7_in_the_order_of_writing(memory):
    ids = memory.remember_many([f"number {number}" for number in range(2000)])
    ids += [memory.remember(f"one more {number}").id for number in range(20)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert {uuid.UUID(each).variant for each in ids} == {uuid.RFC_4122}


def test_times_with_any_offset_are_one_moment(memory):
    offset = timezone(timedelta(hours=5, minutes=30))
    stored = memory.remember("x", created_at=datetime(2026, 1, 1, 12, tzinfo=offset), valid_from="2026-01-01T06:30:00Z")
    assert stored.created_at == stored.valid_from == datetime(2026, 1, 1, 6, 30, tzinfo=UTC)
    assert stored.created_at.tzinfo == UTC


def test_remember_many_takes_strings_dicts_and_records_from_any_iterable(memory):
    told = []
    items = ["a str", {"text": "a dict", "scope": "/a"}, NewRecord(text="a record", kind="note"), {**EVERYTHING}]
    ids = memory.remember_many(iter(items), batch_size=3, on_progress=lambda done, total: told.append((done, total)))
    assert [memory.get(each).text for each in ids] == ["a str", "a dict", "a record", "a text"]
    assert told == [(3, None), (4, None)]
    told.clear()
    memory.remember_many(["x", "y"], on_progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 2)]
    assert memory.remember_many([]) == []


def test_remember_many_streams(memory):
    """It holds no more than a batch: an endless stream is read batch by batch."""
    read = []

    def stream():
        for number in range(100):
            read.append(number)
            yield f"number {number}"

    seen = []
    memory.remember_many(stream(), batch_size=10, on_progress=lambda done, total: seen.append((done, len(read))))
    assert all(taken <= done + 10 for done, taken in seen)


def test_remember_many_equals_remember_one_by_one(path, tmp_path):
    items = [
        {"text": f"apple number{n}", "vector": unit(n), "source": f"s{n % 3}", "position": n, "tags": [f"t{n % 2}"]}
        for n in range(30)
    ]
    with Memory(path, settings=PLAIN) as bulk, Memory(tmp_path / "single.db", settings=PLAIN) as single:
        ids = bulk.remember_many(items)
        ones = [single.remember(NewRecord(**item)).id for item in items]

        def asked(memory: Memory, names: list[str]) -> list[tuple[int, float]]:
            hits = scored(memory.recall("apple number7", vector=unit(7), limit=30, profile={"half_life_days": 0}))
            return [(names.index(name), score) for name, score in hits]

        assert asked(bulk, ids) == asked(single, ones)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("", "text"),
        ({"text": "x", "importance": 2}, "importance is 2"),
        ({"text": "x", "colour": "red"}, "colour"),
        ({"scope": "/a"}, "text"),
        (7, "int 7"),
        (None, "None"),
        ({"text": "x", "vector": [1.0]}, "shape"),
        ({"text": "x", "vector": [float("nan")] * 16}, "nan"),
        ({"text": "x", "vector": [0.0] * 16}, "zeros"),
        ({"text": "x", 3: 4}, "3"),
    ],
    ids=repr,
)
def test_an_error_of_a_batch_names_the_item_and_earlier_batches_stay(memory, bad, said):
    good = [{"text": f"good {number}", "vector": unit(number)} for number in range(7)]
    with pytest.raises(InvalidItem) as raised:
        memory.remember_many([*good, bad, *good], batch_size=3)
    assert (raised.value.position, raised.value.stored) == (7, 6)
    assert "item 7" in str(raised.value)
    assert said in str(raised.value)
    assert [record.text for record in memory.list(order="oldest")] == [f"good {number}" for number in range(6)]
    assert memory.store.verify().problems == ()


def test_a_stream_that_breaks_off_leaves_its_finished_batches(memory):
    def stream():
        yield from ["one", "two", "three"]
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        memory.remember_many(stream(), batch_size=2)
    assert [record.text for record in memory.list(order="oldest")] == ["one", "two"]


@pytest.mark.parametrize("items", ["a str", b"bytes", {"text": "a dict"}, None, 3, NewRecord(text="x")], ids=repr)
def test_what_is_no_stream_of_items_is_refused(memory, items):
    with pytest.raises(InvalidInput):
        memory.remember_many(items)
    assert memory.count() == 0


def test_update_of_a_text_opens_a_version(memory):
    stored = memory.remember("the first text", context="a", metadata={"k": 1}, tags=["t"])
    changed = memory.update(stored.id, text="the second text")
    assert changed.id == stored.id
    assert (changed.text, changed.context, changed.metadata, changed.tags) == (
        "the second text", "a", {"k": 1}, ("t",),
    )  # fmt: skip
    assert changed.outcome == "updated"
    assert changed.created_at == stored.created_at
    assert changed.updated_at > stored.updated_at
    assert changed.recorded_from > stored.recorded_from
    old, new = memory.history(stored.id)
    assert (old.text, old.recorded_from, old.recorded_until) == (
        "the first text",
        stored.recorded_from,
        changed.recorded_from,
    )
    assert new == memory.get(stored.id)
    assert memory.store.stats().versions == 1
    assert memory.count() == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "note"),
        ("scope", "/a"),
        ("tags", ("x",)),
        ("tags", ()),
        ("importance", 0.0),
        ("metadata", {"new": True}),
        ("metadata", {}),
        ("topic", "t"),
        ("topic", None),
        ("source", "s"),
        ("source", None),
        ("position", 0),
        ("position", None),
        ("valid_from", datetime(2020, 1, 1, tzinfo=UTC)),
        ("expires_at", None),
        ("pinned", True),
    ],
)
def test_update_of_anything_else_opens_none(memory, name, value):
    stored = memory.remember(NewRecord(**EVERYTHING))
    changed = memory.update(stored.id, **{name: value})
    assert getattr(changed, name) == value
    kept = {other: getattr(changed, other) for other in EVERYTHING if other != name}
    assert kept == {other: EVERYTHING[other] for other in EVERYTHING if other != name}
    assert len(memory.history(stored.id)) == 1
    assert memory.get(stored.id) == memory.history(stored.id)[0]


def test_update_with_the_same_text_opens_no_version(memory):
    stored = memory.remember("a text", context="c")
    memory.update(stored.id, text="a text", context="c")
    assert len(memory.history(stored.id)) == 1


def test_an_empty_metadata_or_context_clears_it(memory):
    stored = memory.remember(NewRecord(**EVERYTHING))
    assert memory.update(stored.id, metadata=None).metadata == {}
    assert memory.update(stored.id, context=None).context is None
    assert memory.recall("header") == []


def test_history_is_in_order_of_writing_whatever_the_clock_says(memory):
    stored = memory.remember("zero", created_at="2025-01-01T00:00:00Z")
    for word in ("one", "two", "three"):
        memory.update(stored.id, text=word)
    assert [version.text for version in memory.history(stored.id)] == ["zero", "one", "two", "three"]
    versions = memory.history(stored.id)
    assert all(a.recorded_until == b.recorded_from for a, b in pairwise(versions))


def test_a_clock_that_was_set_back_disorders_no_history(memory, monkeypatch):
    from recallite.model import checks

    real = checks.now_us
    stored = memory.remember("zero")
    for hours, word in enumerate(("one", "two", "three"), 1):
        monkeypatch.setattr(checks, "now_us", lambda hours=hours: real() - hours * 3_600_000_000)
        memory.update(stored.id, text=word)
    monkeypatch.undo()
    versions = memory.history(stored.id)
    assert [version.text for version in versions] == ["zero", "one", "two", "three"]
    assert all(
        version.recorded_until is None or version.recorded_until >= version.recorded_from for version in versions
    )
    assert memory.get(stored.id).text == "three"
    assert [hit.text for hit in memory.recall("three")] == ["three"]
    assert [record.text for record in memory.list(as_of=stored.created_at)] in (["zero"], ["three"])


def test_what_is_dated_ahead_of_the_clock_is_refused(memory):
    """It would be the last word for ever."""
    with pytest.raises(InvalidInput, match=r"to come.*valid_from"):
        memory.remember("zero", created_at="9999-01-01T00:00:00Z")
    with pytest.raises(InvalidItem, match="to come"):
        memory.remember_many([{"text": "zero", "created_at": datetime.now(UTC) + timedelta(minutes=6)}])
    assert memory.count() == 0
    assert memory.remember("zero", created_at=datetime.now(UTC) + timedelta(minutes=4)).outcome == "created"
    assert memory.remember("one", valid_from="2999-01-01T00:00:00Z").outcome == "created"


def test_forget_by_id_by_ids_and_by_filter(memory):
    ids = memory.remember_many(
        [{"text": f"n{n}", "scope": f"/s{n % 2}", "kind": "ab"[n % 2], "tags": [f"t{n}"]} for n in range(8)]
    )
    assert memory.forget(ids[0]).records == 1
    assert memory.forget([ids[1], ids[1], ids[2]]).records == 2
    assert memory.forget(tags=["t3", "t4"]).records == 2
    assert memory.forget(where={"text": "n5"}).records == 1
    assert [record.text for record in memory.list(order="oldest")] == ["n6", "n7"]
    assert memory.forget(scope="/s1").records == 1
    assert memory.forget(scope="/s1").records == 0
    assert memory.forget(scope="/").records == 1
    assert memory.store.verify().problems == ()


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ({"kinds": ["x"]}, {"b", "c"}),
        ({"kinds": ["x"], "scope": "/s"}, {"b", "c", "d"}),
        ({"kinds": ["y"], "tags": ["t"]}, {"a", "c", "d"}),
        ({"kinds": ["nothing"]}, {"a", "b", "c", "d"}),
        ({"where": {"kind": "y"}, "kinds": ["x"]}, {"a", "b", "c", "d"}),
        ({"scope": "/s", "tags": ["t"]}, {"c", "d"}),
    ],
    ids=lambda each: repr(sorted(each) if isinstance(each, set) else each),
)
def test_forget_removes_only_what_every_filter_matches(memory, filters, kept):
    for text, kind, scope, tags in (
        ("a", "x", "/s", ["t"]),
        ("b", "y", "/s/deep", ["t"]),
        ("c", "y", "/sx", []),
        ("d", "x", "/", ["t"]),
    ):
        memory.remember(text, kind=kind, scope=scope, tags=tags)
    memory.forget(**filters)
    assert {record.text for record in memory.list()} == kept


@pytest.mark.parametrize("filters", [{}, {"where": {}}, {"tags": []}, {"kinds": []}, {"id": []}], ids=repr)
def test_an_empty_filter_never_forgets_everything(memory, filters):
    memory.remember("precious")
    with suppress(InvalidInput):
        assert memory.forget(**filters).records == 0
    assert memory.count() == 1


def test_forget_of_an_unknown_id_removes_nothing_of_the_list(memory):
    ids = memory.remember_many(["one", "two"])
    before = state(memory)
    with pytest.raises(NotFound, match="nothing-like-it"):
        memory.forget([ids[0], "nothing-like-it", ids[1]])
    assert state(memory) == before
    with pytest.raises(InvalidInput, match="not both"):
        memory.forget(ids[0], scope="/")


def test_forget_reaches_the_expired(memory):
    memory.remember("x", scope="/a", created_at="2019-01-01T00:00:00Z", expires_at="2020-01-01T00:00:00Z")
    assert memory.count() == 0
    assert memory.forget(scope="/a").records == 1


def test_links_and_neighbors(memory):
    a, b, c = memory.remember_many(["a", "b", "c"])
    memory.link(a, b, type="causal", strength=0.5)
    memory.link(c, a, strength=0.9)
    memory.link(a, b, type="similar", strength=0.1)

    def seen(**options):
        return [(link.source, link.target, link.type, link.strength) for link in memory.neighbors(a, **options)]

    assert seen() == [(c, a, "similar", 0.9), (a, b, "causal", 0.5), (a, b, "similar", 0.1)]
    assert seen(direction="out") == [(a, b, "causal", 0.5), (a, b, "similar", 0.1)]
    assert seen(direction="in") == [(c, a, "similar", 0.9)]
    assert seen(types=["causal"]) == [(a, b, "causal", 0.5)]
    memory.link(a, b, type="causal", strength=0.7)
    assert seen(types=["causal"]) == [(a, b, "causal", 0.7)]
    memory.forget(b)
    assert seen() == [(c, a, "similar", 0.9)]
    assert memory.store.stats().links == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"type": "friends"},
        {"type": None},
        {"strength": 1.1},
        {"strength": float("nan")},
        {"strength": "strong"},
        {"target": "self"},
    ],
    ids=repr,
)
def test_a_bad_link_is_refused(memory, arguments):
    a, b = memory.remember_many(["a", "b"])
    before = state(memory)
    target = a if arguments.pop("target", None) else b
    with pytest.raises(InvalidInput):
        memory.link(a, target, **arguments)
    assert state(memory) == before


def test_list_orders_pages_and_counts(memory):
    ids = memory.remember_many([{"text": f"n{n}", "importance": (n * 7 % 10) / 10} for n in range(25)])
    assert [record.id for record in memory.list()] == ids[::-1]
    assert [record.id for record in memory.list(order="oldest")] == ids
    by_importance = [record.importance for record in memory.list(order="importance")]
    assert by_importance == sorted(by_importance, reverse=True)
    pages = [memory.list(order="oldest", limit=10, offset=start) for start in (0, 10, 20, 30)]
    assert [record.id for page in pages for record in page] == ids
    assert memory.count() == 25
    for bad in ({"order": "random"}, {"limit": 0}, {"limit": -1}, {"offset": -1}, {"limit": 1.5}):
        with pytest.raises(InvalidInput):
            memory.list(**bad)


def test_list_has_no_bound_when_the_limit_is_none(memory):
    memory.remember_many(str(number) for number in range(250))
    assert len(memory.list()) == 100
    assert len(memory.list(limit=None)) == 250


def test_stats_tell_the_state(on_disk):
    ids = on_disk.remember_many(
        [{"text": f"word{n}", "vector": unit(n), "kind": "ab"[n % 2], "source": f"s{n % 2}"} for n in range(4)]
    )
    on_disk.update(ids[0], text="changed word")
    on_disk.link(ids[0], ids[1])
    figures = on_disk.store.stats()
    assert (figures.records, figures.versions, figures.links, figures.sources, figures.kinds) == (
        4, 1, 1, 2, {"a": 2, "b": 2},
    )  # fmt: skip
    assert (figures.dimension, figures.path) == (16, on_disk.path)
    assert figures.bytes_on_disk > 0
    assert figures.kernels in ("numba", "python")
    on_disk.update(ids[2], source="s1")
    on_disk.update(ids[0], source="s1")
    assert on_disk.store.stats().sources == 1, "a source without records is none"


def test_what_was_forgotten_is_found_nowhere_in_the_file(path):
    secret = "the plumquat password is xylofon"
    with Memory(path, settings=PLAIN) as memory:
        kept = memory.remember("kept")
        forgotten = memory.remember(secret)
    with Memory(path, settings=PLAIN) as memory:
        memory.forget(forgotten.id)
        assert [each.id for each in memory.list()] == [kept.id]
    with open(path, "rb") as file:
        assert secret.encode() not in file.read()


@pytest.mark.parametrize("empty", [{"tags": []}, {"kinds": []}, {"where": {}}], ids=repr)
def test_forget_refuses_a_filter_that_names_nothing(memory, empty):
    memory.remember("kept", scope="/v")
    with pytest.raises(InvalidInput, match="leave it out"):
        memory.forget(scope="/v", **empty)
    assert memory.count() == 1


def test_what_is_no_language_model_is_refused():
    with pytest.raises(InvalidInput, match="complete"):
        Memory(":memory:", language_model=object())


def test_a_scoped_handle_has_no_figures_of_the_whole_file(memory):
    memory.remember("elsewhere", scope="/b")
    memory.recall("elsewhere")
    shown = memory.scoped("/a").store.stats()
    assert (shown.records, shown.index, shown.sequence, shown.bytes_on_disk, shown.terms) == (0, {}, None, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vector": [1.0]}, r"vector.: it is a field of NewRecord: remember\(NewRecord"),
        ({"expires_after": 3}, "use expires_at=timedelta"),
        ({"user_id": "ada"}, "use scope, or memory.scoped"),
        ({"importanc": 1}, "did you mean importance"),
    ],
)
def test_an_unknown_argument_of_remember_names_the_right_one(memory, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        memory.remember("x", **arguments)


def test_a_new_record_is_remembered_with_all_its_fields(memory):
    record = memory.remember(NewRecord("Ada is away", topic="ada", pinned=True, tags=["staff"]))
    assert (record.text, record.topic, record.pinned, record.tags) == ("Ada is away", "ada", True, ("staff",))
    with pytest.raises(InvalidInput, match="scope is given beside a NewRecord"):
        memory.remember(NewRecord("x"), scope="/a")
