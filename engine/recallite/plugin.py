"""Interface for packages that extend Recallite.

A package registers what it adds as entry points, as Recallite does in its own pyproject.toml:

| group | an entry point is |
|---|---|
| `recallite.stores` | a `Scheme`, named by the scheme of the addresses that it opens |
| `recallite.embedders` | a function `() -> Embedder`, named as `Settings.embedder` names it |
| `recallite.importers` | a `Source`, named as `import --from` names it |
| `recallite.exporters` | a `Target`, named as `export --to` names it |
| `recallite.services` | a class made with an `EngineHandle`, an attribute of `Memory`; `Async…` beside it is its twin |
| `recallite.commands` | a `click.Command`, or a function with annotations like those in `recallite_cli` |
| `recallite.operations` | an `OperationSet`: methods, with their requests, commands and tools for models |
| `recallite.profiles` | a `Profile` that ranks as another system does |

`recallite.functions` is Recallite's own: what its core calls and a package beside it has, such as `evaluate`.

Nothing is imported before it is named or listed; what cannot be imported is left out of lists with a `PluginWarning`.
`engine_of(memory)` gives what a memory is made of, within its scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec import Struct, structs

from recallite.engine import Engine
from recallite.errors import Conflict, InvalidInput, RecalliteError
from recallite.model import checks
from recallite.model.filters import MESSAGE_KIND, Filter, bound_filter
from recallite.model.records import Hits, NewRecord, as_seen
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request
from recallite.remember.embed import embed_rows, identity_for, insert_rows
from recallite.remember.pending import start_embedding
from recallite.remember.prepare import Arguments, prepare_all
from recallite.remember.relations import RowRefused
from recallite.store.columns import Row
from recallite.store.store import Store
from recallite.store.transaction import Reader, Writer
from recallite.system.messages import no_attribute, shown
from recallite.system.numerics import kernel_errors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.embedding.handle import Identity
    from recallite.index.memory_index import MemoryIndex
    from recallite.memory import Memory
    from recallite.model.settings import Settings


class EngineHandle:
    """The engine of a memory, and the scope within which the handle that it was taken from works.

    `core` is the engine itself; what is not a method here may change with any version.
    """

    def __init__(self, core: Engine, scope: str, *, owner: bool = False, shared: tuple[str, ...] = ()) -> None:
        self.core = core
        self.scope = scope
        self.shared = shared
        """Further scopes that the handle only reads, absolute paths."""
        self._owner = owner

    @property
    def settings(self) -> Settings:
        """The settings that the memory was opened with."""
        return self.core.settings

    @property
    def store(self) -> Store:
        """The store: a file or a schema of a server, whole."""
        return self.core.store

    def whole(self, verb: str) -> EngineHandle:
        """Return this handle for what works on the whole store; `verb` names it in the errors.

        Raises InvalidInput if the handle is scoped, StoreError if the role that opened the memory is a tenant.
        """
        self.core.require_whole(verb, owner=self._owner)
        return self

    def read(self) -> AbstractContextManager[Reader]:
        """A read transaction: all that is read in it is of one commit."""
        return self.core.store.read()

    def write(self, locks: Sequence[str] | None = None) -> AbstractContextManager[Writer]:
        """A write transaction, durable when its block ends and undone if it raises; `locks`: see `Store.atomic`."""
        return self.core.atomic(locks)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The unit vectors that queries with these texts have, float32 (texts, dimension). Raises EmbedderError."""
        import numpy as np

        vectors = [embedded.vector for embedded in self.core.embedder.queries(list(texts))]
        return np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    def prepare(self, items: Iterable[NewRecord]) -> tuple[list[Row], Identity | None]:
        """Rows of the scope with their vectors, for `insert`, and the embedder of these; None without rows.

        Call it outside a transaction: texts are embedded. Raises InvalidInput for a bad item, and the errors of the
        embedder.
        """
        rows = prepare_all(
            Arguments(list(items)), base=self.scope, max_text_chars=self.settings.max_text_chars,
            policy=self.settings.write_policy,
        )[:]  # fmt: skip
        if not rows:
            return [], None
        identity = identity_for(self.core, None)
        embed_rows(self.core.embedder, rows, [None] * len(rows), identity)
        return rows, identity

    def insert(self, writer: Writer, rows: Sequence[Row], identity: Identity | None) -> list[int]:
        """Insert what `prepare` returned, in a transaction of `write`, and return the row ids.

        Each row becomes a record, whatever it resembles: what `WritePolicy` says of duplicates, merging and links is
        for `Memory.remember_many`. Raises Conflict for an id that is taken, and Conflict or NotFound for
        what a row is to supersede.
        """
        named = [row.public_id for row in rows if row.named]
        taken = {*writer.records.find_ids(named, "/"), *(id for id, times in Counter(named).items() if times > 1)}
        if taken:
            raise Conflict(f"the id {shown(min(taken))} is taken by another memory: give another")
        try:
            ids = insert_rows(writer, rows, identity)
        except RowRefused as refused:
            raise refused.error from None
        if any(row.pending for row in rows):
            self.core.may_have_pending = True
        return ids

    @contextmanager
    def index(self, reader: Reader) -> Iterator[MemoryIndex]:
        """The index in memory, at the commit of `reader`; it does not change inside the block."""
        with self.core.index.current(reader):
            yield self.core.index

    def within(self, filter: Filter | None, fields: Mapping[str, Any] | None = None, **options: Any) -> Filter:
        """A filter, or its fields, confined to the scope. Raises InvalidInput."""
        return bound_filter(self.scope, filter, dict(fields or {}), **options)


def engine_of(memory: Memory) -> EngineHandle:
    """The engine of a memory, within its scope."""
    return EngineHandle(memory._engine, memory._scope, owner=memory._owner, shared=memory._shared)


# The base of every service: an engine, and the scope of the handle that it belongs to.

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
