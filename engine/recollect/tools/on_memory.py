"""The actions of the tool memory."""

from __future__ import annotations

from msgspec import Struct, structs

from recollect.checks import shown
from recollect.errors import NotFound
from recollect.memory import Memory
from recollect.profiles import Profile, resolve_profile
from recollect.records import Record
from recollect.tools import arguments as asked
from recollect.tools.checking import allowed_in
from recollect.tools.failures import Candidate, ToolFault
from recollect.tools.results import (
    Changed,
    Contradicted,
    FoundMemory,
    ListedMemory,
    Quotes,
    Recalled,
    RecalledMemory,
    Written,
)

__all__ = ["KINDS", "answer"]

KINDS = ("memory",)
"""What the tool is about: other kinds have tools of their own."""

_MOST_CANDIDATES = 5
_CANDIDATE_CHARS = 200


def answer(action: asked.Action, memory: Memory, within: str) -> Struct:
    """Carry out an action; `within` is the scope of the handle, as its holder calls it."""
    match action:
        case asked.Write():
            return _write(action, memory, within)
        case asked.Search():
            hits = memory.recall(
                action.query, limit=action.limit, tags=action.tags, kinds=KINDS, profile=_profile(memory, "reeve")
            )
            return Quotes.of(FoundMemory.of(hit, _joined(within, hit.scope)) for hit in hits)
        case asked.Recall():
            return _recall(action, memory, within)
        case asked.Replace():
            found = _the_one(memory, action.id, action.old_text)
            return Changed(outcome="replaced", id=memory.update(found.id, text=action.content).id)
        case asked.Remove():
            found = _the_one(memory, action.id, action.old_text)
            memory.forget(found.id)
            return Changed(outcome="removed", id=found.id)
        case asked.ListMemories():
            records = memory.list(kinds=KINDS, tags=action.tags, limit=action.limit, offset=action.offset)
            return Quotes.of(ListedMemory.of(record, _joined(within, record.scope)) for record in records)
        case _:
            raise AssertionError(action)


def _write(action: asked.Write, memory: Memory, within: str) -> Written:
    # What a model was shown it may well write down again.
    policy = structs.replace(memory.settings.write_policy, recognise_recalled=True)
    record = memory.remember(
        action.content, tags=action.tags, importance=action.importance, topic=action.topic, pinned=action.pinned,
        expires_at=action.expires_at, policy=policy,
    )  # fmt: skip
    return Written(
        outcome=record.outcome,
        id=record.id,
        scope=_joined(within, record.scope),
        merged_into=None if record.outcome == "created" else record.id,
        contradictions=[
            Contradicted(id=each.id, content=each.text, reason=each.reason) for each in record.contradictions
        ],
    )


def _recall(action: asked.Recall, memory: Memory, within: str) -> Recalled:
    if (action.content is None) == (action.query is None):
        raise ToolFault(
            "missing_field", "content", "recall takes the question as content or as query: give one of them",
            ["content", "query"],
        )  # fmt: skip
    hits = memory.recall(
        action.content or action.query or "", limit=action.limit, tags=action.tags, since=action.since,
        until=action.until, kinds=KINDS, profile=_profile(memory, "hermes"),
    )  # fmt: skip
    return Recalled(
        results=[RecalledMemory.of(hit, _joined(within, hit.scope)) for hit in hits],
        evidence_gaps=list(hits.evidence_gaps),
        sub_queries=list(hits.sub_queries),
    )


def _the_one(memory: Memory, id: str | None, old_text: str | None) -> Record:
    """The memory of this id, or the only one whose text holds `old_text`."""
    if (id is None) == (old_text is None):
        raise ToolFault("missing_field", "old_text", "give old_text or id, one of them", ["old_text", "id"])
    if id is not None:
        record = memory.get(id)
        if record.kind not in KINDS:
            raise NotFound(f"no memory has the id {shown(id)}")
        return record
    found = memory.list(where={"text": {"contains": old_text}}, kinds=KINDS, limit=_MOST_CANDIDATES + 1)
    if not found:
        raise ToolFault(
            "not_found", "old_text", f"no memory holds {shown(old_text)}: search or list to see them",
            allowed_in("old_text"),
        )  # fmt: skip
    if len(found) > 1:
        many = f"more than {_MOST_CANDIDATES}" if len(found) > _MOST_CANDIDATES else str(len(found))
        raise ToolFault(
            "ambiguous", "old_text", f"{many} memories hold {shown(old_text)}: give more of the text, or the id",
            allowed_in("old_text"),
            candidates=[
                Candidate(id=record.id, content=record.text[:_CANDIDATE_CHARS]) for record in found[:_MOST_CANDIDATES]
            ],
        )  # fmt: skip
    return found[0]


def _profile(memory: Memory, name: str) -> str | Profile:
    """The profile that the action is known for, with the choices of the settings where they are of that profile."""
    own = resolve_profile(memory.settings.profile)
    return own if own.name == name else name


def _joined(within: str, scope: str) -> str:
    if within == "/":
        return scope
    return within if scope == "/" else within + scope
