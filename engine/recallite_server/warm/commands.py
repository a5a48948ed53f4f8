"""Commands that the resident process answers: `recall` and `remember` with plain options, and `mcp`.

What is not parsed here, or not answered, is left to the full command line, which opens the store itself.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from types import SimpleNamespace

from recallite_server.warm.asking import OPTIONS, Call, Link, Unanswered, in_field, may_start, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_IN_FILTER = ("scope", "kinds", "tags", "as_of", "valid_at", "since", "until", "include_superseded", "sessions")
_FILTER_ALONE = ("since", "until", "include_superseded")
_BEFORE_HITS = '{"hits":'


def answered(words: Sequence[str]) -> int | None:
    """The exit code of a command that the resident process has answered; None if it has not."""
    try:
        if "--no-warm" in words or os.environ.get("RECALLITE_DEBUG") == "1" or not (sys.stdout and sys.stderr):
            return None
        call = Call(words)
        if call.name == "mcp":
            try:
                return _mcp(call, words)
            except KeyboardInterrupt as stop:
                from recallite.doors.cli.run import ended

                return ended(stop, [*words])
        if not call.is_of_file:
            return None
        if call.name == "hook":
            try:
                Link()
            except Unanswered:  # the hook is answered here this once
                if _may_start_for(call):
                    start(0.0)
            return None
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
    """Start the process for the next command, if this is one that it would have answered."""
    if "--no-warm" in words:
        return
    with suppress(Unanswered):
        call = Call(words)
        if call.name in ("recall", "remember") and call.is_of_file and _may_start_for(call):
            start(0.0)


def _may_start_for(call: Call) -> bool:
    """Whether the process may be started for a call, as far as its settings say."""
    if not may_start():
        return False
    if call.settings is None:
        return True
    if sys.flags.no_site:
        import site

        site.main()  # where packages are
    from recallite.compat import load_settings
    from recallite.errors import InvalidInput

    try:
        warm = load_settings(call.settings).warm
    except InvalidInput:
        return False
    return warm is None or warm.use


def _recall(call: Call) -> Callable[[], int]:
    """Ask for hits; the function prints them and returns the exit code."""
    options = call.options
    whole = options.pop("all", False)
    if any(name in options for name in _FILTER_ALONE):
        options["filter"] = {name: options.pop(name) for name in _IN_FILTER if name in options}
    body = json.dumps({**options, "query": call.text}).encode()
    link = Link()
    encoded = link.ask("recall", body, call.fields).decode()
    if not encoded.startswith(_BEFORE_HITS):
        raise Unanswered("the answer has another form")
    answer = json.loads(encoded)
    hits: Any = _Hits(map(_hit, answer.pop("hits")))
    vars(hits).update(answer)
    empty = not hits and link.ask("count", fields=call.fields) == b"0"

    def show() -> int:
        from recallite.doors.cli.output import hint, print_encoded
        from recallite.doors.cli.printers import print_hits

        if call.as_json and "relevant" in options:
            print_encoded(encoded)
        elif call.as_json:
            end = json.JSONDecoder().raw_decode(encoded, len(_BEFORE_HITS))[1]
            print_encoded(encoded[len(_BEFORE_HITS) : end])
        elif empty:
            hint("the store is empty")
        else:
            print_hits(hits, many=False, explained=False, whole=whole)
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
    from datetime import datetime

    until = fields["held_until"]
    return {**fields, "held_until": None if until is None else datetime.fromisoformat(until)}


def _remember(call: Call) -> Callable[[], int]:
    """Have a memory stored; the function prints its id and what it changed, and returns the exit code."""
    body = json.dumps({**call.options, "text": call.text}).encode()
    encoded = Link().ask("remember", body, call.fields).decode()
    fields = json.loads(encoded)
    contradictions = [SimpleNamespace(**entry) for entry in fields["contradictions"]]

    def show() -> int:
        from recallite.doors.cli.output import print_encoded
        from recallite.doors.cli.printers import print_stored

        if call.as_json:
            print_encoded(encoded)
        else:
            stored: Any = SimpleNamespace(**{**fields, "contradictions": contradictions})
            print_stored(stored)
        return 0

    return show


def _mcp(call: Call, words: Sequence[str]) -> int:
    """Serve a host, through the process if there is one or one can be started."""
    from recallite_server.warm.proxy import Proxy

    options = call.options
    if call.texts:
        raise Unanswered("a command below mcp is for the full command line")
    if "tools" in options:
        options["tools"] = [name.strip() for name in options["tools"].split(",") if name.strip()]
    options["folders"] = [os.path.abspath(os.path.expanduser(path)) for path in options.get("folders", ())]

    def fields() -> dict[str, str]:
        scope = {}
        if options.get("scope") == "project":
            from recallite_server.hooks.projects import scope_named

            scope = {"scope": scope_named("project")}
        return {**call.fields, OPTIONS: in_field(json.dumps({**options, **scope}))}

    return Proxy(fields if call.is_of_file else None, words, options, lambda: _may_start_for(call)).run()
