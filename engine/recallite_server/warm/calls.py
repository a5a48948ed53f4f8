"""The words of a command that the resident process may answer. Nothing is imported here that takes a while."""

from __future__ import annotations

import os

from recallite_server.warm.asking import Unanswered, store_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Option = tuple[str, type]

_GLOBAL: dict[str, Option] = {"--db": ("db", str), "--settings": ("settings", str)}
_JSON: dict[str, Option] = {"--json": ("json", bool)}
_RECALL: dict[str, Option] = {
    "--limit": ("limit", int), "-n": ("limit", int), "--mode": ("mode", str), "--profile": ("profile", str),
    "--relevant": ("relevant", bool), "--scope": ("scope", str),
    "--kind": ("kinds", list), "--tag": ("tags", list), "--as-of": ("as_of", str), "--valid-at": ("valid_at", str),
    "--diversify-by": ("diversify_by", str), "--token-budget": ("token_budget", int), "--since": ("since", str),
    "--until": ("until", str), "--include-superseded": ("include_superseded", bool), **_JSON,
}  # fmt: skip
_REMEMBER: dict[str, Option] = {
    "--on-existing": ("on_existing", str), "--importance": ("importance", float), "--pinned": ("pinned", bool),
    "--tag": ("tags", list), "--context": ("context", str), "--topic": ("topic", str), "--source": ("source", str),
    "--position": ("position", int), "--created-at": ("created_at", str), "--valid-from": ("valid_from", str),
    "--valid-until": ("valid_until", str), "--expires-at": ("expires_at", str), "--scope": ("scope", str),
    "--kind": ("kind", str), "--id": ("id", str), **_JSON,
}  # fmt: skip
_MCP: dict[str, Option] = {
    "--scope": ("scope", str), "--read-only": ("read_only", bool), "--tools": ("tools", str),
    "--document-folder": ("folders", list), "--document-urls": ("urls", bool), "--token-budget": ("token_budget", int),
    "--authority": ("authority", str),
}  # fmt: skip
_HOOK: dict[str, Option] = {
    "--host": ("host", str), "--scope": ("scope", str), "--patience": ("patience", float), "--wait": ("wait", bool),
    "--memories": ("memories", bool),
}  # fmt: skip
_COMMANDS = {"recall": _RECALL, "remember": _REMEMBER, "mcp": _MCP, "hook": _HOOK}


class Call:
    """A parsed command: its name, options and texts, and the headers that name its store, if that `is_of_file`."""

    def __init__(self, words: Sequence[str]) -> None:
        """Raise Unanswered for what only the full command line knows."""
        rest = iter(words)
        store, (self.name, *_) = _parsed(rest, _GLOBAL, one_text=True)
        self.options, self.texts = _parsed(rest, _COMMANDS.get(self.name, {}))
        path = store["db"] if "db" in store else os.environ.get("RECALLITE_DB") or _default_path()
        if self.name not in _COMMANDS or not path.strip():
            raise Unanswered("this is for the full command line")
        self.is_of_file = path != ":memory:" and "://" not in path
        self.as_json = self.options.pop("json", False)
        self.settings: str | None = store.get("settings") or os.environ.get("RECALLITE_SETTINGS") or None
        self.headers = store_headers(path, self.settings, create=self.name != "recall")

    @property
    def text(self) -> str:
        """Its one text. Raises Unanswered if there is another number of them, or it is on standard input."""
        if len(self.texts) != 1 or self.texts[0] == "-":
            raise Unanswered("this is for the full command line")
        return self.texts[0]


def _default_path() -> str:
    from recallite.system.folders import user_folder

    return os.path.join(user_folder(), "memory.db")


def _parsed(
    words: Iterator[str], known: Mapping[str, Option], *, one_text: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The options and texts of a command; with `one_text` those before and including the first text."""
    values: dict[str, Any] = {}
    texts: list[str] = []
    try:
        for word in words:
            if word == "--" and not one_text:
                return values, [*texts, *words]
            if not word.startswith("-"):
                texts.append(word)
                if one_text:
                    return values, texts
                continue
            name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            field, kind = known[name]
            value = value if equals or kind is bool else next(words)
            if kind is bool and equals:
                raise ValueError(word)
            values[field] = [*values.get(field, ()), value] if kind is list else kind(value or kind is bool)
    except (KeyError, StopIteration, ValueError):
        raise Unanswered("an option is for the full command line") from None
    if one_text:
        raise Unanswered("there is no command")
    return values, texts
