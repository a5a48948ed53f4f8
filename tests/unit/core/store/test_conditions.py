"""Filters use the indexes of the columns that they compare, and an operator is one function of `model.filters`."""

from __future__ import annotations

from typing import Any

import pytest

from recallite import Filter, Memory
from recallite.model import filters
from recallite.model.filters import And, Comparison, Expression
from tests.unit.core.memory.support import PLAIN


@pytest.fixture(scope="module")
def memory():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember_many(
            {
                "text": f"common {number}",
                "scope": "/a" if number % 2 else "/a/b",
                "topic": f"topic {number % 50}",
                "source": f"s{number % 20}",
                "tags": [f"tag {number % 10}"],
                "kind": ("memory", "note")[number % 2],
                "importance": number % 10 / 10,
            }
            for number in range(500)
        )
        yield memory


def plans(memory: Memory, chosen: Filter) -> list[str]:
    """The plans of the statements that list, count and find the records of a filter."""
    asked: list[tuple[str, Any]] = []

    def note(cursor: object, sql: str, bound: Any) -> bool:
        asked.append((f"EXPLAIN QUERY PLAN {sql}", bound))
        return True

    with memory._engine.store.read() as reader:
        reader.connection.exec_trace = note
        try:
            for order in ("newest", "oldest", "importance"):
                list(reader.records.find(chosen, 0, order=order, limit=10))
            reader.records.count(chosen, 0)
            reader.records.matching_ids(chosen, 0)
        finally:
            reader.connection.exec_trace = None
        return ["\n".join(row[3] for row in reader.connection.execute(sql, bound)) for sql, bound in asked]


@pytest.mark.parametrize("scope", ["/", "/a"])
@pytest.mark.parametrize(
    ("where", "searched"),
    [
        ({"id": "x"}, "INDEX record_public_id (public_id=?)"),
        ({"id": {"in": ["x", "y"]}}, "INDEX record_public_id (public_id=?)"),
        ({"topic": "topic 4"}, "INDEX record_topic (topic=?)"),
        ({"topic": {"in": ["topic 4", "topic 5"]}}, "INDEX record_topic (topic=?)"),
        ({"source": "s1"}, "INDEX record_source (source_id=?)"),
        ({"source": {"in": ["s1", "s2"]}}, "INDEX record_source (source_id=?)"),
        ({"source": "s1"}, "source USING COVERING INDEX source_name (name=?)"),
        ({"scope": "/a/b"}, "INDEX record_scope (scope_id=?)"),
        ({"scope": {"in": ["/a/b"]}}, "INDEX record_scope (scope_id=?)"),
        ({"tags": "tag 1"}, "INDEX record_tag_by_tag (tag_id=?)"),
        ({"and": [{"importance": {"gt": 0.5}}, {"topic": "topic 4"}]}, "INDEX record_topic (topic=?)"),
    ],
    ids=repr,
)
def test_a_comparison_uses_the_index_of_its_column(memory, where, searched, scope):
    found = plans(memory, Filter(where=where, scope=scope).within("/"))
    assert [searched in plan for plan in found] == 5 * [True], found


def test_the_kind_of_records_in_a_scope_uses_the_index_of_both(memory):
    for chosen in (Filter(scope="/a", kinds=["note"]), Filter(scope="/a", where={"kind": "note"})):
        for plan in plans(memory, chosen.within("/")):
            assert "INDEX record_scope (scope_id=? AND kind=? AND recorded_until=?)" in plan


def test_an_operator_is_one_function_in_one_table(memory, monkeypatch):
    def between(field: str, value: Any, path: str) -> Expression:
        low, high = value
        return And((Comparison(field, "gte", low), Comparison(field, "lte", high)))

    monkeypatch.setitem(filters.OPERATORS, "between", between)
    expected = [record.text for record in memory.list(limit=None) if 0.25 <= record.importance <= 0.5]
    where = {"importance": {"between": [0.25, 0.5]}}
    assert [record.text for record in memory.list(limit=None, where=where)] == expected
    assert memory.count(where={"not": where}) == 500 - len(expected) == 350
    assert {hit.text for hit in memory.recall("common", limit=500, where=where)} == set(expected)


def test_every_field_of_a_filter_is_compared_by_the_store(memory):
    for field in filters.FIELDS:
        assert memory.count(where={"or": [{field: None}, {field: {"ne": None}}]}) == 500, field
