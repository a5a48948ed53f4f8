"""Tiers of memory: the records of one kind each, with fields of its own in their metadata.

Semantic memory is long-lived knowledge, procedural memory how things are done and how often that worked, and episodic
memory a log of what an agent did and saw. Working memory, in RAM, is in `working.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, Unpack

import msgspec
from msgspec import Struct, structs

from recallite.agents.consolidation import Consolidator
from recallite.agents.sessions import Snapshot, SnapshotFields, SnapshotService, check_messages, snapshot_columns
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.filters import Filter, FilterFields
from recallite.model.records import DEFAULT_IMPORTANCE, Hits, NewRecord, Record, RecordFields, as_seen
from recallite.model.settings import WritePolicy
from recallite.plugin import AGENT_SCOPES, Service
from recallite.recall.request import RecallOptions
from recallite.remember.embed import embedder_of, insert_rows
from recallite.remember.prepare import check_ids
from recallite.remember.relations import check_speaker, find_row_id
from recallite.remember.write import remember_one
from recallite.store.transaction import Reader
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown

Item = TypeVar("Item")
Check: TypeAlias = Callable[[Any, str], Any]


class Tier(Service, Generic[Item]):
    """Records of one kind: `_checks` are those of its own fields, `_items` shows its records."""

    _kind: ClassVar[str]
    _checks: ClassVar[Mapping[str, Check]]

    def recent(self, limit: int = 10, *, agent: str | None = None) -> list[Item]:
        """Return the newest, the newest first."""
        return self._list(agent, limit=limit)

    def search(
        self, /, query: str, limit: int = 10, *, agent: str | None = None, **options: Unpack[RecallOptions]
    ) -> Hits:
        """Return the records that answer `query`; options are those of `recall`."""
        return self._recall(agent, self._kind, query, limit, options)

    def get(self, id: str, *, agent: str | None = None) -> Item:
        """Return the record with this id; NotFound if there is none here. A procedure has a name as well."""
        with self._engine.store.read() as reader:
            return self._item(reader, self._row_id(reader, id, agent))

    def _row_id(self, reader: Reader, id: str, agent: str | None) -> int:
        return find_row_id(reader, id, self._scope(agent))

    def _items(self, reader: Reader, records: Iterable[Record]) -> list[Item]:
        raise NotImplementedError

    def _item(self, reader: Reader, row_id: int) -> Item:
        record = reader.records.get(row_id)
        if record.kind != self._kind:
            raise NotFound(f"{shown(record.id)} is no {self._kind}: its kind is {record.kind!r}")
        return self._items(reader, [record])[0]

    def _list(
        self, agent: str | None, *, limit: int | None, order: str = "newest", **fields: Unpack[FilterFields]
    ) -> list[Item]:
        """Return records in order, from the scope of an agent and below."""
        filter = Filter(**fields | {"kinds": self._kind}).within(self._scope(agent))
        count = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return self._items(reader, reader.records.find(filter, checks.now_us(), order=order, limit=count))

    def _new(self, agent: str | None, text: str, values: Mapping[str, Any], fields: RecordFields) -> NewRecord:
        """Return a record of an agent with the values of the tier's fields, which are checked, and of all others."""
        arguments: dict[str, Any] = {**fields}
        metadata = checks.check_metadata(arguments.pop("metadata", None))
        for name in values:
            if name in metadata:
                raise InvalidInput(f"metadata has the key {name!r}, which is an argument of its own: give {name}=...")
        checked = {name: self._checks[name](value, name) for name, value in values.items()}
        arguments["metadata"] = {**{name: value for name, value in checked.items() if value is not None}, **metadata}
        arguments["tags"] = checks.check_tags(arguments.get("tags", ()))
        arguments["supersedes"] = check_ids(arguments.get("supersedes"), "supersedes")
        scope = "/" if agent is None else AGENT_SCOPES + checks.check_agent(agent)
        return NewRecord(text=text, kind=self._kind, scope=scope, **arguments)


class RecordTier(Tier[Record]):
    """A tier whose items are its records."""

    def _items(self, reader: Reader, records: Iterable[Record]) -> list[Record]:
        return [as_seen(self._engine.counted(record), self._base) for record in records]

    def _remember(
        self, agent: str | None, text: str, values: Mapping[str, Any], fields: RecordFields, policy: WritePolicy
    ) -> Record:
        record = remember_one(self._engine, self._new(agent, text, values, fields), base=self._base, policy=policy)
        return as_seen(self._engine.counted(record), self._base)


