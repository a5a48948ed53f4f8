"""Settings files as tables: TOML, JSON with comments, or YAML; ours, Reeve's `reeve.json` and Hermes' `config.yaml`."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from recollect.checks import check_path, shown
from recollect.errors import InvalidInput

__all__ = ["adopt_foreign", "check_keys", "naming", "read_table", "without_others", "write_table"]

# The sections of other systems: the profile each implies, and where its keys stand in ours.
_FOREIGN: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "memorySearch": (
        "reeve",
        {
            "temporalDecay.halfLife": ("profile", "halfLife"),
            "temporalDecay.floor": ("profile", "floor"),
            "mergeStrategy": ("write", "merge_strategy"),
        },
    ),
    "memory": (
        "hermes",
        {
            f"recall.{name}": ("profile", name)
            for name in ("semantic_weight", "recency_weight", "importance_weight", "recency_half_life_days")
        },
    ),
}


_MOST_BYTES = 262_144
_MOST_PARTS = 32
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")
# The strings and comments of a TOML file; in what is left every dot is one of a number, a time or a key.
_TOML_ASIDE = re.compile(
    r'"{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|"(?:[^"\\\n]|\\.)*+"'
    r"|'{3}(?:[^']|'(?!''))*+'{3}|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)


def read_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table that a .toml, .json, .jsonc, .json5, .yaml or .yml file holds; InvalidInput says why there is none."""
    file = check_path(path)
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        raise InvalidInput(f"{file}: a settings file ends in one of {', '.join(_PARSERS)}")
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidInput(f"{file} has more than {_MOST_BYTES:,} bytes: is it a settings file?")
        text = data.decode("utf-8-sig")
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{file} is not UTF-8: byte {fault.start} is no part of a character") from None
    try:
        table = parse(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{file} cannot be parsed: {' '.join(str(fault).split())}") from None
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise InvalidInput(f"{file} holds {shown(table)}: give a table of settings")
    return table


def naming(path: object, fault: InvalidInput) -> InvalidInput:
    """What is wrong in a settings file, with the file's path before it where it is not told yet."""
    said, at = str(fault), str(path) if isinstance(path, str | PurePath) else ""
    if at in said or shown(at) in said:
        return InvalidInput(said)
    return InvalidInput(f"{at if at.isprintable() and len(at) <= 1_000 else shown(at)}: {said}")


def write_table(path: str | os.PathLike[str], table: Mapping[str, Any]) -> None:
    """Write a .toml, .json or .yaml file that `read_table` reads; only its owner may read it. It appears, or is
    replaced, when all of it has been written.
    """
    file = check_path(path)
    form = _WRITERS.get(file.suffix.lower())
    if form is None:
        raise InvalidInput(f"{file}: a settings file is written as one of {', '.join(_WRITERS)}")
    unfinished = file.with_name(f".{file.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
                out.write(form(table))
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be written: {fault.strerror}") from fault


def without_others(table: object, known: tuple[str, ...]) -> object:
    """The table of another system's file without what that system keeps there beside its memory settings."""
    if not isinstance(table, Mapping):
        return table
    hermes = table.get("memory")
    if isinstance(hermes, Mapping) and "recall" in hermes:
        table = {**table, "memory": {"recall": hermes["recall"]}}
    elif "memorySearch" not in table:
        return table
    return {key: value for key, value in table.items() if key in known}


def adopt_foreign(table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[tuple[str, str], str]]:
    """The table with other systems' sections in our form, and by section and key where the file has each of those.

    Raises InvalidInput, which begins with the path of the key, for what those sections may not hold.
    """
    own = {key: value for key, value in table.items() if key not in _FOREIGN}
    found = [key for key in table if key in _FOREIGN]
    origins: dict[tuple[str, str], str] = {}
    if not found:
        return own, origins
    if len(found) > 1:
        raise InvalidInput(f"{found[0]} and {found[1]}: they are sections of different systems; give one")
    (section,) = found
    name, keys = _FOREIGN[section]
    given = own.get("profile", name)
    profile = {"name": given} if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else given
    if not isinstance(profile, dict) or profile.setdefault("name", name) != name:
        raise InvalidInput(f"profile is {shown(given)}: {section} goes with the profile {name!r}")
    tables: dict[str, Any] = {"profile": profile, "write": own.get("write", {})}
    for path, value in _leaves(table[section], section, keys):
        part, key = keys[path]
        held = tables[part]
        if not isinstance(held, Mapping):
            raise InvalidInput(f"{part} is {shown(held)}: give a table")
        if key in held and held[key] != value:
            raise InvalidInput(
                f"{section}.{path} is {shown(value)} and {part}.{key} is {shown(held[key])}: give one of them"
            )
        tables[part] = {**held, key: value}
        origins[part, key] = f"{section}.{path}"
    own["profile"] = tables["profile"]
    if tables["write"]:
        own["write"] = tables["write"]
    return own, origins


def check_keys(table: object, path: str, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    """A table that holds no other keys than these."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{path} is {shown(table)}: give a table with {', '.join(allowed)}")
    for key in table:
        if key not in allowed:
            at = f"{path}.{key}" if path else str(key)
            raise InvalidInput(
                f"{shown(at)} is no setting (its value is {shown(table[key])}): use {', '.join(allowed)}"
            )
    return table


def _leaves(table: object, section: str, keys: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """Every key that stands under a section, by its path in it."""
    inside = [key.removeprefix(path) for key in keys if key.startswith(path)]
    allowed = tuple(dict.fromkeys(key.split(".")[0] for key in inside))
    found: list[tuple[str, Any]] = []
    for key, value in check_keys(table, (f"{section}.{path}").rstrip("."), allowed).items():
        here = path + key
        found += [(here, value)] if here in keys else _leaves(value, section, keys, f"{here}.")
    return found


def _toml(text: str) -> Any:
    import tomllib

    # tomllib keeps every beginning of a dotted key: one of 40,000 parts took 1.7 GB.
    if _DOTTED.search(_TOML_ASIDE.sub("s", text)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts")
    return tomllib.loads(text)


def _json(text: str) -> Any:
    import json5

    return json5.loads(text, allow_duplicate_keys=False)


def _yaml(text: str) -> Any:
    import yaml

    try:
        _check_keys_once(yaml.compose(text, yaml.SafeLoader), set())
        return yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ValueError(str(fault)) from None


def _check_keys_once(node: Any, seen: set[int]) -> None:
    """Refuse a YAML mapping that has a key twice, of which YAML would take the last, and aliases of more than a word:
    ten of them, each in the next, are a billion values to whoever walks through them.
    """
    if node is None or isinstance(node.value, str):
        return
    if id(node) in seen:
        raise ValueError(f"what stands in line {node.start_mark.line + 1} is used again by an alias: write it out")
    seen.add(id(node))
    known: set[str] = set()
    for key in (item[0].value for item in node.value if isinstance(item, tuple)):
        if isinstance(key, str) and key in known:
            raise ValueError(f"the key {shown(key)} stands twice in what begins in line {node.start_mark.line + 1}")
        known |= {key} if isinstance(key, str) else set()
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            _check_keys_once(inner, seen)


def _without_none(value: Any) -> Any:
    """TOML has no null: what is None is left out."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value


def _to_toml(table: Mapping[str, Any]) -> str:
    import tomli_w

    return tomli_w.dumps(_without_none(table))


def _to_json(table: Mapping[str, Any]) -> str:
    import json

    return json.dumps(table, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _to_yaml(table: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(table), sort_keys=False, allow_unicode=True))


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".toml": _toml, ".json": _json, ".jsonc": _json, ".json5": _json, ".yaml": _yaml, ".yml": _yaml,
}  # fmt: skip
_WRITERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ".toml": _to_toml, ".json": _to_json, ".jsonc": _to_json, ".json5": _to_json, ".yaml": _to_yaml, ".yml": _to_yaml,
}  # fmt: skip
