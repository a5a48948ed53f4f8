"""The command line takes an address for --db, and shows no secret."""

from __future__ import annotations

import pytest

from recallite import Workspace
from recallite.errors import InvalidInput
from recallite_notes.config import WorkspaceConfig
from recallite_server.main import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command on the memory at an address; returns its exit status and what it printed."""
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")

    def command(address, *arguments):
        code = main(["--db", address, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_a_memory_on_a_server_is_used_like_a_file(run, postgres_address, tmp_path):
    assert run(postgres_address, "remember", "We migrated to MySQL", "--id", "a")[0] == 0
    assert "We migrated to MySQL" in run(postgres_address, "recall", "Where did we migrate?")[1]
    for command in ("verify", "rebuild", "vacuum", "stats"):
        assert run(postgres_address, command)[0] == 0
    code, _, said = run(postgres_address, "backup", str(tmp_path / "copy.db"))
    assert code != 0
    assert "pg_dump" in said


def test_where_there_is_none_none_is_made_and_no_password_is_shown(run, postgres_server, postgres_address):
    code, out, said = run(postgres_address.replace("postgres@", "postgres:geheim@"), "recall", "anything")
    assert code != 0
    assert "there is no store at postgresql://postgres@/postgres" in said
    assert "geheim" not in out + said
    schema = postgres_address.rpartition("schema=")[2]
    assert postgres_server.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", schema) == [(0,)]


def test_a_folder_of_notes_has_its_index_in_a_file(tmp_path):
    with pytest.raises(InvalidInput, match="address of a server"):
        Workspace(tmp_path, config=WorkspaceConfig(workspace_dir=str(tmp_path), db_path="postgresql://ada:secret@db/x"))
