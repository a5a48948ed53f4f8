"""The verbs of mem0 (`Memory` and `AsyncMemory` of mem0ai 2.x) on a Recallite memory; mem0 itself is not needed.

A program changes `from mem0 import Memory` to `from recallite_connect.mem0 import Memory`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import wraps
from hashlib import md5
from typing import Any, Self

import recallite
from recallite.agents.sessions import plain_text
from recallite.errors import InvalidInput, LanguageModelError
from recallite.model.authority import authority_of_role, speaking_as
from recallite.model.checks import number_of
from recallite.model.records import Hit, NewRecord, Record
from recallite.system.messages import shown
from recallite.system.telemetry import logger
from recallite_connect.common import OnMemory, in_thread, marks_of, scope_segment
from recallite_connect.importers.reading import cleaned

__all__ = ["AsyncMemory", "Memory"]


_log = logger(__name__)
_EVENTS = {"created": "ADD", "merged": "UPDATE", "replaced": "UPDATE"}
_UNSET: Any = object()
ENTITIES = ("user_id", "agent_id", "run_id")
IDENTITY = (*ENTITIES, "actor_id")
_BESIDE = (*IDENTITY, "role", "attributed_to", "expiration_date")
"""Metadata that a result has beside its text, and not below `metadata`."""
_OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains")
_LOGIC = {"AND": "and", "OR": "or", "$or": "or", "NOT": "not", "$not": "not"}


class Memory(OnMemory):
    """mem0's verbs.

    - config: taken for the sake of mem0's programs and not used: Recallite brings its embedder and its store
    - memory: a Recallite memory, which `close` leaves open, or a path; None is the path of `recallite.Memory()`
    - scope: all is kept below it, and `reset` empties it

    The ids of a user, an agent and a run become a scope, such as `/user_id/ada/agent_id/coder`, and metadata. Methods,
    arguments and results are mem0's; an argument that is refused raises InvalidInput, a ValueError. With `infer`, the
    language model of the memory extracts facts; without one the messages are stored as they are.
    """

    def __init__(
        self,
        config: object = None,
        *,
        memory: recallite.Memory | str | os.PathLike[str] | None = None,
        scope: str = "/mem0",
    ) -> None:
        if config is not None:
            _log.warning("the configuration of mem0 is not used: give Memory(memory=recallite.Memory(...))")
        super().__init__(recallite.Memory() if memory is None else memory)
        self._owns = self._owns or memory is None
        self._scoped = self._memory.scoped(scope)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Do as the constructor: mem0's models and stores are not used."""
        return cls(_checked_config(config_dict))

    def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: Any | None = None,
        expiration_date: Any | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Store a text or messages: {"results": [{"id", "memory", "event"}]}; at least one id is needed.

        With `infer` a memory may repeat, continue or supersede another, which the event says; without it each message
        is a memory of its own. A memory with an expiration date is not found after that day.
        """
        if timestamp is not None:
            raise InvalidInput("timestamp is a parameter of mem0's platform: put created_at into the metadata")
        if memory_type is not None:
            raise InvalidInput("memory_type is not supported: Recallite keeps procedures in Memory.procedures")
        if prompt is not None:
            _log.warning("the prompt is not used: the extraction has one of its own")
        ids = entity_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not ids:
            raise InvalidInput("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        shared: dict[str, Any] = {**_without_identity(metadata or {}), **ids}
        if (day := day_of(expiration_date)) is not None:
            shared["expiration_date"] = day
        spoken = [message for message in messages_of(messages) if _is_said(message)]
        if infer and (facts := self._facts(spoken)) is not None:
            return {"results": self._store([(fact, shared) for fact in facts], scope_of(ids), infer=True)}
        items = []
        for message in spoken:
            beside = {**shared, "role": message["role"]}
            if message.get("name"):
                beside["actor_id"] = message["name"]
            items.append((cleaned(plain_text(message["content"])), beside))
        return {"results": self._store(items, scope_of(ids), infer=infer)}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The memory with this id, or None."""
        records = self._scoped.get([memory_id])
        return item_of(records[memory_id]) if memory_id in records else None

    def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that the filters match, the newest first; the filters name a user, an agent or a run."""
        condition = _filter(filters, kwargs, "get_all", show_expired=show_expired)
        check_search(top_k=top_k)
        records = self._scoped.list(filter=condition, limit=top_k) if top_k else []
        return {"results": [item_of(record, listed=True) for record in records]}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: dict[str, Any] | None = None,
        threshold: float = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any | None = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that answer a query, best first; those with a score below the threshold are left out.

        Recall always reranks. With `explain` each result has `score_details`: Recallite's signals and the confidence.
        """
        if reference_date is not None:
            raise InvalidInput(
                "reference_date is a parameter of mem0's platform: use recallite.Memory.recall(as_of=...)"
            )
        condition = _filter(filters, kwargs, "search", show_expired=show_expired)
        check_search(threshold=threshold, top_k=top_k)
        if not isinstance(query, str) or not query.strip():
            raise InvalidInput("Invalid query: must be a non-empty string.")
        least = 0.1 if threshold is None else threshold
        hits = self._scoped.recall(query.strip(), limit=top_k, filter=condition) if top_k else []
        results = []
        for hit in hits:
            if hit.score < least:
                continue
            item = item_of(hit, score=hit.score) | marks_of(hit)
            if explain:
                item["score_details"] = {**hit.signals, "confidence": hit.confidence}
            results.append(item)
        return {"results": results}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text, metadata or expiration date of a memory; the ids in its metadata stay."""
        wanted = data if text is None else text
        if wanted is None and metadata is None and expiration_date is _UNSET:
            raise InvalidInput("At least one of text, metadata, or expiration_date must be provided.")
        stated = [] if wanted is None else [NewRecord(wanted, context=self._existing(memory_id).context)]
        with self._scoped.transaction(embed=stated):
            record = self._existing(memory_id)
            changes: dict[str, Any] = {} if wanted is None else {"text": wanted}
            merged = {**record.metadata, **_without_identity(metadata or {})}
            if expiration_date is not _UNSET:
                merged["expiration_date"] = day_of(expiration_date)
            if merged != record.metadata:
                changes["metadata"] = {key: value for key, value in merged.items() if key != "expiration_date" or value}
            if changes:
                self._scoped.update(memory_id, **changes)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Purge a memory, with its history and what it superseded: `get_all` and `search` do not bring that back."""
        with self._scoped.transaction():
            self._scoped.forget(self._existing(memory_id).id, chain=True)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Purge the memories with these ids."""
        ids = entity_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not ids:
            raise InvalidInput(
                "At least one filter is required to delete all memories. If you want to delete all memories, use the "
                "`reset()` method."
            )
        where = {f"metadata.{name}": id for name, id in ids.items()}  # "*" is an id here, and no wildcard
        self._scoped.forget(filter=recallite.Filter(where=where, include_superseded=True))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """The texts that a memory has had, oldest first; of one that was deleted nothing is left."""
        if memory_id not in self._scoped.get([memory_id]):
            return []
        return history_of(self._scoped.history(memory_id, chain=False))

    def reset(self) -> None:
        """Purge everything below the scope."""
        self._scoped.forget(scope="/")

    def chat(self, query: str) -> None:
        """Not implemented, as in mem0."""
        raise NotImplementedError("Chat function not implemented yet.")

    def _existing(self, memory_id: str) -> Record:
        records = self._scoped.get([memory_id])
        if memory_id not in records:
            raise InvalidInput(f"Memory with id {memory_id} not found. Please provide a valid 'memory_id'")
        return records[memory_id]

    def _facts(self, messages: list[Any]) -> list[str] | None:
        """The facts that the language model finds; None where there is none, or it gives no answer."""
        try:
            facts = self._memory.consolidator.facts(messages)
        except LanguageModelError as fault:
            name = type(fault).__name__
            _log.warning("the extraction of facts failed with %s: the messages are stored as they are", name)
            return None
        return None if facts is None else [fact.content for fact in facts]

    def _store(self, items: list[tuple[str, dict[str, Any]]], scope: str, *, infer: bool) -> list[dict[str, Any]]:
        results = []
        stated = [NewRecord(text, context=metadata.get("actor_id")) for text, metadata in items]
        with self._scoped.transaction(embed=stated):
            for text, metadata in items:
                stored = {key: value for key, value in metadata.items() if key != "created_at"}
                with speaking_as(authority_of_role(metadata.get("role"))):
                    record = self._scoped.remember(
                        text, scope=scope, context=metadata.get("actor_id"), metadata=stored,
                        created_at=metadata.get("created_at"), id=None if infer else str(uuid.uuid4()),
                    )  # fmt: skip
                if record.outcome not in _EVENTS:
                    continue
                result: dict[str, Any] = {"id": record.id, "memory": record.text, "event": _EVENTS[str(record.outcome)]}
                if "role" in metadata:
                    result |= {"actor_id": metadata.get("actor_id"), "role": metadata["role"]}
                results.append(result)
        return results


def _checked_config(config: object) -> object:
    if not isinstance(config, Mapping):
        raise InvalidInput(f"config_dict is {shown(config)}: give a dict")
    return config or None


def _is_said(message: object) -> bool:
    if (
        not isinstance(message, Mapping)
        or message.get("role") is None
        or not plain_text(message.get("content")).strip()
    ):
        _log.warning("a message without a role or a text is skipped")
        return False
    return bool(message["role"] != "system")


def _without_identity(metadata: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {shown(metadata)}: give a dict")
    return {key: value for key, value in metadata.items() if key not in IDENTITY}


def _filter(filters: object, beside: Mapping[str, Any], method: str, *, show_expired: bool) -> recallite.Filter:
    """The filter of a search. Ids have to be in `filters`."""
    if named := sorted({*ENTITIES} & {*beside}):
        raise InvalidInput(
            f"Top-level entity parameters {named} are not supported in {method}(). Use filters={{'user_id': '...'}} "
            "instead."
        )
    if beside:
        _log.warning("%s() has no argument %s: it is ignored, as mem0 does", method, min(beside))
    conditions = dict(filters) if isinstance(filters, Mapping) else {}
    ids = entity_ids({name: conditions[name] for name in ENTITIES if isinstance(conditions.get(name), str | int)})
    if not {*ENTITIES} & {*conditions}:
        raise InvalidInput(
            "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}"
        )
    scope = scope_of({"user_id": ids["user_id"]}) if ids.get("user_id", "*") != "*" else None
    return recallite.Filter(scope=scope, where=where_of({**conditions, **ids}, show_expired=show_expired))


def _awaited(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def later(self: AsyncMemory, *args: Any, **kwargs: Any) -> Any:
        return await in_thread(method, self._twin, *args, **kwargs)

    return later


class AsyncMemory:
    """`Memory`, awaited; `close` is not, as in mem0."""

    def __init__(
        self,
        config: object = None,
        *,
        memory: recallite.Memory | str | os.PathLike[str] | None = None,
        scope: str = "/mem0",
    ) -> None:
        self._twin = Memory(config, memory=memory, scope=scope)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Do as `Memory.from_config`."""
        return cls(_checked_config(config_dict))

    add = _awaited(Memory.add)
    get = _awaited(Memory.get)
    get_all = _awaited(Memory.get_all)
    search = _awaited(Memory.search)
    update = _awaited(Memory.update)
    delete = _awaited(Memory.delete)
    delete_all = _awaited(Memory.delete_all)
    history = _awaited(Memory.history)
    reset = _awaited(Memory.reset)
    chat = _awaited(Memory.chat)

    @property
    def memory(self) -> recallite.Memory:
        """The memory that it stands on."""
        return self._twin.memory

    def close(self) -> None:
        """Close the memory, if it was opened here."""
        self._twin.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self.close)


