"""Modules that are imported when something of theirs is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from recallite.system.suggestions import check_open_files


class Deferred:
    """Stands for a module; for a type checker the module itself is imported in its place."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            return getattr(import_module(self._name), attribute)
        except OSError as fault:
            check_open_files(fault)
            raise
