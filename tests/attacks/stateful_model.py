"""What a store must hold, in plain dicts: memories with their versions, links, and what the services keep.

Scopes are those of the file. Times are aware datetimes. Nothing here calls the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from posixpath import commonpath
from typing import Any

__all__ = ["FIELDS", "MICROSECOND", "Model", "Refused", "Version", "inside", "joined"]

# Of a record. What a recall counts (accesses) is left out, and what a write says of itself.
FIELDS = (
    "text", "kind", "scope", "context", "tags", "importance", "base_importance", "pinned", "topic", "source",
    "position", "created_at", "valid_from", "updated_at", "expires_at", "recorded_from", "recorded_until", "metadata",
    "embedding_state",
)  # fmt: skip
MICROSECOND = timedelta(microseconds=1)
_OF_DERIVED = {
    "procedure": ("text", "context", "vector", "kind", "scope", "metadata"),
    "chunk": ("text", "context", "vector", "kind", "scope", "source", "position", "metadata"),
}

Version = dict[str, Any]
"""The FIELDS of a record, `vector` (None: it has none), and `waits`: an embedder may give it one at any time."""


class Refused(Exception):
    """The call has to raise an error, and to change nothing."""


def inside(scope: str, base: str) -> bool:
    """Whether a scope is `base` or below it."""
    return base == "/" or scope == base or scope.startswith(base + "/")


def joined(base: str, scope: str) -> str:
    """A scope of a handle bound to `base`, as the file has it."""
    return scope if base == "/" else base if scope == "/" else base + scope


@dataclass
class Model:
    """One file. Verbs that have to fail raise Refused before they change anything."""

    records: dict[str, list[Version]] = field(default_factory=dict)
    links: dict[tuple[str, str, str], float] = field(default_factory=dict)
    uses: dict[str, tuple[float, int, int]] = field(default_factory=dict)
    documents: dict[tuple[str, str], tuple[bytes, str]] = field(default_factory=dict)
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    snapshots: list[tuple[str, str, list[dict[str, Any]]]] = field(default_factory=list)
    runs: dict[tuple[str, str, tuple[str, ...]], list[int]] = field(default_factory=dict)
    recoveries: dict[tuple[str, str, str], tuple[str, int]] = field(default_factory=dict)
    working: dict[str, list[Any]] = field(default_factory=dict)

    # ── reading ────────────────────────────────────────────────────────────────────────────────────────────────

    def standing(self, public_id: str, base: str) -> Version:
        """The version of a record that stands."""
        versions = self.records.get(public_id)
        if versions is None or not inside(versions[-1]["scope"], base):
            raise Refused(public_id)
        return versions[-1]

    def visible(self, base: str) -> dict[str, Version]:
        """Every standing version in a scope, expired ones too."""
        return {id: versions[-1] for id, versions in self.records.items() if inside(versions[-1]["scope"], base)}

    def listed(self, base: str, now: datetime, keeps: Callable[[Version], bool] | None = None) -> dict[str, Version]:
        """What list shows, oldest first."""
        return {
            public_id: version
            for public_id, version in self.visible(base).items()
            if (version["expires_at"] is None or version["expires_at"] > now) and (keeps is None or keeps(version))
        }

    def history(self, public_id: str, base: str) -> list[Version]:
        """The versions of a record that a scope sees, oldest first."""
        return [version for version in self.records[public_id] if inside(version["scope"], base)]

    def as_of(self, base: str, moment: datetime) -> set[tuple[str, datetime]]:
        """(id, begin) of the versions that stood at a moment."""
        return {
            (public_id, version["recorded_from"])
            for public_id, versions in self.records.items()
            for version in versions
            if inside(version["scope"], base)
            and version["created_at"] <= moment
            and version["recorded_from"] <= moment
            and (version["recorded_until"] is None or version["recorded_until"] > moment)
            and (version["expires_at"] is None or version["expires_at"] > moment)
        }

    # ── memories ───────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, public_id: str, changes: Mapping[str, Any], base: str, now: datetime, embed: Embed) -> None:
        """What `update` does; `changes` are of its arguments, times as datetimes."""
        version = self.standing(public_id, base)
        if set(changes) & set(_OF_DERIVED.get(version["kind"], ())):
            raise Refused(version["kind"])
        text, context = changes.get("text", version["text"]), changes.get("context", version["context"])
        said = (text, context) != (version["text"], version["context"]) or changes.get("vector") is not None
        columns = {name: value for name, value in changes.items() if name not in ("text", "context", "vector")}
        if said:
            version = self.say(public_id, text, context, changes.get("vector"), now, embed)
        if columns:
            if "scope" in columns:
                columns["scope"] = joined(base, columns["scope"])
            if "importance" in columns:
                columns["base_importance"] = None
            version |= columns
            if columns.keys() != {"expires_at"}:  # how long a memory is shown is nothing that it says
                version["updated_at"] = now
            # Who may not see the record may not see its past, nor who sees it now what it said elsewhere.
            for closed in self.records[public_id][:-1]:
                closed |= {"scope": commonpath((closed["scope"], version["scope"])), "source": version["source"]}

    def say(
        self, public_id: str, text: str, context: str | None, vector: Any, now: datetime, embed: Embed,
        *, keep: bool = True, begin: datetime | None = None,
    ) -> Version:  # fmt: skip
        """Close what stands and put another text in its place; or keep nothing that was said before."""
        versions = self.records[public_id]
        old = versions[-1]
        begin = max(now if begin is None else begin, old["recorded_from"] + MICROSECOND)
        new = {
            **old, "text": text, "context": context, "recorded_from": begin, "updated_at": now,
            **embed(text, context, vector),
        }  # fmt: skip
        old["recorded_until"] = begin
        versions[:] = [*versions, new] if keep else [new]
        return new

    def restore(self, public_id: str, place: int, base: str, now: datetime, embed: Embed) -> None:
        """Say again what was said in the version at `place`."""
        standing = self.standing(public_id, base)
        versions = self.history(public_id, base)
        if (
            not -len(versions) <= place < len(versions)
            or versions[place] is standing
            or standing["kind"] in _OF_DERIVED
        ):
            raise Refused(public_id)
        old = versions[place]
        new = self.say(public_id, old["text"], old["context"], None, now, embed)
        # The vectors of a version come along; one that waits may have none yet, and is embedded again.
        if old["vector"] is not None and not old["waits"]:
            new |= {name: old[name] for name in ("vector", "embedding_state", "waits")}

    def forget(self, ids: Iterable[str]) -> tuple[int, int]:
        """Purge records; returns how many they were, and how many closed versions they had."""
        gone = [self.records.pop(public_id) for public_id in dict.fromkeys(ids)]
        self.links = {
            key: strength for key, strength in self.links.items()
            if key[0] in self.records and key[1] in self.records
        }  # fmt: skip
        self.uses = {public_id: use for public_id, use in self.uses.items() if public_id in self.records}
        self.documents = {key: held for key, held in self.documents.items() if held[1] in self.records}
        return len(gone), sum(len(versions) - 1 for versions in gone)

    def forget_services(self, scope: str) -> int:
        """Purge what the services keep in a scope; returns how many rows that were."""
        held: tuple[dict[Any, Any], ...] = (self.sessions, self.runs, self.recoveries, self.documents)
        gone = 0
        for each in held:
            for key in [key for key in each if inside(key[0], scope)]:
                del each[key]
                gone += 1
        for path in [path for path in self.working if inside(path, scope)]:
            del self.working[path]
            gone += 1
        kept = [snapshot for snapshot in self.snapshots if not inside(snapshot[0], scope)]
        gone += len(self.snapshots) - len(kept)
        self.snapshots = kept
        return gone

    # ── links and topics ───────────────────────────────────────────────────────────────────────────────────────

    def link(self, source: str, target: str, kind: str, strength: float, base: str) -> None:
        """What `link` does."""
        self.standing(source, base)
        self.standing(target, base)
        if source == target:
            raise Refused(source)
        self.links[source, target, kind] = strength

    def unlink(self, source: str, target: str, kind: str | None, base: str) -> int:
        """What `unlink` does; returns how many links there were."""
        self.standing(source, base)
        self.standing(target, base)
        gone = [key for key in self.links if key[:2] == (source, target) and kind in (None, key[2])]
        for key in gone:
            del self.links[key]
        return len(gone)

    def neighbors(self, public_id: str, base: str) -> dict[tuple[str, str, str], float]:
        """The links of a record to others in a scope."""
        return {
            key: strength
            for key, strength in self.links.items()
            if public_id in key[:2] and all(inside(self.records[end][-1]["scope"], base) for end in key[:2])
        }

    def on_topic(self, scope: str, topic: str, now: datetime) -> str | None:
        """The memory of a topic in exactly this scope whose text changed last."""
        found = [
            (version["recorded_from"], place, public_id)
            for place, (public_id, version) in enumerate(self.listed("/", now).items())
            if (version["scope"], version["kind"], version["topic"]) == (scope, "memory", topic)
        ]
        return max(found)[2] if found else None


Embed = Callable[[str, str | None, Any], dict[str, Any]]
"""`vector`, `embedding_state` and `waits` of a text with its context, and a vector that was given with it."""
