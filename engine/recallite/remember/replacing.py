"""Replacing a record by another with the same id, which the caller chose."""

from __future__ import annotations

from typing import Any

from recallite.embedding.handle import Identity
from recallite.errors import Conflict, RecalliteError
from recallite.model.authority import authority_of, rank_of
from recallite.model.checks import now_us
from recallite.model.records import OnExisting, Outcome, Record
from recallite.remember.change import check_owned
from recallite.remember.embed import embedder_of
from recallite.remember.supersession import RowRefused, settle_change, supersede_named
from recallite.store.transaction import Writer
from recallite.store.values import Row
from recallite.system.messages import shown


def replace_record(
    writer: Writer, record_id: int, row: Row, identity: Identity | None, on_existing: OnExisting
) -> Outcome:
    """Give a record the text, vectors and fields of a row; its id and the time of its creation stay.

    With "version" its old text stays in its history. RowRefused, with the reason, if it is not to be replaced.
    """
    now = writer.records.get(record_id)
    columns: dict[str, Any] = {
        "kind": row.kind, "scope": row.scope, "importance": row.importance, "pinned": row.pinned,
        "authority": row.authority, "topic": row.topic,
        "source": row.source, "position": row.position, "metadata": row.metadata, "valid_from": row.valid_from,
        "valid_until": row.valid_until, "valid_resolved": row.valid_resolved, "expires_at": row.expires_at,
        "expires_after": row.expires_after,
    }  # fmt: skip
    try:
        _check_replaceable(now, row, on_existing)
        settle_change(writer, record_id, now, columns)
    except RecalliteError as reason:
        raise RowRefused(row, reason) from reason
    keep = on_existing == "version"
    if (now.text, now.context, now.indexed) != (row.text, row.context, row.indexed) or row.vectors_given:
        row.recorded_from = row.updated_at = now_us()
        writer.records.change_text(record_id, row, embedder_of(writer, [row], identity), keep_version=keep)
    elif not keep:
        writer.records.purge_versions([record_id])
    writer.records.change_columns(record_id, {**columns, "updated_at": now_us()}, row.tags)
    supersede_named(writer, [row], [record_id])
    return "updated" if keep else "replaced"


def _check_replaceable(now: Record, row: Row, on_existing: OnExisting) -> None:
    """Refuse what is outside the scope of the handle, what a service made, and what is to stay."""
    if row.base not in ("/", now.scope) and not now.scope.startswith(row.base + "/"):
        raise Conflict(f"the id {shown(row.public_id)} is taken by a memory outside this scope: give another")
    if on_existing == "error":
        raise Conflict(
            f"a memory with the id {shown(row.public_id)} is there already: give on_existing='replace' or 'version', "
            "or another id"
        )
    if row.authority < rank_of(now.authority):
        raise Conflict(
            f"the id {shown(row.public_id)} is that of a memory by the authority {now.authority}, which "
            f"{authority_of(row.authority)} cannot replace: give another id"
        )
    check_owned(now, ("text",))
