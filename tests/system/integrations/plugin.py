"""A plugin of pytest for the tests of a framework: leaves tests out, and tells which of the others reach Recallite.

A test reaches Recallite if something outside it calls a function of `recallite_connect` while the test or its
fixtures run, other than what opens, names or closes a memory: a store that is only constructed proves nothing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

import recallite
import tests

LEFT_OUT = "RECALLITE_TESTS_LEFT_OUT"
"""The environment variable that holds `Theirs.left_out` as JSON."""

REACHES = "reaches Recallite"
"""The property of a test that does, in the report."""

_ENGINE = Path(recallite.__file__).parents[1]
_PACKAGE = f"{_ENGINE / 'recallite'}{os.sep}"
_INTEGRATIONS = f"{_ENGINE / 'recallite_connect'}{os.sep}"
_OPENS_OR_CLOSES = frozenset((
    "__init__", "__new__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__del__", "model_post_init", "memory",
    "close", "aclose", "from_config", "from_conn_string", "setup", "<module>",
))  # fmt: skip

# Their tests import each other as `tests`, which is the name of ours too.
for argument in sys.argv[1:]:
    for folder in Path(argument.partition("::")[0]).absolute().parents:
        if folder.name == "tests":
            tests.__path__.insert(0, str(folder))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those left out."""
    left_out = json.loads(os.environ.get(LEFT_OUT, "{}"))
    for item in items:
        for test, reason in left_out.items():
            if _is(item.nodeid, test):
                item.add_marker(pytest.mark.skip(reason=f"left out: {reason}"))


def _is(node: str, test: str) -> bool:
    """Whether a test's id is, or is in, what `test` names."""
    for part in (node, node.partition("[")[0], node.rpartition("::")[0]):
        if part == test or part.endswith((f"/{test}", f"::{test}")):
            return True
    return False


class _Watch:
    """Whether a test has reached Recallite, itself or in a thread that it started."""

    reached = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Look at a call: a function for `sys.setprofile`."""
        if self.reached or event != "call" or not frame.f_code.co_filename.startswith(_INTEGRATIONS):
            return
        caller = frame.f_back
        inside = caller is not None and caller.f_code.co_filename.startswith(_PACKAGE)
        if not inside and frame.f_code.co_name not in _OPENS_OR_CLOSES:
            self.reached = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a test with its fixtures."""
    watch = item.stash[_WATCH] = _Watch()
    threading.setprofile(watch.see)
    sys.setprofile(watch.see)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write into the report of a test that it has reached Recallite."""
    report = yield
    if report.when == "teardown" and item.stash[_WATCH].reached:
        report.user_properties.append((REACHES, "yes"))
    return report


_WATCH = pytest.StashKey[_Watch]()