def entity_ids(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The ids of a user, an agent and a run that are not None, checked as mem0 does."""
    ids = {}
    for name in ENTITIES:
        if (value := arguments.get(name)) is None:
            continue
        plain = str(value).strip()
        if not plain:
            raise InvalidInput(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
        if any(character.isspace() for character in plain):
            raise InvalidInput(f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.")
        ids[name] = plain
    return ids


def scope_of(ids: Mapping[str, str]) -> str:
    """The scope of ids: `/user_id/ada/agent_id/coder`."""
    return "".join(f"/{name}/{scope_segment(ids[name])}" for name in ENTITIES if name in ids)


def where_of(filters: Mapping[str, Any], *, show_expired: bool) -> dict[str, Any]:
    """The `where` of a mem0 filter."""
    parts = list(_conditions(filters))
    if not show_expired:
        today = datetime.now(UTC).date().isoformat()
        field = "metadata.expiration_date"
        parts.append({"or": [{field: None}, {field: {"gte": today}}]})
    return {"and": parts}


def _conditions(filters: object) -> Iterator[dict[str, Any]]:
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"a filter is {shown(filters)}: give a dict such as {{'user_id': 'ada'}}")
    for key, value in filters.items():
        if key in _LOGIC:
            if not isinstance(value, list) or not value:
                raise InvalidInput(f"{key} operator requires a non-empty list of conditions")
            parts = [{"and": list(_conditions(condition))} for condition in value]
            yield {"not": {"or": parts}} if _LOGIC[key] == "not" else {_LOGIC[key]: parts}
        else:
            yield from _comparisons(f"metadata.{key}", value)


def _comparisons(field: str, value: object) -> Iterator[dict[str, Any]]:
    if value == "*":
        yield {field: {"ne": None}}
    elif isinstance(value, list | tuple):
        yield {field: {"in": value}}
    elif not isinstance(value, Mapping):
        yield {field: value}
    else:
        for operator, bound in value.items():
            if operator not in _OPERATORS:
                raise InvalidInput(
                    f"Unsupported metadata filter operator: {operator}. Use one of {', '.join(_OPERATORS)}"
                )
            yield {field: {operator: bound}}


def check_search(*, threshold: object = None, top_k: object = None) -> None:
    """Refuse what is no threshold or no number of results."""
    least, count = number_of(threshold), number_of(top_k)
    if threshold is not None and (least is None or not 0 <= least <= 1):
        raise InvalidInput(f"Invalid threshold: {shown(threshold)}. Must be a number between 0 and 1 (inclusive).")
    if not isinstance(count, int) or count < 0:
        raise InvalidInput(f"Invalid top_k: {shown(top_k)}. Must be a non-negative integer.")


def day_of(value: object) -> str | None:
    """An expiration date as YYYY-MM-DD."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise InvalidInput(f"expiration_date must be a valid date in YYYY-MM-DD format. It is {shown(value)}") from None


def messages_of(messages: object) -> list[Any]:
    """A str, a message or a list of messages as a list of messages."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        return [messages]
    if isinstance(messages, list):
        return messages
    raise InvalidInput(f"messages is {shown(messages)}: messages must be str, dict, or list[dict]")


def item_of(memory: Record | Hit, *, score: float | None = None, listed: bool = False) -> dict[str, Any]:
    """A memory as mem0 returns it; `listed` ones have no score."""
    metadata = {key: value for key, value in memory.metadata.items() if key not in _BESIDE}
    item: dict[str, Any] = {
        "id": memory.id, "memory": memory.text,
        "hash": md5(memory.text.encode(), usedforsecurity=False).hexdigest(), "metadata": metadata or None,
        **({} if listed else {"score": score}),
        "created_at": memory.created_at.isoformat(), "updated_at": memory.updated_at.isoformat(),
    }  # fmt: skip
    return item | {key: memory.metadata[key] for key in _BESIDE if key in memory.metadata}


def history_of(versions: list[Record]) -> list[dict[str, Any]]:
    """The versions of a memory, oldest first, as mem0's rows of changes."""
    return [
        {
            "id": f"{version.id}:{i}", "memory_id": version.id, "old_memory": versions[i - 1].text if i else None,
            "new_memory": version.text, "event": "UPDATE" if i else "ADD",
            "created_at": version.created_at.isoformat(), "updated_at": version.recorded_from.isoformat(),
            "is_deleted": False, "actor_id": version.metadata.get("actor_id"), "role": version.metadata.get("role"),
        }
        for i, version in enumerate(versions)
    ]  # fmt: skip
