"""Commands that the resident process answers: `recall` and `remember` of a text, `mcp` and hooks.

What it does not answer is left to the full command line, which opens the store itself.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from types import SimpleNamespace

from recallite_server.warm.asking import OPERATIONS, OPTIONS, Call, Link, Unanswered, in_field, may_start, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import click


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
                from recallite_cli.run import ended

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
        show = _asked(call)
    except Unanswered:
        return None
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = show()
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as fault:
        from recallite_cli.run import ended

        return ended(fault, [*words])
    return code


def prepare(words: Sequence[str]) -> None:
    """Start the process for the next command, if this is one that it would have answered."""
    if "--no-warm" in words:
        return
    with suppress(Unanswered):
        call = Call(words)
        if call.name in OPERATIONS and call.is_of_file and _may_start_for(call) and parsed(call.name, call.words):
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


def parsed(name: str, words: Sequence[str]) -> click.Context:
    """The command of an operation, with the values of its options. Raises Unanswered for words that are a mistake."""
    import click

    from recallite.doors.operations import operation_named
    from recallite_cli.command import command_of

    try:
        return command_of(operation_named(name)).make_context(name, [*words], help_option_names=[])
    except click.ClickException as fault:
        raise Unanswered(fault.format_message()) from None


def _asked(call: Call) -> Callable[[], int]:
    """Have the process carry a command out; the function prints what comes of it and returns the exit code."""
    head, _, encoded = Link().ask(call.name, json.dumps(call.words).encode(), call.fields).decode().partition("\n")
    as_json, failed = json.loads(head)
    value: Any = None if as_json else json.loads(encoded)

    def show() -> int:
        from recallite_cli.output import print_encoded
        from recallite_cli.printers import Answers, print_answers, print_stored

        if as_json:
            print_encoded(encoded)
        elif call.name == "recall":
            print_answers(Answers(**{**value, "hits": [*map(_hits, value["hits"])]}))
        else:
            value["contradictions"] = [*map(_with_attributes, value["contradictions"])]
            print_stored(_with_attributes(value))
        return int(failed)

    return show


def _with_attributes(fields: dict[str, Any]) -> Any:
    """A record or hit with the attributes that are printed, from its fields in JSON."""
    until = fields.get("held_until")
    if until is not None:
        from datetime import datetime

        fields["held_until"] = datetime.fromisoformat(until)
    return SimpleNamespace(**fields)


class _Hits(list[SimpleNamespace]):
    """Hits with the attributes of `Hits`."""


def _hits(fields: dict[str, Any]) -> Any:
    hits = _Hits()
    for hit in fields.pop("hits"):
        source = hit["source"]
        former = [*map(_with_attributes, hit["supersedes"])]
        source = None if source is None else _with_attributes(source)
        hits.append(_with_attributes({**hit, "supersedes": former, "source": source}))
    vars(hits).update(fields)
    return hits


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
