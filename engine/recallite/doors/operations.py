"""The operations of the HTTP API, each a function of a memory: the server answers them, and the client asks for them.

The fields of a request are the arguments of the function, by name. Those in braces are in the path, percent-encoded;
the others are in the query of a GET or DELETE and in the JSON object of a POST or PATCH. The answer is what the
function returns, as JSON.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from types import EllipsisType
from typing import Any, Literal, Unpack, get_args, get_origin, get_type_hints

import msgspec

from recallite.agents.sessions import MessageHit, Session, SessionInfo
from recallite.agents.snapshots import Snapshot
from recallite.documents.outcomes import DeletedDocument, Document
from recallite.errors import InvalidInput, InvalidItem
from recallite.memory import Memory
from recallite.model.filters import Filter, FilterFields
from recallite.model.policies import WritePolicy
from recallite.model.profiles import Profile, ProfileChoices
from recallite.model.records import Changes, Explanation, Hits, Link, OnExisting, Plain, Reached, Record
from recallite.model.reports import Audit, Forgotten, ScopeCount, Stats, TagCount
from recallite.recall.request import Mode, recall_arguments
from recallite.review.timeline import TimelineBucket, timeline
from recallite.review.version_diffs import VersionDiff, version_diffs
from recallite.store.values import Direction
from recallite.system.messages import shown

PREFIX = "/v1"
"""What the path of every operation begins with."""
SCOPE_HEADER = "Recallite-Scope"
"""The header that narrows a request to a scope of what it may see, percent-encoded."""
# What no request can carry: functions, objects of this process, and what has another form in JSON.
_LEFT_OUT = {"on_progress", "filter", "batch_size"}


class OpenedSession(Plain, frozen=True, kw_only=True):
    """A session that was opened."""

    id: str
    agent: str | None = None
    provider: str | None = None
    created_at: datetime


class BootstrapText(Plain, frozen=True, kw_only=True):
    """The text of a `Bootstrap` and its tokens; `left_out` counts the entries over the budget."""

    text: str
    tokens: int
    left_out: int = 0


class Operation:
    """One operation: `call` is the function, `method` and `path` are where it is, `returns` is the type of its value.

    `reads` says that it changes nothing, beside what recall counts.
    """

    def __init__(
        self,
        method: str,
        path: str,
        call: Callable[..., Any],
        returns: Any,
        *,
        tag: str,
        reads: bool = False,
        status: int = 200,
        name: str | None = None,
    ) -> None:
        self.method, self.path, self.call, self.returns = method, path, call, returns
        self.tag, self.reads, self.status = tag, reads, status
        self.name = name or call.__name__.strip("_")

    @property
    def in_body(self) -> bool:
        """Whether the fields that are not in the path are in a JSON object."""
        return self.method in ("POST", "PATCH")

    @cached_property
    def positional(self) -> list[str]:
        """The arguments, after the memory, that have no keyword."""
        return [p.name for p in self._parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]

    @cached_property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """The type and default (`inspect.Parameter.empty`: it has to be given) of each argument by name."""
        found: dict[str, tuple[Any, Any]] = {}
        for parameter in self._parameters:
            # Each alone: types of what is returned may be imported for type checkers only.
            hint = eval(parameter.annotation, self.call.__globals__)
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                found[parameter.name] = hint, parameter.default
            elif get_origin(hint) is Unpack:
                found |= {name: (each, None) for name, each in get_type_hints(get_args(hint)[0]).items()}
        return {name: field for name, field in found.items() if name not in _LEFT_OUT}

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return [*inspect.signature(self.call).parameters.values()][1:]

    def apply(self, memory: Memory, fields: Mapping[str, Any]) -> Any:
        """The result of the function for these arguments."""
        given = dict(fields)
        return self.call(memory, *[given.pop(name) for name in self.positional], **given)

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments of a call, by name. Raises TypeError where Python would, and InvalidInput for `filter`."""
        names = [p.name for p in self._parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
        bound = inspect.signature(self.call).bind(None, *args, **kwargs).arguments
        bound.pop(next(iter(inspect.signature(self.call).parameters)))
        found = {name: bound[name] for name in names if name in bound}
        for name, value in bound.items():
            if name not in names:
                found |= value
        for name in found.keys() - self.fields.keys():
            if found.pop(name) is not None:
                known = ", ".join(difflib.get_close_matches(name, self.fields))
                why = "cannot be sent to a server" if name in _LEFT_OUT else f"is no argument of {self.name}"
                raise InvalidInput(f"{name} {why}{f': use {known}' if known else ''}")
        return found


# ── what is not a method of Memory ─────────────────────────────────────────────────────────────────────────────


def remember_many(
    memory: Memory,
    items: Sequence[str | dict[str, Any]],
    *,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> list[str]:
    """Store memories, each a text or the fields of `remember`, all or none; returns their ids."""
    with memory.transaction():
        given = [_item(place, item) for place, item in enumerate(items)]
        return memory.remember_many(given, policy=policy, on_existing=on_existing)


def _item(place: int, item: object) -> object:
    """An item with its duration, which JSON has as text (ISO 8601)."""
    if isinstance(item, dict) and isinstance(lasting := item.get("expires_after"), str):
        try:
            return {**item, "expires_after": msgspec.convert(lasting, timedelta)}
        except msgspec.ValidationError:
            wrong = InvalidInput(f"expires_after is {shown(lasting)}: give an ISO 8601 duration, such as P30D")
            raise InvalidItem(place, 0, wrong) from None
    return item


def get_many(memory: Memory, ids: Sequence[str]) -> list[Record]:
    """The memories with these ids, in their order; those that are not visible here are absent."""
    return [*memory.get(ids).values()]


def update(memory: Memory, id: str, /, **changes: Unpack[Changes]) -> Record:
    """Change fields of a memory; a new text or context closes the old version. See `Memory.update`."""
    return memory.update(id, **changes)


def touch(memory: Memory, ids: Sequence[str], *, expires_at: datetime | str | EllipsisType | None = ...) -> int:
    """Let memories expire at another time (null: never), or without one as long after now as each lives."""
    if isinstance(expires_at, EllipsisType):
        return memory.update(ids, renew=True)
    return memory.update(ids, expires_at=expires_at)


def get_one(memory: Memory, id: str) -> Record:
    """The memory with this id."""
    return memory.get(id)


def neighbors(
    memory: Memory, id: str, *, types: Sequence[str] = (), direction: Direction = "both", limit: int | None = 100
) -> list[Link]:
    """The links of a memory, strongest first."""
    return memory.neighbors(id, types=types, direction=direction, limit=limit)


def backlinks(memory: Memory, id: str, *, types: Sequence[str] = (), limit: int | None = 100) -> list[Link]:
    """The links that lead to a memory, strongest first."""
    return memory.neighbors(id, types=types, direction="in", limit=limit)


def traverse(
    memory: Memory,
    id: str,
    *,
    depth: int = 2,
    types: Sequence[str] = (),
    direction: Direction = "both",
    limit: int | None = 100,
) -> list[Reached]:
    """The memories within `depth` links of one, nearest first, then strongest."""
    return memory.neighbors(id, types=types, direction=direction, depth=depth, limit=limit)


def purge_expired(memory: Memory, *, scope: str | None = None) -> Forgotten:
    """Purge expired memories, pinned ones too, with their versions and everything derived."""
    return memory.store.purge_expired(scope=scope)


def stats(memory: Memory) -> Stats:
    """Counts and versions, and the state of embedder, kernels and index, within the scope."""
    return memory.store.stats()


class RecallOptions(FilterFields, ProfileChoices, total=False):
    """What a request to recall has beside the query: choices of the profile and fields of a filter, by name."""

    filter: Filter | None
    mode: Mode
    profile: str | Profile | None
    relevant: bool
    diversify_by: Literal["time", "source"] | None
    token_budget: int | None


def recall(
    memory: Memory, query: str, /, *, limit: int | None = None, vector: object = None, **options: Unpack[RecallOptions]
) -> Hits:
    """The memories that answer `query`, best first. See `Memory.recall`."""
    return memory.recall(query, limit=limit, vector=vector, **recall_arguments(options))


def recall_many(
    memory: Memory,
    queries: Sequence[str],
    /,
    *,
    limit: int | None = None,
    vectors: Sequence[object] | None = None,
    **options: Unpack[RecallOptions],
) -> list[Hits]:
    """`recall` for many queries; `vectors` has one per query."""
    return memory.recall_many(queries, limit=limit, vectors=vectors, **recall_arguments(options))


def explain(
    memory: Memory,
    query: str,
    id: str,
    /,
    *,
    limit: int | None = None,
    vector: object = None,
    **options: Unpack[RecallOptions],
) -> Explanation:
    """Why a memory is, or is not, among the hits of a query: the stage that dropped it, its signals and ranks."""
    return memory.review.explain(query, id, limit=limit, vector=vector, **recall_arguments(options))


def forget_one(memory: Memory, id: str) -> Forgotten:
    """Purge a memory, with its versions, vectors and words."""
    return memory.forget(id)


def bootstrap(
    memory: Memory, agent: str | None, task: str, budget_tokens: int = 2_000, *, task_type: str | None = None
) -> BootstrapText:
    """The context that an agent needs for a task, as Markdown of at most `budget_tokens` tokens."""
    found = memory.bootstrap(agent, task, budget_tokens, task_type=task_type)
    return BootstrapText(text=found.text, tokens=found.tokens, left_out=found.left_out)


def audit(memory: Memory, checks: Sequence[str] | None = None, **fields: Unpack[FilterFields]) -> Audit:
    """Find memories that should not be stored; nothing is changed."""
    return memory.review.audit(checks, **fields)


def mend(memory: Memory, checks: Sequence[str] | None = None, **fields: Unpack[FilterFields]) -> Audit:
    """Find memories that should not be stored, and fix what needs no decision."""
    return memory.review.audit(checks, mend=True, **fields)


def diffs(memory: Memory, id: str) -> list[VersionDiff]:
    """What each version of a memory changed in the one before it, by words."""
    return version_diffs(memory.history(id, chain=False))


def open_session(
    memory: Memory, id: str | None = None, *, agent: str | None = None, provider: str | None = None
) -> OpenedSession:
    """Open the session with this id, or create it; without an id it gets a UUID."""
    return _opened(memory.sessions.open(id, agent=agent, provider=provider))


def get_session(memory: Memory, id: str, *, agent: str | None = None) -> OpenedSession:
    """The existing session with this id."""
    return _opened(memory.sessions.get(id, agent=agent))


def _opened(session: Session) -> OpenedSession:
    return OpenedSession(id=session.id, agent=session.agent, provider=session.provider, created_at=session.created_at)


def list_sessions(memory: Memory, *, agent: str | None = None, limit: int | None = None) -> list[SessionInfo]:
    """Sessions, the last used first; without an agent, those of all agents."""
    return memory.sessions.list(agent=agent, limit=limit)


def search_sessions(memory: Memory, query: str, *, agent: str | None = None, limit: int = 10) -> list[MessageHit]:
    """Messages that hold words of `query`, best first."""
    return memory.sessions.search(query, agent=agent, limit=limit)


def cleanup_sessions(memory: Memory, older_than: timedelta, *, agent: str | None = None) -> int:
    """Remove the sessions not used for longer than this; returns how many."""
    return memory.sessions.cleanup(older_than, agent=agent)


def messages(
    memory: Memory, id: str, *, agent: str | None = None, limit: int | None = None, skip_damaged: bool = False
) -> list[dict[str, Any]]:
    """The messages of a session in order, as they were given; with `limit`, the last of them."""
    return memory.sessions.get(id, agent=agent).messages(limit=limit, skip_damaged=skip_damaged)


def extend_session(
    memory: Memory,
    id: str,
    messages: Sequence[dict[str, Any]],
    *,
    agent: str | None = None,
    created_at: datetime | str | None = None,
) -> int:
    """Store messages at the end of a session, all or none; returns the position of the first."""
    return memory.sessions.get(id, agent=agent).extend(messages, created_at=created_at)


def pop_message(
    memory: Memory, id: str, *, agent: str | None = None, skip_damaged: bool = False
) -> dict[str, Any] | None:
    """Remove the last message of a session and return it; null if there is none."""
    return memory.sessions.get(id, agent=agent).pop(skip_damaged=skip_damaged)


def clear_session(memory: Memory, id: str, *, agent: str | None = None) -> int:
    """Remove every message of a session; returns how many there were."""
    return memory.sessions.get(id, agent=agent).clear()


def end_session(
    memory: Memory,
    id: str,
    *,
    agent: str | None = None,
    snapshot: bool = False,
    summary: str = "",
    key_decisions: Sequence[str] = (),
    task_ids: Sequence[str] = (),
    total_cost: float = 0.0,
    total_tokens: int = 0,
) -> Snapshot | None:
    """Remove a session and, with `snapshot`, keep a snapshot of it."""
    return memory.sessions.get(id, agent=agent).end(
        snapshot=snapshot, summary=summary, key_decisions=key_decisions, task_ids=task_ids, total_cost=total_cost,
        total_tokens=total_tokens,
    )  # fmt: skip


def list_documents(memory: Memory, *, scope: str | None = None, limit: int | None = None) -> list[Document]:
    """The documents of a scope and those below it, in the order of their sources."""
    return memory.knowledge.list(scope=scope, limit=limit)


def get_document(memory: Memory, id: str, *, scope: str = "/") -> Document:
    """The document with this id, or with this source in a scope."""
    return memory.knowledge.get(id, scope=scope)


def delete_document(memory: Memory, id: str, *, scope: str = "/") -> DeletedDocument:
    """Delete a document with its chunks and their links."""
    return memory.knowledge.delete(id, scope=scope)


def search_documents(memory: Memory, query: str, limit: int = 5, **options: Unpack[RecallOptions]) -> Hits:
    """The chunks that answer `query`, best first."""
    return memory.knowledge.search(query, limit, **recall_arguments(options))


def document_context(
    memory: Memory, query: str, budget_tokens: int = 2000, *, limit: int = 20, **options: Unpack[RecallOptions]
) -> str:
    """Passages that answer `query`, as Markdown for a prompt, within a budget of the embedder's tokens."""
    return memory.knowledge.context(query, budget_tokens, limit=limit, **recall_arguments(options))


OPERATIONS: tuple[Operation, ...] = (
    Operation("POST", "/memories", Memory.remember, Record, tag="memories", status=201),
    Operation("GET", "/memories", Memory.list, list[Record], tag="memories", reads=True),
    Operation("POST", "/memories/batch", remember_many, list[str], tag="memories", status=201),
    Operation("POST", "/memories/get", get_many, list[Record], tag="memories", reads=True),
    Operation("POST", "/memories/vectors", Memory.vectors, dict[str, list[list[float]]], tag="memories", reads=True),
    Operation("POST", "/memories/forget", Memory.forget, Forgotten, tag="memories"),
    Operation("POST", "/memories/touch", touch, int, tag="memories"),
    Operation("POST", "/memories/purge-expired", purge_expired, Forgotten, tag="memories"),
    Operation("POST", "/memories/supersede", Memory.supersede, None, tag="memories"),
    Operation("GET", "/count", Memory.count, int, tag="memories", reads=True),
    Operation("GET", "/memories/{id}", get_one, Record, tag="memories", reads=True, name="get"),
    Operation("PATCH", "/memories/{id}", update, Record, tag="memories"),
    Operation("DELETE", "/memories/{id}", forget_one, Forgotten, tag="memories"),
    Operation("GET", "/memories/{id}/history", Memory.history, list[Record], tag="memories", reads=True),
    Operation("GET", "/memories/{id}/diffs", diffs, list[VersionDiff], tag="memories", reads=True),
    Operation("GET", "/memories/{id}/neighbors", neighbors, list[Link], tag="memories", reads=True),
    Operation("GET", "/memories/{id}/backlinks", backlinks, list[Link], tag="memories", reads=True),
    Operation("GET", "/memories/{id}/traverse", traverse, list[Reached], tag="memories", reads=True),
    Operation("POST", "/memories/{id}/restore", Memory.restore, Record, tag="memories"),
    Operation("POST", "/links", Memory.link, None, tag="memories"),
    Operation("DELETE", "/links", Memory.unlink, int, tag="memories"),
    Operation("POST", "/recall", recall, Hits, tag="recall", reads=True),
    Operation("POST", "/recall/batch", recall_many, list[Hits], tag="recall", reads=True),
    Operation("POST", "/explain", explain, Explanation, tag="recall", reads=True),
    Operation("POST", "/bootstrap", bootstrap, BootstrapText, tag="recall", reads=True),
    Operation("GET", "/scopes", Memory.scopes, list[ScopeCount], tag="store", reads=True),
    Operation("GET", "/tags", Memory.tags, list[TagCount], tag="store", reads=True),
    Operation("GET", "/timeline", timeline, list[TimelineBucket], tag="store", reads=True),
    Operation("GET", "/stats", stats, Stats, tag="store", reads=True),
    Operation("POST", "/audit", audit, Audit, tag="store", reads=True),
    Operation("POST", "/audit/mend", mend, Audit, tag="store"),
    Operation("GET", "/sessions", list_sessions, list[SessionInfo], tag="sessions", reads=True),
    Operation("POST", "/sessions", open_session, OpenedSession, tag="sessions", status=201),
    Operation("POST", "/sessions/search", search_sessions, list[MessageHit], tag="sessions", reads=True),
    Operation("POST", "/sessions/cleanup", cleanup_sessions, int, tag="sessions"),
    Operation("GET", "/sessions/{id}", get_session, OpenedSession, tag="sessions", reads=True),
    Operation("GET", "/sessions/{id}/messages", messages, list[dict[str, Any]], tag="sessions", reads=True),
    Operation("POST", "/sessions/{id}/messages", extend_session, int, tag="sessions", status=201),
    Operation("DELETE", "/sessions/{id}/messages", clear_session, int, tag="sessions"),
    Operation("POST", "/sessions/{id}/pop", pop_message, dict[str, Any] | None, tag="sessions"),
    Operation("POST", "/sessions/{id}/end", end_session, Snapshot | None, tag="sessions"),
    Operation("GET", "/documents", list_documents, list[Document], tag="documents", reads=True),
    Operation("GET", "/documents/{id}", get_document, Document, tag="documents", reads=True),
    Operation("DELETE", "/documents/{id}", delete_document, DeletedDocument, tag="documents"),
    Operation("POST", "/documents/search", search_documents, Hits, tag="documents", reads=True),
    Operation("POST", "/documents/context", document_context, str, tag="documents", reads=True),
)
"""Every operation but those with raw bytes: documents to ingest, exports and imports."""
