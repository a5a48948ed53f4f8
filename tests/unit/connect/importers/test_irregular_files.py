"""Files of hosts that are no files are not waited for, and large ones are not read to their end."""

from __future__ import annotations

import errno
import os
import re
import socket

import pytest

from recallite.system.folders import open_regular, read_regular
from recallite_connect.importers import obsidian
from recallite_connect.importers.reading import Member, _opener, values_of
from recallite_connect.importers.sources import Sessions

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")


@pytest.fixture(params=["fifo", "endless", "folder", "socket", "link to a fifo"])
def irregular(request, tmp_path, monkeypatch):
    """Something in the place of a file."""
    path = tmp_path / "irregular"
    if request.param == "fifo":
        os.mkfifo(path)
    elif request.param == "endless":
        path.symlink_to("/dev/zero")
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "socket":
        monkeypatch.chdir(tmp_path)  # a socket's path has 104 bytes
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    else:
        os.mkfifo(tmp_path / "target")
        path.symlink_to("target")
    return path


def test_only_a_regular_file_is_opened(irregular, tmp_path):
    for read in (open_regular, read_regular):
        with pytest.raises(OSError, match="not a file") as raised:
            read(irregular)
        assert raised.value.errno == errno.EINVAL
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "missing")


def test_a_file_is_read_whole_or_not_at_all(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 3) == b"abc"
    with pytest.raises(OSError, match="more than 2 bytes") as raised:
        read_regular(tmp_path / "file", 2)
    assert raised.value.errno == errno.EFBIG


def test_a_transcript_that_is_no_file_is_passed_over(irregular):
    if not irregular.is_dir():
        sessions = Sessions(irregular, re.compile(r"\.jsonl$"), lambda name, changed_at: None)
        assert [*sessions.entries(growing=True)] == []


def test_settings_of_a_vault_and_files_of_an_export_are_not_waited_for(tmp_path):
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    os.mkfifo(vault / ".obsidian" / "templates.json")
    (vault / "note.md").write_text("The staging host is called heron.")
    assert [entry.record.text for entry in obsidian.read(vault)] == ["The staging host is called heron."]
    os.mkfifo(tmp_path / "conversations.json")
    (trouble,) = values_of(Member("conversations.json", _opener(tmp_path / "conversations.json")))
    assert "not a file" in trouble.reason
