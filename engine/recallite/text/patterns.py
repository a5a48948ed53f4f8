"""Patterns, tables of words and caches, which the modules of texts share.

All regular expressions take 0.15 s to compile, and a recall needs few: each is compiled when it is first used. Tables
of words are in text files beside the modules that read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar, cast

T = TypeVar("T")


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


class Cached(dict[str, T], Generic[T]):
    """Cache of what a function makes of each text: emptied when it has `most`, and without long texts.

    Thread-safe: what two threads compute at once is the same.
    """

    def __init__(self, read: Callable[[str], T], most: int, longest: int = 64) -> None:
        self._read, self._most, self._longest = read, most, longest

    def __missing__(self, text: str) -> T:
        value = self._read(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value
