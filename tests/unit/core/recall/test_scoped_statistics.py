"""A scoped handle weighs words by what it may see: it answers as a store of its own would, to the last bit."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from recallite import Memory, Settings
from recallite.model import checks
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import unit

_WORDS = [f"word{place}" for place in range(60)]
_START = datetime(2026, 1, 1, tzinfo=UTC)
_MINE = "/users/ada"


def _texts(seed: int, count: int, words: list[str]) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(words, [1 / (1 + n) for n in range(len(words))], k=6)) for _ in range(count)]


def _fill(memory: Memory, others: Memory | None) -> None:
    """The same memories through every handle, with those of others between them where there is a file to share."""
    mine, foreign = _texts(1, 120, _WORDS), _texts(2, 120, [*_WORDS[:5], *_WORDS[30:], "zeppelin"])
    for place, text in enumerate(mine):
        if others is not None:
            others.remember(
                NewRecord(foreign[place], scope=("/users/bob", "/", "/users/adam")[place % 3], vector=unit(place))
            )
        at = _START + timedelta(hours=place)
        memory.remember(
            NewRecord(
                text,
                scope=("/", "/x", "/y/z")[place % 3],
                vector=unit(1000 + place),
                created_at=at,
                source="chat",
                position=place,
                expires_at=at + timedelta(days=2) if place % 17 == 0 else None,
            )
        )
    for record in memory.list(where={"position": {"in": [3, 50, 77]}}):
        memory.update(record.id, text=record.text + " closed", vector=unit(7))
    memory.forget(where={"position": {"in": [9, 10]}})


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """A handle of a file that others write to as well, and a store of its own with the same memories."""
    folder = tmp_path_factory.mktemp("twins")
    for name in ("shared", "alone"):
        with Memory(folder / name, settings=Settings(embedder="none")) as memory:
            _fill(memory.scoped(_MINE) if name == "shared" else memory, memory if name == "shared" else None)
    settings = Settings(embedder="none")
    with Memory(folder / "shared", settings=settings) as shared, Memory(folder / "alone", settings=settings) as alone:
        yield shared.scoped(_MINE), alone


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch):
    """Age is weighed from now on: both are asked at one moment."""
    monkeypatch.setattr(checks, "now_us", lambda: int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1e6))


def _said(memory: Memory, query: str, **options) -> tuple[list, tuple[str, ...]]:
    found = memory.recall(query, **recall_arguments(options))
    hits = [msgspec.structs.replace(hit, id=hit.text, updated_at=hit.created_at) for hit in found]
    return hits, found.evidence_gaps


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vector": unit(5)},
        {"vector": unit(5), "min_confidence": 0.4},
        {"mode": "keyword"},
        {"profile": "hermes", "vector": unit(6)},
        {"profile": "reeve", "scope": "/x"},
        {"as_of": _START + timedelta(hours=60)},
        {"purpose": "explain", "where": {"position": {"gt": 40}}, "limit": 40},
    ],
)
def test_a_handle_answers_as_a_store_of_its_own(twins, options):
    shared, alone = twins
    asked = [*_texts(3, 12, _WORDS), "zeppelin", "zeppelin word1", "word40 word50 nowhere", "closed", "the of", ""]
    for query in asked:
        assert _said(shared, query, **options) == _said(alone, query, **options), query


def test_confidence_does_not_tell_what_another_scope_holds(twins):
    """A word that another holds gave another confidence than one that nobody does: 200 of 200 were told apart."""
    shared, _ = twins
    (held, held_gaps), (absent, gaps) = _said(shared, "word1 zeppelin"), _said(shared, "word1 quokka")
    assert [hit.confidence for hit in held] == [hit.confidence for hit in absent]
    assert [gap.replace("zeppelin", "quokka") for gap in held_gaps] == [*gaps]


def test_why_a_memory_is_a_hit_is_told_alike(twins):
    shared, alone = twins
    for query in ("word1 word40", "zeppelin word2"):
        told = [memory.review.explain(query, memory.recall(query)[0].id) for memory in (shared, alone)]
        assert msgspec.structs.replace(told[0], id="") == msgspec.structs.replace(told[1], id="")


def test_a_handle_within_a_handle_weighs_by_its_own_part(twins):
    shared, _ = twins
    inner = shared.scoped("/y")
    assert _said(inner, "word1 word40", mode="keyword") != _said(shared, "word1 word40", mode="keyword", scope="/y")
