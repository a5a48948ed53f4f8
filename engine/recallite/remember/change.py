"""Changes to what is stored: update, restore, forget, or replace by another record with the same id."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import Conflict, InvalidInput, RecalliteError
from recallite.model import checks
from recallite.model.authority import authority_of, rank_of
from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND, Filter
from recallite.model.records import Changes, OnExisting, Outcome, Record
from recallite.model.reports import Forgotten
from recallite.model.settings import WritePolicy
from recallite.remember.embed import embed_rows, embedder_of, identity_for
from recallite.remember.pending import catch_up, compare_changed, start_comparing
from recallite.remember.prepare import CHECKS, check_context, check_expiry, metadata_json, read_times, uuid7
from recallite.remember.relations import (
    RowRefused,
    check_speaker,
    check_speaker_of,
    find_row_id,
    find_row_ids,
    settle_change,
    supersede_named,
    undo,
    was_current,
)
from recallite.store.columns import Row
from recallite.store.transaction import Writer
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.text.reading import written_words
from recallite.text.words import content_hash

# Fields that a write policy redacts, besides metadata.
_CLEANED = ("text", "context")
# What a memory says, and what keeps it in view.
_SAID = (
    "text", "context", "vector", "kind", "scope", "topic", "valid_from", "valid_until", "pinned", "source", "metadata",
    "expires_at",
)  # fmt: skip
_REPLACED = (
    "kind", "scope", "importance", "pinned", "authority", "topic", "source", "position", "metadata", "valid_from",
    "valid_until", "valid_resolved", "expires_at", "expires_after",
)  # fmt: skip
_PROCEDURE = "procedure"
_MAY_BE_NONE = ("topic", "source", "position")
# What may be changed of a message of a session.
_OF_MESSAGES = {"tags", "importance", "pinned", "metadata", "expires_at", "renew"}
_OF_CHUNKS = ("text", "context", "vector", "kind", "scope", "source", "position", "metadata")
_OF_PROCEDURES = ("text", "context", "vector", "kind", "scope", "metadata")


@traced("update")
def update(
    engine: Engine, public_id: str, changes: Mapping[str, Any], *, base: str, keep_version: bool = True
) -> Record:
    """Change fields of a record and return it. A new text or context closes the old version.

    Without `keep_version` the old version is purged, with all before it.
    """
    policy = engine.write_policy
    changes = {name: policy.clean(value) if isinstance(value, str) and name in _CLEANED else value
               for name, value in changes.items()}  # fmt: skip
    if "metadata" in changes:
        changes["metadata"] = policy.clean_json(checks.check_metadata(changes["metadata"]))
    columns, tags = _checked(changes, base)
    while True:
        with engine.store.read() as reader:
            row_id = find_row_id(reader, public_id, base)
            old = reader.records.get(row_id)
        check_owned(old, changes)
        if not changes.keys().isdisjoint(_SAID):  # what it said until now does what it does to others first
            catch_up(engine, until=row_id)
        row, identity = None, None
        text = changes.get("text", old.text)
        context = check_context(changes["context"]) if "context" in changes else old.context
        if (text, context) != (old.text, old.context) or changes.get("vector") is not None:
            text = checks.check_text(text, engine.settings.max_text_chars)
            if not old.indexed and changes.get("vector") is not None:
                raise InvalidInput(f"{old.id} is not indexed: a vector is of no use to it")
            row = version_row(text, context, indexed=old.indexed)
            identity = identity_for(engine, changes.get("vector"))
            embed_rows(engine.embedder, [row], [changes.get("vector")], identity)
        if row is None and not columns and tags is None:
            return structs.replace(old, outcome="updated")
        with engine.atomic() as writer:
            row_id = find_row_id(writer, public_id, base)
            now = writer.records.get(row_id)
            check_owned(now, changes)
            if wording := [name for name in changes if name in _SAID]:
                check_speaker(f"{wording[0]} of {now.id}", now.authority, "change")
            text_given = not changes.keys().isdisjoint(("text", "context", "vector"))
            if text_given and (now.text, now.context) != (old.text, old.context):
                continue  # changed by another process since it was read: start over
            if row is not None:
                _put_version(engine, writer, row_id, row, identity, keep_version=keep_version)
                if row.text != now.text and columns.keys().isdisjoint(("valid_from", "valid_until")):
                    columns |= _times_of(row, now, policy)
            if tags is not None or columns:
                settle_change(writer, row_id, now, columns)
                if tags is not None or columns.keys() - {"expires_at", "expires_after"}:
                    columns["updated_at"] = checks.now_us()
                writer.records.change_columns(row_id, columns, tags)
            if row is not None and (row.text, row.context) != (now.text, now.context):
                compare_changed(engine, writer, [row_id])
            # Inside the transaction: after the commit the record could be gone already.
            return writer.records.get(row_id, outcome="updated")


def check_owned(record: Record, changed: Collection[str]) -> None:
    """Refuse changes of parts of a procedure or document, which are changed as a whole."""
    if record.kind == CHUNK_KIND and (of_chunk := [name for name in changed if name in _OF_CHUNKS]):
        raise InvalidInput(
            f"{record.id} is a chunk of {shown(record.source)}, whose {of_chunk[0]} comes from that document: "
            "change the document and ingest or index it again"
        )
    of_message = sorted({*changed} - _OF_MESSAGES) if record.kind == MESSAGE_KIND else []
    if of_message:
        raise InvalidInput(
            f"{record.id} is a message of the session {shown(record.source)}, whose {of_message[0]} cannot be changed: "
            "remember what is true now, or forget the message"
        )
    refused = [name for name in changed if name in _OF_PROCEDURES] if record.kind == _PROCEDURE else []
    if refused:
        raise InvalidInput(
            f"{record.id} is a procedure, whose {refused[0]} cannot be changed by itself: use procedures.save, "
            "which makes a new version of the procedure of that name"
        )


@traced("forget", lambda gone: {"memories": gone.records, "versions": gone.versions})
def forget(
    engine: Engine,
    ids: Sequence[str],
    selected: Filter | None,
    *,
    base: str,
    missing_ok: bool = False,
    receipt: bool = False,
    chain: bool = False,
) -> Forgotten:
    """Purge records by id, or all that a filter matches, with their versions and everything derived.

    With `chain` also every record that they surely supersede, directly or through others.
    A filter of only a scope also removes what the services keep in it. With `receipt` the file is compacted and then
    searched for the removed contents.
    """
    with engine.atomic(counts="all") as writer:
        if selected is None:
            known = find_row_ids(writer, ids, base)
            if not missing_ok:
                for public_id in ids:
                    if not isinstance(public_id, str) or public_id not in known:
                        find_row_id(writer, public_id, base)  # says which
            row_ids = [*known.values()]
        else:
            row_ids = writer.records.matching_ids(selected, checks.now_us(), versions="open")
        if chain:
            in_chain, newest = dict.fromkeys(row_ids), row_ids
            while newest:
                following = [row.old_id for row in writer.supersessions.of_new(newest) if row.certain]
                newest = [row_id for row_id in following if row_id not in in_chain]
                in_chain |= dict.fromkeys(newest)
            row_ids = [*in_chain]
        check_speaker_of(writer, row_ids, "forget")
        forgotten = set(row_ids)
        superseded = [row for row in writer.supersessions.of_new(row_ids) if row.old_id not in forgotten]
        former, hidden = {row.old_id for row in superseded}, {row.old_id for row in superseded if row.certain}
        whole = selected is not None and selected.scopes_only
        scopes = (selected.scopes or ("/",)) if selected is not None and whole else ()
        erased = writer.erasure.begin(row_ids, scopes) if receipt else None
        versions = _delete(writer, row_ids, base, settle=not whole)
        service_rows = sum(writer.scopes.purge_services(scope) for scope in scopes)
        if erased is not None:
            writer.erasure.finish(erased)
        # What holds again may have been replaced by another as well.
        compare_changed(engine, writer, sorted(former))
        again = writer.records.by_row_ids(sorted(hidden))
    start_comparing(engine)
    return Forgotten(
        records=len(row_ids),
        versions=versions,
        services=service_rows,
        holds_again=tuple(record.id for record in again.values() if not record.superseded_by),
        receipt=None if erased is None else engine.store.prove_erasure(erased),
    )


def _delete(writer: Writer, row_ids: Sequence[int], base: str, *, settle: bool = True) -> int:
    """Purge records; with `settle`, also bring the documents that lose chunks up to date.

    Returns how many versions they had in the scope `base`.
    """
    cut = writer.documents.sources_of(row_ids)
    versions = writer.records.delete(row_ids, base)
    if settle:
        writer.documents.settle(cut)
    return versions


@traced("restore")
def restore(engine: Engine, public_id: str, version: object, *, base: str) -> Record:
    """Make a new version with the text, context and vectors of an earlier one; returns the record.

    Without a version undo what supersedes the record.
    """
    if version is None:
        return undo(engine, public_id, base=base)
    while True:
        with engine.store.read() as reader:
            find_row_id(reader, public_id, base)
            ids, versions = reader.records.version_ids(public_id, base), reader.records.history(public_id, base)
            version_id = _chosen_version(ids, versions, version)
            old = reader.records.get(version_id)
            check_owned(old, ("text",))
            check_speaker(public_id, old.authority, "restore")
            parts = reader.vectors.of_record(version_id)
            active = reader.vectors.active_embedder()
        row = version_row(old.text, old.context, indexed=old.indexed)
        identity = None
        if parts.values and active is not None:
            row.vectors, row.codes, *_ = parts
            identity = Identity(active.fingerprint, active.name, active.dimension)
        else:
            identity = identity_for(engine, None)
            embed_rows(engine.embedder, [row], [None], identity)
        with engine.atomic() as writer:
            row_id = find_row_id(writer, public_id, base)
            if version_id not in writer.records.version_ids(public_id, base):
                continue  # purged since: choose again among the versions left
            _put_version(engine, writer, row_id, row, identity)
            compare_changed(engine, writer, [row_id])
            # Inside the transaction: after the commit the record could be gone already.
            return writer.records.get(row_id, outcome="updated")


def _chosen_version(ids: Sequence[int], versions: Sequence[Record], version: object) -> int:
    """Return the row id of the version at this index of the history, or that was current at this time."""
    last = len(ids) - 1
    if isinstance(number := checks.number_of(version), int):
        if not -len(ids) <= number <= last:
            raise InvalidInput(f"version is {shown(version)}: history has the versions 0 to {last}")
        i = number % len(ids)
    elif isinstance(version, str | datetime):
        moment = checks.to_datetime(checks.check_time(version, "version") or 0)
        stood = [i for i, record in enumerate(versions) if was_current(record, moment)]
        if not stood:
            raise InvalidInput(f"version is {shown(str(version))}: no version was current then; see history()")
        i = stood[-1]
    else:
        raise InvalidInput(f"version is {shown(version)}: give a place in history(), from 0, or a time")
    if i == last:
        raise InvalidInput(f"version {shown(version)} is the current one")
    return ids[i]


def _put_version(
    engine: Engine, writer: Writer, row_id: int, row: Row, identity: Identity | None, *, keep_version: bool = True
) -> None:
    """Give a record a new version from now on. The time is read inside the transaction, which may have had to wait."""
    row.recorded_from = row.updated_at = checks.now_us()
    embedder = embedder_of(writer, identity, row)
    writer.records.change_text(row_id, row, embedder, keep_version=keep_version)
    engine.may_have_pending |= row.pending


@traced("update_expiry", lambda count: {"memories": count})
def change_expiry(engine: Engine, ids: Sequence[str], changes: Mapping[str, Any], *, base: str) -> int:
    """Set `expires_at` of records (None: never), or `renew` their lives; returns how many of the ids are here."""
    renewed = checks.check_flag(changes.get("renew", False), "renew")
    if set(changes) - {"expires_at", "renew"} or renewed == ("expires_at" in changes):
        raise InvalidInput(
            "several ids, and renew, go with a change of the expiry alone: give expires_at or renew=True"
        )
    moment, life = check_expiry(changes.get("expires_at"), checks.now_us())
    with engine.atomic() as writer:
        row_ids = [*find_row_ids(writer, ids, base).values()]
        if renewed:
            writer.records.slide_expiry(row_ids, checks.now_us())
        else:
            check_speaker_of(writer, row_ids, "let expire")
            writer.records.set_expiry(row_ids, moment, life)
    return len(row_ids)


def renew(engine: Engine, public_id: str, changes: Mapping[str, Any], *, base: str) -> Record:
    """Do `change_expiry` to one record; returns it."""
    with engine.atomic() as writer:
        row_id = find_row_id(writer, public_id, base)
        change_expiry(engine, [public_id], changes, base=base)
        # Inside the transaction: after the commit it could fail.
        return writer.records.get(row_id, outcome="updated")


@traced("purge_expired", lambda gone: {"memories": gone.records, "versions": gone.versions})
def purge_expired(engine: Engine, *, scope: str | None) -> Forgotten:
    """Purge every record of a scope that has expired."""
    with engine.atomic(counts="all") as writer:
        expired = Filter(sessions=True).within(scope or "/")
        row_ids = writer.records.matching_ids(expired, checks.now_us(), versions="expired")
        versions = _delete(writer, row_ids, scope or "/")
    return Forgotten(records=len(row_ids), versions=versions)


def purge_versions(engine: Engine, public_id: str, *, base: str) -> int:
    """Purge the earlier versions of a record; returns how many there were."""
    with engine.atomic() as writer:
        row_id = find_row_id(writer, public_id, base)
        check_speaker_of(writer, [row_id], "purge")
        return writer.records.purge_versions([row_id], base)


def _checked(changes: Mapping[str, Any], base: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Check changes; return the changed columns, and the new tags if any are given."""
    columns: dict[str, Any] = {}
    tags = None
    for name, value in changes.items():
        if name in ("text", "context", "vector"):
            continue
        if name == "tags":
            tags = checks.check_tags(value)
        elif name == "scope":
            columns[name] = checks.join_scopes(base, value) or "/"
        elif name == "metadata":
            columns[name] = metadata_json(checks.check_metadata(value))
        elif name == "expires_at":
            columns["expires_at"], columns["expires_after"] = check_expiry(value, checks.now_us())
        elif name in CHECKS and name in Changes.__annotations__:
            columns[name] = None if value is None and name in _MAY_BE_NONE else CHECKS[name](value, name)
        else:
            use = ", ".join(Changes.__annotations__) if name != "expires_after" else "expires_at=timedelta(...)"
            raise InvalidInput(f"update has no field {shown(name)}: use {use}")
    if columns.get("kind") == _PROCEDURE:
        raise InvalidInput("update makes no procedure of a memory: use procedures.save")
    if columns.get("kind") == MESSAGE_KIND:
        raise InvalidInput("update makes no message of a memory: use sessions.open(id).append")
    return columns, tags


