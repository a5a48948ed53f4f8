"""Many rows that are inserted by one statement are the same as those inserted one by one."""

from __future__ import annotations

import pytest

from recallite.store.opening import open_store
from tests.unit.store.contract.support import EMBEDDER, row, vector

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite.store.postgres import inserting


@pytest.fixture
def store(postgres_address):
    opened = open_store(postgres_address)
    yield opened
    opened.close()


def rows(count, prefix):
    for number in range(count):
        yield row(
            f"{prefix}{number}",
            f"text ä {number} '\\{{}}",
            tags=("one", f"tag{number % 3}"),
            context=None if number % 2 else "Ada",
            importance=number / count if number % 3 else 1,
            pinned=number % 2 == 0,
            position=None if number % 4 else number,
            source="book" if number % 5 else None,
            vectors=(vector(number),),
        )


SELECTS = (
    "SELECT kind, text, context, importance, pinned, position, content_hash, indexed, valid_to FROM record WHERE id {}",
    "SELECT place, tag_id FROM record_tag WHERE record_id {}",
    "SELECT terms, counts FROM record_terms WHERE record_id {}",
    "SELECT part, value, embedder_id FROM vector WHERE record_id {}",
    "SELECT keys, frames FROM statement WHERE record_id {}",
)


def test_many_rows_are_as_single_ones_are(store, monkeypatch):
    monkeypatch.setattr(inserting, "_ROWS_A_STATEMENT", 7)
    count = 4 * inserting.FEWEST_ROWS
    found = {}
    for prefix, batch in (("many", count), ("single", 1)):
        with store.atomic() as writer:
            embedder = writer.vectors.register_embedder(**EMBEDDER)
            every, ids = [*rows(count, prefix)], []
            for start in range(0, count, batch):
                ids += writer.records.insert(every[start : start + batch], embedder)
            within = f"BETWEEN {ids[0]} AND {ids[-1]}"
            found[prefix] = [sorted(map(repr, writer.connection.execute(sql.format(within)))) for sql in SELECTS]
    assert found["many"] == found["single"]
    assert [len(each) for each in found["many"][:4]] == [count, 2 * count, count, count]
