"""A `BaseMemoryService` of Google's Agent Development Kit: what was said in sessions, recalled by meaning and words."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal

from msgspec import structs

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.authority import speaking_as
from recallite.model.checks import MAX_QUERY_CHARS, check_count, check_str
from recallite.model.records import Hit, NewRecord, Record
from recallite.system.messages import shown
from recallite_connect.common import OnMemory, in_thread, needed, scope_segment
from recallite_connect.importers.reading import cleaned, cleaned_json

with needed("google-adk"):
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content

__all__ = ["RecalliteMemoryService"]

_EVENT = "adk-event"
_DELETED = "adk-deleted"


class RecalliteMemoryService(OnMemory, BaseMemoryService):
    """Events of sessions as memories.

    - memory: a Memory, which stays open, or a path
    - scope: the scope below which everything is
    - limit: most memories of a search
    - mode: as for `Memory.recall`; with "keyword" an event is found by its words alone
    - relevant: only memories that answer, as for `Memory.recall`; it has no effect with "keyword"

    An application and a user are the scope `/adk/<app_name>/<user_id>`. An event with text is a memory of the kind
    `adk-event`, with its session, id, author and content as metadata; it repeats and replaces no other. An event that
    was deleted is not added again: its id is kept, as a memory of the kind `adk-deleted` that is in no recall.
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str = "/adk",
        limit: int = 10,
        mode: Literal["hybrid", "vector", "keyword"] = "hybrid",
        relevant: bool = True,
    ) -> None:
        super().__init__(memory)
        self._scoped = self._memory.scoped(scope)
        self._policy = structs.replace(self._memory.settings.write_policy, supersede_confidence=None)
        self._options: dict[str, Any] = {"limit": check_count(limit, "limit"), "mode": mode}
        if mode != "keyword":
            self._options["relevant"] = relevant

    async def add_session_to_memory(self, session: Any) -> None:
        """Store the events of a session; those of it that are stored and no longer in it are purged."""
        items = _said(session.events, session.id, {})
        await in_thread(self._add, _scope(session.app_name, session.user_id), items, session_id=session.id, whole=True)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store further events of a session; one that is there already stays as it is."""
        items = _said(events, session_id, custom_metadata or {})
        await in_thread(self._add, _scope(app_name, user_id), items, session_id=session_id, whole=False)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[Any],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories; one whose id is there already stays as it is."""
        items = [
            _item(
                memory.content, memory.id or str(uuid.uuid4()), None, memory.author, memory.timestamp,
                {**(custom_metadata or {}), **memory.custom_metadata},
            )
            for memory in memories
        ]  # fmt: skip
        await in_thread(self._add, _scope(app_name, user_id), items, session_id=None, whole=False)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> Any:
        """The memories of a user that answer a query, best first."""
        hits = await in_thread(self._search, _scope(app_name, user_id), query)
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Purge the memory with the id of an event."""
        if memory_id:
            await in_thread(self._delete, _scope(app_name, user_id), memory_id)

    def _add(self, scope: str, items: list[NewRecord | None], *, session_id: str | None, whole: bool) -> None:
        memory = self._scoped.scoped(scope)
        by_event = {(item.metadata or {})["event_id"]: item for item in items if item is not None}
        of_events: dict[str, Any] = {"metadata.event_id": {"in": [*by_event]}}
        for record in _events(memory, of_events) if by_event else ():
            if not _differ(record, by_event[record.metadata["event_id"]]):
                del by_event[record.metadata["event_id"]]
        with memory.transaction(embed=by_event.values()):
            deleted = {record.text for record in memory.list(kinds=_DELETED, limit=None)}
            wanted: dict[str, NewRecord] = {}
            for item in items:
                if item is not None and item.metadata is not None and item.metadata["event_id"] not in deleted:
                    wanted.setdefault(item.metadata["event_id"], item)
            where: dict[str, Any] = {"metadata.event_id": {"in": [*wanted]}}
            if session_id is not None:  # an event may have come before without its session
                of_session = {"metadata.session_id": session_id}
                where = {"or": [of_session, {"and": [where, {"metadata.session_id": None}]}]}
            records = _events(memory, where)
            known = {record.metadata["event_id"]: record for record in records}
            if whole:
                gone = [record.id for id, record in known.items() if id not in wanted or _differ(record, wanted[id])]
                memory.forget(gone)
                known = {id: record for id, record in known.items() if record.id not in gone}
            new = [item for id, item in wanted.items() if id not in known]
            for by_user, items_of_one in groupby(new, key=lambda item: item.context in (None, "user")):
                with speaking_as("user" if by_user else "agent"):
                    memory.remember_many([*items_of_one], policy=self._policy)

    def _search(self, scope: str, query: str) -> list[Hit]:
        check_str(query, "query")
        return self._scoped.recall(query[:MAX_QUERY_CHARS], scope=scope, kinds=_EVENT, **self._options)

    def _delete(self, scope: str, memory_id: str) -> None:
        memory = self._scoped.scoped(scope)
        with memory.transaction():
            records = _events(memory, {"metadata.event_id": memory_id})
            if records:
                memory.forget([record.id for record in records])
                memory.remember(NewRecord(memory_id, id=str(uuid.uuid4()), kind=_DELETED, indexed=False))


def _events(memory: Memory, where: dict[str, Any]) -> list[Record]:
    return memory.list(kinds=_EVENT, where=where, include_superseded=True, limit=None)


def _scope(app_name: str, user_id: str) -> str:
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{name} is {shown(value)}: give a name")
    return f"/{scope_segment(app_name)}/{scope_segment(user_id)}"


def _said(events: Sequence[Any], session_id: str | None, custom: Mapping[str, object]) -> list[NewRecord | None]:
    return [
        _item(event.content, event.id, session_id, event.author, event.timestamp, custom)
        for event in events
        if event.content and event.content.parts
    ]


def _item(
    content: Any, id: str, session_id: str | None, author: str | None, timestamp: float | str | None,
    custom: Mapping[str, object],
) -> NewRecord | None:  # fmt: skip
    """An event as a memory; None without a text. Pictures and other data in it are left out."""
    parts = [part for part in content.parts or () if part.inline_data is None]
    text = cleaned(" ".join(part.text for part in parts if part.text))
    if not text.strip():
        return None
    stored = cleaned_json(content.model_copy(update={"parts": parts}).model_dump(mode="json", exclude_none=True))
    metadata = {"event_id": id, "session_id": session_id, "author": author, "content": stored}
    if custom:
        metadata["custom"] = dict(custom)
    created_at = _moment(timestamp)
    if created_at is None and timestamp is not None:
        metadata["timestamp"] = timestamp
    return NewRecord(
        text=text, id=str(uuid.uuid4()), kind=_EVENT, context=author, source=session_id, metadata=metadata,
        created_at=created_at,
    )  # fmt: skip


def _moment(timestamp: float | str | None) -> datetime | None:
    """Parse a time; a text without a zone is the time here, as ADK writes it, and another text is None."""
    if not isinstance(timestamp, str):
        return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)
    try:
        return datetime.fromisoformat(timestamp).astimezone()
    except (ValueError, OverflowError):
        return None


def _differ(record: Record, item: NewRecord) -> bool:
    return item.metadata is None or any(record.metadata[key] != item.metadata[key] for key in ("content", "session_id"))


def _entry(hit: Hit) -> Any:
    return MemoryEntry(
        id=hit.metadata["event_id"], content=Content.model_validate(hit.metadata["content"]),
        author=hit.metadata.get("author"), timestamp=hit.metadata.get("timestamp", hit.created_at.isoformat()),
        custom_metadata=hit.metadata.get("custom", {}),
    )  # fmt: skip
