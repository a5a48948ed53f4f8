"""Sections of other systems in a settings file: that of Reeve's `reeve.json` and that of Hermes' `config.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.model.configuration import check_keys
from recallite.system.messages import shown


class Dialect(NamedTuple):
    """A system's section: its key in the file, the profile it implies, and its keys with the (table, key) of ours.

    `part` is the key below the section that tells it from other things of the same name; all else is left out.
    """

    name: str
    profile: str
    keys: dict[str, tuple[str, str]]
    part: str | None = None

    def without_others(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """The file's table without what the system keeps in the section beside its memory settings."""
        section = table[self.name]
        if self.part is not None and isinstance(section, Mapping) and self.part in section:
            return {**table, self.name: {self.part: section[self.part]}}
        return table


REEVE = Dialect(
    "memorySearch",
    profile="reeve",
    keys={
        "temporalDecay.halfLife": ("profile", "half_life_days"),
        "temporalDecay.floor": ("profile", "decay_floor"),
        "mergeStrategy": ("write", "merge_strategy"),
    },
)
HERMES = Dialect(
    "memory",
    profile="hermes",
    keys={
        "recall.semantic_weight": ("profile", "semantic_weight"),
        "recall.recency_weight": ("profile", "recency_weight"),
        "recall.importance_weight": ("profile", "importance_weight"),
        "recall.recency_half_life_days": ("profile", "half_life_days"),
    },
    part="recall",
)
DIALECTS = {dialect.name: dialect for dialect in (REEVE, HERMES)}


def own_table(dialect: Dialect, table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The table in Recallite's form, and for each of our keys the key that the file has for it.

    Raises InvalidInput, which begins with the key of the file, for what the section may not hold.
    """
    translated = {key: value for key, value in table.items() if key != dialect.name}
    name = translated.get("profile", dialect.profile)
    profile = {"name": name} if isinstance(name, str) else dict(name) if isinstance(name, Mapping) else name
    if not isinstance(profile, dict) or profile.setdefault("name", dialect.profile) != dialect.profile:
        raise InvalidInput(f"profile is {shown(name)}: {dialect.name} goes with the profile {dialect.profile!r}")
    tables: dict[str, Any] = {"profile": profile, "write": translated.get("write", {})}
    origins: dict[str, str] = {}
    for path, value in _leaves(table[dialect.name], dialect):
        part, key = dialect.keys[path]
        present = tables[part]
        if not isinstance(present, Mapping):
            raise InvalidInput(f"{part} is {shown(present)}: give a table")
        if key in present and present[key] != value:
            raise InvalidInput(
                f"{dialect.name}.{path} is {shown(value)} and {part}.{key} is {shown(present[key])}: give one of them"
            )
        tables[part] = {**present, key: value}
        origins[f"{part}.{key}"] = f"{dialect.name}.{path}"
    translated["profile"] = tables["profile"]
    if tables["write"]:
        translated["write"] = tables["write"]
    return translated, origins


def with_file_keys(fault: InvalidInput, origins: Mapping[str, str]) -> InvalidInput:
    """The error with the key that the file has in place of ours."""
    key, space, rest = str(fault).partition(" ")
    return InvalidInput(f"{origins.get(key, key)}{space}{rest}")


def _leaves(table: object, dialect: Dialect, path: str = "") -> list[tuple[str, Any]]:
    """Every key of the section with its value, by its path in it."""
    inside = [key.removeprefix(path) for key in dialect.keys if key.startswith(path)]
    allowed = tuple(dict.fromkeys(key.split(".")[0] for key in inside))
    leaves: list[tuple[str, Any]] = []
    for key, value in check_keys(table, f"{dialect.name}.{path}".rstrip("."), allowed).items():
        here = path + key
        leaves += [(here, value)] if here in dialect.keys else _leaves(value, dialect, f"{here}.")
    return leaves
