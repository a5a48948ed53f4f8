"""Actions on memories: write, find, change and remove them, and show what they said before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType, structs

from recallite.errors import NotFound
from recallite.model.authority import said_by
from recallite.model.records import Former, Hit, Hits, NewRecord, Record, SourceRef
from recallite.model.settings import resolve_profile
from recallite.recall.request import recall_arguments
from recallite.system.messages import shown
from recallite.text.quotes import NOTICE
from recallite_tools.action import FIELDS, Call, Candidate, Changed, Quotes, ToolFault, allowed_in

if TYPE_CHECKING:
    from recallite.memory import Memory


class Was(Struct, frozen=True, kw_only=True):
    """A memory that another superseded, and until when it held."""

    id: str
    text: str
    until: datetime | None

    @classmethod
    def of(cls, former: Former | Record) -> Was:
        """A superseded memory as a model sees it."""
        return cls(id=former.id, text=former.text, until=former.held_until)


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A memory. `was` is what it took the place of; `superseded_by` what states it anew, `until` when it ended.

    What is superseded without `until` may still hold; `contradicts` are memories that cannot hold beside it.

    `score` orders the results of one question, `confidence` is the chance that it answers it; a list has neither.
    `said_by` is the user, or another with its source, as "web:evil.example".
    """

    id: str
    text: str
    kind: str
    scope: str
    created_at: datetime
    tags: list[str]
    importance: float
    source: str | None = None
    said_by: str = "user"
    score: float | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    match_reasons: list[str] | UnsetType = UNSET
    evidence_gaps: list[str] | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    until: datetime | UnsetType = UNSET
    superseded_by: list[str] | UnsetType = UNSET
    contradicts: list[str] | UnsetType = UNSET

    @classmethod
    def of(cls, call: Call, memory: Hit | Record, formers: Sequence[Was] = ()) -> FoundMemory:
        """A hit, or a memory of a list with what it took the place of."""
        hit: dict[str, Any] = {}
        if isinstance(memory, Hit):
            hit = {
                "score": memory.score, "confidence": memory.confidence, "match_reasons": list(memory.match_reasons),
                "evidence_gaps": list(memory.evidence_gaps), "contradicts": list(memory.contradicts) or UNSET,
            }  # fmt: skip
            formers = [Was.of(item) for item in memory.supersedes]
        source = memory.source.id if isinstance(memory.source, SourceRef) else memory.source
        return cls(
            id=memory.id, text=memory.text, kind=memory.kind, scope=call.scope_of(memory.scope),
            created_at=memory.created_at, tags=list(memory.tags), importance=memory.importance,
            source=source, said_by=said_by(memory.authority, source),
            was=list(formers) or UNSET, until=memory.held_until or UNSET,
            superseded_by=list(memory.superseded_by) or UNSET, **hit,
        )  # fmt: skip


class FoundMemories(Struct, frozen=True, kw_only=True):
    """Memories, best or newest first; `left_out` counts those that did not fit into the budget of tokens.

    `replaced` counts those that a list passes over because others have surely replaced them. `evidence_gaps` say what
    the memory seems not to know; `sub_queries` are what was asked besides.
    """

    results: list[FoundMemory]
    left_out: int = 0
    replaced: int | UnsetType = UNSET
    evidence_gaps: list[str] = []
    sub_queries: list[str] = []
    notice: str = NOTICE


class Contradicted(Struct, frozen=True, kw_only=True):
    """A memory that may contradict the one just written."""

    id: str
    text: str
    said_by: str
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """The outcome of a write; `merged_into` is the memory that was there, `occurrences` how often it has been written.

    `was` are the memories that it superseded.
    """

    outcome: str
    id: str
    scope: str
    merged_into: str | None = None
    occurrences: int | UnsetType = UNSET
    was: list[Was] | UnsetType = UNSET
    notice: str = NOTICE
    contradictions: list[Contradicted] = []


class Removed(Struct, frozen=True, kw_only=True):
    """The outcome of a removal; `holds_again` is what the memory had superseded, or `also_forgotten` how many of it."""

    outcome: str
    id: str
    also_forgotten: int | UnsetType = UNSET
    holds_again: list[Was] | UnsetType = UNSET
    advice: str | UnsetType = UNSET
    notice: str | UnsetType = UNSET


class Version(Struct, frozen=True, kw_only=True):
    """A text of a history, and from when until when it held; `until` is null for what holds now."""

    text: str
    since: datetime
    until: datetime | None
    id: str


# Kinds of records that the tool memory handles; other kinds have their own tools.
_KINDS = ("memory",)
_MOST_CANDIDATES = 5
_CANDIDATE_CHARS = 200
_HOLDS_AGAIN = "What this memory superseded holds again. If that is to be gone too, remove each by its id."


def found(call: Call, hits: Hits) -> FoundMemories:
    """The hits of a question as a model sees them."""
    return FoundMemories(
        results=[FoundMemory.of(call, hit) for hit in hits], left_out=hits.left_out,
        evidence_gaps=list(hits.evidence_gaps), sub_queries=list(hits.sub_queries),
    )  # fmt: skip


def former_texts(memory: Memory, ids: Iterable[str]) -> dict[str, Was]:
    """Memories that are or were superseded, by id."""
    ids = list(dict.fromkeys(ids))
    if not ids:
        return {}
    records = memory.list(where={"id": {"in": ids}}, include_superseded=True, limit=None)
    return {record.id: Was.of(record) for record in records}


