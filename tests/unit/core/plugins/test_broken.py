"""A package that cannot be imported, or whose name another has, hinders nothing else and is named."""

from __future__ import annotations

import asyncio

import pytest

from recallite import AsyncMemory
from recallite.errors import InvalidInput
from recallite.system import plugins
from recallite.system.plugins import PluginWarning
from recallite_connect.exporters import targets
from recallite_connect.importers import sources
from tests.unit.core.memory.support import PLAIN

CANNOT = r"'odd' of odd-package \(odd_package:IT\) cannot be imported: ModuleNotFoundError"


@pytest.mark.parametrize("kind", ["importers", "exporters", "services", "operations"])
def test_what_cannot_be_imported_is_left_out_and_raises_by_name(install, kind):
    before = plugins.names(kind)
    install("odd-package", kind, "odd", "odd_package:IT")
    with pytest.warns(PluginWarning, match=f"left out: the {kind[:-1]} {CANNOT}"):
        assert list(plugins.load_all(kind)) == before
    with pytest.raises(InvalidInput, match=CANNOT):
        plugins.load(kind, "odd")


def test_a_name_of_two_packages_is_left_out_and_raises_by_name(install):
    for package in ("one", "two"):
        install(package, "importers", "odd", "json:dumps")
    with pytest.warns(PluginWarning, match="'odd' is registered by one and by two: uninstall one of them"):
        assert "odd" not in plugins.load_all("importers")
    with pytest.raises(InvalidInput, match="registered by one and by two"):
        plugins.load("importers", "odd")


def test_a_name_of_ours_stays_ours_and_the_other_is_named(install):
    ours = plugins.load("importers", "jsonl")
    install("greedy", "importers", "jsonl", "json:dumps")
    with pytest.warns(PluginWarning, match="left out: the importer 'jsonl' of greedy: Recallite has one of this name"):
        assert plugins.load("importers", "jsonl") is ours


@pytest.mark.parametrize(("kind", "listed"), [("importers", sources), ("exporters", targets)])
def test_the_other_forms_are_listed(install, kind, listed):
    before = listed()
    install("odd-package", kind, "odd", "odd_package:IT")
    with pytest.warns(PluginWarning, match=CANNOT):
        assert listed() == before


def test_the_other_services_are_served(install):
    install("odd-package", "services", "odd", "odd_package:IT")

    async def live():
        async with AsyncMemory(":memory:", settings=PLAIN) as memory:
            await memory.working.add("an item")
            with pytest.raises(InvalidInput, match=CANNOT):
                _ = memory.odd

    with pytest.warns(PluginWarning, match=CANNOT):
        asyncio.run(live())
