"""Memory: the public methods. Each calls one function of `remember`, `recall`, the store or a wing above."""

from __future__ import annotations

import builtins
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack, overload

from msgspec import structs

from recallite.errors import InvalidInput, KernelError
from recallite.model import checks
from recallite.model.environment import default_path, named_key
from recallite.model.filters import Filter, FilterFields, bound_filter
from recallite.model.records import (
    DEFAULT_IMPORTANCE,
    ON_EXISTING,
    Changes,
    Expiry,
    Hits,
    Link,
    NewRecord,
    OnExisting,
    Reached,
    Record,
    RecordOrHit,
    Records,
    as_seen,
)
from recallite.model.reports import Forgotten, ScopeCount, TagCount
from recallite.model.settings import Profile, Settings, WritePolicy
from recallite.recall.request import Diversity, Mode, Purpose, RecallOptions, Request, build_request, unknown_argument
from recallite.system import plugins
from recallite.system.messages import Deferred, check_open_files, no_attribute, shown, shows_use, suggests

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.agents.bootstrap import Bootstrap
    from recallite.agents.consolidation import Consolidator
    from recallite.agents.experience import Experience
    from recallite.agents.sessions import Sessions
    from recallite.agents.tiers import Episodes, Procedures, Semantic
    from recallite.agents.working import Working
    from recallite.documents.knowledge import Knowledge
    from recallite.embedding.protocol import Embedder
    from recallite.engine import Engine
    from recallite.model.records import Direction
    from recallite.recall import pipeline
    from recallite.remember import change, pending, prepare, relations, write
    from recallite.remote import LanguageModel
    from recallite.review.memory_review import MemoryReview
    from recallite.store.store import Progress
    from recallite.system import numerics
    from recallite.transfer.memory_transfer import MemoryTransfer
    from recallite.upkeep import MemoryStore
else:  # a program that reads does not load what writes, and one that only names Memory loads no NumPy
    pipeline, numerics = Deferred("recallite.recall.pipeline"), Deferred("recallite.system.numerics")
    pending, change = Deferred("recallite.remember.pending"), Deferred("recallite.remember.change")
    relations, write = Deferred("recallite.remember.relations"), Deferred("recallite.remember.write")
    prepare = Deferred("recallite.remember.prepare")


USE = {
    "add": "remember", "add_texts": "remember_many", "add_documents": "remember_many", "upsert": "remember(id=...)",
    "search": "recall", "query": "recall", "similarity_search": "recall", "get_all": "list", "peek": "list",
    "delete": "forget", "delete_all": "forget(scope='/')", "reset": "forget(scope='/')", "stats": "store.stats",
    "backup": "store.backup", "verify": "store.verify", "export": "transfer.export", "import_": "transfer.import_",
    "explain": "review.explain", "context": "bootstrap",
}  # fmt: skip
"""Names that users of mem0, Chroma and LangChain type first, and methods of namespaces, with where they are."""

NAMESPACES = {
    "store": "recallite.upkeep:MemoryStore", "review": "recallite.review.memory_review:MemoryReview",
    "transfer": "recallite.transfer.memory_transfer:MemoryTransfer",
}  # fmt: skip
"""Where the classes of the namespaces of a memory are."""
_BLANK = NewRecord("")


def class_of(name: str) -> Any:
    """The class of a namespace, or of a service that a package registers."""
    return plugins.imported(NAMESPACES[name]) if name in NAMESPACES else plugins.load("services", name)


