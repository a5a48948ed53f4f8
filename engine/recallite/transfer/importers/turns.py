"""What readers of conversations have in common: texts, and parts of JSON that may have any shape."""

from __future__ import annotations

from typing import Any

from recallite.transfer.importers.values import cleaned, label_of


def text_of(value: object) -> str:
    """A text that a store can hold, without white space around it; empty for what is no text."""
    return cleaned(value).strip() if isinstance(value, str) else ""


def shown_name(path: str) -> str:
    """The path of a file as reports show it, with U+FFFD for what a terminal does not print."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in path)


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> list[Any]:
    """The value if it is an array of JSON, else an empty one."""
    return value if isinstance(value, list) else []


def labels(**fields: object) -> dict[str, Any]:
    """The fields that are numbers, or texts that are not blank, as metadata."""
    found = {name: value if isinstance(value, int) else label_of(value) for name, value in fields.items()}
    return {name: value for name, value in found.items() if value is not None}
