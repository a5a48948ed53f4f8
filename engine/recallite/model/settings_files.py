"""Settings files as tables: TOML, JSON with comments, or YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.checks import check_path
from recallite.system.atomic_file import unfinished
from recallite.system.messages import shown

_MOST_BYTES = 262_144
_MOST_PARTS = 32
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")
# The strings and comments of a TOML file; every other dot is in a number, a time or a key.
_TOML_ASIDE = re.compile(
    r'"{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|"(?:[^"\\\n]|\\.)*+"'
    r"|'{3}(?:[^']|'(?!''))*+'{3}|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)


def read_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table of a .toml, .json, .jsonc, .json5, .yaml or .yml file. Raises InvalidInput where there is none."""
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
        raise InvalidInput(f"{file} is not UTF-8: byte {fault.start} is not part of a character") from None
    try:
        table = parse(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{file} cannot be parsed: {' '.join(str(fault).split())}") from None
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise InvalidInput(f"{file} holds {shown(table)}: give a table of settings")
    return table


def with_path(path: object, fault: InvalidInput) -> InvalidInput:
    """The error with the path of the file before it, unless it is there already."""
    message, at = str(fault), str(path) if isinstance(path, str | PurePath) else ""
    if at in message or shown(at) in message:
        return InvalidInput(message)
    return InvalidInput(f"{at if at.isprintable() and len(at) <= 1_000 else shown(at)}: {message}")


def write_table(path: str | os.PathLike[str], table: Mapping[str, Any]) -> None:
    """Write a .toml, .json or .yaml file that `read_table` reads, atomically. Only its owner may read it."""
    file = check_path(path)
    form = _WRITERS.get(file.suffix.lower())
    if form is None:
        raise InvalidInput(f"{file}: a settings file is written as one of {', '.join(_WRITERS)}")
    try:
        with unfinished(f"{file.parent}{os.sep}", file.name) as part:
            with open(part.descriptor, "w", encoding="utf-8", closefd=False) as stream:
                stream.write(form(table))
            part.finish()
            os.replace(part.path, file)
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be written: {fault.strerror}") from fault


def _toml(text: str) -> Any:
    import tomllib

    # tomllib keeps every prefix of a dotted key: one with 40,000 parts took 1.7 GB.
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
    """Refuse repeated keys, of which YAML would take the last, and aliases of mappings and lists: ten nested ones are
    a billion values.
    """
    if node is None or isinstance(node.value, str):
        return
    if id(node) in seen:
        raise ValueError(f"the value in line {node.start_mark.line + 1} is used again by an alias: write it out")
    seen.add(id(node))
    known: set[str] = set()
    for key in (item[0].value for item in node.value if isinstance(item, tuple)):
        if isinstance(key, str) and key in known:
            raise ValueError(
                f"the key {shown(key)} is given twice in the table from line {node.start_mark.line + 1} on"
            )
        known |= {key} if isinstance(key, str) else set()
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            _check_keys_once(inner, seen)


def _without_none(value: Any) -> Any:
    """The table without None, which TOML has not."""
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
