"""What the run of a framework's tests counts: those that reach Recallite, and those left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.limits import LAST_RESORT_SECONDS
from tests.system.integrations.__main__ import counted
from tests.system.integrations.plugin import LEFT_OUT

ROOT = Path(__file__).resolve().parents[3]
# As a framework's tests are: some use the store, some only have one, some are about something else.
THEIRS = """
import threading

import pytest

import recallite
from recallite_connect.mem0 import Memory

PLAIN = recallite.Memory(":memory:", settings=recallite.Settings(embedder="none"))
OF_THE_MODULE = Memory(memory=PLAIN)
stopped = threading.Event()


def say():
    OF_THE_MODULE.get_all(filters={"user_id": "ada"})


def sweep():
    while not stopped.wait(0.001):
        say()


@pytest.fixture
def used():
    say()
    return OF_THE_MODULE


def test_that_only_opens_and_closes():
    with Memory(memory=PLAIN) as memory:
        assert memory.memory is PLAIN


def test_that_calls_it():
    say()


def test_that_leaves_a_thread_behind_which_calls_it():
    threading.Thread(target=sweep, daemon=True).start()
    threading.Event().wait(0.1)


def test_about_something_else():
    threading.Event().wait(0.1)
    stopped.set()


def test_whose_fixture_calls_it(used):
    pass


@pytest.mark.parametrize("n", [1, 2])
def test_that_is_left_out(n):
    say()


@pytest.mark.skip(reason="not here")
def test_that_is_skipped():
    say()


def test_that_fails():
    say()
    assert not OF_THE_MODULE
"""


def test_tests_that_reach_recallite_are_counted(tmp_path):
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    report = tmp_path / "report.xml"
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["-p", "tests.system.integrations.plugin", f"--junitxml={report}", str(tmp_path / "test_theirs.py")]
    variables = {"PYTHONPATH": str(ROOT), LEFT_OUT: json.dumps({"test_that_is_left_out": "it is a trial"})}
    options = {"env": {**os.environ, **variables}, "cwd": tmp_path, "timeout": LAST_RESORT_SECONDS}
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert counted(report) == {"passed": 5, "reached": 3, "failed": 1, "errors": 0, "skipped": 1, "left_out": 2}


def test_a_run_in_which_no_test_passed_has_an_error(tmp_path):
    assert counted(tmp_path / "report.xml")["errors"] == 1
