"""Filters are exact: every filter gives what a plain Python evaluation of it gives, and k hits whenever k exist."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.filters import metadata_field, metadata_keys
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.limits import examples
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, unit

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = ("created_at", "valid_from", "expires_at")
SCOPES = ["/", "/app", "/app/x", "/apple", "/app.x", "/app0", "/App", "/ünï/ö"]
METADATA: list[dict[str, Any]] = [
    {},
    {"n": 1, "s": "one", "b": True},
    {"n": 2.5, "s": "two", "b": False, "list": ["x", 1, None]},
    {"n": "3", "s": "a longer one", "deep": {"er": {"n": 5}}},
    {"n": None, "list": [], "s": ""},
    {"n": -7, "list": ["one", "two"], "deep": {"er": "text"}},
]


def corpus() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {
            "text": f"common number{number} {'odd' if number % 2 else 'even'}",
            "vector": unit(number),
            "scope": SCOPES[number % len(SCOPES)],
            "kind": ("memory", "note", "episode")[number % 3],
            "tags": [name for name in ("x", "y", "it's", "ü") if rng.random() < 0.4],
            "importance": round(float(rng.random()), 2),
            "metadata": METADATA[int(rng.integers(len(METADATA)))],
            "topic": None if number % 4 else f"topic {number % 8}",
            "source": None if number % 5 == 0 else f"s{number % 3}",
            "position": None if number % 7 == 0 else int(rng.integers(5)),
            "context": None if number % 6 else "Caroline",
            "created_at": (BEGIN + timedelta(days=number)).isoformat(),
            "valid_from": None if number % 3 else (BEGIN + timedelta(days=100 - number)).isoformat(),
            "pinned": number % 10 == 0,
            "expires_at": "2026-06-01T00:00:00Z" if number % 11 == 0 else None,
        }
        for number in range(60)
    ]


ITEMS = corpus()


@pytest.fixture(scope="module")
def store():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.ids = memory.remember_many(ITEMS)
        yield memory


def value_of(item: dict[str, Any], field: str) -> Any:
    if field.startswith("metadata."):
        value = item["metadata"]
        for key in field.split(".")[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        return value
    if field in TIMES:
        return None if item[field] is None else datetime.fromisoformat(item[field])
    return item[field]


def scalar(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def comparable(left: Any, right: Any) -> bool:
    texts = isinstance(left, str), isinstance(right, str)
    return left is not None and right is not None and texts[0] == texts[1] and not isinstance(left, list | dict)


def same(left: Any, right: Any) -> bool:
    return scalar(left) == scalar(right) and isinstance(left, str) == isinstance(right, str)


def satisfies(item: dict[str, Any], where: dict[str, Any]) -> bool:
    """The meaning of a filter, without SQL."""
    for key, wanted in where.items():
        if key == "and":
            held = all(satisfies(item, each) for each in wanted)
        elif key == "or":
            held = any(satisfies(item, each) for each in wanted)
        elif key == "not":
            held = not satisfies(item, wanted)
        else:
            comparison = wanted if isinstance(wanted, dict) else {"eq": wanted}
            held = all(compare(item, key, name, value) for name, value in comparison.items())
        if not held:
            return False
    return True


def compare(item: dict[str, Any], field: str, operator: str, wanted: Any) -> bool:
    if field == "tags":
        names = wanted if operator in ("in", "nin") else [wanted]
        return any(name in item["tags"] for name in names) != (operator == "nin")
    value = value_of(item, field)
    if field in TIMES and isinstance(wanted, list):
        wanted = [datetime.fromisoformat(each) for each in wanted]
    elif field in TIMES and isinstance(wanted, str):
        wanted = datetime.fromisoformat(wanted)
    match operator:
        case "eq":
            return value is None if wanted is None else same(value, wanted)
        case "ne":
            return value is not None if wanted is None else not same(value, wanted)
        case "in":
            return any(same(value, each) for each in wanted)
        case "nin":
            return value is None or not any(same(value, each) for each in wanted)
        case "contains":
            if isinstance(value, list):
                return any(same(each, wanted) for each in value)
            return isinstance(value, str) and isinstance(wanted, str) and wanted in value
    if not comparable(value, wanted):
        return False
    left, right = scalar(value), scalar(wanted)
    return {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[operator]


CASES: list[dict[str, Any]] = [
    {"kind": "note"},
    {"kind": {"ne": "note"}},
    {"kind": {"in": ["note", "episode"]}},
    {"kind": {"nin": ["note"]}},
    {"kind": {"in": []}},
    {"kind": {"in": ["note", "episode"], "ne": "note"}},
    {"kind": "note", "importance": {"gt": 0.3}, "and": [{"kind": {"ne": "memory"}}]},
    {"importance": {"gt": 0.3, "lte": 0.8}},
    {"importance": {"gte": 0.5}},
    {"importance": {"lt": 0.5}},
    {"pinned": True},
    {"pinned": {"ne": True}},
    {"topic": None},
    {"topic": {"ne": None}},
    {"topic": {"ne": "topic 4"}},
    {"topic": {"nin": ["topic 4"]}},
    {"topic": {"contains": "4"}},
    {"source": {"eq": "s1"}},
    {"source": None},
    {"source": {"ne": None}},
    {"source": {"ne": "s1"}},
    {"source": {"in": ["s1", "s2", "no such source"]}},
    {"source": {"nin": ["s1", "s2"]}},
    {"source": {"gt": "s1"}},
    {"source": {"contains": "2"}},
    {"not": {"source": "s1"}},
    {"or": [{"source": "s1"}, {"topic": "topic 4"}]},
    {"position": {"gte": 2}},
    {"position": {"ne": 2}},
    {"context": {"contains": "arol"}},
    {"text": {"contains": "number1"}},
    {"text": {"contains": "NUMBER1"}},
    {"scope": "/app"},
    {"scope": {"in": ["/app", "/app/x", "app"]}},
    {"scope": {"ne": "/app"}},
    {"scope": {"nin": ["/app", "/"]}},
    {"scope": {"gt": "/app"}},
    {"scope": {"contains": "app"}},
    {"tags": "x"},
    {"tags": {"contains": "it's"}},
    {"tags": {"in": ["x", "ü"]}},
    {"tags": {"nin": ["x", "ü"]}},
    {"tags": {"in": []}},
    {"tags": {"nin": []}},
    {"metadata.n": 1},
    {"metadata.n": "3"},
    {"metadata.n": 3},
    {"metadata.n": {"gt": 0}},
    {"metadata.n": {"lt": "4"}},
    {"metadata.n": {"in": [1, "3", -7]}},
    {"metadata.n": {"nin": [1, "3"]}},
    {"metadata.n": None},
    {"metadata.n": {"ne": None}},
    {"metadata.b": True},
    {"metadata.b": False},
    {"metadata.s": {"contains": "one"}},
    {"metadata.s": ""},
    {"metadata.list": {"contains": "x"}},
    {"metadata.list": {"contains": 1}},
    {"metadata.list": {"contains": "one"}},
    {"metadata.list": {"contains": None}},
    {"metadata.deep.er.n": {"gte": 5}},
    {"metadata.deep.er": "text"},
    {"metadata.missing": {"gt": 0}},
    {"metadata.s": {"in": []}},
    {"metadata.s": {"nin": []}},
    {"created_at": {"gte": "2026-02-01T00:00:00+00:00"}},
    {"created_at": {"lt": "2026-02-01T01:00:00+01:00"}},
    {"valid_from": None},
    {"valid_from": {"gt": "2026-03-01T00:00:00+00:00"}},
    {"valid_from": {"in": [ITEMS[0]["valid_from"], ITEMS[3]["valid_from"]]}},
    {"expires_at": {"ne": None}},
    {"not": {"kind": "note"}},
    {"not": {"metadata.n": {"gt": 0}}},
    {"not": {"topic": {"gt": "a"}}},
    {"not": {"not": {"position": {"lt": 3}}}},
    {"and": [{"kind": "note"}, {"importance": {"gt": 0.5}}]},
    {"or": [{"kind": "note"}, {"importance": {"gt": 0.9}}]},
    {"or": [{"and": [{"tags": "x"}, {"tags": "y"}]}, {"not": {"or": [{"position": {"gte": 0}}]}}]},
    {"kind": "note", "or": [{"tags": "x"}, {"metadata.n": 1}], "not": {"pinned": True}},
    {"or": [{}, {"kind": "note"}]},
    {"not": {}},
]  # fmt: skip


def expected(keep) -> set[int]:
    return {number for number, item in enumerate(ITEMS) if keep(item)}


def alive(item: dict[str, Any]) -> bool:
    return item["expires_at"] is None


def hits_of(store: Memory, **filters: Any) -> set[int]:
    """What every reading verb lets through, which must be one and the same."""
    place = {row_id: number for number, row_id in enumerate(store.ids)}
    by_vector = {
        place[hit.id]
        for hit in store.recall("", vector=unit(3), limit=60, **recall_arguments({"mode": "vector", **filters}))
    }
    by_word = {
        place[hit.id] for hit in store.recall("common", limit=60, **recall_arguments({"mode": "keyword", **filters}))
    }
    hybrid = {
        place[hit.id] for hit in store.recall("common odd", vector=unit(9), limit=60, **recall_arguments(filters))
    }
    listed = {place[record.id] for record in store.list(limit=None, **filters)}
    assert by_vector == by_word == hybrid == listed
    assert store.count(**filters) == len(listed)
    return listed


@pytest.mark.parametrize("where", CASES, ids=repr)
def test_where(store, where):
    assert hits_of(store, where=where) == expected(lambda item: alive(item) and satisfies(item, where))


leaves = st.sampled_from([case for case in CASES if not {"and", "or", "not"} & set(case)])
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(where=filters)
def test_where_in_any_nesting(store, where):
    wanted = expected(lambda item: alive(item) and satisfies(item, where))
    place = {row_id: number for number, row_id in enumerate(store.ids)}
    assert {place[record.id] for record in store.list(limit=None, where=where)} == wanted
    assert {place[hit.id] for hit in store.recall("common", limit=60, where=where)} == wanted


@pytest.mark.parametrize(
    "where",
    [
        {"scope": "/"},
        {"scope": "/x"},
        {"scope": "/app/x"},
        {"scope": "x"},
        {"scope": {"ne": "/"}},
        {"scope": {"in": ["/", "/x"]}},
        {"scope": {"nin": ["/x"]}},
        {"scope": {"contains": "app"}},
        {"scope": {"lt": "/x"}},
    ],
    ids=repr,
)
def test_scopes_in_where_are_those_of_the_handle(store, where):
    def seen(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "scope": item["scope"].removeprefix("/app") or "/"}

    place = {row_id: number for number, row_id in enumerate(store.ids)}
    wanted = expected(lambda item: alive(item) and item["scope"] in ("/app", "/app/x") and satisfies(seen(item), where))
    handle = store.scoped("/app")
    assert {place[record.id] for record in handle.list(limit=None, where=where)} == wanted
    assert {place[hit.id] for hit in handle.recall("common", limit=60, where=where)} == wanted


@pytest.mark.parametrize("scope", [*SCOPES, "/ap", "/apple/x", "/nothing"])
def test_a_scope_holds_its_own_and_its_descendants(store, scope):
    def within(item: dict[str, Any]) -> bool:
        return scope == "/" or item["scope"] == scope or item["scope"].startswith(scope + "/")

    wanted = expected(lambda item: alive(item) and within(item))
    assert hits_of(store, scope=scope) == wanted
    assert len(store.scoped(scope).recall("common", limit=60)) == len(wanted)


@pytest.mark.parametrize("tags", [["x"], ["x", "y"], ["it's"], ["ü", "no such tag"], ["no such tag"]])
def test_tags_mean_any_of_them(store, tags):
    assert hits_of(store, tags=tags) == expected(lambda item: alive(item) and bool({*tags} & {*item["tags"]}))


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        ({'metadata."size.cm"': 4}, ["flat"]),
        ({"metadata.size.cm": 4}, ["deep"]),
        ({'metadata.box."size.cm"': {"gt": 3}}, ["inside"]),
        ({'metadata.""': "none"}, ["nameless"]),
        ({'metadata."plain"': {"contains": "x"}}, ["listed"]),
    ],
)
def test_a_quoted_key_may_have_dots(memory, where, texts):
    memory.remember_many([
        {"text": "flat", "metadata": {"size.cm": 4}}, {"text": "deep", "metadata": {"size": {"cm": 4}}},
        {"text": "inside", "metadata": {"box": {"size.cm": 5}}}, {"text": "nameless", "metadata": {"": "none"}},
        {"text": "listed", "metadata": {"plain": ["x"]}},
    ])  # fmt: skip
    assert [record.text for record in memory.list(where=where)] == texts
    assert metadata_keys(metadata_field("box", "size.cm", "")) == ["box", "size.cm", ""]


@pytest.mark.parametrize("kinds", [["note"], ["note", "episode"], ["nothing"]])
def test_kinds(store, kinds):
    assert hits_of(store, kinds=kinds) == expected(lambda item: alive(item) and item["kind"] in kinds)


@pytest.mark.parametrize(
    ("since", "until"),
    [(10, None), (None, 10), (20, 80), (100, 100), (61, 60), (None, None)],
)
def test_since_and_until_bound_the_event_else_the_creation(store, since, until):
    def moment(item: dict[str, Any]) -> datetime:
        return datetime.fromisoformat(item["valid_from"] or item["created_at"])

    bounds = {
        "since": None if since is None else BEGIN + timedelta(days=since),
        "until": None if until is None else BEGIN + timedelta(days=until),
    }
    wanted = expected(
        lambda item: (
            alive(item)
            and (bounds["since"] is None or moment(item) >= bounds["since"])
            and (bounds["until"] is None or moment(item) <= bounds["until"])
        )
    )
    assert hits_of(store, **bounds) == wanted


@pytest.mark.parametrize("day", [-1, 0, 30, 59, 200])
def test_as_of_sees_what_was_known_and_not_expired_then(store, day):
    moment = BEGIN + timedelta(days=day)
    wanted = expected(
        lambda item: (
            datetime.fromisoformat(item["created_at"]) <= moment
            and (item["expires_at"] is None or datetime.fromisoformat(item["expires_at"]) > moment)
        )
    )
    assert hits_of(store, as_of=moment) == wanted


def test_filters_combine(store):
    for scope, kinds, tags, where in itertools.product(
        ["/", "/app"], [None, ["note", "memory"]], [None, ["x", "y"]], [None, {"importance": {"gt": 0.3}}]
    ):
        wanted = expected(
            lambda item, scope=scope, kinds=kinds, tags=tags, where=where: (
                alive(item)
                and (scope == "/" or item["scope"] == scope or item["scope"].startswith(scope + "/"))
                and (kinds is None or item["kind"] in kinds)
                and (tags is None or bool({*tags} & {*item["tags"]}))
                and (where is None or satisfies(item, where))
            )
        )
        assert hits_of(store, scope=scope, kinds=kinds, tags=tags, where=where) == wanted


@pytest.mark.parametrize("limit", [1, 2, 5, 40, 300, 1000])
def test_k_hits_whenever_k_exist(path, limit):
    """Also under a filter that few satisfy, and beyond the number of candidates; the scan of sketches included."""
    fast = type(PLAIN)(embedder="none", durability="normal")
    with Memory(path, settings=fast) as memory:
        memory.remember_many(
            {
                "text": f"common number{number}",
                "vector": unit(number),
                "scope": f"/s{number % 100}",
                "kind": "rare" if number % 15 == 0 else "memory",
            }
            for number in range(4500)
        )
        for filters_, exist in (({}, 4500), ({"scope": "/s7"}, 45), ({"kinds": ["rare"]}, 300)):
            for query, options in (
                ("zzz", {"vector": unit(5), "mode": "vector"}),
                ("common", {"mode": "keyword"}),
                ("common", {"vector": unit(5)}),
                ("zzz", {"vector": unit(5), "neighbor_boost": 0}),
            ):
                assert len(memory.recall(query, limit=limit, **recall_arguments({**options, **filters_}))) == min(
                    limit, exist
                )


def test_as_of_answers_with_the_texts_of_that_time(on_disk):
    kept = on_disk.remember(NewRecord("the office is in Paris", vector=unit(1)))
    then = on_disk.get(kept.id).recorded_from
    on_disk.update(kept.id, text="the office is in Oslo", vector=unit(2))
    now = on_disk.get(kept.id).recorded_from
    assert [(hit.id, hit.text) for hit in on_disk.recall("office Paris", as_of=then)] == [
        (kept.id, "the office is in Paris")
    ]
    assert [hit.text for hit in on_disk.recall("office", vector=unit(1), as_of=then)] == ["the office is in Paris"]
    assert [hit.text for hit in on_disk.recall("office", as_of=now)] == ["the office is in Oslo"]
    assert [hit.text for hit in on_disk.recall("office")] == ["the office is in Oslo"]
    assert on_disk.recall("Paris", mode="keyword") == []
    assert [record.text for record in on_disk.list(as_of=then)] == ["the office is in Paris"]
    assert on_disk.count(as_of=then - timedelta(microseconds=1)) == 0
    on_disk.forget(kept.id)
    assert on_disk.recall("office", as_of=then) == []
    assert on_disk.count(as_of=then) == 0


def test_age_is_measured_from_as_of(memory):
    memory.remember("one word", created_at="2026-01-01T00:00:00Z")
    (then,) = memory.recall("word", as_of="2026-01-31T00:00:00Z", profile={"half_life_days": 30, "decay_floor": 0})
    assert then.signals["decay"] == pytest.approx(0.5)


def test_an_expired_memory_is_hidden_by_recall_and_list_but_not_lost(memory):
    past = memory.remember("old word", created_at="2020-01-01T00:00:00Z", expires_at="2021-01-01T00:00:00Z")
    memory.remember("new word", expires_at="2999-01-01T00:00:00Z")
    assert [hit.text for hit in memory.recall("word")] == ["new word"]
    assert [record.text for record in memory.list()] == ["new word"]
    assert memory.count() == 1
    assert [hit.text for hit in memory.recall("word", as_of="2020-06-01T00:00:00Z")] == ["old word"]
    assert memory.get(past.id).text == "old word"
    memory.update(past.id, expires_at=None)
    assert len(memory.recall("word")) == 2


def test_spread_crosses_no_filter(memory):
    """A neighbour in the same source or a link that the filter hides is no candidate, and gives no score."""
    memory.remember(NewRecord("apple", source="s", position=0, kind="shown", scope="/a"))
    memory.remember(NewRecord("hidden beside", source="s", position=1, kind="hidden", scope="/a"))
    linked = memory.remember("hidden link", kind="shown", scope="/b")
    shown = memory.list(kinds=["shown"], scope="/a")[0]
    alone = memory.recall("apple", kinds=["shown"], scope="/a", profile={"half_life_days": 0})
    memory.link(shown.id, linked.id)
    assert [hit.id for hit in memory.recall("apple", kinds=["shown"], scope="/a")] == [shown.id]
    again = memory.recall("apple", kinds=["shown"], scope="/a", profile={"half_life_days": 0})
    assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in alone]
    assert len(memory.recall("apple")) == 3


@pytest.mark.parametrize(
    "where",
    [
        {"nothing": 1},
        {"nothing": {}},
        {"metadata": 1},
        {"metadata.": 1},
        {"metadata.a..b": 1},
        {'metadata.a"b': 1},
        {'metadata."a.b': 1},
        {'metadata."a"b': 1},
        {"metadata.\ud800": 1},
        {"kind": {"like": "n%"}},
        {"kind": {"gt": None}},
        {"kind": {"in": "note"}},
        {"kind": {"in": [None]}},
        {"kind": ["note"]},
        {"kind": "nul\0"},
        {"kind": "\ud800"},
        {"importance": float("nan")},
        {"importance": {"gt": float("inf")}},
        {"metadata.n": 2**63},
        {"created_at": "some day"},
        {"created_at": {"gt": datetime(2026, 1, 1)}},
        {"tags": {"gt": "x"}},
        {"tags": 3},
        {"tags": {"in": "xy"}},
        {"and": []},
        {"or": {"kind": "x"}},
        {"not": [{"kind": "x"}]},
        {"and": [3]},
        {"text": {"contains": 3}},
        {3: 4},
        "kind = 'x'",
        [("kind", "x")],
        3,
    ],
    ids=repr,
)
def test_a_malformed_filter_is_refused_by_every_verb_that_takes_one(memory, where):
    kept = memory.remember("kept")
    for use in (memory.list, memory.count, memory.forget):
        with raises(InvalidInput, "filter"):
            use(where=where)
    with raises(InvalidInput, "filter"):
        memory.recall("x", where=where)
    with raises(InvalidInput, "filter"):
        memory.review.explain("x", kept.id, where=where)
    assert memory.count() == 1


def test_a_filter_nested_beyond_reason_is_refused(memory):
    where: dict[str, Any] = {"kind": "x"}
    for _ in range(500):
        where = {"not": where}
    with raises(InvalidInput, "filter", match="deep"):
        memory.list(where=where)
    value: Any = []
    for _ in range(3000):
        value = [value]
    with raises(InvalidInput, "filter"):
        memory.list(where={"kind": {"eq": value}})


@pytest.mark.parametrize("value", ["'; DROP TABLE record; --", '"', "%", "_", "*", "\\", "a' OR '1'='1"])
def test_values_are_never_sql(memory, value):
    kept = memory.remember(NewRecord(value + " text", kind=value, tags=[value], topic=value, metadata={"k": value}))
    memory.remember("other")
    for where in ({"kind": value}, {"tags": value}, {"topic": {"in": [value]}}, {"metadata.k": value}):
        assert [record.id for record in memory.list(where=where)] == [kept.id]
    assert [record.id for record in memory.list(tags=[value], kinds=[value])] == [kept.id]
    assert memory.store.verify().problems == ()
