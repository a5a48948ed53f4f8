"""The commands that look after the store and do more than one call: rekey, warmup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from recallite.doors.cli.command import prints
from recallite.doors.cli.options import new_key, open_memory
from recallite.doors.cli.output import hint, named, print_rows, progress
from recallite.doors.cli.parameters import flag, option
from recallite.system import plugins

if TYPE_CHECKING:
    from recallite.memory import Memory


def _print_encrypted(encrypted: bool) -> None:
    hint(f"the store is {'encrypted' if encrypted else 'not encrypted'} now")


@prints(_print_encrypted, json=named("encrypted"))
def rekey(
    context: click.Context,
    new_key_file: Annotated[str | None, option("FILE", "A file with the new key. Default: RECALLITE_NEW_KEY.")] = None,
    decrypt: Annotated[bool, flag("Write the store without encryption instead.", "--decrypt")] = False,
) -> bool:
    """Encrypt the store with a new key.

    RECALLITE_KEY or RECALLITE_KEY_FILE gives the present key, if there is one. A key is never an argument: all users
    of the machine see the arguments of a process.
    """
    from recallite.model.environment import default_path

    new = new_key(new_key_file, decrypt=decrypt)
    plugins.load("functions", "release")(default_path() if context.obj is None else context.obj)
    with open_memory(context) as memory:
        memory.store.rekey(new)
    return new is not None


def _print_warmup(done: dict[str, Any]) -> None:
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in done["seconds"].items()])
    hint(f"kernels: {done['kernels']}")


@prints(_print_warmup, create=True)
def warmup(memory: Memory) -> dict[str, Any]:
    """Compile the kernels, load the embedder and the index."""
    with progress("loading", "kernels") as report:
        seconds = memory.store.warmup(on_progress=report)
    return {"seconds": seconds, "kernels": memory.store.stats().kernels}
