"""Procedural memory: how things are done, and how often that worked."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Unpack

from msgspec import Struct

from recallite.agents.service_base import Service
from recallite.embedding.handle import Identity
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.filters import Filter
from recallite.model.records import Hits, NewRecord, Record
from recallite.recall.request import RecallOptions
from recallite.remember.embed import embedder_of, insert_rows
from recallite.store.protocol import Reader, Writer
from recallite.store.values import Row
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown

KIND = "procedure"
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
    importance: float = 0.5
    agent: str | None = None
    scope: str = "/"
    created_at: datetime
    updated_at: datetime

    @property
    def true_rate(self) -> float | None:
        """Successes per use; None before the first."""
        return self.success_count / self.use_count if self.use_count else None


class Procedures(Service):
    """Records of kind "procedure": the name is their context, description and pattern their text."""

    def save(
        self,
        name: str,
        description: str,
        *,
        pattern: str = "",
        tags: Sequence[str] = (),
        success_rate: float | None = None,
        importance: float = 0.5,
        agent: str | None = None,
    ) -> Procedure:
        """Store a procedure; one of the same name in the same scope is updated and keeps its counts.

        `success_rate` is the initial value of the moving rate, 0.5 by default.
        """
        name = checks.check_name(name, "name")
        description = checks.check_text(description, self._engine.settings.max_text_chars)
        if not isinstance(pattern, str):
            raise InvalidInput(f"pattern is {shown(pattern)}: give a str")
        if success_rate is not None:
            checks.check_unit(success_rate, "success_rate")
        scope = self._scope(agent)
        item = NewRecord(
            text=f"{description}\n\n{pattern}" if pattern.strip() else description, kind=KIND, context=name,
            tags=checks.check_tags(tags), importance=importance,
            metadata={"name": name, "description": description, "pattern": pattern},
        )  # fmt: skip
        (row,), identity = self._embedded(scope, [item])
        with self._engine.atomic() as writer:
            known = writer.procedures.named(scope, name)
            if known is not None:
                self._rewrite(writer, known, row, identity)
            record_id = insert_rows(writer, [row], identity)[0] if known is None else known
            if success_rate is not None or known is None:
                writer.procedures.set_rate(record_id, FIRST_RATE if success_rate is None else success_rate)
            (saved,) = self._with_uses(writer, [writer.records.get(record_id)])
        if row.pending:
            self._engine.may_have_pending = True
        return saved

    def record_outcome(self, procedure: str, success: bool, *, agent: str | None = None) -> Procedure:
        """Count a use of the procedure with this name or id: rate = 0.9 * rate + 0.1 * outcome, and exact counts.

        Atomic: outcomes that two processes record at once are both counted.
        """
        checks.check_flag(success, "success")
        with self._engine.atomic() as writer:
            record_id = self._row_id(writer, procedure, agent)
            writer.procedures.count_outcome(record_id, success=success, first_rate=FIRST_RATE, weight=WEIGHT)
            return self._with_uses(writer, [writer.records.get(record_id)])[0]

    def get(self, procedure: str, *, agent: str | None = None) -> Procedure:
        """The procedure with this name or id; NotFound if there is none here."""
        with self._engine.store.read() as reader:
            record_id = self._row_id(reader, procedure, agent)
            return self._with_uses(reader, [reader.records.get(record_id)])[0]

    def list(
        self, *, agent: str | None = None, tags: Sequence[str] | None = None, limit: int | None = 100
    ) -> builtins.list[Procedure]:
        """Procedures by success rate, highest first, then by uses, then by name, then in the order stored."""
        most = None if limit is None else checks.check_count(limit, "limit")
        chosen = Filter(kinds=[KIND], tags=tags).within(self._scope(agent))
        with self._engine.store.read() as reader:
            shown = self._with_uses(reader, reader.records.find(chosen, checks.now_us()))
        shown.sort(key=lambda each: (-each.success_rate, -each.use_count, each.name))
        return shown[:most]

    def search(
        self, /, query: str, limit: int = 10, *, agent: str | None = None, **options: Unpack[RecallOptions]
    ) -> Hits:
        """The procedures that answer `query`; options are those of `recall`."""
        return self._search(agent, KIND, query, limit, options)

    def _row_id(self, reader: Reader, procedure: object, agent: str | None) -> int:
        """The row id of the procedure with this name in exactly this scope, or with this id anywhere below."""
        scope = self._scope(agent)
        # A name that cannot be stored matches none.
        storable = isinstance(procedure, str) and len(procedure) <= checks.MAX_QUERY_CHARS
        if storable and procedure == (called := checks.check_query(procedure)):
            for find in (reader.procedures.named, reader.procedures.with_id):
                found = find(scope, called)
                if found is not None:
                    return found
        raise NotFound(f"no procedure {shown(procedure)} here: never saved, forgotten, or elsewhere")

    def _rewrite(self, writer: Writer, record_id: int, row: Row, identity: Identity | None) -> None:
        """Replace the contents of a stored procedure; a new text closes the old version."""
        old = writer.records.get(record_id)
        if (old.text, old.context) != (row.text, row.context):
            embedder = embedder_of(writer, [row], identity)
            writer.records.change_text(record_id, row, embedder)
        columns = {"metadata": row.metadata, "importance": row.importance, "updated_at": row.updated_at}
        writer.records.change_columns(record_id, columns, row.tags)

    def _with_uses(self, reader: Reader, records: Iterable[Record]) -> builtins.list[Procedure]:
        found = builtins.list(records)
        uses = reader.procedures.uses([record.id for record in found])
        shown = []
        for record in found:
            rate, used, succeeded = uses.get(record.id, (FIRST_RATE, 0, 0))
            procedure = self._shown(
                Procedure, record,
                name=str(record.metadata.get("name", record.context or record.id)),
                description=str(record.metadata.get("description", record.text)),
                pattern=str(record.metadata.get("pattern", "")),
                success_rate=rate, use_count=used, success_count=succeeded,
            )  # fmt: skip
            shown.append(procedure)
        return shown


class AsyncProcedures(AsyncService[Procedures]):
    """`Procedures`, awaited."""

    save = awaited(Procedures.save)
    record_outcome = awaited(Procedures.record_outcome)
    get = awaited(Procedures.get)
    list = awaited(Procedures.list)
    search = awaited(Procedures.search)
