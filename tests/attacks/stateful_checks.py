"""What a handle shows, against the model; every difference is an AssertionError."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from recallite import Memory
from recallite.model.records import Record
from recallite.recall.request import recall_arguments
from tests.attacks.stateful_model import FIELDS, Model, Version, inside, joined

__all__ = ["FILTERS", "check_links", "check_listed", "check_recall", "check_services", "check_versions", "same"]

# Arguments of list, count, recall and forget, and what they keep.
FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "red": ({"tags": ["red"]}, lambda each: "red" in each["tags"]),
    "red or blue": ({"tags": ["red", "blue"]}, lambda each: bool({"red", "blue"} & set(each["tags"]))),
    "notes": ({"kinds": ["note", "episode"]}, lambda each: each["kind"] in ("note", "episode")),
    "important": ({"where": {"importance": {"gte": 0.75}}}, lambda each: each["importance"] >= 0.75),
    "counted": ({"where": {"metadata.n": {"gt": 1}}}, lambda each: each["metadata"].get("n", 0) > 1),
    "tea": ({"where": {"topic": {"eq": "tea"}}}, lambda each: each["topic"] == "tea"),
    "pinned": ({"where": {"pinned": {"eq": True}}}, lambda each: each["pinned"]),
    "kiln": ({"where": {"text": {"contains": "kiln"}}}, lambda each: "kiln" in each["text"]),
}
_A_LIST = 10
# The vectors here have 16 dimensions, whose codes with their residuals are coarser: 7e-6 of 384, 6e-5 of 16.
_SURE = 1e-4


def same(record: Record, version: Version, base: str, where: str) -> None:
    """A record is this version, as a handle bound to `base` shows it."""
    for name in FIELDS:
        shown, held = getattr(record, name), version[name]
        if name == "scope":
            shown = joined(base, shown)
        if name == "embedding_state" and version["waits"]:
            held = shown if shown in ("embedded", "none", "pending") else held
        assert shown == held, f"{where}: {name} of {record.id} is {shown!r}, not {held!r}"


def check_listed(handle: Memory, base: str, model: Model, now: datetime, chosen: str | None = None) -> None:
    """`list`, `count` and `get`."""
    options, keeps = FILTERS[chosen] if chosen else ({}, None)
    expected = model.listed(base, now, keeps)
    found = handle.list(**options, order="oldest", limit=None)
    where = f"list {options} in {base}"
    assert [each.id for each in found] == [*expected], (
        f"{where}: {[each.text for each in found]} not {_texts(expected)}"
    )
    for record, version in zip(found, expected.values(), strict=True):
        same(record, version, base, where)
    assert handle.count(**options) == len(expected), f"count {options} in {base}"
    backwards = [each.id for each in handle.list(**options, limit=3, offset=1)]
    assert backwards == [*expected][::-1][1:4], f"{where}, newest first, 3 from 1"


def check_versions(handle: Memory, base: str, model: Model, moments: list[datetime]) -> None:
    """`get`, `history` and `as_of`, of expired memories too."""
    for public_id in model.visible(base):
        history, versions = handle.history(public_id), model.history(public_id, base)
        assert len(history) == len(versions), f"history of {public_id}: {[each.text for each in history]}"
        for record, version in zip(history, versions, strict=True):
            same(record, version, base, "history")
        same(handle.get(public_id), versions[-1], base, "get")
    for moment in moments:
        found = [(each.id, each.recorded_from) for each in handle.list(as_of=moment, limit=None)]
        assert len(found) == len(set(found)), f"as of {moment} in {base} a version is listed twice"
        assert set(found) == model.as_of(base, moment), f"as of {moment} in {base}"


def check_links(handle: Memory, base: str, model: Model) -> None:
    """`neighbors` of every memory, in and out."""
    for public_id in model.visible(base):
        expected = model.neighbors(public_id, base)
        found = {(each.source, each.target, each.type): each.strength for each in handle.neighbors(public_id)}
        assert found == expected, f"neighbors of {public_id} in {base}: {found} not {expected}"
        back = {each.source for each in handle.neighbors(public_id, direction="in")}
        assert back == {key[0] for key in expected if key[1] == public_id}, f"backlinks of {public_id} in {base}"


def check_recall(
    handle: Memory, base: str, model: Model, now: datetime, words: Sequence[str], vector: Any, chosen: str | None = None
) -> None:
    """A word finds exactly what holds it; a vector finds the nearest, in order."""
    options, keeps = FILTERS[chosen] if chosen else ({}, None)
    expected = model.listed(base, now, keeps)
    for word, hits in zip(
        words, handle.recall_many(words, limit=1000, **recall_arguments({"mode": "keyword", **options})), strict=True
    ):
        holds = {public_id for public_id, version in expected.items() if word in _words(version)}
        found = [hit.id for hit in hits]
        assert len(found) == len(set(found)), f"recall of {word} in {base} has a memory twice"
        assert set(found) == holds, f"recall of {word} {options} in {base}: {set(found) ^ holds}, {_texts(expected)}"
        for hit in hits:
            shown, held = (hit.text, joined(base, hit.scope), hit.tags), expected[hit.id]
            assert shown == (held["text"], held["scope"], held["tags"]), f"recall of {word} in {base} shows {shown}"
    vectors = {public_id: version["vector"] for public_id, version in expected.items()}
    embedded = {id for id, each in expected.items() if _is_embedded(handle, id, each)}
    cosines = {id: float(vectors[id] @ vector) for id in embedded}
    best = sorted(cosines.values(), reverse=True)[:_A_LIST]
    if any(version["vector"] is not None for versions in model.records.values() for version in versions):
        hits = handle.recall(
            "by its vector", vector=vector, limit=_A_LIST, **recall_arguments({"mode": "vector", **options})
        )
        where = f"recall by vector {options} in {base}"
        assert {hit.id for hit in hits} <= embedded, f"{where}: {[hit.text for hit in hits]}"
        got = [cosines[hit.id] for hit in hits]
        assert len(got) == len(best), f"{where}: {len(got)} of {len(best)}"
        assert np.allclose(got, best, rtol=0, atol=_SURE), f"{where}: {got} not {best}"
        shown = [hit.signals["cosine"] for hit in hits]
        assert np.allclose(shown, got, rtol=0, atol=_SURE), f"{where}: says {shown}, is {got}"


def check_services(
    memory: Memory, handle: Memory, base: str, model: Model, now: datetime, words: Sequence[str]
) -> None:
    """Sessions, snapshots, procedures, experience, documents and saved working memory."""
    word = words[len(model.sessions) % len(words)]
    hits = handle.sessions.search(word, limit=1000)
    every = {
        (*key, place): message["content"].split()
        for key, messages in model.sessions.items()
        for place, message in enumerate(messages)
        if inside(key[0], base)
    }
    said = {key for key, text in every.items() if word in text}
    found = {(joined(base, hit.scope), hit.session, hit.position) for hit in hits}
    assert said <= found <= every.keys(), f"sessions.search of {word} in {base}: {found} not {said}"
    told = {(joined(base, each.scope), each.id): each.messages for each in handle.sessions.list()}
    expected = {key: len(messages) for key, messages in model.sessions.items() if inside(key[0], base)}
    assert told == expected, f"sessions in {base}: {told} not {expected}"
    for (scope, name), messages in model.sessions.items():
        if scope == base:
            assert handle.sessions.get(name).messages() == messages, f"messages of {name} in {base}"
    snapshots = [
        (joined(base, each.scope), each.session_id, [*each.messages]) for each in handle.episodes.snapshots(1000)
    ]
    kept = [each for each in model.snapshots if inside(each[0], base)]
    assert sorted(map(repr, snapshots)) == sorted(map(repr, kept)), f"snapshots in {base}: {snapshots} not {kept}"
    uses = {each.id: (each.success_rate, each.use_count, each.success_count) for each in handle.procedures.list()}
    known = {id for id, each in model.listed(base, now).items() if each["kind"] == "procedure"}
    assert uses.keys() == known, f"procedures in {base}"
    for public_id in known:
        assert np.allclose(uses[public_id], model.uses[public_id]), f"uses of {public_id}: {uses[public_id]}"
    tips = {
        (tip.task_type, tip.tools): (tip.runs, tip.success_rate, tip.avg_steps)
        for tip in handle.experience.tips(None, limit=1000)
    }
    learnt = {
        (key[1], key[2]): (total, success / total, steps / measured if measured else None)
        for key, (total, success, steps, measured) in model.runs.items()
        if key[0] == base and total >= 2 and success * 2 >= total
    }
    assert tips == learnt, f"tips in {base}: {tips} not {learnt}"
    documents = {(joined(base, each.scope), each.source): each.id for each in handle.knowledge.list()}
    assert documents.keys() == {key for key in model.documents if inside(key[0], base)}, f"documents in {base}"
    figures = handle.store.stats().services
    counts = {
        "sessions": model.sessions, "tool_patterns": model.runs, "error_recoveries": model.recoveries,
        "documents": model.documents,
    }  # fmt: skip
    for name, held in counts.items():
        keys: Mapping[Any, Any] = held
        assert figures[name] == sum(inside(key[0], base) for key in keys), f"stats of {name} in {base}"
    loaded = [item.content for item in memory.scoped(base).working.load()]
    assert loaded == model.working.get(base, []), f"working memory saved in {base}: {loaded}"


def _is_embedded(handle: Memory, public_id: str, version: Version) -> bool:
    if version["waits"]:
        return handle.get(public_id).embedding_state == "embedded"
    return version["vector"] is not None


def _words(version: Version) -> set[str]:
    return set(re.findall(r"\w+", f"{version['context'] or ''} {version['text']}"))


def _texts(expected: Mapping[str, Version]) -> dict[str, str]:
    return {public_id: version["text"] for public_id, version in expected.items()}
