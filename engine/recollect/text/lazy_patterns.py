"""Regular expressions that are compiled when they are first used: all of them take 0.15 s, and a recall needs few."""

from __future__ import annotations

import re
from functools import cached_property
from typing import cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class LazyPattern:
    """Stands for a pattern, and has its attributes."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> object:
        for method in _METHODS:  # found without this function from now on
            setattr(self, method, getattr(self.compiled, method))
        return getattr(self.compiled, name)


def lazily(source: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, but compiled when it is first used."""
    return cast("re.Pattern[str]", LazyPattern(source, flags))
