"""Exit codes, one line of error, and stores that cannot be used."""

import json
import os
import runpy
import signal
import subprocess
import sys

import apsw
import pytest

from recallite.errors import (
    EmbedderError,
    EmbedderMismatch,
    InvalidItem,
    KernelError,
    NotFound,
    StoreClosed,
    StoreError,
)
from recallite_cli.run import exit_code
from recallite_server.main import main

HANDSHAKE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    },
}  # fmt: skip


def failed(done, code, name, says=""):
    """Assert that a run failed on one line of stderr."""
    assert says in done.err
    assert done.out == ""
    assert done.err.startswith(f"recallite: {name}: ")
    assert done.err.count("\n") == 1
    assert done.code == code


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (NotFound("x"), 1),
        (InvalidItem(0, 0, NotFound("x")), 2),
        (StoreError("x", "newer_schema"), 3),
        (StoreError("x", "full"), 3),
        (StoreClosed("x", "forked"), 3),
        (EmbedderMismatch("x"), 4),
        (EmbedderError("x", "invalid_model"), 4),
        (KernelError("x"), 4),
        (ZeroDivisionError("x"), 70),
    ],
)
def test_every_error_has_its_code(fault, code):
    assert exit_code(fault) == code


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "text is ''"),
        (" \n\t", "blank"),
        ("a\0b", "NUL"),
        ("a\udcffb", "surrogate"),
        ("x" * 10_000_000, "10,000,000"),
    ],
    ids=["empty", "blank", "nul", "surrogate", "10 MB"],
)
def test_texts_that_cannot_be_remembered(run, text, reason):
    done = run("remember", text)
    failed(done, 2, "InvalidInput", "text")
    assert reason in done.err
    assert run("count").out == "0\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--importance", "1.5"), "importance is 1.5"),
        (("--importance", "nan"), "importance is nan"),
        (("--scope", "a/b"), "not absolute"),
        (("--scope", "/a/../b"), "'..'"),
        (("--created-at", "2020-01-01T00:00:00"), "no time zone"),
        (("--created-at", "soon"), "not a time"),
        (("--metadata", "{"), "--metadata '{' is not JSON"),
        (("--metadata", "[1]"), "--metadata is '[1]'"),
        (("--position", "-1"), "position is -1"),
        (("--tag", ""), "a tag is ''"),
        (("--kind", ""), "kind is ''"),
        (("--vector", "[]"), "vector"),
        (("--vector", "[0, 0]"), "all zeros"),
        (("--vector", "[1e999]"), "vector"),
        (("--vector", '["a"]'), "vector"),
        (("--importance", "high"), "high"),
    ],
)
def test_fields_that_cannot_be_remembered(run, empty, options, reason):
    done = run("remember", "text", *options)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert run("count").out == "0\n"


def test_a_vector_of_another_dimension(run, remember):
    remember("one", "--vector", "[1, 2, 3]")
    failed(run("remember", "two", "--vector", "[1, 2]"), 2, "InvalidInput", "vector")
    failed(run("recall", "one", "--vector", "[1, 2]"), 2, "InvalidInput", "vector")
    assert run("recall", "one", "--vector", "[1, 2, 3]", "--mode", "vector", "--json").code == 0


def test_with_json_an_error_is_an_object_on_stderr(run, empty):
    done = run("get", "nobody", "--json")
    assert (done.code, done.out) == (1, "")
    assert json.loads(done.err)["error"]["type"] == "NotFound"
    assert json.loads(run("recall", "--bogus", "--json").err)["error"]["type"] == "NoSuchOption"


@pytest.mark.parametrize("arguments", [("--bogus",), ("frobnicate",), ("get",), ("link", "a"), ("get", "a", "b")])
def test_usage_is_exit_2(run, arguments):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("recallite: ")
    assert "Traceback" not in done.err


def test_without_a_command_help_is_shown(run):
    done = run(store=None)
    assert done.code == 2
    assert "Commands:" in done.out + done.err


