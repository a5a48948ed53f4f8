"""Memory: the engine's verbs. Each delegates to one function of `remember`, `recall` or `store`."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from msgspec import structs

from recollect import checks
from recollect.engine import Engine
from recollect.environment import default_path, named_key
from recollect.errors import InvalidInput
from recollect.filters import Filter, FilterFields, bound_filter
from recollect.numerics import kernel_errors
from recollect.policies import WritePolicy
from recollect.recall import explain as explaining
from recollect.recall.pipeline import recall_queries
from recollect.recall.request import RecallOptions, build_request
from recollect.records import Explanation, Hits, Link, NewRecord, Reached, Record, Shown, as_seen
from recollect.remember import change
from recollect.remember import links as linking
from recollect.remember.change import row_id
from recollect.remember.pending import Progress
from recollect.remember.prepare import check_flag
from recollect.remember.write import remember_batches, remember_one
from recollect.reports import Forgotten
from recollect.services import Services
from recollect.settings import Settings
from recollect.store import reading
from recollect.tiers import bootstrap as bootstrapping
from recollect.tiers.bootstrap import Bootstrap
from recollect.upkeep import Upkeep

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel

__all__ = ["Memory"]


class Memory(Services, Upkeep):
    """Long-term memory in one SQLite file.

    `path` is a file, ":memory:", or None for the user's data directory (or RECOLLECT_DB). `embedder` is any object
    with the `Embedder` protocol, or what `Settings.embedder` may name; by default the bundled model. `language_model`
    is any object with the `LanguageModel` protocol, or a model with its provider before its name, as "ollama/llama3.2";
    without one everything works, as each verb says. A Memory may be
    used from many threads; after fork() the child opens its own.

    `key` encrypts a new file and opens one that is encrypted: a passphrase, or "raw:" and 64 hexadecimal digits, 32
    random bytes; None is what `Settings.key_file` says. It needs apsw-sqlite3mc in place of apsw. Raises WrongKey where
    the key is not the file's, and EncryptionMissing where the ciphers are not installed.

    Services are attributes: the tiers `working`, `semantic`, `episodes` and `procedures`, and `experience`, `sessions`,
    `consolidator` and `knowledge`, the documents.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedder: Embedder | str | None = None,
        settings: Settings | None = None,
        language_model: LanguageModel | str | None = None,
        key: str | None = None,
    ) -> None:
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidInput(f"settings is {checks.shown(settings)}: give Settings(...)")
        opened = default_path() if path is None else path
        chosen = settings or Settings()
        secret = named_key(chosen.key_file) if key is None else key
        self._bind(Engine(opened, embedder, chosen, language_model, key=secret), "/", owner=True)

    def _bind(self, engine: Engine, scope: str, *, owner: bool) -> None:
        self._engine, self._scope, self._owner = engine, scope, owner

    def scoped(self, scope: str) -> Memory:
        """The memory bound to a scope: nothing outside it can be read or written through the handle.

        Scopes given to and shown by the handle are within its own: `/x` of `scoped("/a")` is the file's `/a/x`.
        """
        if not isinstance(scope, str):  # None, as of a user without a scope, would be all there is
            raise InvalidInput(f"scope is {checks.shown(scope)}: give the path of a scope, such as '/agents/ada'")
        handle = object.__new__(type(self))
        handle._bind(self._engine, checks.join_scopes(self._scope, scope) or "/", owner=False)
        return handle

    # ── write ──────────────────────────────────────────────────────────────────────────────────────────────────

    def remember(
        self,
        text: str,
        *,
        scope: str = "/",
        kind: str = "memory",
        tags: Sequence[str] = (),
        importance: float = 0.5,
        metadata: dict[str, Any] | None = None,
        context: str | None = None,
        topic: str | None = None,
        source: str | None = None,
        position: int | None = None,
        created_at: datetime | str | None = None,
        event_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        pinned: bool = False,
        vector: object = None,
        policy: WritePolicy | None = None,
    ) -> Record:
        """Store one memory; when this returns, it survives power loss.

        `context` is a short header (a speaker, a title) that is embedded and indexed with the text. `vector` is a
        float32 (dimension,) of the store's embedder, instead of embedding the text here. Times are aware datetimes
        or ISO 8601 text. `policy` says for this call what writing does besides storing; the record's `outcome` says
        what it did:

        - "duplicate": a memory says it already and is returned as it stands; nothing is stored.
        - "merged": the text is the next version of the memory that is returned, the old one is in its history. Times,
          text and context are the new ones; tags, importance, metadata and source are the new ones where given, else
          they stay; `pinned` stays once set.
        - "replaced": the same, and nothing of the old text is left. A pinned memory's text is kept: it is merged into.
        - "created": it is a memory of its own; without a topic given it has that of the memory it was found to follow.

        Raises InvalidInput for a bad argument and StoreError if the file cannot be written; nothing is stored then.
        """
        item = NewRecord(
            text=text, scope=scope, kind=kind, tags=checks.check_tags(tags), importance=importance,
            metadata=metadata, context=context,
            topic=topic, source=source, position=position, created_at=created_at, event_at=event_at,
            expires_at=expires_at, pinned=pinned, vector=vector,
        )  # fmt: skip
        return self._seen(remember_one(self._engine, item, base=self._scope, policy=policy))

    def remember_many(
        self,
        items: Iterable[object],
        *,
        batch_size: int = 2048,
        on_progress: Progress | None = None,
        policy: WritePolicy | None = None,
    ) -> list[str]:
        """Store a stream of memories (str, dict of `remember`'s arguments, or NewRecord) and return their ids.

        Each batch is one transaction; `on_progress(done, total)` is called after it, total None for a stream.
        InvalidItem names the item that stopped it; the batches before it stay. `policy` is as for `remember`, every
        item seeing those before it: an id may be that of the memory that an item repeats or continues.
        """
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise InvalidInput(f"items is {checks.shown(items)}: give a list or a stream of memories")
        size = checks.check_count(batch_size, "batch_size")
        return remember_batches(
            self._engine, items, base=self._scope, batch_size=size, on_progress=on_progress, policy=policy
        )

    def update(self, /, id: str, **changes: Any) -> Record:
        """Change fields of a memory. A new text or context closes the old version, which `history` and `as_of` keep.

        InvalidInput for what makes a procedure (text, context, metadata, scope, kind): `procedures.save` changes that.
        """
        if not changes:
            raise InvalidInput("update was given nothing to change: e.g. update(id, text='...')")
        return self._seen(change.update(self._engine, id, changes, base=self._scope))

    def restore(self, id: str, version: int | datetime | str) -> Record:
        """Make an earlier text, with its context, the newest version of a memory; nothing is lost.

        `version` is a place in `history(id)`, from 0 (-2 is the one before what stands), or a time (an aware datetime
        or ISO 8601 text) at which it stood. Its vectors come along; tags, importance and the rest stay as they are.

        Raises NotFound for an unknown id, and InvalidInput where there is no such version, it stands already, or it is
        of a procedure, which `procedures.save` changes.
        """
        return self._seen(change.restore(self._engine, id, version, base=self._scope))

    def purge_expired(self, *, scope: str | None = None) -> Forgotten:
        """Purge the memories that have expired, pinned or not, with their versions and everything derived.

        Until then they stay in the file: no recall, list or count shows them, `get` and `history` do.
        """
        return change.purge_expired(self._engine, scope=checks.join_scopes(self._scope, scope))

    def forget(
        self,
        id: str | Iterable[str] | None = None,
        *,
        filter: Filter | None = None,
        receipt: bool = False,
        **fields: Unpack[FilterFields],
    ) -> Forgotten:
        """Purge memories by id, or all that a filter matches, with their versions, vectors and words.

        The filter is a `Filter`, or its fields (`FilterFields`) but as_of. A scope and nothing else forgets all of it:
        its sessions, snapshots, experience, cycles and working memory too.
        With `receipt` the file is compacted too, its WAL emptied, and every byte of its files searched for what was
        removed; `Forgotten.receipt` says what went and what was found. That takes as long as `vacuum`, and only the
        handle that opened the file can ask for it.
        """
        if check_flag(receipt, "receipt"):
            self._whole("forget with a receipt")
        if id is not None:
            if filter is not None or any(value is not None for value in fields.values()):
                raise InvalidInput("forget takes an id or a filter, not both")
            return change.forget(self._engine, _listed(id, "id"), None, base=self._scope, receipt=receipt)
        if filter is None:
            filter = Filter(**fields)
        chosen = bound_filter(self._scope, filter, {}, takes_as_of=False)
        if chosen.blanks:
            raise InvalidInput(f"{chosen.blanks[0]} is empty: leave it out, or forget would take all the rest")
        if filter == Filter():
            raise InvalidInput("forget needs an id, a scope or a filter that is not empty; scope='/' is everything")
        return change.forget(self._engine, [], chosen, base=self._scope, receipt=receipt)

    def link(self, source: str, target: str, *, type: str = "similar", strength: float = 1.0) -> None:
        """Link two memories; recall spreads along links in both directions."""
        linking.link(self._engine, source, target, type, strength, base=self._scope)

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        """Remove the links from one memory to another, of one type or of all; returns how many there were.

        A link the other way round stays. Raises NotFound for an id that this scope may not see.
        """
        return linking.unlink(self._engine, source, target, type, base=self._scope)

    # ── recall ─────────────────────────────────────────────────────────────────────────────────────────────────

    def recall(
        self,
        /,
        query: str,
        *,
        limit: int | None = None,
        vector: object = None,
        **options: Unpack[RecallOptions],
    ) -> Hits:
        """The memories that answer `query`, best first. Any text of at most 100,000 characters is a query.

        `limit` hits at most, None for the profile's own. `vector` is the query's own float32 (dimension,), instead of
        embedding it here. `RecallOptions` lists the options: `mode`, `profile` and others, a filter (`filter`, or its
        fields such as `scope` and `where`), and any choice of the profile for this call, such as `spread=0`.

        A query of at least `long_query_chars` characters, where that is set, is also searched by sub-queries (see
        `Hits.sub_queries`). A language model, if there is one, finds them; a query with its own vector has none.

        Raises InvalidInput for a bad option.
        """
        return self._recall([query], None if vector is None else [vector], limit, options)[0]

    def recall_many(
        self,
        /,
        queries: Sequence[str],
        *,
        limit: int | None = None,
        vectors: Sequence[object] | None = None,
        **options: Unpack[RecallOptions],
    ) -> list[Hits]:
        """`recall` for many queries: one embedding batch, one read transaction; `vectors` has one a query.

        Questions that are searched in parts are recalled one by one.
        """
        return self._recall(_listed(queries, "queries", single=False), vectors, limit, options)

    def explain(
        self,
        /,
        query: str,
        id: str,
        *,
        limit: int | None = None,
        vector: object = None,
        **options: Unpack[RecallOptions],
    ) -> Explanation:
        """Why a memory is, or is not, among the hits of a query: the stage that dropped it, its signals and ranks.

        Where a language model splits the question it is asked again.
        """
        request = build_request(self._scope, self.settings.profile, limit=limit, **options)
        with self._engine.store.read() as connection:
            record_id = row_id(connection, id, self._scope)
        return explaining.explain(self._engine, query, None if vector is None else [vector], id, record_id, request)

    def _recall(
        self, queries: list[str], vectors: Sequence[object] | None, limit: int | None, options: RecallOptions
    ) -> list[Hits]:
        request = build_request(self._scope, self.settings.profile, limit=limit, **options)
        with kernel_errors():
            found = recall_queries(self._engine, queries, vectors, request)
        if self._scope != "/":
            for hits in found:
                hits[:] = map(self._seen, hits)
        return found

    def bootstrap(
        self, agent: str | None, task: str, budget_tokens: int = 2_000, *, task_type: str | None = None
    ) -> Bootstrap:
        """What an agent should have in mind for a task, as Markdown of at most `budget_tokens` tokens of the embedder.

        It holds relevant and recent knowledge, the last session's snapshot, the last episodes, procedures, and tips
        of experience for `task_type` (None: for any). Agent None is the handle's own scope.
        """
        tiers = self.semantic, self.episodes, self.procedures, self.experience
        return bootstrapping.bootstrap(self._engine, tiers, agent, task, budget_tokens, task_type)

    # ── read ───────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, id: str) -> Record:
        """The memory with this id; NotFound if there is none, or none that this scope may see."""
        with self._engine.store.read() as connection:
            record_id = row_id(connection, id, self._scope)
            record = reading.record(connection, record_id)
        return self._seen(record)

    def list(
        self,
        *,
        filter: Filter | None = None,
        order: str = "newest",
        limit: int | None = 100,
        offset: int = 0,
        **fields: Unpack[FilterFields],
    ) -> builtins.list[Record]:
        """Memories in order ("newest", "oldest", "importance") that a filter matches: a `Filter`, or its fields."""
        order = checks.check_choice(order, "order", ("newest", "oldest", "importance"))
        chosen = bound_filter(self._scope, filter, fields)
        most = None if limit is None else checks.check_count(limit, "limit")
        skipped = checks.check_count(offset, "offset", minimum=0)
        with self._engine.store.read() as connection:
            found = reading.records(connection, chosen, checks.now_us(), order=order, limit=most, offset=skipped)
            return [*map(self._seen, found)]

    def count(self, *, filter: Filter | None = None, **fields: Unpack[FilterFields]) -> int:
        """How many memories a filter matches: a `Filter`, or its fields."""
        chosen = bound_filter(self._scope, filter, fields)
        with self._engine.store.read() as connection:
            return reading.count(connection, chosen, checks.now_us())

    def history(self, id: str) -> builtins.list[Record]:
        """Every version of a memory, oldest first; the last is the one that stands."""
        with self._engine.store.read() as connection:
            row_id(connection, id, self._scope)
            return [*map(self._seen, reading.history(connection, id))]

    def neighbors(self, id: str, *, types: Sequence[str] = (), direction: str = "both") -> builtins.list[Link]:
        """The links of a memory, strongest first; direction "out", "in" or "both"."""
        return linking.neighbors(self._engine, id, _listed(types, "types"), direction, base=self._scope)

    def backlinks(self, id: str, *, types: Sequence[str] = ()) -> builtins.list[Link]:
        """The links that lead to a memory, strongest first: `neighbors` with direction "in"."""
        return linking.neighbors(self._engine, id, _listed(types, "types"), "in", base=self._scope)

    def traverse(
        self,
        id: str,
        *,
        depth: int = 2,
        types: Sequence[str] = (),
        direction: str = "both",
        limit: int | None = 100,
    ) -> builtins.list[Reached]:
        """The memories that at most `depth` links lead to from one, each once, nearest first, then strongest.

        `direction` is "out", "in" or "both"; links of `types`, or of all. Each comes with its distance and the
        product of the strengths on the strongest of the shortest ways. No way passes through what has expired or
        stands outside this handle's scope. `limit` cuts the list; None is all.

        Raises NotFound for an id that this scope may not see and InvalidInput for a bad option.
        """
        found = linking.traverse(self._engine, id, depth, _listed(types, "types"), direction, limit, base=self._scope)
        return [structs.replace(each, record=self._seen(each.record)) for each in found]

    # ── the file ───────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the file. Again, it does nothing; a scoped handle leaves it open."""
        if self._owner:
            self._engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        scope = "" if self._scope == "/" else f", scope={self._scope!r}"
        return f"Memory({self.path!r}{scope})"

    def _seen(self, shown: Shown) -> Shown:
        """A record or hit as this handle shows it."""
        return as_seen(self._engine.counted(shown) if isinstance(shown, Record) else shown, self._scope)


def _listed(values: object, name: str, *, single: bool = True) -> builtins.list[str]:
    """A list of str; a lone str becomes one where `single` allows it."""
    if isinstance(values, str) and single:
        return [values]
    return checks.check_list(values, name)
