"""The command, run in this process or as one of its own, on a store in a temporary folder."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from recallite_cli import command
from recallite_server.main import main
from tests.limits import LAST_RESORT_SECONDS


class Result(NamedTuple):
    """What a run left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON value it holds."""
        return json.loads(self.out)


class Input(io.TextIOWrapper):
    """Standard input that may pose as a terminal."""

    def __init__(self, data: bytes, terminal: bool) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def db(tmp_path, monkeypatch):
    """The path of a store that does not exist yet, and no embedder."""
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    monkeypatch.delenv("RECALLITE_DB", raising=False)
    monkeypatch.delenv("RECALLITE_DEBUG", raising=False)
    settings = command.chosen_settings
    monkeypatch.setattr(command, "chosen_settings", lambda it: structs.replace(settings(it), busy_timeout_ms=20))
    return tmp_path / "m.db"


@pytest.fixture
def run(db, capfd, monkeypatch):
    """`run("recall", "words", stdin=b"", terminal=False)` in this process."""

    def invoke(*arguments: object, stdin: bytes | str = b"", terminal: bool = False, store: object = db) -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", Input(data, terminal))
        capfd.readouterr()
        given = [] if store is None else ["--db", str(store)]
        code = main([*given, *map(str, arguments)])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return invoke


@pytest.fixture
def empty(run, db):
    """An empty store at `db`."""
    assert run("import", "-").code == 0
    return db


@pytest.fixture
def remember(run):
    """Store a text and return its id."""
    return lambda text, *options: run("remember", text, *options, "--json").json["id"]


def start(*arguments: object, db: object, **environment: str) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "recallite", "--db", str(db), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "RECALLITE_KERNELS": "python", **environment},
    )


@pytest.fixture
def process(db):
    """The command as a process of its own, to its end."""

    def invoke(*arguments: object, stdin: bytes = b"", **environment: str) -> Result:
        running = start(*arguments, db=db, **environment)
        out, err = running.communicate(stdin, timeout=LAST_RESORT_SECONDS)
        return Result(running.returncode, out.decode(), err.decode())

    return invoke
