"""Memories to test on. `memory` takes given vectors; `embedded` is the bundled model, one session for all tests."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys

import hypothesis
import pytest

from recallite import Memory, Settings
from recallite_kernels import cache, status
from tests.limits import LAST_RESORT_SECONDS

PLAIN = Settings(embedder="none")
# Each worker begins at another kernel and takes from the cache what the others have compiled meanwhile.
_COMPILE_ALL = """
import sys
from recallite_kernels import dispatch
names = ("recall", *(name for name in dispatch.NAMES if name != "recall"))
names = names if sys.argv[1] == "0" else names[:0:-1] + names[:1]
dispatch._load(names)
"""


# A slow machine is no failed property. `--hypothesis-profile=ci` draws 5 times as many examples, `long` 100 times.
for _profile, _examples in (("dev", 20), ("ci", 100), ("long", 2_000)):
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
    )
hypothesis.settings.load_profile("dev")


def pytest_configure(config):
    """Give workers and their children one cache of kernels, kept with pytest's own, and an interrupt that counts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # What a script starts with `&` ignores Ctrl-C, and so do its children: tests that interrupt one got 0.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["RECALLITE_WARM"] = "0"  # tests of the resident process allow it
    kept = getattr(config, "cache", None)
    if "RECALLITE_CACHE_DIR" not in os.environ and kept is not None:
        os.environ["RECALLITE_CACHE_DIR"] = str(kept.mkdir("recallite"))


@pytest.fixture(scope="session")
def compiled_kernels():
    """The cache in which every kernel is."""
    if importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed")
    found = cache.existing()
    if found is None or not found.complete():
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
        subprocess.run(
            [sys.executable, "-c", _COMPILE_ALL, worker, workers],
            env={**os.environ, "RECALLITE_KERNELS": "numba"},
            timeout=LAST_RESORT_SECONDS,
            check=True,
        )
        found = cache.existing()
    assert found is not None
    assert found.complete(), "the cache of kernels cannot be written"
    return found


@pytest.fixture(scope="session")
def ready_kernels(request):
    """What `warmup` loads, if it loads any, is compiled."""
    if status().selected == "numba":
        request.getfixturevalue("compiled_kernels")


@pytest.fixture
def path(tmp_path):
    """A file that does not exist yet."""
    return str(tmp_path / "agent.db")


@pytest.fixture
def memory():
    """In RAM, without an embedder."""
    with Memory(":memory:", settings=PLAIN) as opened:
        yield opened


@pytest.fixture
def on_disk(path):
    """In a file, without an embedder."""
    with Memory(path, settings=PLAIN) as opened:
        yield opened


@pytest.fixture
def embedded():
    """In RAM, with the bundled model."""
    with Memory(":memory:") as opened:
        yield opened