T = TypeVar("T", bound=Tier[Any])


class AsyncTier(AsyncService[T]):
    """`Tier`, awaited."""

    recent = awaited(Tier.recent)
    search = awaited(Tier.search)
    get = awaited(Tier.get)


def optional(check: Check) -> Check:
    """Return a check that takes None as well."""
    return lambda value, name: None if value is None else check(value, name)


def check_amount(value: object, name: str) -> float:
    """Return a finite number of at least 0."""
    return checks.check_finite(value, name, minimum=0.0)


# Semantic memory: knowledge with summaries, verification and links to similar memories.

# The lowest cosine at which a new memory is linked to a stored one, and the most links that it gets.
LINK_COSINE = 0.85
MOST_LINKS = 10


class Semantic(RecordTier):
    """The tier of what `remember` writes: records of kind "memory"."""

    _kind = "memory"
    _checks: ClassVar[Mapping[str, Check]] = {
        "summary": optional(checks.check_str),
        "verified": lambda value, name: checks.check_flag(value, name) or None,
    }

    def add(
        self,
        content: str,
        *,
        summary: str | None = None,
        verified: bool = False,
        auto_link: bool = True,
        agent: str | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Store a piece of knowledge; the summary and whether it is verified are kept in its metadata.

        It supersedes what it makes out of date, as with `remember`; `supersedes` names more.

        With `auto_link` it is linked, as "similar", to at most 10 memories of its scope at cosine 0.85 or more
        (or as `Settings.write` says).
        """
        policy = self._engine.write_policy
        if not checks.check_flag(auto_link, "auto_link"):
            policy = structs.replace(policy, link_cosine=None)
        elif policy.link_cosine is None:
            policy = structs.replace(policy, link_cosine=LINK_COSINE, most_links=MOST_LINKS)
        return self._remember(agent, content, {"summary": summary, "verified": verified}, fields, policy)

    def verify(self, id: str, verified: bool = True) -> Record:
        """Mark a piece of knowledge as checked, or as not checked."""
        checks.check_flag(verified, "verified")
        with self._engine.atomic() as writer:
            row_id = self._row_id(writer, id, None)
            metadata = {**self._item(writer, row_id).metadata, "verified": verified}
            columns = {"metadata": msgspec.json.encode(metadata).decode(), "updated_at": checks.now_us()}
            writer.records.change_columns(row_id, columns, None)
            return self._item(writer, row_id)


class AsyncSemantic(AsyncTier[Semantic]):
    """`Semantic`, awaited."""

    add = awaited(Semantic.add)
    verify = awaited(Semantic.verify)


# Procedural memory.

# The weight of the newest outcome in the moving rate.
WEIGHT = 0.1
FIRST_RATE = 0.5


class Procedure(Struct, frozen=True, kw_only=True):
    """A named way to do something.

    `success_rate` is a moving average that follows recent outcomes; `true_rate` is the rate over all uses.
    """

    id: str
    name: str
    description: str
    pattern: str = ""
    tags: tuple[str, ...] = ()
    success_rate: float = FIRST_RATE
    use_count: int = 0
    success_count: int = 0
    importance: float = DEFAULT_IMPORTANCE
    agent: str | None = None
    scope: str = "/"
    created_at: datetime
    updated_at: datetime

    @property
    def true_rate(self) -> float | None:
        """Successes per use; None before the first."""
        return self.success_count / self.use_count if self.use_count else None


class Procedures(Tier[Procedure]):
    """Records of kind "procedure": the name is their context, description and pattern their text."""

    _kind = "procedure"
    _checks: ClassVar[Mapping[str, Check]] = {
        "name": checks.check_name,
        "description": checks.check_str,
        "pattern": checks.check_str,
    }

    def save(
        self,
        name: str,
        description: str,
        *,
        pattern: str = "",
        tags: Sequence[str] = (),
        success_rate: float | None = None,
        importance: float = DEFAULT_IMPORTANCE,
        agent: str | None = None,
    ) -> Procedure:
        """Store a procedure; one of the same name in the same scope is updated and keeps its counts.

        `success_rate` is the initial value of the moving rate, 0.5 by default.
        """
        name = checks.check_name(name, "name")
        description = checks.check_text(description, self._engine.settings.max_text_chars)
        if success_rate is not None:
            checks.check_unit(success_rate, "success_rate")
        text = f"{description}\n\n{pattern}" if checks.check_str(pattern, "pattern").strip() else description
        values = {"name": name, "description": description, "pattern": pattern}
        new = self._new(agent, text, values, {"context": name, "tags": tags, "importance": importance})
        (row,), identity = self._handle.prepare([new])
        with self._engine.atomic() as writer:
            row_id = writer.tiers.procedure_named(row.scope, name)
            if row_id is None:
                (row_id,) = insert_rows(writer, [row], identity)
                writer.tiers.set_rate(row_id, FIRST_RATE)
            else:
                old = writer.records.get(row_id)
                check_speaker(f"procedure {row.context!r}", old.authority, "change")
                if (old.text, old.context) != (row.text, row.context):  # closes the old version
                    writer.records.change_text(row_id, row, embedder_of(writer, identity, row))
                changed = ("metadata", "importance", "authority", "updated_at")
                writer.records.change_columns(row_id, {name: getattr(row, name) for name in changed}, row.tags)
            if success_rate is not None:
                writer.tiers.set_rate(row_id, success_rate)
            procedure = self._item(writer, row_id)
        if row.pending:
            self._engine.may_have_pending = True
        return procedure

    def record_outcome(self, procedure: str, success: bool, *, agent: str | None = None) -> Procedure:
        """Count a use of the procedure with this name or id: rate = 0.9 * rate + 0.1 * outcome, and exact counts.

        Atomic: outcomes that two processes record at once are both counted.
        """
        checks.check_flag(success, "success")
        with self._engine.atomic() as writer:
            row_id = self._row_id(writer, procedure, agent)
            writer.tiers.count_outcome(row_id, success=success, first_rate=FIRST_RATE, weight=WEIGHT)
            return self._item(writer, row_id)

    def list(
        self, *, agent: str | None = None, tags: Sequence[str] | None = None, limit: int | None = 100
    ) -> builtins.list[Procedure]:
        """Return procedures by success rate, highest first, then by uses, then by name, then in the order stored."""
        count = None if limit is None else checks.check_count(limit, "limit")
        procedures = self._list(agent, limit=None, order="oldest", tags=tags)
        procedures.sort(key=lambda procedure: (-procedure.success_rate, -procedure.use_count, procedure.name))
        return procedures[:count]

    def _row_id(self, reader: Reader, id: object, agent: str | None) -> int:
        """Return the row id of the procedure with this name in exactly this scope, or with this id anywhere below."""
        scope = self._scope(agent)
        # A name that cannot be stored matches none.
        storable = isinstance(id, str) and len(id) <= checks.MAX_QUERY_CHARS
        if storable and id == (key := checks.check_query(id)):
            for find in (reader.tiers.procedure_named, reader.tiers.procedure_with_id):
                row_id = find(scope, key)
                if row_id is not None:
                    return row_id
        raise NotFound(f"no procedure {shown(id)} here: never saved, forgotten, or elsewhere")

    def _items(self, reader: Reader, records: Iterable[Record]) -> builtins.list[Procedure]:
        records = builtins.list(records)
        uses = reader.tiers.uses([record.id for record in records])
        procedures = []
        for record in records:
            rate, use_count, success_count = uses.get(record.id, (FIRST_RATE, 0, 0))
            procedure = self._to_public(
                Procedure, record,
                name=str(record.metadata.get("name", record.context or record.id)),
                description=str(record.metadata.get("description", record.text)),
                pattern=str(record.metadata.get("pattern", "")),
                success_rate=rate, use_count=use_count, success_count=success_count,
            )  # fmt: skip
            procedures.append(procedure)
        return procedures


class AsyncProcedures(AsyncTier[Procedures]):
    """`Procedures`, awaited."""

    save = awaited(Procedures.save)
    record_outcome = awaited(Procedures.record_outcome)
    list = awaited(Procedures.list)


# Episodic memory: the log, and snapshots of its sessions.

EVENT_TYPES = (
    "task-started", "task-completed", "task-failed", "decision-made", "error-encountered", "user-feedback",
    "tool-call", "observation", "chat-turn",
)  # fmt: skip


class Episodes(RecordTier, SnapshotService):
    """Records of kind "episode"; event type, task, cost and duration are in their metadata."""

    _kind = "episode"
    _checks: ClassVar[Mapping[str, Check]] = {
        "event_type": lambda value, name: checks.check_choice(value, name, EVENT_TYPES),
        "task_id": optional(checks.check_name),
        "cost": optional(check_amount),
        "duration_ms": optional(check_amount),
    }

    def log(
        self,
        content: str,
        *,
        event_type: str = "observation",
        task_id: str | None = None,
        cost: float | None = None,
        duration_ms: float | None = None,
        agent: str | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Store an episode. `cost` is in a unit of your choice; `pinned` exempts the episode from consolidation.

        It is linked to similar episodes if `Settings.write` says so, and never merged or treated as a duplicate.
        If `Settings.consolidation` is set, every `threshold`-th new episode runs a cycle before this returns, or in the
        background if it asks the language model; if the store is locked, the next episode runs it.
        """
        values = {"event_type": event_type, "task_id": task_id, "cost": cost, "duration_ms": duration_ms}
        write = self._engine.write_policy
        # Only the links of the write policy: the same text twice is two events.
        policy = WritePolicy(link_cosine=write.link_cosine, most_links=write.most_links)
        record = self._remember(agent, content, values, fields, policy)
        Consolidator(self._handle)._run_if_due(self._scope(agent))
        return record

    def list(
        self,
        *,
        agent: str | None = None,
        task_id: str | None = None,
        event_type: str | None = None,
        on: date | str | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        order: str = "oldest",
        limit: int | None = 100,
    ) -> builtins.list[Record]:
        """Return episodes by task, type and time, in order ("oldest", "newest", "importance").

        `on` is a day of UTC, as a date or "2026-03-01"; `since` and `until` bound `valid_from`, else `created_at`.
        """
        checks.check_choice(order, "order", ("oldest", "newest", "importance"))
        values = {"task_id": task_id, "event_type": event_type}
        where: dict[str, Any] = {
            f"metadata.{name}": self._checks[name](value, name) for name, value in values.items() if value is not None
        }
        if on is not None:
            if since is not None or until is not None:
                raise InvalidInput("episodes are listed by on, or by since and until, not both")
            if isinstance(on, str):  # any time of that day
                on = checks.to_datetime(checks.check_time(on, "on") or 0).date()
            if not isinstance(on, date) or isinstance(on, datetime):
                raise InvalidInput(f"on is {shown(on)}: give a date, e.g. '2026-03-01'")
            since, until = map(checks.to_datetime, checks.moments_of(on, "on", "on"))
        return self._list(agent, limit=limit, order=order, where=where, since=since, until=until)

    def snapshot(
        self,
        session_id: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        agent: str | None = None,
        **fields: Unpack[SnapshotFields],
    ) -> Snapshot:
        """Store the messages of a session, or of the stored session of this id, and its results."""
        if session_id is not None:
            session_id = checks.check_name(session_id, "session_id")
        elif messages is None:
            raise InvalidInput("snapshot needs the messages, or the id of a session that is stored")
        policy = self._engine.write_policy
        columns = snapshot_columns(policy, fields)
        texts = None if messages is None else [checked.text for checked in check_messages(messages, policy)]
        with self._engine.atomic() as writer:
            return self._take_snapshot(writer, self._scope(agent), session_id, texts, columns)

    def last_snapshot(self, agent: str | None = None) -> Snapshot | None:
        """Return the snapshot that ended last; None if there is none."""
        return next(iter(self.snapshots(1, agent=agent)), None)

    def snapshots(self, limit: int = 10, *, agent: str | None = None) -> builtins.list[Snapshot]:
        """Return snapshots, the one that ended last first."""
        most = checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._snapshot(row) for row in reader.sessions.snapshots(self._scope(agent), most)]


class AsyncEpisodes(AsyncTier[Episodes]):
    """`Episodes`, awaited."""

    log = awaited(Episodes.log)
    list = awaited(Episodes.list)
    snapshot = awaited(Episodes.snapshot)
    last_snapshot = awaited(Episodes.last_snapshot)
    snapshots = awaited(Episodes.snapshots)
