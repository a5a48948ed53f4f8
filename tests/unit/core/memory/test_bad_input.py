"""Bad input: a typed error that names the value and the remedy, and nothing written."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.recall.request import recall_arguments
from recallite.remember.prepare import content_id
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, Foreign, state, unit

NAIVE = datetime(2026, 1, 1)
DEEP: dict = {}
for _ in range(3000):
    DEEP = {"a": DEEP}

# (arguments of remember, the reason of the error, what its message says)
REFUSED = [
    ({"text": ""}, "text", "''"),
    ({"text": " \n\t　"}, "text", "blank"),
    ({"text": "nul\0"}, "text", "NUL.*3"),
    ({"text": "lone \ud800"}, "text", "surrogate.*5"),
    ({"text": "x" * 10_000_000}, "text", "10,000,000.*1,000,000"),
    ({"text": None}, "text", "None"),
    ({"text": b"bytes"}, "text", "bytes"),
    ({"text": 3}, "text", "int"),
    ({"vector": unit(1, 15)}, "vector", r"\(15,\).*\(16,\)"),
    ({"vector": [float("nan")] * 16}, "vector", "nan"),
    ({"vector": [1.0] * 15 + [float("inf")]}, "vector", "inf at 15"),
    ({"vector": [0.0] * 16}, "vector", "zeros"),
    ({"vector": np.zeros(16, dtype=np.float32)}, "vector", "zeros"),
    ({"vector": [[1.0] * 15]}, "vector", "shape"),
    ({"vector": [[[1.0] * 16]]}, "vector", "vector"),
    ({"vector": [[1], [1, 2]]}, "vector", "vector"),
    ({"vector": "abc"}, "vector", "abc"),
    ({"vector": np.array(["a"] * 16)}, "vector", "vector"),
    ({"vector": [10**400] * 16}, "vector", "vector"),
    ({"vector": []}, "vector", "empty|shape"),
    ({"vector": Foreign()}, "vector", "object"),
    ({"vector": np.ones(16) * (1 + 1j)}, "vector", "vector"),
    ({"importance": -0.1}, "value", "importance is -0.1"),
    ({"importance": 1.1}, "value", "importance is 1.1"),
    ({"importance": float("nan")}, "value", "importance is nan"),
    ({"importance": "high"}, "value", "importance is 'high'"),
    ({"importance": True}, "value", "importance is True"),
    ({"importance": None}, "value", "importance is None"),
    ({"scope": "app"}, "filter", "'app'.*'/app'"),
    ({"scope": "/app/"}, "filter", "slash at the end"),
    ({"scope": "/a//b"}, "filter", "//"),
    ({"scope": "/../a"}, "filter", r"\.\."),
    ({"scope": "/a/./b"}, "filter", r"'\.'"),
    ({"scope": "/ a"}, "filter", "spaces"),
    ({"scope": ""}, "filter", "''"),
    ({"scope": "/a\nb"}, "filter", "control"),
    ({"scope": "/\ud800"}, "filter", "surrogate"),
    ({"scope": "/" + "a" * 600}, "filter", "601"),
    ({"scope": 3}, "filter", "3"),
    ({"created_at": NAIVE}, "value", "created_at.*time zone"),
    ({"valid_from": "2026-01-01T00:00:00"}, "value", "valid_from.*time zone"),
    ({"valid_from": "2026-13"}, "value", "valid_from"),
    ({"expires_at": "some day"}, "value", "expires_at 'some day' is not a time"),
    ({"created_at": 1767225600}, "value", "created_at is 1767225600"),
    ({"valid_from": "9999-12-31T23:59:59-05:00"}, "value", "valid_from.*9999"),
    ({"valid_from": "0001-01-01T00:00:00+05:00"}, "value", "valid_from.*0001"),
    ({"created_at": "9999-12-31T23:59:59-05:00"}, "value", "created_at"),
    ({"expires_at": "9999-12-31T23:59:59-05:00"}, "value", "expires_at"),
    ({"kind": ""}, "value", "kind"),
    ({"kind": "a\tb"}, "value", "kind"),
    ({"kind": None}, "value", "kind is None"),
    ({"kind": "k" * 600}, "value", "600"),
    ({"tags": "database"}, "value", r"tags=\['database'\]"),
    ({"tags": [""]}, "value", "tag"),
    ({"tags": [3]}, "value", "3"),
    ({"tags": ["\ud800"]}, "text", "surrogate"),
    ({"tags": 3}, "value", "tags is 3"),
    ({"topic": ""}, "value", "topic"),
    ({"topic": 3}, "value", "topic is 3"),
    ({"source": "nul\0"}, "text", "source"),
    ({"position": -1}, "value", "position is -1"),
    ({"position": 1.5}, "value", "position is 1.5"),
    ({"position": True}, "value", "position is True"),
    ({"position": 2**63}, "value", "large"),
    ({"context": "x" * 3000}, "value", "3,000"),
    ({"context": "nul\0"}, "text", "context"),
    ({"context": "\ud800"}, "text", "context"),
    ({"context": 3}, "value", "context is 3"),
    ({"metadata": [1]}, "value", r"\[1\]"),
    ({"metadata": {1: 2}}, "value", "key 1"),
    ({"metadata": {"a": Foreign()}}, "value", "metadata.*object"),
    ({"metadata": {"a": "\ud800"}}, "text", "metadata"),
    ({"metadata": {"\ud800": 1}}, "text", "metadata"),
    ({"metadata": {"a": "nul\0"}}, "text", "NUL"),
    ({"metadata": {"nul\0": 1}}, "text", "NUL"),
    ({"metadata": {"a": float("nan")}}, "value", "metadata"),
    ({"metadata": {"a": [float("inf")]}}, "value", "metadata"),
    ({"metadata": {"a": "x" * 2_000_000}}, "value", "2,000,0"),
    ({"metadata": DEEP}, "value", "metadata"),
    ({"metadata": "text"}, "value", "'text'"),
    ({"pinned": 1}, "value", "pinned is 1"),
    ({"pinned": "yes"}, "value", "pinned is 'yes'"),
]


def name_of(value: object) -> str:
    if isinstance(value, dict):
        field, given = next(iter(value.items()))
        return f"{field}={'deep' if given is DEEP else ascii(given)[:40]}"
    return getattr(value, "__name__", "")


@pytest.fixture(scope="module")
def kept():
    """One store for all: nothing is ever written to it."""
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.stored = memory.remember(NewRecord("kept", vector=unit(0), metadata={"a": 1}))
        yield memory


@pytest.mark.parametrize(("arguments", "reason", "said"), REFUSED, ids=name_of)
def test_remember_refuses(kept, arguments, reason, said):
    before = state(kept)
    for use in (
        lambda: kept.remember(NewRecord(**{"text": "a text", **arguments})),
        lambda: kept.scoped("/a").remember(NewRecord(**{"text": "a text", **arguments})),
    ):
        with raises(InvalidInput, reason, match=f"(?s){said}") as raised:
            use()
        assert len(str(raised.value)) < 600
    with pytest.raises(RecalliteError):
        kept.remember_many(["good", {"text": "a text", **arguments}])
    assert state(kept) == before
    assert kept.store.verify().problems == ()


@pytest.mark.parametrize(
    ("arguments", "reason", "said"),
    [each for each in REFUSED if "created_at" not in each[0] and each[0] != {"tags": 3}],
    ids=name_of,
)
def test_update_refuses(kept, arguments, reason, said):
    before = state(kept)
    with raises(InvalidInput, reason, match=f"(?s){said}"):
        kept.update(kept.stored.id, **arguments)
    assert state(kept) == before
    assert kept.get(kept.stored.id) == kept.stored or kept.get(kept.stored.id).text == "kept"


@pytest.mark.parametrize(
    "changes", [{}, {"created_at": "2026-01-01T00:00:00Z"}, {"colour": 1}, {"access_count": 3}], ids=repr
)
def test_update_of_nothing_or_of_what_does_not_change_is_refused(kept, changes):
    before = state(kept)
    with pytest.raises(InvalidInput):
        kept.update(kept.stored.id, **changes)
    assert state(kept) == before


def test_update_without_a_vector_writes_no_version(kept):
    before = state(kept)
    with suppress(InvalidInput):
        kept.update(kept.stored.id, vector=None)
    assert state(kept) == before
    assert len(kept.history(kept.stored.id)) == 1


def test_unusual_but_good_input_is_stored_as_it_is(memory):
    for text in (
        "e\u0301 combining", "👩‍👩‍👧 family", "שלום עולם", "漢字", "a\r\nb\tc", "\u200b zero width",
        "\x01 control", "x" * 999_999, "\ufffe noncharacter", "  spaces around  ",
    ):  # fmt: skip
        assert memory.get(memory.remember(text).id).text == text
    assert memory.store.verify().problems == ()


@pytest.mark.parametrize(
    "vector",
    [
        [3e38] * 16,
        [1e-38] * 16,
        [1e-44] * 16,
        [3e38] + [0.0] * 15,
        np.full(16, 1e300),
        np.arange(1, 17),
        np.arange(1, 17, dtype=np.float16),
        tuple(range(1, 17)),
        np.asfortranarray(np.ones((2, 16)))[0],
    ],
    ids=lambda each: f"{type(each).__name__} {np.asarray(each)[:2]}",
)
def test_any_finite_vector_is_stored_at_unit_length(memory, vector):
    """Overflow in float32 once made zeros of a large vector; both ways of writing must agree."""
    try:
        memory.remember(NewRecord("one", vector=vector))
        memory.remember_many([{"text": "two", "vector": np.asarray(vector)}, {"text": "three", "vector": vector}])
    except InvalidInput as fault:
        if getattr(fault, "error", fault).reason != "vector":
            raise
        assert float(np.abs(vector).max()) > np.finfo(np.float32).max
        return
    with memory._engine.store.read() as reader:
        values = [np.frombuffer(value, "<f4") for (value,) in reader.connection.execute("SELECT value FROM vector")]
    assert [float(np.linalg.norm(value)) for value in values] == pytest.approx([1.0] * 3, abs=1e-5)
    assert np.ptp(np.stack(values), axis=0).max() < 1e-6
    assert memory.store.verify().problems == ()


def test_read_only_arrays_and_later_changes_of_a_given_vector_do_no_harm(memory):
    vector = unit(1).copy()
    vector.setflags(write=False)
    memory.remember(NewRecord("fixed", vector=vector))
    changing = unit(2).copy()
    memory.remember(NewRecord("changing", vector=changing))
    changing[:] = 0
    assert memory.recall("", vector=unit(2), mode="vector", limit=1)[0].text == "changing"


SETTINGS = [
    {"durability": "maximal"},
    {"profile": "fast"},
    {"busy_timeout_ms": -1},
    {"busy_timeout_ms": 1.5},
    {"busy_timeout_ms": 2**40},
    {"max_text_chars": 0},
    {"embedder": 3},
]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("LOW_MEMORY", "perhaps", "0 or 1"),
        ("COMPILE_KERNELS", "2", "0 or 1"),
        ("KERNELS_FROM", "-1", "a whole number of at least 0"),
        ("QUERY_CACHE_SIZE", "many", "a whole number of at least 0"),
    ],
)
def test_a_wrong_variable_is_refused_before_a_file_is_made(tmp_path, monkeypatch, name, value, remedy):
    monkeypatch.setenv(f"RECALLITE_{name}", value)
    with pytest.raises(InvalidInput, match=f"^RECALLITE_{name} is '{value}': give {remedy}$"):
        Memory(tmp_path / "agent.db", embedder="none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_bad_settings_are_refused_before_a_file_is_made(tmp_path, settings):
    with pytest.raises(InvalidInput):
        Memory(tmp_path / "agent.db", settings=Settings(**{"embedder": "none", **settings}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", [{"embedder": "none"}, "none", 3], ids=repr)
def test_settings_are_settings(tmp_path, settings):
    with pytest.raises(InvalidInput, match="settings"):
        Memory(tmp_path / "agent.db", settings=settings)
    assert list(tmp_path.iterdir()) == []


def test_a_batch_size_is_a_count(memory):
    for size in (0, -1, 1.5, None, True):
        with pytest.raises(InvalidInput, match="batch_size"):
            memory.remember_many(["x"], batch_size=size)
    assert memory.count() == 0


def test_neighbors_refuses_what_it_does_not_know(kept):
    for options in ({"direction": "up"}, {"types": ["\ud800"]}, {"types": ["friends"]}, {"types": 3}):
        with pytest.raises(InvalidInput):
            kept.neighbors(kept.stored.id, **options)


def test_where_metadata_nests_as_deep_as_it_may_filters_still_work(memory):
    value: object = 1
    for _ in range(900):
        value = [value]
    try:
        memory.remember("deep", metadata={"deep": value, "k": 1})
    except InvalidInput:
        return
    memory.remember("flat", metadata={"k": 1})
    assert memory.count(where={"metadata.k": 1}) == 2
    assert len(memory.list(where={"metadata.deep": {"ne": None}})) == 1


class Label(StrEnum):
    """Of `str`, and not what SQLite takes for one everywhere."""

    TOPIC = "plans"
    SOURCE = "notes.md"
    SESSION = "s"


def test_members_of_a_str_enum_are_their_values(memory):
    record = memory.remember(NewRecord(Label.TOPIC, topic=Label.TOPIC, source=Label.SOURCE, tags=[Label.TOPIC]))
    assert (record.text, record.topic, record.source, record.tags) == ("plans", "plans", "notes.md", ("plans",))
    assert type(record.text) is type(record.topic) is type(record.source) is type(record.tags[0]) is str
    assert memory.get(record.id) == record or memory.get(record.id).source == "notes.md"
    assert memory.update(record.id, source=Label.TOPIC, context=Label.SOURCE).source == "plans"
    named = StrEnum("named", {"ID": record.id})
    assert memory.get(named.ID).id == record.id
    memory.sessions.open(Label.SESSION).append(Label.SESSION, Label.TOPIC)
    assert type(memory.sessions.get(Label.SESSION).id) is str
    assert memory.sessions.get("s").messages() == [{"role": "s", "content": "plans"}]
    assert memory.store.verify().problems == ()


def test_metadata_is_a_copy_as_json_keeps_it(memory):
    given = {"x": np.float64(1.5), "deep": MappingProxyType({"a": (1, 2)}), "list": [1]}
    id = memory.remember("a text", metadata=given).id
    given["list"].append(2)
    kept = {"x": 1.5, "deep": {"a": [1, 2]}, "list": [1]}
    assert memory.get(id).metadata == kept
    assert memory.update(id, metadata={"deep": MappingProxyType({})}).metadata == {"deep": {}}
    assert memory.semantic.add("a fact", metadata={"x": np.float64(1)}).metadata == {"x": 1.0}


@pytest.mark.parametrize("type_", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.int64, np.uint64])
def test_a_number_of_numpy_is_one_wherever_a_number_is(memory, type_):
    one = type_(1)
    record = memory.remember(NewRecord("a text", importance=one, metadata={"x": {"y": [one]}}))
    assert (record.importance, record.metadata) == (1.0, {"x": {"y": [1]}})
    assert memory.count(where={"importance": {"gte": one}}) == memory.count(where={"importance": {"in": [one]}}) == 1
    assert memory.remember("a text", policy=WritePolicy(link_cosine=one)).id == record.id
    assert json.loads(json.dumps(WritePolicy(link_cosine=one).to_dict()))["link_cosine"] == 1
    assert content_id(NewRecord("a", importance=one)) == content_id(NewRecord("a", importance=1.0))
    assert len(memory.recall("text", profile={"vector_weight": one})) == 1
    if issubclass(type_, np.integer):
        assert len(memory.list(limit=one)) == memory.remember(NewRecord("b", position=one)).position == 1
        assert memory.update(record.id, text="another").id == memory.restore(record.id, type_(0)).id
    for wrong in (type_(2), np.bool_(True), np.array([1])):
        with pytest.raises(InvalidInput, match="importance"):
            memory.update(record.id, importance=wrong)
    if not issubclass(type_, np.integer):
        with pytest.raises(InvalidInput, match="JSON has no such number"):
            memory.update(record.id, metadata={"x": type_("nan")})


def test_progress_that_cannot_be_called_is_refused_before_anything_is_stored(memory):
    with pytest.raises(InvalidInput, match="on_progress is 1"):
        memory.remember_many(["a"], on_progress=1)
    assert memory.count() == 0


def test_the_longest_age_of_a_session_removes_none(memory):
    memory.sessions.open("s").append("user", "hello")
    assert memory.sessions.cleanup(timedelta.max) == 0
    assert memory.sessions.cleanup(timedelta(0)) == 1


def test_a_query_has_at_most_100_000_characters(memory):
    from recallite import tools
    from recallite.errors import InvalidInput

    memory.remember("The harbour is closed.")
    longest, longer = "harbour" + " " * 99_993, "harbour" + " " * 99_994
    assert [hit.text for hit in memory.recall(longest)] == ["The harbour is closed."]
    id = memory.list()[0].id
    for ask in (
        memory.recall, lambda query: memory.recall_many(["a", query]), lambda query: memory.review.explain(query, id),
        memory.knowledge.search, memory.knowledge.context, memory.sessions.search, memory.semantic.search,
        memory.procedures.search, lambda query: memory.bootstrap(None, query),
        lambda query: memory.recall(query, profile={"long_query_chars": 200}),
    ):  # fmt: skip
        with raises(InvalidInput, "text", match=r"100,001 characters and the limit is 100,000"):
            ask(longer)
    answer = tools.call("memory", {"action": "recall", "query": longer}, memory=memory)
    assert answer["error"]["field"] == "query"
    assert "100,000" in answer["error"]["message"]


def test_words_of_other_libraries_lead_to_ours(memory):
    for name, ours in (("add", "remember"), ("search", "recall"), ("get_all", "list"), ("delete", "forget")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use {ours}"):
            getattr(memory, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = memory.nothing
    for name, ours in (("stats", r"store\.stats"), ("backup", r"store\.backup"), ("export", r"transfer\.export")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use {ours}$"):
            getattr(memory, name)
    with pytest.raises(AttributeError, match=r"'Sessions' object has no attribute 'create': use open$"):
        memory.sessions.create("a")
    session = memory.sessions.open("a")
    with pytest.raises(AttributeError, match=r"'Session' object has no attribute 'add': use append$"):
        session.add("user", "Hello")
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = memory.semantic.nothing
    for option, ours in (("k", "limit"), ("top_k", "limit"), ("metadata", "where="), ("user_id", "scope")):
        with pytest.raises(InvalidInput, match=f"no option '{option}': use {ours}"):
            memory.recall("tea", **recall_arguments({option: 3}))
    with pytest.raises(InvalidInput, match=r"no option 'tagz': did you mean tags\?.* a field of a filter: .*scope"):
        memory.recall("tea", tagz=["a"])


def test_what_is_printed_fits_a_line(memory):
    stored = memory.remember("Ada likes tea " * 20)
    hits = memory.recall("tea")
    assert hits.best is hits[0]
    assert memory.recall("nothing of it").best is None
    for shown in map(repr, (stored, hits[0])):
        assert stored.id in shown
        assert "…'" in shown
        assert len(shown) < 160


@pytest.mark.parametrize("items", [np.array("one"), np.array(3), "one", b"one", {"text": "one"}, None])
def test_what_is_no_list_of_memories_is_refused(memory, items):
    with pytest.raises(InvalidInput, match=r"items is .*: give a list or a stream of memories"):
        memory.remember_many(items)


def test_calls_of_another_form_show_ours(memory):
    record = memory.remember("The tide is low.")
    with pytest.raises(TypeError, match=r"use update\(id, text='\.\.\.'\)$"):
        memory.update(record.id, "The tide is high.")
    with pytest.raises(TypeError, match=r"missing .* 'task': use bootstrap\(None, task\)"):
        memory.bootstrap("Repair the boat")
    with pytest.raises(TypeError, match=r"no len\(\): use count\(\)$"):
        len(memory)
    assert memory
    session = memory.sessions.open("a")
    with pytest.raises(InvalidInput, match=r"append was given 'Hello' alone: give a role and a content"):
        session.append("Hello")
    assert session.messages() == []
    session.append({"role": "assistant", "content": None})
