"""Stores, importers, exporters and profiles that another package registers."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.checks import is_address
from recallite.model.records import NewRecord
from recallite.model.settings import Profile, Settings
from recallite.store.opening import open_store, shown_path, store_exists
from recallite_connect.exporters import Target, export_to
from recallite_connect.importers import FoundMemory, Source, import_from


class Folders:
    """A kind of store that is no server."""

    def open(self, address, **options):
        return f"the store at {address}"

    def exists(self, address):
        return True

    def shown(self, address):
        return address.partition("?")[0]


FOLDERS = Folders()
SOURCE = Source(
    lambda path, mapping: iter([FoundMemory(record=NewRecord(id="1", text=mapping["text"]), path=path.name)]),
    "a file",
    None,
    mapped=True,
)
asked = []
TARGET = Target(lambda memories, path: iter(asked.append(dict(memories.mapping)) or ()), "a file", mapped=True)
FEW = Profile(limit=2)
NOTES = Target(lambda memories, path: iter(()), "a new folder", folder=True)


@pytest.mark.parametrize("registered", ["folders", "Folders"])
def test_a_scheme_is_known_in_any_case(install, registered):
    assert not is_address("folders://here")
    install("acme", "stores", registered, f"{__name__}:FOLDERS")
    for address in ("folders://here", "FOLDERS://here"):
        assert is_address(address)
        assert open_store(address) == f"the store at {address}"
        assert store_exists(address)
        assert shown_path(f"{address}?password=x") == address


def test_a_key_is_refused_without_claiming_a_server(install):
    install("acme", "stores", "folders", f"{__name__}:FOLDERS")
    with pytest.raises(InvalidInput, match=r"^key encrypts a file, and folders://here is none: leave key out$"):
        open_store("folders://here?password=x", key="k")


def test_an_address_of_no_package_says_what_to_install():
    with pytest.raises(InvalidInput, match=r"postgresql://.*: mend it, or install what opens it") as found:
        open_store("folders://user:secret@here")
    assert "secret" not in str(found.value)


def test_fields_are_mapped_by_every_form_that_says_so(install, memory, tmp_path):
    install("acme", "importers", "acme", f"{__name__}:SOURCE")
    install("acme", "exporters", "acme", f"{__name__}:TARGET")
    install("notes", "exporters", "notes", f"{__name__}:NOTES")
    (tmp_path / "file").touch()
    assert import_from(memory, "acme", tmp_path / "file", mapping={"text": "body"}).created == 1
    export_to(memory, "acme", tmp_path / "out", mapping={"text": "body"})
    assert asked == [{"text": "body"}]
    with pytest.raises(InvalidInput, match="nothing to map here: leave it out, or import from acme, jsonl"):
        import_from(memory, "openclaw", tmp_path, mapping={"text": "body"})
    with pytest.raises(InvalidInput, match="nothing to map here: leave it out, or export to acme, jsonl"):
        export_to(memory, "notes", tmp_path / "new", mapping={"text": "body"})


def test_an_export_to_a_folder_with_files_is_refused(install, memory, tmp_path):
    install("notes", "exporters", "notes", f"{__name__}:NOTES")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is there already"):
        export_to(memory, "notes", tmp_path)
    assert export_to(memory, "notes", tmp_path / "new").records == 0


def test_a_profile_is_named_in_settings_and_by_a_recall(install):
    with pytest.raises(InvalidInput, match=r"profile is 'few': use one of default, "):
        Settings(profile="few")
    install("acme", "profiles", "few", f"{__name__}:FEW")
    with Memory(":memory:", settings=Settings(embedder="none", profile="few")) as memory:
        memory.remember_many([f"the pump at bay {n}" for n in range(4)])
        assert len(memory.recall("pump")) == 2
        assert len(memory.recall("pump", profile="default")) == 4
