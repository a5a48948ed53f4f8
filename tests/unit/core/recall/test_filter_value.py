"""`Filter` is a value that every filtering verb takes in place of its fields."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recallite import Filter, Memory
from recallite.errors import InvalidInput
from recallite.model.filters import Comparison, FilterFields, Not
from recallite.model.settings import OPTIONS
from recallite.recall.request import recall_arguments
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, unit

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = [
    {"scope": "/a"},
    {"scope": ["/a/x", "/b"]},
    {"where": {"topic": "t1"}},
    {"where": {"or": [{"topic": "t1"}, {"importance": {"gt": 0.7}}]}},
    {"where": {"scope": "/x"}},
    {"kinds": "note"},
    {"kinds": ["note", "memory"], "tags": ["x"]},
    {"since": "2026-01-05", "until": "2026-01-15T00:00:00Z"},
    {"as_of": "2026-01-10T00:00:00Z"},
    {"scope": "/a", "kinds": ["note"], "tags": ["x", "y"], "where": {"importance": {"gte": 0.2}}, "since": BEGIN},
]


@pytest.fixture
def memory():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember_many(
            {
                "text": f"common number{number}",
                "vector": unit(number),
                "scope": ("/a", "/a/x", "/b", "/")[number % 4],
                "kind": ("memory", "note", "episode")[number % 3],
                "tags": [("x", "y", "z")[number % 3 - 1]],
                "topic": f"t{number % 5}",
                "importance": number % 10 / 10,
                "created_at": f"2026-01-{number + 1:02}T00:00:00Z",
            }
            for number in range(20)
        )
        yield memory


@pytest.mark.parametrize("fields", FIELDS, ids=repr)
def test_a_value_says_what_its_fields_say(memory, fields):
    chosen = Filter(**fields)
    for handle in (memory, memory.scoped("/a")):
        listed = handle.list(limit=None, **fields)
        assert handle.list(limit=None, filter=chosen) == listed
        assert handle.count(filter=chosen) == len(listed) == handle.count(**fields)
        hits = handle.recall("common", limit=20, filter=chosen)
        assert hits == handle.recall("common", limit=20, **recall_arguments(fields))
        assert {hit.id for hit in hits} == {record.id for record in listed}
        assert [*handle.recall_many(["common"], limit=20, filter=chosen)[0]] == [*hits]
        for record in memory.scoped("/a").list(limit=3):
            explained = handle.review.explain("common", record.id, limit=20, filter=chosen)
            assert explained.returned == (record.id in {hit.id for hit in hits})


def test_a_filter_given_to_a_handle_stays_within_its_scope(memory):
    chosen = Filter(scope="/x", where={"scope": "/x"})
    assert {record.text for record in memory.scoped("/a").list(filter=chosen)} == {
        record.text for record in memory.list(where={"scope": "/a/x"})
    }
    assert memory.list(filter=chosen) == []


def test_forget_export_and_audit_take_a_filter(memory, tmp_path):
    chosen = Filter(where={"topic": "t1"})
    size = memory.count(filter=chosen)
    assert size == 4
    assert memory.review.audit(filter=chosen).records == size
    assert memory.transfer.export(tmp_path / "some.jsonl", filter=chosen) == size
    assert memory.transfer.export_folder(tmp_path / "folder", filter=chosen).records == size
    assert memory.forget(filter=chosen).records == size
    assert memory.count() == 20 - size


def test_times_bound_what_is_forgotten_and_exported(memory, tmp_path):
    assert memory.transfer.export(tmp_path / "some.jsonl", until="2026-01-05T00:00:00Z") == 5
    assert memory.forget(since="2026-01-16T00:00:00Z").records == 5
    for verb in (memory.forget, memory.review.audit):
        with pytest.raises(InvalidInput, match="as_of"):
            verb(as_of="2026-01-05T00:00:00Z")
    with pytest.raises(InvalidInput, match="as_of"):
        memory.transfer.export(tmp_path / "other.jsonl", filter=Filter(as_of="2026-01-05T00:00:00Z"))
    assert memory.count() == 15


@pytest.mark.parametrize(
    "chosen",
    [
        Filter(),
        Filter(kinds=[]),
        Filter(scope="/a", tags=[]),
        *(
            Filter(where=where)
            for where in (
                {},
                {"and": [{}]},
                {"or": [{"topic": "a"}, {"and": [{}, {}]}]},
                {"topic": {"nin": []}},
            )
        ),
    ],
    ids=repr,
)
def test_a_filter_that_restricts_nothing_forgets_nothing(memory, chosen):
    with pytest.raises(InvalidInput):
        memory.forget(filter=chosen)
    assert memory.count() == 20
    assert memory.forget(filter=Filter(scope="/")).records == 20


def test_a_filter_and_its_fields_are_not_given_together(memory):
    chosen = Filter(kinds=["note"])
    for verb in (
        memory.list,
        memory.count,
        memory.review.audit,
        lambda **given: memory.recall("common", **recall_arguments(given)),
    ):
        with pytest.raises(InvalidInput, match="filter and tags are both given"):
            verb(filter=chosen, tags=["x"])
        with pytest.raises(InvalidInput, match="give Filter"):
            verb(filter={"kinds": ["note"]})
    assert memory.count(filter=chosen, tags=None) == memory.count(kinds=["note"])


def test_a_filter_is_checked_when_it_is_built():
    with raises(InvalidInput, "filter", match=r"where\.or\[1\]\.importance\.gt is None"):
        Filter(where={"or": [{"kind": "note"}, {"importance": {"gt": None}}]})
    with raises(InvalidInput, "filter", match="slash at the end"):
        Filter(scope="/a/")
    with pytest.raises(InvalidInput, match="since"):
        Filter(since="some day")
    with pytest.raises(TypeError, match="no 'colour'"):
        Filter(colour="red")  # type: ignore[call-arg]


def test_a_filter_is_a_value():
    one, other = (Filter(scope="/a", where={"not": {"topic": "t"}}, tags=["x"]) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one.where == Not(Comparison("topic", "eq", "t"))
    assert one != Filter(scope="/a")
    with pytest.raises(AttributeError):
        one.tags = ()  # type: ignore[misc]


def test_kinds_beside_all_else_are_taken_out_of_where():
    assert Filter(where={"kind": "note"}) == Filter(kinds=["note"])
    both = Filter(where={"kind": {"in": ["note", "memory"]}, "topic": "t"})
    assert both == Filter(kinds=["note", "memory"], where={"topic": "t"})
    for where in ({"kind": {"in": []}}, {"not": {"kind": "note"}}, {"or": [{"kind": "a"}, {"topic": "t"}]}):
        assert Filter(where=where).kinds is None
    assert Filter(kinds=["a"], where={"kind": "note"}).kinds == ("a",)


def test_the_choices_of_a_profile_are_stated_as_its_fields():
    assert not FilterFields.__annotations__.keys() & {*OPTIONS}


@pytest.mark.parametrize("day", ["2026-01-05", "20260105", date(2026, 1, 5)])
def test_a_date_is_its_first_moment_in_utc(memory, day):
    moment = datetime(2026, 1, 5, tzinfo=UTC)
    assert Filter(since=day, where={"created_at": {"lt": day}}) == Filter(
        since=moment, where={"created_at": {"lt": moment}}
    )
    assert memory.count(since=day) == 16
    assert memory.remember("dated", valid_from=day).valid_from == moment
