"""What a killed export left unfinished goes with the next one; what a running one writes stays, and is private."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys

import pytest

from recallite.errors import InvalidInput
from recallite.system import files
from recallite.system.files import unfinished
from recallite_notes.editable.safe_folder import Folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes are otherwise there")


def parts(folder):
    return sorted(path for path in folder.rglob("*.part"))


def test_what_a_running_export_writes_stays(on_disk, tmp_path):
    on_disk.remember("one")
    target = tmp_path / "all.jsonl"
    seen = []

    def meanwhile(done, total):
        if not seen:
            seen.extend(parts(tmp_path))
            on_disk.transfer.export(target)
            seen.extend(parts(tmp_path))

    assert on_disk.transfer.export(target, on_progress=meanwhile) == 1
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert parts(tmp_path) == []


@pytest.mark.parametrize("umask", [0o022, 0o007, 0o077])
def test_a_whole_file_has_the_mode_of_a_new_one_or_of_the_one_it_replaces(on_disk, tmp_path, umask):
    on_disk.remember("one")
    before = os.umask(umask)
    try:
        on_disk.transfer.export(tmp_path / "new.jsonl")
        on_disk.transfer.export_folder(tmp_path / "notes")
        old = tmp_path / "old.jsonl"
        old.touch()
        old.chmod(0o604)
        on_disk.transfer.export(old)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    (note,) = (tmp_path / "notes").glob("*.md")
    for file, mode in ((tmp_path / "new.jsonl", 0o666 & ~umask), (note, 0o666 & ~umask), (old, 0o604)):
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_part_that_was_swept_up_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    from recallite.system import files

    lock, calls = files.try_lock, []

    def swept(descriptor):
        calls.append(descriptor)
        if len(calls) == 1:
            (part,) = parts(tmp_path)
            part.unlink()
        return lock(descriptor)

    monkeypatch.setattr(files, "try_lock", swept)
    with unfinished(f"{tmp_path}/", "a.txt") as part:
        os.write(part.descriptor, b"text")
        part.finish()
        os.rename(part.path, tmp_path / "a.txt")
    assert ((tmp_path / "a.txt").read_text(), len(calls)) == ("text", 2)


def test_a_long_name_of_wide_characters_has_room(on_disk, tmp_path):
    on_disk.remember("one")
    target = tmp_path / ("記" * 80 + ".jsonl")
    assert on_disk.transfer.export(target) == 1
    assert on_disk.transfer.import_(target).skipped == 1


@pytest.mark.parametrize("target", ["~nosuchuser/a.jsonl", "", "a\0.jsonl"])
def test_a_path_that_is_none_has_a_type(on_disk, target):
    with pytest.raises(InvalidInput):
        on_disk.transfer.export(target, format="jsonl")
    with pytest.raises(InvalidInput):
        on_disk.transfer.import_(target, format="jsonl")
    with pytest.raises(InvalidInput):
        Folder(target)
    assert on_disk.transfer.export(io.StringIO()) == 0


def test_a_file_system_without_locks_takes_backups_exports_and_indexes(on_disk, tmp_path, monkeypatch):
    """Some network and container file systems have none: it was told as a file that others removed, or waited for."""

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    on_disk.remember("a zebra")
    monkeypatch.setattr(files.fcntl, "flock", flock)
    on_disk.store.backup(tmp_path / "copy.db")
    assert on_disk.transfer.export(tmp_path / "all.jsonl") == 1
    with files.FolderLock(tmp_path / "lock").held() as held:
        assert held
    assert parts(tmp_path) == []
