"""The base of every service: an engine, and the scope of the handle that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec import Struct, structs

from recallite.errors import InvalidInput, RecalliteError
from recallite.model import checks
from recallite.model.filters import MESSAGE_KIND
from recallite.model.records import Hits, as_seen
from recallite.plugin import EngineHandle
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request
from recallite.remember.pending import start_embedding
from recallite.system.messages import no_attribute
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

    # Names that users of others type first, with ours.
    _use: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise no_attribute(self, name, self._use)

    def _scope(self, agent: str | None) -> str:
        return (
            checks.join_scopes(self._base, None if agent is None else AGENT_SCOPES + checks.check_agent(agent)) or "/"
        )

    def _relative(self, scope: str) -> str:
        return scope if self._base == "/" else scope.removeprefix(self._base) or "/"

    def _agent_of(self, scope: str) -> str | None:
        """Return the agent whose scope this is; None for any other scope."""
        relative = self._relative(scope)
        name = relative.removeprefix(AGENT_SCOPES)
        return name if relative.startswith(AGENT_SCOPES) and "/" not in name else None

    def _to_public(self, kind: type[S], row: Any, /, **fields: Any) -> S:
        """Return a row as a public struct, with its values for all fields that are not in `fields`.

        The scope is relative to the handle's, the agent is the one with that scope, and times become datetimes.
        """
        for name in kind.__struct_fields__:
            if name == "scope":
                fields[name] = self._relative(row.scope)
            elif name == "agent":
                fields[name] = self._agent_of(row.scope)
            elif name not in fields:
                value = getattr(row, name)
                is_time = name.endswith("_at") and isinstance(value, int)
                fields[name] = checks.to_datetime(value) if is_time else value
        return kind(**fields)

    def _token_counter(self) -> Callable[[list[str]], list[int]]:
        """Return a counter of the tokens of texts; without an embedder a token is counted as four characters."""
        if self._engine.embedder.enabled:
            with suppress(RecalliteError):
                self._engine.embedder.get()
        return self._engine.embedder.count_tokens

    def _recall(self, agent: str | None, kind: str, query: str, limit: int, options: RecallOptions) -> Hits:
        """Recall records of one kind from the scope of an agent and below, and without one from those only read."""
        shared = self._handle.shared if agent is None else ()
        request = build_request(self._scope(agent), self._engine.settings.profile, shared, limit=limit, **options)
        if "kinds" in options or request.filter.kinds not in (None, (kind,)):
            raise InvalidInput(f"search has no option 'kinds': it is {kind!r} here; recall takes any")
        request = structs.replace(request, filter=request.filter.replaced(kinds=(kind,), sessions=kind == MESSAGE_KIND))
        with kernel_errors():
            hits = recall_queries(self._engine, [query], None, request)[0]
        if self._engine.may_have_pending and self._engine.finds_waiting():
            start_embedding(self._engine)
        hits[:] = [as_seen(hit, self._base) for hit in hits]
        return hits
