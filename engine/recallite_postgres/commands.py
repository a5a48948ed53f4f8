"""The command copy: a store with everything in it, to a file or server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from recallite_cli.command import argument, chosen_settings, flag, option, prints
from recallite_cli.output import hint, print_rows, progress

if TYPE_CHECKING:
    from recallite_postgres.copy_store import CopyReport


def _print_copied(done: CopyReport) -> None:
    print_rows(
        ("", ""),
        [(done.records, "memories, with their versions and chunks"), (sum(done.rows.values()), "rows"),
         (done.resumed, "of them from an earlier run"), (done.recalls, "recalls with equal hits")],
    )  # fmt: skip
    for problem in done.problems:
        hint(f"not the same: {problem}")
    if done.source_changed:
        hint(
            "the source was written to meanwhile: the copy has it as it was at the beginning, and no recalls were made"
        )


@prints(_print_copied, fails=lambda done: not done.ok)
def copy(
    context: click.Context,
    source: Annotated[str, argument("SOURCE", "The store: a file or postgresql://USER@HOST/DATABASE?schema=NAME.")],
    target: Annotated[str, argument("TARGET", "Where there is no store yet: a file or an address.")],
    scope: Annotated[str, option("/A/B", "Only this scope and those below it.")] = "/",
    access_tokens: Annotated[bool, flag("Also the tokens of recallite serve.", "--access-tokens")] = False,
    no_verify: Annotated[bool, flag("Do not compare source and target.", "--no-verify")] = False,
    new_key_file: Annotated[
        str | None, option("FILE", "The key of a target that is a file, where it is another than the source's.")
    ] = None,
) -> CopyReport:
    """Copy a store with everything in it to a file or server.

    The source is only read. A copy that was stopped is finished by the same command. Afterwards both are compared:
    all rows, and the hits of some recalls. A file and its copy have the same key, unless --new-key-file is given.
    """
    from recallite.model.environment import key_in
    from recallite_postgres.copy_store import copy_store

    with progress("copying", "rows") as report:
        return copy_store(
            source, target, scope=scope, access_tokens=access_tokens, verify=not no_verify,
            target_key=None if new_key_file is None else key_in(new_key_file), settings=chosen_settings(context),
            on_progress=report,
        )  # fmt: skip
