"""Modules that are imported when something of theirs is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """Stands for a module; for a type checker the module itself is imported in its place."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
