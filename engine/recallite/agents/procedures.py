"""Procedural memory: how things are done, and how often that worked."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from recallite.agents.tier import AsyncTier, Check, Tier, check_str
from recallite.embedding.handle import Identity
from recallite.errors import NotFound
from recallite.model import checks
from recallite.model.records import Record
from recallite.remember.embed import embedder_of, insert_rows
from recallite.remember.relations import check_speaker
from recallite.store.transaction import Reader, Writer
from recallite.store.values import Row
from recallite.system.asynchrony import awaited
from recallite.system.messages import shown

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


class Procedures(Tier[Procedure]):
    """Records of kind "procedure": the name is their context, description and pattern their text."""

    _kind = "procedure"
    _checks: ClassVar[Mapping[str, Check]] = {"name": checks.check_name, "description": check_str, "pattern": check_str}

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
        if success_rate is not None:
            checks.check_unit(success_rate, "success_rate")
        text = f"{description}\n\n{pattern}" if check_str(pattern, "pattern").strip() else description
        values = {"name": name, "description": description, "pattern": pattern}
        new = self._new(agent, text, values, {"context": name, "tags": tags, "importance": importance})
        (row,), identity = self._handle.prepare([new])
        with self._engine.atomic() as writer:
            record_id = writer.procedures.named(row.scope, name)
            if record_id is None:
                (record_id,) = insert_rows(writer, [row], identity)
                writer.procedures.set_rate(record_id, FIRST_RATE)
            else:
                self._rewrite(writer, record_id, row, identity)
            if success_rate is not None:
                writer.procedures.set_rate(record_id, success_rate)
            procedure = self._item(writer, record_id)
        if row.pending:
            self._engine.may_have_pending = True
        return procedure

    def record_outcome(self, procedure: str, success: bool, *, agent: str | None = None) -> Procedure:
        """Count a use of the procedure with this name or id: rate = 0.9 * rate + 0.1 * outcome, and exact counts.

        Atomic: outcomes that two processes record at once are both counted.
        """
        checks.check_flag(success, "success")
        with self._engine.atomic() as writer:
            record_id = self._row_id(writer, procedure, agent)
            writer.procedures.count_outcome(record_id, success=success, first_rate=FIRST_RATE, weight=WEIGHT)
            return self._item(writer, record_id)

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
            for find in (reader.procedures.named, reader.procedures.with_id):
                record_id = find(scope, key)
                if record_id is not None:
                    return record_id
        raise NotFound(f"no procedure {shown(id)} here: never saved, forgotten, or elsewhere")

    def _rewrite(self, writer: Writer, record_id: int, row: Row, identity: Identity | None) -> None:
        """Replace the contents of a stored procedure; a new text closes the old version."""
        old = writer.records.get(record_id)
        check_speaker(f"procedure {row.context!r}", old.authority, "change")
        if (old.text, old.context) != (row.text, row.context):
            embedder = embedder_of(writer, [row], identity)
            writer.records.change_text(record_id, row, embedder)
        columns = {
            "metadata": row.metadata, "importance": row.importance, "authority": row.authority,
            "updated_at": row.updated_at,
        }  # fmt: skip
        writer.records.change_columns(record_id, columns, row.tags)

    def _items(self, reader: Reader, records: Iterable[Record]) -> builtins.list[Procedure]:
        records = builtins.list(records)
        uses = reader.procedures.uses([record.id for record in records])
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
