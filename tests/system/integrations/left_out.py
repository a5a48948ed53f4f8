"""A plugin of pytest: skips the tests of a framework that `frameworks.py` leaves out, with the reason."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import tests

LEFT_OUT = "RECALLITE_TESTS_LEFT_OUT"
"""The environment variable that holds `Theirs.left_out` as JSON."""

# Their tests import each other as `tests`, which is the name of ours too.
for argument in sys.argv[1:]:
    for folder in Path(argument.partition("::")[0]).absolute().parents:
        if folder.name == "tests":
            tests.__path__.insert(0, str(folder))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
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
