"""Tables of words, in the text files beside the modules that read them."""

from __future__ import annotations

from pathlib import Path


def read_tables(module: str) -> dict[str, str]:
    """The tables of the text file of a module by name: a line `[name]` begins each."""
    tables: dict[str, str] = {}
    name = ""
    for line in Path(module).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line[1:-1]
            tables[name] = ""
        else:
            tables[name] += f"{line}\n"
    return tables
