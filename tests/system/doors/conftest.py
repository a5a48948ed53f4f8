"""A resident process for a test, if what it is made of is installed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.system.doors.warming import Warm, end_all, fill

SETTINGS = """
embedder = "none"
[profile]
decay_floor = 1.0
"""


@contextmanager
def warming(folder: Path) -> Iterator[Warm]:
    """Commands that may use a resident process, which has ended when the block has."""
    if sys.platform == "win32":
        pytest.skip("its processes are watched as POSIX has them")
    runtime = tempfile.mkdtemp(prefix="warm")  # short: a Unix socket's path has 104 bytes
    settings = folder / "settings.toml"
    settings.write_text(SETTINGS, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RECALLITE_WARM", "CI"):
            patch.delenv(name, raising=False)
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        patch.setenv("RECALLITE_KERNELS", "python")
        patch.setenv("RECALLITE_SETTINGS", str(settings))
        try:
            yield Warm(folder)
        finally:
            end_all()
            shutil.rmtree(runtime)


@pytest.fixture(autouse=True)
def _own_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have hooks keep their files in a folder of the test's own."""
    with pytest.MonkeyPatch.context() as patch:  # the test's `monkeypatch` has to be undone before `warm` is
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    """Commands of one test that may use a resident process."""
    with warming(tmp_path) as commands:
        yield commands


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Commands beside a resident process that answers all tests of a file, on a store with some of everything."""
    with warming(tmp_path_factory.mktemp("answering")) as commands:
        fill(commands.path)
        commands.start()
        yield commands
