"""The branches for macOS and Windows, as far as Linux can run them: they give what the branch for Linux gives."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recallite.system import files, folders, processes
from recallite_kernels import _system
from tests.limits import LAST_RESORT_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems are imitated on Linux")
PROGRAM = Path(__file__).with_name("other_system.py")
DATA = os.urandom(100_000)


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_a_memory_works_without_what_a_system_lacks(tmp_path, system):
    done = subprocess.run(
        [sys.executable, PROGRAM, system, tmp_path], capture_output=True, text=True, timeout=LAST_RESORT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "recalled": "note 7 about tea", "imported": 1, "edited": "note 7 about coffee", "read": True,
        "grown": True, "on disk": True, "files": ["a.db", "b.db", "index", "notes"],
    }  # fmt: skip


def test_what_is_read_at_an_offset_is_the_same(file, windows):
    with open(file, "rb", buffering=0) as held:
        held.seek(17)
        place = held.fileno()
        assert files.read_at(place, 1000, 50) == DATA[50:1050]
        assert files.read_at(place, 1000, len(DATA) - 5) == DATA[-5:]
        filled = bytearray(1000)
        assert files.read_into(place, memoryview(filled), 99_500) == 500
        assert filled == DATA[99_500:] + bytes(500)
        assert held.tell() == 17


def test_threads_that_read_one_descriptor_get_each_their_own(file, windows):
    with open(file, "rb", buffering=0) as held, ThreadPoolExecutor(8) as threads:
        offsets = range(0, len(DATA), 100)
        read = threads.map(lambda offset: files.read_at(held.fileno(), 100, offset), offsets)
        assert b"".join(read) == DATA


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_piece_is_written_to_its_place(tmp_path, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    with open(tmp_path / "copy", "w+b") as target:
        assert files.write_at(target.fileno(), memoryview(DATA[1000:1500]), 1000) == 500
        assert target.tell() == 0
    assert (tmp_path / "copy").read_bytes() == bytes(1000) + DATA[1000:1500]


OPENERS = {
    "a file to read": lambda path: files.opened(path, os.O_RDONLY),
    "a new file": files.create_private,
    "a kernel to read": lambda path: _system.without_links(path, os.O_RDONLY),
    "a kernel to write": lambda path: _system.owners_only(path, os.O_WRONLY | os.O_CREAT),
}


@pytest.mark.parametrize("what", OPENERS)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_link_is_not_followed(file, tmp_path, monkeypatch, windows, what, when):
    """Where the system cannot refuse it: by a look before, and one after that finds what came in between."""
    link = str(tmp_path / "link")
    target = file if what != "a new file" else tmp_path / "missing"
    os.symlink(target, link)
    if when == "meanwhile":
        monkeypatch.setattr(os.path, "islink", lambda path: False)
    with pytest.raises(OSError) as refused:
        OPENERS[what](link)
    assert refused.value.errno == (errno.EEXIST if (what, when) == ("a new file", "meanwhile") else errno.ELOOP)
    assert file.read_bytes() == DATA


@pytest.mark.parametrize("what", OPENERS)
def test_what_is_no_link_is_opened(file, tmp_path, windows, what):
    os.close(OPENERS[what](str(tmp_path / "new" if what == "a new file" else file)))


def test_files_are_flushed_and_folders_need_not_be(file, tmp_path, monkeypatch, windows):
    opened, flushed = [], []
    open_ = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *rest: opened.append(flags) or open_(path, flags, *rest))
    monkeypatch.setattr(os, "fsync", flushed.append)
    files.sync_folder(tmp_path)
    _system.sync_folder(tmp_path)
    assert opened == []
    files.sync_file(str(file))
    assert len(flushed) == 1
    assert opened[0] & os.O_RDWR


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_zeros_are_zeros_and_leave_no_file(tmp_path, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    for made in (files.zeros(2**21, huge=True), files.zeros_on_disk(2**21, str(tmp_path))):
        assert len(made) == 2**21
        assert not any(made[:4096])
        made[5:8] = b"abc"
        assert made[5:8] == b"abc"
        made.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by_descriptor", [True, False])
def test_a_folder_is_written_in_and_no_link_leads_out(tmp_path, monkeypatch, by_descriptor):
    monkeypatch.setattr(folders, "_LINKS_BY_DESCRIPTOR", by_descriptor)
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    with folders.writable_folder(root, ("a", "b")) as folder:
        assert (folder.parent is not None) == by_descriptor
        for name in ("one", "two"):
            (root / "a/b" / name).write_text(name)
            (root / "a/b" / name).chmod(0o640)
        folder.add(folder.prefix + "one", "three")
        with pytest.raises(FileExistsError):
            folder.add(folder.prefix + "one", "two")
        folder.replace(folder.prefix + "one", "two")
        folder.sync()
        assert folder.mode("two") == 0o640
        folder.remove("three")
    assert {each.name: each.read_text() for each in (root / "a/b").iterdir()} == {"two": "one"}
    (root / "link").symlink_to(outside)
    with pytest.raises(OSError) as refused, folders.writable_folder(root, ("link", "c")):
        pass
    assert refused.value.errno in (errno.ELOOP, errno.ENOTDIR)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_why_a_folder_cannot_be_opened(tmp_path, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert folders.why_closed(str(tmp_path)) == 0
    assert folders.why_closed(str(tmp_path / "none")) == errno.ENOENT


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
def test_a_folder_without_a_disk_is_not_full():
    assert folders.why_closed("/proc") == 0


def test_where_there_are_no_limits_none_is_set(windows):
    processes.limit_processor_time(0.0)
    processes.limit_memory_and_files(0)
    _system.lower_priority(19)
    assert not processes.out_of_time(-24)
    assert processes.ending(1) == "code 1"
    assert bytearray(10_000_000)


def test_the_folder_for_caches_is_that_of_the_system(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCALAPPDATA", "C:/Users/ada/AppData/Local")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    assert _system.cache_home() == "C:/Users/ada/AppData/Local"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _system.cache_home() == f"{tmp_path}/Library/Caches"