def _times_of(row: Row, now: Record, policy: WritePolicy) -> dict[str, Any]:
    """The valid time that a new text names, unless the caller gave the old text its time.

    What is part of a supersession keeps its time: another could contradict it.
    """
    stated = not now.valid_resolved and (now.valid_from is not None or now.valid_until is not None)
    if stated or now.supersedes or now.superseded_by:
        return {}
    created = checks.check_time(now.created_at, "created_at")
    assert created is not None
    named = read_times(now.kind, row.text, written_words(row.text, row.context), created, policy)
    if named is None and not now.valid_resolved:
        return {}
    begins, ends = named or (None, None)
    return {"valid_from": begins, "valid_until": ends, "valid_resolved": named is not None}


def version_row(text: str, context: str | None, *, indexed: bool = True) -> Row:
    """A row with only the fields that a new version changes."""
    now = checks.now_us()
    return Row(
        public_id=uuid7(), kind="", scope="/", text=text, context=context, created_at=now, updated_at=now,
        recorded_from=now, content_hash=content_hash(text, context), indexed=indexed,
    )  # fmt: skip


def replace_record(
    writer: Writer, row_id: int, row: Row, identity: Identity | None, on_existing: OnExisting
) -> Outcome:
    """Give a record the text, vectors and fields of a row; its id and the time of its creation stay.

    With "version" its old text stays in its history. RowRefused, with the reason, if it is not to be replaced.
    """
    now = writer.records.get(row_id)
    columns = {name: getattr(row, name) for name in _REPLACED}
    try:
        # It must be in the scope of the handle, replaceable, of no higher authority, and made by no service.
        if row.base not in ("/", now.scope) and not now.scope.startswith(row.base + "/"):
            raise Conflict(f"the id {shown(row.public_id)} is taken by a memory outside this scope: give another")
        if on_existing == "error":
            raise Conflict(
                f"a memory with the id {shown(row.public_id)} is there already: give on_existing='replace' or "
                "'version', or another id"
            )
        if row.authority < rank_of(now.authority):
            raise Conflict(
                f"the id {shown(row.public_id)} is that of a memory by the authority {now.authority}, which "
                f"{authority_of(row.authority)} cannot replace: give another id"
            )
        check_owned(now, ("text",))
        settle_change(writer, row_id, now, columns)
    except RecalliteError as reason:
        raise RowRefused(row, reason) from reason
    keep = on_existing == "version"
    if (now.text, now.context, now.indexed) != (row.text, row.context, row.indexed) or row.vectors_given:
        row.recorded_from = row.updated_at = checks.now_us()
        writer.records.change_text(row_id, row, embedder_of(writer, identity, row), keep_version=keep)
    elif not keep:
        writer.records.purge_versions([row_id])
    writer.records.change_columns(row_id, {**columns, "updated_at": checks.now_us()}, row.tags)
    supersede_named(writer, [row], [row_id])
    return "updated" if keep else "replaced"
