"""Folders in the cache that other code than ours compiles into."""

from __future__ import annotations

import os

import pytest

from recallite_kernels.cache import private_folder


def test_a_folder_is_made_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path / "cache"))
    found = private_folder("compiled")
    assert found == tmp_path / "cache" / "compiled"
    assert private_folder("compiled") == found
    if os.name == "posix":
        assert found.stat().st_mode & 0o777 == 0o700


def test_where_none_can_be_made_there_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path / "file"))
    assert private_folder("compiled") is None


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_one_that_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path))
    (tmp_path / "compiled").mkdir()
    (tmp_path / "compiled").chmod(0o777)
    assert private_folder("compiled") is None


@pytest.mark.skipif(os.name != "posix", reason="symbolic links of POSIX")
def test_a_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "compiled").symlink_to(tmp_path / "elsewhere")
    assert private_folder("compiled") is None