def test_stores_that_are_none(run, tmp_path):
    failed(run("list", store=tmp_path), 3, "NotADatabase")
    foreign = tmp_path / "notes.txt"
    foreign.write_text("not a database, but long enough to be read as one\n" * 100)
    failed(run("list", store=foreign), 3, "NotADatabase")
    assert foreign.read_text().startswith("not a database")
    failed(run("remember", "text", store=tmp_path / "no" / "m.db"), 3, "StoreError")
    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE theirs (id)")
    connection.close()
    failed(run("remember", "text", store=other), 3, "NotADatabase")


READING = (
    "recall q", "explain q id", "get id", "list", "count", "neighbors id", "links id", "history id",
    "update id --text t",
    "restore id", "forget id", "link a b", "unlink a b", "consolidate", "export out.jsonl",
    "stats", "verify", "audit", "rebuild", "purge-expired", "vacuum", "backup copy.db", "reembed", "rekey --decrypt",
    "sessions list", "sessions show id", "sessions search q", "sessions end id", "sessions clean --days 1",
    "episodes list", "episodes snapshots", "procedures list", "procedures outcome name --success", "experience tips",
    "knowledge search q", "knowledge list", "knowledge delete id",
)  # fmt: skip


@pytest.mark.parametrize("command", READING)
def test_a_mistyped_path_is_no_empty_store(run, db, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = run(*command.split())
    failed(done, 2, "InvalidInput")
    assert f"there is no store at {db}" in done.err
    assert [*tmp_path.iterdir()] == []


WRITING = (
    "remember text", "import -", "episodes log text", "procedures save name description",
    "experience record --task-type t --tool a --success", "experience recovery --tool a --error e --helped h",
    "knowledge ingest -", "warmup",
)  # fmt: skip


@pytest.mark.usefixtures("ready_kernels")
@pytest.mark.parametrize("command", WRITING)
def test_what_writes_makes_the_store(run, db, command):
    assert run(*command.split(), stdin="A text.\n" if "ingest" in command else "").code == 0
    assert db.exists()


def test_a_newer_store(run, remember, db):
    remember("one")
    connection = apsw.Connection(str(db))
    connection.pragma("user_version", 999)
    connection.close()
    failed(run("list"), 3, "StoreError", "newer")


def test_a_locked_store(run, remember, db):
    remember("one")
    connection = apsw.Connection(str(db))
    connection.execute("BEGIN IMMEDIATE")
    failed(run("remember", "two"), 3, "StoreUnavailable", "locked")
    assert run("count").out == "1\n"
    connection.execute("ROLLBACK")
    connection.close()


def test_a_damaged_store(run, db):
    run("import", "-", "--format", "text", stdin="".join(f"memory number {n}\n" for n in range(2000)))
    size = db.stat().st_size
    with db.open("r+b") as file:
        file.seek(size // 4 // 4096 * 4096)
        file.write(b"\xff" * (size // 2))
    for command in (("list", "--limit", "2000"), ("export", "-"), ("recall", "memory")):
        done = run(*command)
        assert (done.code, "Traceback" in done.err) == (3, False)
        assert "recallite: StoreCorrupt: " in done.err
    assert run("verify").code in (1, 3)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write to any file")
def test_a_read_only_store(run, remember, db):
    remember("one")
    db.chmod(0o400)
    failed(run("remember", "two"), 3, "StoreError", "cannot be written")


def test_the_environment_names_the_store(run, db, monkeypatch):
    monkeypatch.setenv("RECALLITE_DB", str(db))
    assert run("remember", "text", store=None).code == 0
    assert run("count").out == "1\n"


def test_a_defect_is_one_line_and_a_traceback_on_demand(run, empty, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("recallite.doors.operation.Operation.apply", broken)
    failed(run("scopes"), 70, "ZeroDivisionError")
    monkeypatch.setenv("RECALLITE_DEBUG", "1")
    assert "Traceback" in run("scopes").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("recall", "one"), "stopped before it answered; the store is as it was"),
        (("remember", "one"), "stopped; what is stored stays, and is not stored twice if you run it again"),
        (("forget", "0123456789"), "stopped; see whether it was done before you run it again"),
        (("serve", "--port", "0"), "the server has ended; what was written is stored"),
    ],
)
def test_an_interrupted_command_says_what_it_has_left(run, empty, monkeypatch, words, said):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    if words[0] == "serve":
        pytest.importorskip("starlette")
    monkeypatch.setattr("recallite_cli.command.open_memory", interrupt)
    for module in ("recallite_cli.commands", "recallite_server.commands.serve"):
        monkeypatch.setattr(f"{module}.open_memory", interrupt)
    assert run(*words) == (130, "", f"recallite: Interrupted: {said}\n")


def test_an_interrupt_before_a_command_runs_is_one_line(monkeypatch, capsys):
    def interrupt(arguments=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("recallite_cli.run.run", interrupt)
    assert main(["count"]) == 130
    assert capsys.readouterr().err == "recallite: Interrupted: stopped before it answered; the store is as it was\n"
    monkeypatch.delitem(sys.modules, "recallite_cli.run")
    monkeypatch.setattr("recallite_server.main._run", interrupt)
    assert main(["count"]) == 130
    assert capsys.readouterr().err == "recallite: Interrupted: stopped before it began\n"


def test_an_interrupt_while_the_command_line_loads_shows_no_traceback(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, path, target=None):
            if name == "recallite_server.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "recallite_server.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit, match="130"):
        runpy.run_module("recallite", run_name="__main__")
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to a process of its own")
@pytest.mark.parametrize("options", [(), ("--no-warm",)])
def test_an_interrupted_server_of_a_host_is_one_line(tmp_path, options):
    pytest.importorskip("mcp")
    words = [sys.executable, "-m", "recallite", "--db", str(tmp_path / "agent.db"), *options, "mcp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, env={**os.environ, "RECALLITE_WARM": "0"}) as server:
        for message in (HANDSHAKE, {"jsonrpc": "2.0", "id": 2, "method": "ping"}):
            server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        assert json.loads(server.stdout.readline())["id"] == 2
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    assert (server.returncode, said.decode()) == (
        130, "recallite: Interrupted: the server has ended; what was written is stored\n",
    )  # fmt: skip


def test_a_question_that_was_not_answered_does_nothing(run, empty):
    for text in ("one", "two"):
        run("remember", text)
    done = run("forget", "--scope", "/", terminal=True)
    assert done.code == 130
    assert done.err.endswith("recallite: Interrupted: nothing was done: the question was not answered\n")
    assert run("count").out == "2\n"


def test_the_log_is_shown_on_demand(run, empty, monkeypatch):
    plain = run("recall", "nothing")
    assert "recallite." not in plain.err
    monkeypatch.setenv("RECALLITE_DEBUG", "1")
    told = run("recall", "nothing")
    assert told.out == plain.out
    assert "INFO recallite.engine: opened " in told.err
    assert "DEBUG recallite.system.telemetry: recall: " in told.err
    monkeypatch.delenv("RECALLITE_DEBUG")
    assert run("recall", "nothing") == plain


def test_an_error_stays_on_one_line_and_cannot_command_the_terminal(run, empty):
    done = run("get", "a\nb\x1b[31m\udcff")
    failed(done, 1, "NotFound")
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("recal", "No such command 'recal'. Did you mean 'recall' or 'eval'? See: recallite --help"),
        ("expotr", "No such command 'expotr'. Did you mean 'export'"),
        ("xyzzy", "No such command 'xyzzy'. See: recallite --help"),
    ],
)
def test_a_mistyped_command_is_answered_with_those_like_it(run, typed, said):
    done = run(typed)
    assert (done.code, said in done.err) == (2, True), done.err
