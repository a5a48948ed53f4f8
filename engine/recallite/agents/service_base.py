"""The base of every service: an engine, and the scope of the handle that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Unpack

from msgspec import Struct, structs

from recallite.embedding.handle import Identity
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.filters import Filter, FilterFields
from recallite.model.policies import WritePolicy
from recallite.model.records import Hits, NewRecord, Record, as_seen
from recallite.plugin import EngineHandle
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request
from recallite.remember.supersession import row_id
from recallite.remember.write import remember_one
from recallite.store.values import Row
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors

S = TypeVar("S", bound=Struct)
AGENT_SCOPES = "/agents/"


class Service:
    """A service works within one scope, as the handle that it belongs to does.

    An agent's records are in the scope `/agents/<agent>` below it. Without an agent, writes go to the handle's own
    scope, and reads cover that scope and all below it, agents included.
    """

    def __init__(self, handle: EngineHandle) -> None:
        self._handle = handle
        self._engine = handle.core
        self._base = handle.scope

    def _scope(self, agent: str | None) -> str:
        """The scope of an agent in the file."""
        return checks.agent_scope(self._base, agent)

    def _seen(self, scope: str) -> str:
        """A scope of the file, relative to the handle's."""
        return scope if self._base == "/" else scope.removeprefix(self._base) or "/"

    def _agent_of(self, scope: str) -> str | None:
        """The agent whose scope this is, None for any other scope."""
        own = self._seen(scope)
        name = own.removeprefix(AGENT_SCOPES)
        return name if own.startswith(AGENT_SCOPES) and "/" not in name else None

    def _shown(self, kind: type[S], row: Any, /, **fields: Any) -> S:
        """A row as a public struct: what is not in `fields` has the row's value under the same name.

        The scope is relative to the handle's, the agent is the one with that scope, and times become datetimes.
        """
        for name in kind.__struct_fields__:
            if name == "scope":
                fields[name] = self._seen(row.scope)
            elif name == "agent":
                fields[name] = self._agent_of(row.scope)
            elif name not in fields:
                value = getattr(row, name)
                is_time = name.endswith("_at") and isinstance(value, int)
                fields[name] = checks.to_datetime(value) if is_time else value
        return kind(**fields)

    def _remember(self, agent: str | None, policy: WritePolicy, **fields: Any) -> Record:
        """Store one record in the scope of an agent."""
        scope = "/" if agent is None else AGENT_SCOPES + checks.check_agent(agent)
        item = NewRecord(scope=scope, **fields)
        stored = remember_one(self._engine, item, base=self._base, policy=policy)
        return as_seen(self._engine.counted(stored), self._base)

    def _embedded(self, scope: str, items: Iterable[NewRecord]) -> tuple[list[Row], Identity | None]:
        """Records as rows of a scope, with their vectors and the embedder of these. No transaction is open."""
        return EngineHandle(self._engine, scope).prepare(items)

    def _find(self, id: str, kind: str) -> Record:
        """The record of this id and kind; NotFound if there is none here."""
        with self._engine.store.read() as reader:
            record = reader.records.get(row_id(reader, id, self._base))
        if record.kind != kind:
            raise NotFound(f"{shown(id)} is no {kind}: its kind is {record.kind!r}")
        return as_seen(self._engine.counted(record), self._base)

    def _records(
        self,
        agent: str | None,
        kind: str,
        *,
        limit: int | None,
        order: str = "newest",
        **fields: Unpack[FilterFields],
    ) -> list[Record]:
        """Records of a kind, in order, from the scope of an agent and below."""
        fields["kinds"] = kind
        chosen = Filter(**fields).within(self._scope(agent))
        most = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            found = reader.records.find(chosen, checks.now_us(), order=order, limit=most)
            return [as_seen(self._engine.counted(record), self._base) for record in found]

    def _search(self, agent: str | None, kind: str, query: str, limit: int, options: RecallOptions) -> Hits:
        """Recall of one kind of records from the scope of an agent and below."""
        request = build_request(self._scope(agent), self._engine.settings.profile, limit=limit, **options)
        if "kinds" in options or request.filter.kinds not in (None, (kind,)):
            raise InvalidInput(f"search has no option 'kinds': it is {kind!r} here; recall takes any")
        request = structs.replace(request, filter=request.filter.replaced(kinds=(kind,)))
        with kernel_errors():
            hits = recall_queries(self._engine, [query], None, request)[0]
        hits[:] = [as_seen(hit, self._base) for hit in hits]
        return hits


def own_metadata(given: Mapping[str, Any] | None, **fields: Any) -> dict[str, Any]:
    """The caller's metadata with a service's own fields, those that are None left out; a clash is refused."""
    metadata = checks.check_metadata(given)
    for name in fields:
        if name in metadata:
            raise InvalidInput(f"metadata has the key {name!r}, which is an argument of its own: give {name}=...")
    return {**{name: value for name, value in fields.items() if value is not None}, **metadata}
