"""A cached kernel is machine code: what is not to the bit what this user wrote is compiled again, never run."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import time

import pytest

from recallite_kernels.cache import Cache
from tests.limits import LAST_RESORT_SECONDS

posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and links are POSIX")
CONTENT = random.Random(0).randbytes(30_000)

# Two kernels suffice, and compile in a second each.
WARM_UP = """
import json, sys
import numpy as np
import recallite_kernels as k
from recallite_kernels.numba_backend import _jit
_jit.KERNELS[:] = [kernel for kernel in _jit.KERNELS if kernel.name in ("quantize_int8", "sketch")]
k.warmup()
assert k.status().active == "numba"
sketches = k.sketch(np.random.default_rng(0).standard_normal((3, 128)).astype(np.float32))
print(json.dumps(sketches.tolist()))
"""


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "kernels-0"
    folder.mkdir(mode=0o700)
    made = Cache(folder)
    made.write("decay", CONTENT)
    assert made.read("decay") == CONTENT
    return made


def file_of(cache, name="decay"):
    return cache.folder / f"{name}.kernel"


def test_any_flipped_bit_is_seen(cache):
    whole, chance = file_of(cache).read_bytes(), random.Random(1)
    for at in [*range(64), *(chance.randrange(len(whole)) for _ in range(500)), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << chance.randrange(8)
        file_of(cache).write_bytes(damaged)
        assert cache.read("decay") is None, at


def test_any_truncation_and_any_byte_behind_the_end_is_seen(cache):
    whole, chance = file_of(cache).read_bytes(), random.Random(2)
    for stop in [*range(66), *(chance.randrange(len(whole)) for _ in range(100)), len(whole) - 1]:
        file_of(cache).write_bytes(whole[:stop])
        assert cache.read("decay") is None, stop
    file_of(cache).write_bytes(whole + b"\0")
    assert cache.read("decay") is None


def test_a_whole_kernel_under_another_name_or_in_another_folder_is_not_taken(cache, tmp_path):
    shutil.copy(file_of(cache), file_of(cache, "sketch"))
    assert cache.read("sketch") is None
    other = Cache(tmp_path / "kernels-1")
    shutil.copytree(cache.folder, other.folder)
    assert other.read("decay") is None


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_could_write_to_is_not_taken(cache, mode):
    file_of(cache).chmod(mode)
    assert cache.read("decay") is None


@posix
def test_files_are_written_for_the_owner_alone_whatever_the_umask(cache):
    before = os.umask(0)
    try:
        cache.write("sketch", CONTENT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file_of(cache, "sketch").stat().st_mode) == 0o600


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_not_taken(cache):
    os.chown(file_of(cache), 65534, 65534)
    assert cache.read("decay") is None


@posix
def test_a_link_or_a_pipe_in_the_place_of_a_file_is_not_taken(cache, tmp_path):
    whole = tmp_path / "whole"
    file_of(cache).rename(whole)
    file_of(cache).symlink_to(whole)
    assert cache.read("decay") is None
    file_of(cache).unlink()
    os.mkfifo(file_of(cache))
    assert cache.read("decay") is None


@posix
@pytest.mark.parametrize("fault", ["open to others", "a link"])
def test_a_folder_that_is_not_the_users_alone_is_not_read(tmp_path, compiled_kernels, monkeypatch, fault):
    from recallite_kernels import cache

    folder = tmp_path / compiled_kernels.folder.name
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path))
    if fault == "a link":
        folder.symlink_to(compiled_kernels.folder)
    else:
        shutil.copytree(compiled_kernels.folder, folder)
        assert cache.existing() is not None
        folder.chmod(0o777)
    assert cache.existing() is None


def test_what_a_killed_process_left_aside_is_removed_and_what_is_being_written_stays(cache):
    abandoned, fresh = cache.folder / ".sketch.kernel.1", cache.folder / ".decay.kernel.2"
    abandoned.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(abandoned, (time.time() - 3600,) * 2)
    cache.remove_abandoned()
    assert sorted(file.name for file in cache.folder.iterdir()) == [".decay.kernel.2", "decay.kernel"]


def test_a_cache_in_which_a_kernel_could_not_be_written_is_not_called_complete(cache):
    file_of(cache, "sketch").mkdir()
    cache.write("sketch", CONTENT)
    cache.mark_complete()
    assert not cache.complete()
    assert [file.name for file in cache.folder.glob(".*")] == []


def test_a_damaged_file_is_compiled_again_and_replaced_with_equal_results(tmp_path, compiled_kernels):
    folder = tmp_path / compiled_kernels.folder.name
    shutil.copytree(compiled_kernels.folder, folder)
    cache = Cache(folder)
    whole = file_of(cache, "sketch").read_bytes()

    def warm_up():
        environment = {**os.environ, "RECALLITE_CACHE_DIR": str(tmp_path), "RECALLITE_KERNELS": "numba"}
        done = subprocess.run(
            [sys.executable, "-c", WARM_UP], env=environment, capture_output=True, text=True, check=False,
            timeout=LAST_RESORT_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    made = file_of(cache, "sketch").stat().st_ino
    right = warm_up()
    assert file_of(cache, "sketch").stat().st_ino == made
    flipped = bytearray(whole)
    flipped[len(flipped) // 2] ^= 1
    for damaged in (bytes(flipped), whole[:100], b"", file_of(cache, "quantize_int8").read_bytes()):
        file_of(cache, "sketch").write_bytes(damaged)
        assert warm_up() == right
        assert cache.read("sketch") is not None
    made = file_of(cache, "sketch").stat().st_ino
    assert warm_up() == right
    assert file_of(cache, "sketch").stat().st_ino == made
