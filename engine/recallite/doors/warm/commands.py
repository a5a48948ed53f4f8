"""Commands that the resident process answers: `recall` and `remember` with plain options, `mcp` and `hook`.

What is not parsed here, or not answered, is left to the full command line, which opens the store itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

from recallite.doors.warm.asking import OPTIONS, Link, Unanswered, may_start, start, store_headers

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
_IN_FILTER = ("scope", "kinds", "tags", "as_of", "valid_at", "since", "until", "include_superseded")
_FILTER_ALONE = ("since", "until", "include_superseded")
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
_BEFORE_HITS = '{"hits":'


class Call:
    """A parsed command: its name, options and texts, and the headers that name its store."""

    def __init__(self, words: Sequence[str]) -> None:
        """Raise Unanswered for what only the full command line knows."""
        rest = iter(words)
        store, (self.name, *_) = _parsed(rest, _GLOBAL, one_text=True)
        self.options, self.texts = _parsed(rest, _COMMANDS.get(self.name, {}))
        path = store["db"] if "db" in store else os.environ.get("RECALLITE_DB") or _default_path()
        if self.name not in _COMMANDS or path == ":memory:" or "://" in path or not path.strip():
            raise Unanswered("this is for the full command line")
        self.as_json = self.options.pop("json", False)
        self.settings: str | None = store.get("settings") or os.environ.get("RECALLITE_SETTINGS") or None
        self.headers = store_headers(path, self.settings, create=self.name != "recall")

    def body(self, **fields: Any) -> bytes:
        """The body of its request: its options, and its one text by name."""
        if len(self.texts) != 1 or self.texts[0] == "-":
            raise Unanswered("this is for the full command line")
        return json.dumps({**self.options, **fields}).encode()


def answered(words: Sequence[str]) -> int | None:
    """The exit code of a command that the resident process has answered; None if it has not."""
    try:
        if "--no-warm" in words or os.environ.get("RECALLITE_DEBUG") == "1" or not (sys.stdout and sys.stderr):
            return None
        call = Call(words)
        if call.name == "mcp":
            return _mcp(call, words)
        if call.name == "hook":
            return _hook(call)
        show = _recall(call) if call.name == "recall" else _remember(call)
    except Unanswered:
        return None
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = show()
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as fault:
        from recallite.doors.cli.run import ended

        return ended(fault, [*words])
    return code


def prepare(words: Sequence[str]) -> None:
    """Start the process for the next command of a person at a terminal, if this is one that it would have answered."""
    if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()) or "--no-warm" in words:
        return
    with suppress(Unanswered):
        call = Call(words)
        if call.name in ("recall", "remember") and _wanted(call):
            start(0.0)


def _wanted(call: Call) -> bool:
    """Whether the process may be started for a call, as far as its settings say."""
    if not may_start():
        return False
    if call.settings is None:
        return True
    from recallite.compat import load_settings
    from recallite.errors import InvalidInput

    try:
        warm = load_settings(call.settings).warm
    except InvalidInput:
        return False
    return warm is None or warm.use


def _default_path() -> str:
    from recallite.system.user_folder import user_folder  # what it imports takes 10 ms

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


def _recall(call: Call) -> Callable[[], int]:
    """Ask for hits; the function prints them and returns the exit code."""
    options = call.options
    if any(name in options for name in _FILTER_ALONE):
        options["filter"] = {name: options.pop(name) for name in _IN_FILTER if name in options}
    body = call.body(query="".join(call.texts))
    link = Link()
    encoded = _successful(link.ask("POST", "/v1/recall", body, call.headers))
    if not encoded.startswith(_BEFORE_HITS):
        raise Unanswered("the answer has another form")
    answer = json.loads(encoded)
    hits = _Hits(map(_hit, answer.pop("hits")))
    vars(hits).update(answer)
    empty = not hits and _successful(link.ask("GET", "/v1/count", headers=call.headers)) == "0"

    def show() -> int:
        from recallite.doors.cli.hits import print_hits
        from recallite.doors.cli.output import hint, print_encoded

        if call.as_json:
            end = json.JSONDecoder().raw_decode(encoded, len(_BEFORE_HITS))[1]
            print_encoded(encoded[len(_BEFORE_HITS) : end])
        elif empty:
            hint("the store is empty")
        else:
            print_hits(cast("Any", hits), many=False, explained=False)
        return 0 if hits else 1

    return show


class _Hits(list[SimpleNamespace]):
    """Hits with the attributes of `Hits`."""


def _hit(fields: dict[str, Any]) -> SimpleNamespace:
    """A hit with the attributes of `Hit` that are printed."""
    source = fields["source"]
    return SimpleNamespace(**{
        **_dated(fields), "supersedes": [SimpleNamespace(**_dated(former)) for former in fields["supersedes"]],
        "source": None if source is None else SimpleNamespace(**source),
    })  # fmt: skip


def _dated(fields: dict[str, Any]) -> dict[str, Any]:
    until = fields["held_until"]
    return {**fields, "held_until": None if until is None else datetime.fromisoformat(until)}


def _remember(call: Call) -> Callable[[], int]:
    """Have a memory stored; the function prints its id and what it changed, and returns the exit code."""
    body = call.body(text="".join(call.texts))
    encoded = _successful(Link().ask("POST", "/v1/memories", body, call.headers))
    fields = json.loads(encoded)
    contradictions = [SimpleNamespace(**entry) for entry in fields["contradictions"]]

    def show() -> int:
        from recallite.doors.cli.output import print_encoded
        from recallite.doors.cli.showing import print_stored

        if call.as_json:
            print_encoded(encoded)
        else:
            print_stored(cast("Any", SimpleNamespace(**{**fields, "contradictions": contradictions})))
        return 0

    return show


def _successful(answer: tuple[int, bytes]) -> str:
    """The body of an answer. Raises Unanswered for an error: the full command line says what is wrong."""
    status, body = answer
    if status not in (200, 201):
        raise Unanswered(f"the status is {status}")
    return body.decode()


def _hook(call: Call) -> int:
    """Have a host's hook answered, within its time. Raises Unanswered if no process answers it, and starts one."""
    from recallite.doors.hooks.running import PATH, PATIENCE_SECONDS, request, within

    try:
        link = Link()
    except Unanswered:
        if _wanted(call):
            start(0.0)
        raise
    event, host = "".join(call.texts), call.options.get("host", "claude-code")
    refusals: list[Unanswered] = []

    def ask() -> str:
        body = request(event, host, call.options.get("scope"), call.options.get("memories", False))
        try:
            return str(json.loads(_successful(link.ask("POST", PATH, body, call.headers))))
        except Unanswered as fault:
            refusals.append(fault)
            return ""

    code = within(call.options.get("patience", PATIENCE_SECONDS), ask, event, host)
    if refusals:  # such as of a process that may not open this store
        raise refusals[0]
    return code


def _mcp(call: Call, words: Sequence[str]) -> int | None:
    """Serve a host through the process; None if there is none, and none can be started."""
    from recallite.doors.warm.proxy import Proxy

    options = call.options
    if call.texts:
        raise Unanswered("a command below mcp is for the full command line")
    if "tools" in options:
        options["tools"] = [name.strip() for name in options["tools"].split(",") if name.strip()]
    if options.get("scope") == "project":
        from recallite.doors.hooks.projects import scope_named

        options["scope"] = scope_named("project")
    options["folders"] = [os.path.abspath(os.path.expanduser(path)) for path in options.get("folders", ())]
    headers = {**call.headers, OPTIONS: quote(json.dumps(options))}
    proxy = Proxy(headers, words, lambda: _wanted(call))
    return proxy.run() if proxy.connect() else None