def write(call: Call, text: str, supersedes: Sequence[str] = (), **fields: Any) -> Written:
    """Store a memory; older ones that no longer hold are superseded, those you name too."""
    # A model may write down again what it was shown.
    policy = structs.replace(call.memory.settings.write_policy, recognise_recalled=True)
    new = NewRecord(text, supersedes=supersedes or None, **fields)
    record = call.memory.remember(new, on_existing="version", policy=policy)
    return Written(
        outcome=record.outcome, id=record.id, scope=call.scope_of(record.scope),
        merged_into=None if record.outcome in ("created", "skipped") else record.id,
        occurrences=record.occurrences if record.occurrences > 1 else UNSET,
        was=[*former_texts(call.memory, record.supersedes).values()] or UNSET,
        contradictions=[
            Contradicted(id=item.id, text=item.text, said_by=item.authority, reason=item.reason)
            for item in record.contradictions
        ],
    )  # fmt: skip


def recall(call: Call, profile: str = "hermes", **fields: Any) -> FoundMemories:
    """Find memories by meaning, recency and importance, with reasons, or evidence_gaps that say what is missing; fewer
    than limit if fewer answer; valid_at: a past time.
    """
    own = resolve_profile(call.memory.settings.profile)  # whose values count where it is the same
    named, relevant = own if own.name == profile else profile, "diversify_by" not in fields
    fields |= {"kinds": _KINDS, "profile": named, "relevant": relevant}
    return found(call, call.memory.recall(**recall_arguments(fields)))


def search(call: Call, **fields: Any) -> FoundMemories:
    """Find memories by meaning and words, newer ones first among equals; fewer than limit if fewer answer."""
    return recall(call, "reeve", **fields)


def list_(call: Call, **fields: Any) -> FoundMemories:
    """Show memories, newest first."""
    records = call.memory.list(**{"kinds": _KINDS, **fields})
    formers = former_texts(call.memory, [id for record in records for id in record.supersedes])
    results = [
        FoundMemory.of(call, record, [formers[id] for id in record.supersedes if id in formers]) for record in records
    ]
    return FoundMemories(results=results, replaced=records.left_out or UNSET)


def replace(call: Call, text: str, **named: Any) -> Changed:
    """Put another text in the place of a memory's text; give old_text or id. Of what the user stored, if they agree."""
    return Changed(outcome="replaced", id=call.memory.update(_the_one(call, **named).id, text=text).id)


def remove(call: Call, *, chain: bool, **named: Any) -> Removed:
    """Forget a memory for good, after which what it superseded holds again unless chain; give old_text or id. Of what
    the user stored, if they agree.
    """
    return removed(call, _the_one(call, **named), "removed", chain=chain)


def removed(call: Call, record: Record, outcome: str, *, chain: bool) -> Removed:
    """Forget a memory, with `chain` also what it superseded; else tell what of that holds again."""
    gone = call.memory.forget(record.id, chain=chain)
    again = former_texts(call.memory, gone.holds_again)
    return Removed(
        outcome=outcome, id=record.id, also_forgotten=gone.records - 1 or UNSET,
        holds_again=[*again.values()] or UNSET, advice=_HOLDS_AGAIN if again else UNSET,
        notice=NOTICE if again else UNSET,
    )  # fmt: skip


def history(call: Call, id: str) -> Quotes:
    """Show what was said of it before, and what holds now, oldest first."""
    versions = call.memory.history(_the_one(call, id).id)
    return Quotes(results=[
        Version(text=version.text, since=version.held[0], until=version.held[1], id=version.id) for version in versions
    ])  # fmt: skip


def supersede(call: Call, id: str, supersedes: Sequence[str]) -> Changed:
    """Say that the memory id holds in place of others; they stay in the history."""
    new = _the_one(call, id).id
    call.memory.supersede(supersedes, new)
    return Changed(outcome="superseded", id=new)


def restore(call: Call, id: str) -> Changed:
    """Undo that a memory was superseded: it holds again."""
    return Changed(outcome="restored", id=call.memory.restore(_the_one(call, id).id).id)


def _the_one(call: Call, id: str | None = None, old_text: str | None = None) -> Record:
    """The memory of this id, or the only one with `old_text` in its text."""
    memory = call.memory
    if (id is None) == (old_text is None):
        raise ToolFault("missing_field", "old_text", "give old_text or id, one of them", ["old_text", "id"])
    if id is not None:
        record = memory.get(id)
        if record.kind not in _KINDS:
            raise NotFound(f"no memory has the id {shown(id)}")
        return record
    allowed = allowed_in(FIELDS["old_text"])
    records = memory.list(where={"text": {"contains": old_text}}, kinds=_KINDS, limit=_MOST_CANDIDATES + 1)
    if not records:
        problem = f"no memory holds {shown(old_text)}: search or list to see them"
        raise ToolFault("not_found", "old_text", problem, allowed)
    if len(records) > 1:
        many = f"more than {_MOST_CANDIDATES}" if len(records) > _MOST_CANDIDATES else str(len(records))
        candidates = [
            Candidate(id=record.id, text=record.text[:_CANDIDATE_CHARS]) for record in records[:_MOST_CANDIDATES]
        ]
        problem = f"{many} memories hold {shown(old_text)}: give more of the text, or the id"
        raise ToolFault("ambiguous", "old_text", problem, allowed, candidates)
    return records[0]
