"""Changes to what is stored: update, forget, link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from recollect import checks
from recollect.engine import Engine
from recollect.errors import InvalidInput, NotFound
from recollect.records import Forgotten
from recollect.remember.embed import embed_rows, identity_for
from recollect.remember.prepare import check_context, check_flag, uuid7
from recollect.store import changing, filters, reading, services, vectors
from recollect.store.filters import Filter
from recollect.store.writing import Row
from recollect.text.normalise import content_hash
from recollect.text.tokens import tokenize

__all__ = ["forget", "link", "row_id", "update"]

_CHANGEABLE = (
    "text", "context", "vector", "kind", "scope", "tags", "importance", "metadata", "topic", "source", "position",
    "event_at", "expires_at", "pinned",
)  # fmt: skip
LINK_TYPES = ("similar", "sequential", "causal", "contradicts", "supports", "elaborates")


def row_id(connection: Any, public_id: object, base: str) -> int:
    """The row id of an open record that a handle bound to `base` may see; NotFound otherwise."""
    if isinstance(public_id, str) and public_id.isascii() and "\x00" not in public_id:
        found = reading.find_ids(connection, [public_id], filters.scope_condition(base))
        if public_id in found:
            return found[public_id]
    where = "" if base == "/" else f" in scope {base}"
    raise NotFound(f"no memory {checks.shown(public_id)}{where}: it was never stored, was forgotten, or is elsewhere")


def update(engine: Engine, public_id: str, changes: Mapping[str, Any], *, base: str) -> bool:
    """Change fields of a record; a new text or context closes the old version. True if the text changed."""
    columns, tags = _checked(changes, base)
    with engine.store.read() as connection:
        record_id = row_id(connection, public_id, base)
        (old,) = reading.records(connection, filters.one_record(record_id))
    row = None
    text = changes.get("text", old.text)
    context = check_context(changes["context"]) if "context" in changes else old.context
    if (text, context) != (old.text, old.context) or changes.get("vector") is not None:
        checks.check_text(text, engine.settings.max_text_chars)
        row = _version(text, context)
        identity = identity_for(engine, changes.get("vector"))
        embed_rows(engine.embedder, [row], [changes.get("vector")], identity)
    if row is None and not columns and tags is None:
        return False
    columns["updated_at"] = checks.now_us()
    with engine.atomic() as connection:
        record_id = row_id(connection, public_id, base)
        if row is not None:
            made_by = None
            if row.vectors and identity is not None:
                made_by = vectors.register(connection, engine.store.path, **identity._asdict())
            changing.change_text(connection, engine.lexicon, record_id, row, made_by)
        if tags is not None or len(columns) > 1:
            changing.change_columns(connection, record_id, columns, tags)
    return row is not None


def forget(engine: Engine, ids: Sequence[str], chosen: Filter | None, *, base: str) -> Forgotten:
    """Purge records by id, or all that a filter matches, with their versions and everything derived.

    A filter of a scope and nothing else takes along what the services keep in it.
    """
    with engine.atomic() as connection:
        if chosen is None:
            found = [row_id(connection, public_id, base) for public_id in dict.fromkeys(ids)]
        else:
            condition = filters.open_versions() & filters.restriction(chosen)
            found = reading.matching_ids(connection, condition)
        versions = changing.delete(connection, found)
        whole = chosen is not None and structs.replace(chosen, scopes=()).unrestricted
        scopes = (chosen.scopes or ("/",)) if chosen is not None and whole else ()
        kept = sum(services.purge(connection, scope) for scope in scopes)
    return Forgotten(records=len(found), versions=versions, services=kept)


def link(engine: Engine, source: str, target: str, type: str, strength: float, *, base: str) -> None:
    """Link two records; again with another strength, it is changed."""
    type = check_link_type(type)
    strength = checks.check_unit(strength, "strength")
    with engine.atomic() as connection:
        ends = row_id(connection, source, base), row_id(connection, target, base)
        if ends[0] == ends[1]:
            raise InvalidInput(f"{source} cannot be linked to itself")
        changing.put_links(connection, [(*ends, type, strength, checks.now_us())])


def check_link_type(type: object) -> str:
    """One of the link types."""
    if not isinstance(type, str) or type not in LINK_TYPES:
        raise InvalidInput(f"type is {checks.shown(type)}: use one of {', '.join(LINK_TYPES)}")
    return type


def _checked(changes: Mapping[str, Any], base: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """The columns and tags that `changes` ask for, checked."""
    columns: dict[str, Any] = {}
    tags = None
    for name, value in changes.items():
        match name:
            case "text" | "context" | "vector":
                continue
            case "tags":
                tags = checks.check_tags(value)
            case "kind":
                columns[name] = checks.check_name(value, name)
            case "topic" | "source":
                columns[name] = None if value is None else checks.check_name(value, name)
            case "scope":
                columns[name] = checks.join_scopes(base, value) or "/"
            case "importance":
                columns |= {name: checks.check_unit(value, name), "given_importance": None}
            case "metadata":
                metadata = checks.check_metadata(value)
                columns[name] = msgspec.json.encode(metadata).decode() if metadata else None
            case "position":
                columns[name] = None if value is None else checks.check_count(value, name, minimum=0)
            case "event_at" | "expires_at":
                columns[name] = checks.check_time(value, name)
            case "pinned":
                columns[name] = check_flag(value, name)
            case _:
                raise InvalidInput(f"update has no field {checks.shown(name)}: use {', '.join(_CHANGEABLE)}")
    return columns, tags


def _version(text: str, context: str | None) -> Row:
    """A row that carries only what a new version changes."""
    now = checks.now_us()
    return Row(
        public_id=uuid7(), kind="", scope="/", text=text, context=context, importance=0.5, pinned=False, topic=None,
        source=None, position=None, created_at=now, event_at=None, updated_at=now, expires_at=None, valid_from=now,
        metadata=None, content_hash=content_hash(text, context), words=tokenize(context or "") + tokenize(text),
    )  # fmt: skip