class Memory:
    """Long-term memory in one SQLite file, or in a schema of a PostgreSQL database.

    - path: a file, ":memory:", an address such as "postgresql://ada@db.example/agents?schema=notes" (it needs the extra
      `postgres`), or None for RECALLITE_DB or else a file in the user's data directory
    - embedder: an object with the `Embedder` protocol, or a value of `Settings.embedder`; the bundled model by default
    - language_model: an object with the `LanguageModel` protocol, or a provider and model such as "ollama/llama3.2".
      It is optional: every method works without one
    - key: encrypts a new file and opens an encrypted one. A passphrase, or "raw:" and 64 hexadecimal digits; None reads
      `Settings.key_file`. It needs apsw-sqlite3mc instead of apsw

    A Memory can be shared between threads; after fork() the child has to open its own. Its services are attributes:
    the tiers `working`, `semantic`, `episodes` and `procedures`, and `experience`, `sessions`, `consolidator` and
    `knowledge` (documents).

    Raises WrongKey if the file has another key, StoreError if the ciphers are not installed or a server
    refuses this user, and StoreUnavailable if it does not answer.
    """

    working: Working
    """A few items in RAM, which a policy evicts or promotes."""
    semantic: Semantic
    """Lasting knowledge: records of kind "memory"."""
    episodes: Episodes
    """A log of events, and snapshots of sessions."""
    procedures: Procedures
    """Named ways to do things, and their success rates."""
    sessions: Sessions
    """Conversations, stored message by message."""
    experience: Experience
    """Tools that worked for a task, and fixes of errors."""
    consolidator: Consolidator
    """Prunes episodes and extracts facts from them."""
    knowledge: Knowledge
    """Documents, searched by passage."""
    store: MemoryStore
    """Figures, checks and upkeep of the store."""
    review: MemoryReview
    """Audit, evaluation, judgement of changes, and why a memory is or is not recalled."""
    transfer: MemoryTransfer
    """Export and import."""

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
            raise InvalidInput(f"settings is {shown(settings)}: give Settings(...)")
        opened = default_path() if path is None else path
        options = settings or Settings()
        secret = named_key(options.key_file) if key is None else key
        try:
            from recallite.engine import Engine

            engine = Engine(opened, embedder, options, language_model, key=secret)
        except OSError as fault:
            check_open_files(fault)
            raise
        self._bind(engine, engine.store.confined_to or "/", owner=True)

    def _bind(self, engine: Engine, scope: str, *, owner: bool, shared: tuple[str, ...] = ()) -> None:
        self._engine, self._scope, self._owner, self._shared = engine, scope, owner, shared

    def scoped(self, scope: str, *, reads: str | Sequence[str] = ()) -> Memory:
        """A handle bound to a scope: it cannot read or write anything outside.

        Its scopes are relative: `/x` of `scoped("/a")` is `/a/x` in the file. `reads` are further scopes of this handle
        that `recall`, `get`, searches of the tiers and of `knowledge`, and those of `bootstrap` read too; nothing is
        written there. What is found in `/handbook` has the scope `//handbook`; `recall(scope="/")` reads the handle's
        own scope alone, `where={"scope": {"contains": "//handbook"}}` that one. A handle bound to a scope of this one
        reads that scope alone.
        """
        if not isinstance(scope, str):  # None would give access to everything
            raise InvalidInput(f"scope is {shown(scope)}: give the path of a scope, such as '/agents/ada'")
        handle = object.__new__(type(self))
        own = checks.join_scopes(self._scope, scope) or "/"
        also = dict.fromkeys(checks.join_scopes(self._scope, path) or "/" for path in checks.as_list(reads, "reads"))
        handle._bind(self._engine, own, owner=False, shared=() if own == "/" else tuple(also))
        return handle

    if not TYPE_CHECKING:  # the attributes of the class say which services have types

        def __getattr__(self, name: str) -> object:
            """The namespace or service of this name (see `recallite.plugin`); made once for a handle."""
            if name in NAMESPACES:
                return vars(self).setdefault(name, class_of(name)(self))
            if name.startswith("_") or name not in plugins.names("services"):
                raise no_attribute(self, name, USE)
            from recallite.plugin import engine_of

            return vars(self).setdefault(name, class_of(name)(engine_of(self)))

    def __len__(self) -> int:
        raise TypeError(f"object of type {type(self).__name__!r} has no len(): use count()")

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *NAMESPACES, *plugins.names("services")}

    # ── write ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @suggests(lambda method, name: prepare.unknown_field(method, name))
    def remember(
        self,
        text: str | NewRecord,
        *,
        scope: str = "/",
        kind: str = "memory",
        tags: Sequence[str] = (),
        importance: float = DEFAULT_IMPORTANCE,
        metadata: dict[str, Any] | None = None,
        context: str | None = None,
        source: str | None = None,
        created_at: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        expires_at: datetime | str | timedelta | None = None,
        id: str | None = None,
        on_existing: OnExisting = "error",
        policy: WritePolicy | None = None,
    ) -> Record:
        """Store one memory; when this returns, it survives power loss.

        Rarer fields (a vector, a topic, what it supersedes) are those of a `NewRecord`, which is given in place of the
        text and of all fields here. `context` is a short header (a speaker, a title) that is embedded and indexed with
        the text. Times are aware datetimes or texts, as in a `Filter`. What the text says holds from `valid_from`, else
        `created_at`. `expires_at` is a time, or how long it lives: `timedelta(days=30)` from now, and as long after
        each `update(id, renew=True)`. `policy` overrides the write policy for this call.

        `id` is one of the caller's own, any short text that no other memory of the file has; None makes a UUID. A
        memory with such an id repeats or continues no other. If the id is there already, `on_existing` "error" raises
        Conflict; "replace" gives that memory this text and all fields, those left out their defaults, and purges
        its history; "version" does the same and keeps the old text in its history. Its `created_at` stays.

        The record's `outcome` is one of:

        - "created": a new memory. Without a topic it takes that of the memory that it follows, if one was found.
        - "duplicate": a memory has this text already and is returned unchanged; nothing is stored.
        - "merged": the text became the next version of the returned memory; the old version is in its history. Times,
          text and context are new; tags, importance, metadata and source change where given; `pinned` stays set.
        - "replaced": as "merged", but the old text is purged. A pinned memory keeps its old text: it is merged. Or the
          memory of this `id` was replaced; with "version" it is "updated".
        - "skipped": the text is junk and the policy keeps it out. Nothing is stored; the record has an empty id.

        Raises InvalidInput for a bad argument and StoreError if the file cannot be written; then nothing is stored.
        """
        item = NewRecord(
            "" if isinstance(text, NewRecord) else text, scope=scope, kind=kind, tags=tags, importance=importance,
            metadata=metadata, context=context, source=source, created_at=created_at, valid_from=valid_from,
            expires_at=expires_at, id=id,
        )  # fmt: skip
        if isinstance(text, NewRecord):
            for name in item.__struct_fields__:
                if getattr(item, name) != getattr(_BLANK, name):
                    raise InvalidInput(f"{name} is given beside a NewRecord: put it into the NewRecord")
            item = text
        action = checks.check_choice(on_existing, "on_existing", ON_EXISTING)
        return self._seen(write.remember_one(self._engine, item, base=self._scope, policy=policy, on_existing=action))

    def remember_many(
        self,
        items: Iterable[object],
        *,
        batch_size: int = 2048,
        on_progress: Progress | None = None,
        policy: WritePolicy | None = None,
        on_existing: OnExisting = "error",
    ) -> list[str]:
        """Store a stream of memories (each a str, a `NewRecord`, or a mapping of its fields) and return their ids.

        Each batch is one transaction, after which `on_progress(done, total)` is called; total is None for a stream.
        `policy` is as for `remember` and sees the items before: an id can be that of a memory that an item repeats or
        continues, and is empty where the item is skipped. `on_existing` is as for `remember`, of every item with an id.
        InvalidItem names the item that stopped the stream; the batches before it are stored.
        """
        checks.check_stream(items)
        size = checks.check_count(batch_size, "batch_size")
        return write.remember_batches(
            self._engine, items, base=self._scope, batch_size=size, on_progress=on_progress, policy=policy,
            on_existing=checks.check_choice(on_existing, "on_existing", ON_EXISTING),
        )  # fmt: skip

    @overload
    def update(self, id: str, /, **changes: Unpack[Changes]) -> Record: ...  # type: ignore[overload-overlap]
    @overload
    def update(self, ids: Iterable[str], /, **expiry: Unpack[Expiry]) -> int: ...

    @shows_use("update(id, text='...')")
    def update(self, id: str | Iterable[str], /, **changes: Any) -> Record | int:
        """Change fields of a memory. A new text or context closes the old version, which `history` and `as_of` show.

        A change of the expiry alone leaves `updated_at` as it is: `expires_at` (None: never), or `renew=True`, by which
        a memory that was given a length of life expires that long after now. `expires_at` and `renew` take
        several ids as well: an id that is not here is passed over, and the number of those that are is returned.

        Raises NotFound for a single id that is not here, and InvalidInput for the text, context, metadata, scope or
        kind of a procedure: use `procedures.save`.
        """
        if not changes:
            raise InvalidInput("update was given nothing to change: e.g. update(id, text='...')")
        if not isinstance(id, str) and isinstance(id, Iterable):
            return change.change_expiry(self._engine, checks.as_list(id, "ids"), changes, base=self._scope)
        self._refuse_shared(id)
        apply = change.renew if "renew" in changes else change.update
        return self._seen(apply(self._engine, id, changes, base=self._scope))

    def supersede(
        self,
        old: str | Sequence[str],
        new: str | Sequence[str],
        *,
        reason: str | None = None,
        strength: float = 1.0,
        at: datetime | str | None = None,
    ) -> None:
        """Supersede memories with others: the new ones hold from then on, and the old ones stay in the history.

        `list` and `count` no longer show a superseded memory, and recall shows it after what superseded it;
        `history`, `as_of`, `valid_at` and `include_superseded` show it too, and `restore` undoes it. `old` and
        `new` are an id or a list of ids: each new memory supersedes each old one. `at` is the valid time from
        which the new ones hold; by default, when each begins (its valid_from, else created_at). `reason` and
        `strength` are stored on the links "supersedes" from new to old; calling again with another `reason` or
        `at` corrects them. The call is all or nothing.

        When all that supersede a memory are forgotten or have expired, it is current again; if they were superseded
        themselves, what supersedes them follows.

        Raises NotFound for an unknown id, Conflict if another memory supersedes an old one, and InvalidInput
        for a memory that would supersede itself, for a cycle, for memories of different scopes, for episodes,
        procedures and chunks of documents, and if a new one holds from before an old one began.
        """
        self._refuse_shared(old, new)
        relations.supersede(self._engine, old, new, reason=reason, strength=strength, at=at, base=self._scope)

    def restore(self, id: str, version: int | datetime | str | None = None) -> Record:
        """Make an earlier text, with its context and vectors, the newest version of a memory; nothing is lost.

        `version` is an index into `history(id, chain=False)` (-2 is the one before the current), or a time at which it
        was current, an aware datetime or ISO 8601 text. Tags, importance and the other fields do not change.

        Without `version`, make a superseded memory current again: every supersession of it is undone. Those that it
        supersedes itself stay superseded.

        Raises NotFound for an unknown id, and InvalidInput if there is no such version, if it is the current one, if
        there is nothing to undo, or for a procedure: use `procedures.save`.
        """
        self._refuse_shared(id)
        return self._seen(change.restore(self._engine, id, version, base=self._scope))

    def link(self, source: str, target: str, *, type: str = "similar", strength: float = 1.0) -> None:
        """Link two memories; recall spreads along links in both directions."""
        self._refuse_shared(source, target)
        relations.link(self._engine, source, target, type, strength, base=self._scope)

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        """Remove the links from one memory to another, of one type or all; returns how many there were.

        Links in the other direction stay. Raises NotFound for an id that is not visible here.
        """
        return relations.unlink(self._engine, source, target, type, base=self._scope)

    def forget(
        self,
        id: str | Iterable[str] | None = None,
        *,
        filter: Filter | None = None,
        missing_ok: bool = False,
        receipt: bool = False,
        chain: bool = False,
        **fields: Unpack[FilterFields],
    ) -> Forgotten:
        """Purge memories by id, or all that a filter matches, with their versions, vectors and words.

        What they surely superseded holds again, and `Forgotten.holds_again` names it; with `chain` it is purged. An id
        that is not here raises NotFound, and then nothing is purged; with `missing_ok` it is passed over.
        The filter is a `Filter`, or its fields (`FilterFields`) without as_of. A scope alone also purges the sessions,
        snapshots, experience, consolidations and working memory in it. With `receipt` the file is compacted and its
        bytes are searched for what was removed, see `Forgotten.receipt`; this takes as long as `vacuum`, and only the
        handle that opened the file can do it.
        """
        if checks.check_flag(receipt, "receipt"):
            self._engine.require_whole("forget with a receipt", owner=self._owner)
        ids: Sequence[str] = ()
        selected: Filter | None = None
        if id is not None:
            if filter is not None or any(value is not None for value in fields.values()):
                raise InvalidInput("forget takes an id or a filter, not both")
            ids = checks.as_list(id, "id")
            if not checks.check_flag(missing_ok, "missing_ok"):
                self._refuse_shared(*ids)
        else:
            filter = Filter(**fields) if filter is None else filter
            selected = bound_filter(self._scope, filter, {}, takes_as_of=False)
            if selected.blanks:
                raise InvalidInput(f"{selected.blanks[0]} is empty: leave it out, or forget would take all the rest")
            if filter.replaced(include_superseded=False, sessions=False) == Filter():
                raise InvalidInput("forget needs an id, a scope or a filter that is not empty; scope='/' is everything")
        return change.forget(
            self._engine, ids, selected, base=self._scope, missing_ok=missing_ok, receipt=receipt,
            chain=checks.check_flag(chain, "chain"),
        )  # fmt: skip

    def _refuse_shared(self, *ids: object) -> None:
        """Raise InvalidInput if one of these ids, or lists of ids, is of a scope that this handle only reads."""
        if not self._shared:
            return
        names = [name for given in ids for name in (given if isinstance(given, list | tuple) else (given,))]
        with self._engine.store.read() as reader:
            own, shared = (relations.find_row_ids(reader, names, *of) for of in ((self._scope,), self._shared))
        if foreign := [name for name in shared if name not in own]:
            raise InvalidInput(f"{foreign[0]} is of a scope that is shared with this one: it may be read, not changed")

    def transaction(self, *, embed: Iterable[object] = ()) -> AbstractContextManager[None]:
        """A transaction around several calls: all that they write is one commit, or nothing if the block raises.

            with memory.transaction(embed=[text]):
                memory.forget(old.id)
                memory.remember(text, id="profile", on_existing="replace")

        What was written is durable when the block ends. Inside it, this thread reads what it has written by id, `list`
        and `count`; recall raises InvalidInput once something was written, and works after the block. Other threads
        and processes see nothing of it until then, and wait to write. So name what it stores in `embed`, texts or items
        as `remember_many` takes them: they are embedded before it begins. One transaction inside another is part of it.
        """
        checks.check_stream(embed)
        items = [*embed]
        return write.transaction(self._engine, items, base=self._scope) if items else self._engine.transaction()

    # ── recall ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @suggests(unknown_argument)
    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        vector: object = None,
        mode: Mode = "hybrid",
        profile: str | Profile | Mapping[str, Any] | None = None,
        relevant: bool = False,
        scope: str | Sequence[str] | None = None,
        kinds: str | Sequence[str] | None = None,
        sessions: bool = False,
        tags: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        as_of: date | str | None = None,
        valid_at: date | str | None = None,
        filter: Filter | None = None,
        diversify_by: Diversity | None = None,
        token_budget: int | None = None,
        purpose: Purpose = "use",
    ) -> Hits:
        """The memories that answer `query`, any text of at most 100,000 characters; best first.

        With `sessions` the messages of sessions are found too; such a hit has the kind "session_message", the session
        as `source.id`, its place there as `source.position` and the role as `context`.

        Returns at most `limit` hits; None takes the profile's limit. `vector` is the query's float32 (dimension,);
        with it the query is not embedded here. `RecallOptions` lists the other arguments. `profile` changes how the
        hits are ranked, for this call; `filter` takes fields beyond those that are arguments.

        If the profile sets `long_query_chars`, a query of at least that length is also searched by sub-queries (see
        `Hits.sub_queries`), which a language model finds, if there is one. A query with a vector has none.

        Raises InvalidInput for a bad option.
        """
        request = build_request(
            self._scope, self._engine.settings.profile, self._shared, limit=limit, mode=mode, profile=profile,
            relevant=relevant, scope=scope, kinds=kinds, sessions=sessions, tags=tags, where=where, as_of=as_of,
            valid_at=valid_at, filter=filter, diversify_by=diversify_by, token_budget=token_budget, purpose=purpose,
        )  # fmt: skip
        return self._recall([query], None if vector is None else [vector], request)[0]

    @suggests(unknown_argument, RecallOptions.__annotations__)
    def recall_many(
        self,
        queries: Sequence[str],
        *,
        limit: int | None = None,
        vectors: Sequence[object] | None = None,
        **options: Unpack[RecallOptions],
    ) -> list[Hits]:
        """`recall` for many queries in one embedding batch and one read transaction; `vectors` has one per query.

        Queries with sub-queries are recalled one at a time.
        """
        request = build_request(self._scope, self._engine.settings.profile, self._shared, limit=limit, **options)
        return self._recall(checks.as_list(queries, "queries", single=False), vectors, request)

    def _recall(self, queries: list[str], vectors: Sequence[object] | None, request: Request) -> list[Hits]:
        try:
            answers = pipeline.recall_queries(self._engine, queries, vectors, request)
        except numerics.kernels.KernelError as refused:
            raise KernelError(str(refused)) from refused
        if self._engine.index.waiting and self._engine.comparing.failure is None:
            self._engine.may_have_uncompared = True
            pending.start_comparing(self._engine)
        if self._engine.may_have_pending and self._engine.finds_waiting():
            pending.start_embedding(self._engine)
        if self._scope != "/":
            for hits in answers:
                hits[:] = map(self._seen, hits)
        return answers

    @shows_use("bootstrap(None, task), or with the name of an agent")
    def bootstrap(
        self, agent: str | None, task: str, budget_tokens: int = 2_000, *, task_type: str | None = None
    ) -> Bootstrap:
        """The context that an agent needs for a task, as Markdown of at most `budget_tokens` tokens of the embedder.

        It has standing instructions and preferences, relevant and recent knowledge, the snapshot of the last session,
        the last episodes, procedures, and tips from experience for `task_type` (None: for any). Agent None is the
        scope of the handle.
        """
        tiers = self.semantic, self.episodes, self.procedures, self.experience
        from recallite.agents.bootstrap import bootstrap

        return bootstrap(self._engine, tiers, agent, task, budget_tokens, task_type)

    # ── read ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def get(self, id: str) -> Record: ...  # type: ignore[overload-overlap]
    @overload
    def get(self, ids: Iterable[str], /) -> dict[str, Record]: ...

    def get(self, id: str | Iterable[str]) -> Record | dict[str, Record]:
        """The memory with this id, or the memories with these ids, by id and in their order.

        Raises NotFound if no memory with a single id is visible here; of several, those are absent.
        """
        with self._engine.store.read() as reader:
            if not isinstance(id, str) and isinstance(id, Iterable):
                row_ids = relations.find_row_ids(reader, checks.as_list(id, "ids"), self._scope, *self._shared)
                records = reader.records.by_row_ids([*row_ids.values()])
                return {name: self._seen(records[row_id]) for name, row_id in row_ids.items()}
            return self._seen(reader.records.get(relations.find_row_id(reader, id, self._scope, *self._shared)))

    def list(
        self,
        *,
        filter: Filter | None = None,
        order: str = "newest",
        limit: int | None = 100,
        offset: int = 0,
        **fields: Unpack[FilterFields],
    ) -> Records:
        """Memories that a filter (a `Filter`, or its fields) matches, without those that others have surely replaced.

        `Records.left_out` counts these, and `include_superseded` lists them. What is superseded and may still hold is
        listed, with `superseded_by`.
        `order` is "newest" or "oldest", by the order of storing, "created", by `created_at`, the latest first,
        "updated", the last changed first, or "importance".
        """
        order = checks.check_choice(order, "order", ("newest", "oldest", "created", "updated", "importance"))
        bound = bound_filter(self._scope, filter, fields)
        most = None if limit is None else checks.check_count(limit, "limit")
        skipped = checks.check_count(offset, "offset", minimum=0)
        with self._engine.store.read() as reader:
            records = reader.records.find(bound, checks.now_us(), order=order, limit=most, offset=skipped)
            listed = [*map(self._seen, records)]
            return Records(listed, left_out=reader.records.count_replaced(bound, checks.now_us()))

    def count(self, *, filter: Filter | None = None, **fields: Unpack[FilterFields]) -> int:
        """The number of memories that a filter (a `Filter`, or its fields) matches, as `list` lists them.

        What was surely replaced counts only with `include_superseded`.
        """
        bound = bound_filter(self._scope, filter, fields)
        with self._engine.store.read() as reader:
            return reader.records.count(bound, checks.now_us())

    def scopes(
        self, scope: str = "/", *, depth: int | None = None, kinds: str | Sequence[str] | None = None
    ) -> builtins.list[ScopeCount]:
        """The scopes that hold memories, in `scope` and below it, by path, each with how many `count` would find in it.

        With `depth`, only that number of levels below `scope`; deeper ones count for the scope above. With `kinds`,
        memories of these kinds alone count.
        """
        most = None if depth is None else checks.check_count(depth, "depth", minimum=0)
        path = checks.join_scopes(self._scope, scope) or "/"
        with self._engine.store.read() as reader:
            counts = reader.records.count_by_scope(Filter(kinds=kinds).within(path), checks.now_us())
        above, own = ("" if prefix == "/" else prefix for prefix in (path, self._scope))
        totals: Counter[str] = Counter()
        for name, count in counts:
            levels = [level for level in name.removeprefix(above).split("/")[1:] if level]
            totals["/".join((above, *levels[:most])).removeprefix(own) or "/"] += count
        return [ScopeCount(scope=name, memories=count) for name, count in sorted(totals.items())]

    def tags(self, scope: str = "/") -> builtins.list[TagCount]:
        """The tags of the memories in `scope` and below it, by name, each with how many memories have it."""
        path = checks.join_scopes(self._scope, scope) or "/"
        with self._engine.store.read() as reader:
            counts = reader.records.count_by_tag(Filter().within(path), checks.now_us())
        return [TagCount(tag=tag, memories=count) for tag, count in sorted(counts)]

    def history(self, id: str, *, chain: bool = True) -> builtins.list[Record]:
        """Every version of a memory, oldest first; the last is the current one.

        With `chain` they are those of the memories that it supersedes, its own, and those of the memories that
        supersede it, directly or through others. Of a memory that was in other scopes, a handle that does not read
        these shows no version from before it moved.
        """
        with self._engine.store.read() as reader:
            relations.find_row_id(reader, id, self._scope)
            return [*map(self._seen, reader.records.history(id, self._scope, chain=checks.check_flag(chain, "chain")))]

    @overload
    def neighbors(
        self, id: str, *, types: Sequence[str] = (), direction: Direction = "both", limit: int | None = 100
    ) -> builtins.list[Link]: ...
    @overload
    def neighbors(
        self, id: str, *, types: Sequence[str] = (), direction: Direction = "both", depth: int, limit: int | None = 100
    ) -> builtins.list[Reached]: ...

    def neighbors(
        self, id: str, *, types: Sequence[str] = (), direction: str = "both", depth: int | None = None,
        limit: int | None = 100,
    ) -> builtins.list[Link] | builtins.list[Reached]:  # fmt: skip
        """The links of a memory, strongest first; with `depth`, the memories within that many links of it.

        `types` are the types of links (none: all), `direction` is "out", "in" or "both", and at most `limit` (None:
        all) are returned.

        With `depth` each memory comes once, nearest first, then strongest, with its distance and its strength: the
        product of the strengths along the strongest of the shortest paths. No path passes through expired memories or
        leaves the scope of this handle.

        Raises NotFound for an id that is not visible here and InvalidInput for a bad option.
        """
        names, most = checks.as_list(types, "types"), None if limit is None else checks.check_count(limit, "limit")
        if depth is None:
            return relations.neighbors(self._engine, id, names, direction, base=self._scope)[:most]
        reached = relations.traverse(self._engine, id, depth, names, direction, most, base=self._scope)
        return [structs.replace(neighbor, record=self._seen(neighbor.record)) for neighbor in reached]

    def vectors(self, ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of memories by id, float32 (parts, dimension): one unit vector for each part of a long text.

        They are those of the store's embedder; memories without one, or that are not visible here, are absent.
        """
        import numpy as np

        names = checks.as_list(ids, "ids")
        with self._engine.store.read() as reader:
            row_ids = relations.find_row_ids(reader, names, self._scope)
            active = reader.vectors.active_embedder()
            parts = {} if active is None else reader.vectors.values_of([*row_ids.values()], active)
        return {
            name: np.stack([np.frombuffer(part, dtype="<f4") for part in parts[row_id]])
            for name, row_id in row_ids.items()
            if row_id in parts
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The unit vectors that queries with these texts have, float32 (texts, dimension), by this memory's embedder.

        Raises EmbedderError for a memory without one.
        """
        from recallite.plugin import engine_of

        queries = checks.as_list(texts, "texts", single=False)
        return engine_of(self).embed([checks.check_query(text) for text in queries])

    def _seen(self, shown: RecordOrHit) -> RecordOrHit:
        """A record or hit as this handle shows it."""
        shown = self._engine.counted(shown) if isinstance(shown, Record) else shown
        return shown if self._scope == "/" else as_seen(shown, self._scope)

    # ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def path(self) -> str:
        """The file, or ":memory:"."""
        return self._engine.store.path

    @property
    def scope(self) -> str:
        """The scope in the file that this handle is bound to; "/" for the whole file."""
        return self._scope

    @property
    def settings(self) -> Settings:
        """The settings this memory was opened with."""
        return self._engine.settings

    def close(self) -> None:
        """Close the file. A second call does nothing; a scoped handle leaves the file open."""
        if self._owner:
            self._engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        scope = "" if self._scope == "/" else f", scope={self._scope!r}"
        return f"Memory({self.path!r}{scope})"
