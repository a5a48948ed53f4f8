"""Memory: the public methods. Each calls one function of `remember`, `recall` or the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from recallite import checks
from recallite.engine import Engine
from recallite.environment import default_path, named_key
from recallite.errors import InvalidInput
from recallite.filters import Filter, FilterFields, bound_filter
from recallite.lookups import listed
from recallite.numerics import kernel_errors
from recallite.policies import WritePolicy
from recallite.recall import explain as explaining
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request
from recallite.records import Explanation, Hits, NewRecord, OnExisting, Record
from recallite.relations import Relations
from recallite.remember import change
from recallite.remember.pending import Progress
from recallite.remember.prepare import check_ids
from recallite.remember.supersession import row_id
from recallite.remember.write import remember_batches, remember_one
from recallite.reports import Forgotten
from recallite.services import Services
from recallite.settings import Settings
from recallite.tiers import bootstrap as bootstrapping
from recallite.tiers.bootstrap import Bootstrap
from recallite.upkeep import Upkeep

if TYPE_CHECKING:
    from recallite.embedding.protocol import Embedder
    from recallite.llm.protocol import LanguageModel


class Memory(Services, Relations, Upkeep):
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

    Raises WrongKey if the file has another key, EncryptionMissing if the ciphers are not installed, and for a server
    StoreUnreachable, StoreAccessDenied or StoreUnsupported.
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
        engine = Engine(opened, embedder, chosen, language_model, key=secret)
        self._bind(engine, engine.store.confined_to or "/", owner=True)

    def _bind(self, engine: Engine, scope: str, *, owner: bool) -> None:
        self._engine, self._scope, self._owner = engine, scope, owner

    def scoped(self, scope: str) -> Memory:
        """A handle bound to a scope: it cannot read or write anything outside.

        Its scopes are relative: `/x` of `scoped("/a")` is `/a/x` in the file.
        """
        if not isinstance(scope, str):  # None would give access to everything
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
        event_until: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        pinned: bool = False,
        vector: object = None,
        supersedes: str | Sequence[str] | None = None,
        id: str | None = None,
        on_existing: OnExisting = "error",
        indexed: bool = True,
        expires_after: timedelta | None = None,
        policy: WritePolicy | None = None,
    ) -> Record:
        """Store one memory; when this returns, it survives power loss.

        `context` is a short header (a speaker, a title) that is embedded and indexed with the text. `vector` is a
        float32 (dimension,) of the store's embedder, or (parts, dimension) for several: recall compares the best; with
        it the text is not embedded here. Times are aware datetimes or ISO 8601 texts. What the text says holds from
        `event_at`, else `created_at`, until before `event_until`. `supersedes` are the ids of memories in whose place
        this one stands: see `supersede`, whose refusals are raised here too. `policy` overrides the write policy for
        this call.

        `id` is one of the caller's own, any short text that no other memory of the file has; None makes a UUID. A
        memory with such an id repeats or continues no other. If the id is there already, `on_existing` "error" raises
        AlreadyExists; "replace" gives that memory this text and all fields, those left out their defaults, and purges
        its history; "version" does the same and keeps the old text in its history. Its `created_at` stays.

        With `indexed=False` the memory is stored, read by id and listed, but is in no recall. With `expires_after` it
        expires so long after now, and as long after each `touch`.

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
            text=text, scope=scope, kind=kind, tags=checks.check_tags(tags), importance=importance, metadata=metadata,
            context=context, topic=topic, source=source, position=position, created_at=created_at, event_at=event_at,
            event_until=event_until, expires_at=expires_at, pinned=pinned, vector=vector,
            supersedes=check_ids(supersedes, "supersedes"), id=id, indexed=indexed,
            expires_after=expires_after,
        )  # fmt: skip
        chosen = _check_on_existing(on_existing)
        return self._seen(remember_one(self._engine, item, base=self._scope, policy=policy, on_existing=chosen))

    def remember_many(
        self,
        items: Iterable[object],
        *,
        batch_size: int = 2048,
        on_progress: Progress | None = None,
        policy: WritePolicy | None = None,
        on_existing: OnExisting = "error",
    ) -> list[str]:
        """Store a stream of memories (str, dict of `remember`'s arguments, or NewRecord) and return their ids.

        Each batch is one transaction, after which `on_progress(done, total)` is called; total is None for a stream.
        `policy` is as for `remember` and sees the items before: an id can be that of a memory that an item repeats or
        continues, and is empty where the item is skipped. `on_existing` is as for `remember`, of every item with an id.
        InvalidItem names the item that stopped the stream; the batches before it are stored.
        """
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise InvalidInput(f"items is {checks.shown(items)}: give a list or a stream of memories")
        size = checks.check_count(batch_size, "batch_size")
        return remember_batches(
            self._engine, items, base=self._scope, batch_size=size, on_progress=on_progress, policy=policy,
            on_existing=_check_on_existing(on_existing),
        )  # fmt: skip

    def update(self, /, id: str, **changes: Any) -> Record:
        """Change fields of a memory. A new text or context closes the old version, which `history` and `as_of` show.

        Raises InvalidInput for the text, context, metadata, scope or kind of a procedure: use `procedures.save`.
        """
        if not changes:
            raise InvalidInput("update was given nothing to change: e.g. update(id, text='...')")
        return self._seen(change.update(self._engine, id, changes, base=self._scope))

    def touch(self, ids: str | Iterable[str], *, expires_at: datetime | str | EllipsisType | None = ...) -> int:
        """Let memories live longer: those with `expires_after` expire so long after now.

        With `expires_at` all of them expire then, or (None) never. Nothing else about them changes: `updated_at` stays,
        and no version is made. An id that is not here is passed over; returns how many are here.
        """
        slide = isinstance(expires_at, EllipsisType)
        moment = None if slide else checks.check_time(expires_at, "expires_at")
        return change.touch(self._engine, listed(ids, "ids"), moment, slide=slide, base=self._scope)

    def purge_expired(self, *, scope: str | None = None) -> Forgotten:
        """Purge expired memories, pinned ones too, with their versions and everything derived.

        Until then they stay in the file: recall, list and count do not show them, `get` and `history` do.
        """
        return change.purge_expired(self._engine, scope=checks.join_scopes(self._scope, scope))

    def forget(
        self,
        id: str | Iterable[str] | None = None,
        *,
        filter: Filter | None = None,
        missing_ok: bool = False,
        receipt: bool = False,
        **fields: Unpack[FilterFields],
    ) -> Forgotten:
        """Purge memories by id, or all that a filter matches, with their versions, vectors and words.

        An id that is not here raises NotFound, and then nothing is purged; with `missing_ok` it is passed over.
        The filter is a `Filter`, or its fields (`FilterFields`) without as_of. A scope alone also purges the sessions,
        snapshots, experience, consolidations and working memory in it. With `receipt` the file is compacted and its
        bytes are searched for what was removed, see `Forgotten.receipt`; this takes as long as `vacuum`, and only the
        handle that opened the file can do it.
        """
        if checks.check_flag(receipt, "receipt"):
            self._whole("forget with a receipt")
        if id is not None:
            if filter is not None or any(value is not None for value in fields.values()):
                raise InvalidInput("forget takes an id or a filter, not both")
            ids, skip = listed(id, "id"), checks.check_flag(missing_ok, "missing_ok")
            return change.forget(self._engine, ids, None, base=self._scope, missing_ok=skip, receipt=receipt)
        if filter is None:
            filter = Filter(**fields)
        chosen = bound_filter(self._scope, filter, {}, takes_as_of=False)
        if chosen.blanks:
            raise InvalidInput(f"{chosen.blanks[0]} is empty: leave it out, or forget would take all the rest")
        if filter.replaced(include_superseded=False) == Filter():
            raise InvalidInput("forget needs an id, a scope or a filter that is not empty; scope='/' is everything")
        return change.forget(self._engine, [], chosen, base=self._scope, receipt=receipt)

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction around several calls: all that they write is one commit, or nothing if the block raises.

            with memory.transaction():
                memory.forget(old.id)
                memory.remember(text, id="profile", on_existing="replace")

        What was written is durable when the block ends. Inside it, this thread reads what it has written by id, `list`
        and `count`; recall raises InvalidInput once something was written, and works after the block. Other threads
        and processes see nothing of it until then, and wait to write: embed long texts before, or keep it short. One
        transaction inside another is part of it.
        """
        return self._engine.store.transaction()

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
        """The memories that answer `query`, any text of at most 100,000 characters; best first.

        Returns at most `limit` hits; None takes the profile's limit. `vector` is the query's float32 (dimension,);
        with it the query is not embedded here. `RecallOptions` lists the options: `mode`, `profile` and others, a
        `filter` or its fields (such as `scope` and `where`), and any field of the profile (such as `spread=0`).

        If the profile sets `long_query_chars`, a query of at least that length is also searched by sub-queries (see
        `Hits.sub_queries`), which a language model finds, if there is one. A query with a vector has none.

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
        """`recall` for many queries in one embedding batch and one read transaction; `vectors` has one per query.

        Queries with sub-queries are recalled one at a time.
        """
        return self._recall(listed(queries, "queries", single=False), vectors, limit, options)

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

        If a language model finds sub-queries, it is asked again.
        """
        request = build_request(self._scope, self.settings.profile, limit=limit, **options)
        with self._engine.store.read() as reader:
            record_id = row_id(reader, id, self._scope)
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
        """The context that an agent needs for a task, as Markdown of at most `budget_tokens` tokens of the embedder.

        It has standing instructions and preferences, relevant and recent knowledge, the snapshot of the last session,
        the last episodes, procedures, and tips from experience for `task_type` (None: for any). Agent None is the
        scope of the handle.
        """
        tiers = self.semantic, self.episodes, self.procedures, self.experience
        return bootstrapping.bootstrap(self._engine, tiers, agent, task, budget_tokens, task_type)

    # ── the file ───────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the file. A second call does nothing; a scoped handle leaves the file open."""
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


def _check_on_existing(value: object) -> OnExisting:
    return checks.check_choice(value, "on_existing", ("error", "replace", "version"))  # type: ignore[return-value]
