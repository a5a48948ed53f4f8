"""Patterns and tables of words, which the modules of texts share.

All regular expressions take 0.15 s to compile, and a recall needs few: each is compiled when it is first used. Tables
of words are in text files beside the modules that read them.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import cast


class LazyPattern:
    """Stands for a pattern, and has its attributes."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> object:
        value = getattr(self.compiled, name)
        setattr(self, name, value)  # found without this function from now on
        return value


def lazily(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern as `re.compile` does, compiled when it is first used."""
    return cast("re.Pattern[str]", LazyPattern(source, flags))


def word_set(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


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
