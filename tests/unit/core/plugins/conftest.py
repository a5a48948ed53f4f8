"""Packages that a stranger has installed."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from recallite.system import plugins


def _entry(package, kind, name, value):
    entry = EntryPoint(name, value, f"recallite.{kind}")
    vars(entry)["dist"] = SimpleNamespace(name=package)
    return entry


@pytest.fixture
def install(monkeypatch):
    """`install(package, kind, name, value)` registers an entry point of a package until the test ends."""
    from importlib import metadata

    found = metadata.entry_points()
    entries = [entry for group in found.groups for entry in found.select(group=group)]

    def installed(package, kind, name, value):
        entries.append(_entry(package, kind, name, value))
        plugins._registered.cache_clear()
        plugins.load.cache_clear()

    monkeypatch.setattr(metadata, "entry_points", lambda: metadata.EntryPoints(entries))
    yield installed
    monkeypatch.undo()
    plugins._registered.cache_clear()
    plugins.load.cache_clear()
