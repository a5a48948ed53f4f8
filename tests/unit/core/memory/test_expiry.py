"""What has expired is not recalled, listed or counted; it stays in the file until it is purged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import unit

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture
def kept(path):
    """Three memories, of which one has expired and one will."""
    with Memory(path, settings=Settings(embedder="none")) as opened:
        created = NOW - 10 * DAY
        for number, (text, expires_at) in enumerate([("stays", None), ("gone", NOW - DAY), ("soon gone", NOW + DAY)]):
            opened.remember(NewRecord(text, vector=unit(number), created_at=created, expires_at=expires_at, tags=["t"]))
        yield opened


def seen(memory, **options):
    hits = {hit.text for hit in memory.recall("stays gone soon", vector=unit(1), **recall_arguments(options))}
    assert hits == {
        hit.text for hit in memory.recall("stays gone soon", **recall_arguments({"mode": "keyword", **options}))
    }
    assert hits == {
        hit.text for hit in memory.recall("x", vector=unit(1), **recall_arguments({"mode": "vector", **options}))
    }
    listed = {record.text for record in memory.list(**options)}
    assert (listed, memory.count(**options)) == (hits, len(hits))
    return hits


def test_what_has_expired_is_not_recalled_listed_or_counted(kept):
    assert seen(kept) == {"stays", "soon gone"}
    assert seen(kept, tags=["t"]) == {"stays", "soon gone"}


def test_as_of_asks_what_had_expired_then(kept):
    assert seen(kept, as_of=NOW - 2 * DAY) == {"stays", "gone", "soon gone"}
    assert seen(kept, as_of=NOW - DAY) == {"stays", "soon gone"}, "it expires at its time, not after"
    assert seen(kept, as_of=NOW + 2 * DAY) == {"stays"}
    assert seen(kept, as_of=NOW - 11 * DAY) == set()


def test_an_expiry_can_be_moved(kept):
    gone = next(record.id for record in kept.list(as_of=NOW - 2 * DAY) if record.text == "gone")
    kept.update(gone, expires_at=NOW + DAY)
    assert seen(kept) == {"stays", "gone", "soon gone"}
    kept.update(gone, expires_at=NOW - DAY)
    assert seen(kept) == {"stays", "soon gone"}
    kept.update(gone, expires_at=None)
    assert seen(kept) == {"stays", "gone", "soon gone"}


def test_it_stays_until_it_is_purged(kept):
    (gone,) = [record.id for record in kept.list(as_of=NOW - 2 * DAY) if record.text == "gone"]
    assert kept.get(gone).text == "gone"
    kept.update(gone, text="gone and changed", vector=unit(5))
    assert len(kept.history(gone)) == 2
    purged = kept.store.purge_expired()
    assert (purged.records, purged.versions) == (1, 1)
    with pytest.raises(NotFound):
        kept.get(gone)
    assert seen(kept, as_of=NOW - 2 * DAY) == {"stays", "soon gone"}
    assert (kept.store.stats().records, kept.store.stats().vectors) == (2, 2)
    assert kept.store.purge_expired().records == 0
    assert kept.store.verify().problems == ()


def test_a_purge_stays_within_its_scope(memory):
    for scope in ("/", "/a", "/a/b", "/ab"):
        memory.remember("gone", scope=scope, created_at=NOW - 2 * DAY, expires_at=NOW - DAY)
    assert memory.scoped("/a").store.purge_expired(scope="/b").records == 1
    assert memory.scoped("/a").store.purge_expired().records == 1
    assert memory.store.purge_expired(scope="/ab").records == 1
    assert memory.store.stats().records == 1
    with pytest.raises(InvalidInput):
        memory.store.purge_expired(scope="a")


def test_a_pinned_memory_expires_like_any_other(memory):
    """The time is its owner's own word; pinning guards against merging and pruning."""
    memory.remember(NewRecord("gone", pinned=True, created_at=NOW - 2 * DAY, expires_at=NOW - DAY))
    memory.remember(NewRecord("stays", pinned=True))
    assert [record.text for record in memory.list()] == ["stays"]
    assert memory.store.purge_expired().records == 1


def test_a_document_goes_with_its_last_chunk(kept):
    kept.knowledge.ingest(b"The kiln is hot", name="kiln.txt")
    (chunk,) = kept.list(kinds=["chunk"])
    kept.update(chunk.id, expires_at=NOW - DAY)
    assert kept.store.purge_expired().records == 2
    assert kept.knowledge.list() == []
    assert kept.knowledge.ingest(b"The kiln is hot", name="kiln.txt").documents[0].outcome == "created"
    assert kept.store.verify().ok
