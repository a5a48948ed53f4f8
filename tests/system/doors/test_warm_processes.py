"""The resident process: it answers as each process would for itself, and whatever befalls it holds up nobody."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from recallite import Memory, Settings
from recallite.system import local_socket
from recallite.system.files import FolderLock
from recallite_server.warm import asking
from recallite_server.warm.__main__ import forget_keys
from recallite_server.warm.quick import quick_start
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.doors.warming import fill, has_ended, running

PLAIN = Settings(embedder="none")
SERVICE = [sys.executable, "-m", "recallite_server.warm"]


@pytest.fixture
def store(warm):
    """Commands on a store with some of everything."""
    fill(warm.path)
    return warm


def opened(link, path):
    """Have the process open a store."""
    assert int(link.ask("count", fields=asking.store_fields(path, os.environ["RECALLITE_SETTINGS"])))


def test_writes_of_others_and_another_file_in_the_same_place_are_seen(store):
    store.start()
    assert store.command("recall", "office").out.count("Oslo") == 1
    store.command("--no-warm", "remember", "The office has a garden")
    assert "garden" in store.command("recall", "office garden").out
    for path in Path(store.path).parent.glob("agent.db*"):
        path.unlink()
    with Memory(store.path, settings=PLAIN) as memory:
        memory.remember("The office is in Paris")
    ran = store.command("recall", "office")
    assert (ran.light, "Paris" in ran.out, "Oslo" in ran.out) == (True, True, False)


def test_nothing_lies_beside_a_store_that_is_quiet(store):
    store.start()
    assert store.command("remember", "The office has a garden").light
    until(lambda: [path.name for path in Path(store.path).parent.glob("agent.db*")] == ["agent.db"])
    assert len(running()) == 1
    ran = store.command("recall", "office garden")
    assert (ran.light, "garden" in ran.out) == (True, True)


@pytest.mark.parametrize("replace", [shutil.copyfile, os.replace])
def test_a_backup_that_is_put_back_is_what_it_answers_from_and_writes_to(store, tmp_path, replace):
    backup = str(tmp_path / "backup.db")
    assert store.command("--no-warm", "backup", backup).code == 0
    store.start()
    for colour in ("red", "green"):
        assert store.command("remember", f"The {colour} chair is in the hall").light
    replace(backup, store.path)
    assert store.command("remember", "The lamp is in the attic").light
    ran = store.command("recall", "chair hall attic", "--relevant")
    assert (ran.light, "attic" in ran.out, "chair" in ran.out) == (True, True, False)
    assert store.command("warm", "stop").code == 0
    with Memory(store.path, settings=PLAIN) as memory:
        assert memory.store.verify().ok
        assert [record.text for record in memory.list(limit=1)] == ["The lamp is in the attic"]


def test_restore_has_it_let_go_of_the_store(store, tmp_path):
    backup = str(tmp_path / "backup.db")
    assert store.command("--no-warm", "backup", backup).code == 0
    store.start()
    assert store.command("remember", "The lamp is in the attic").light
    assert store.command("restore", backup, "--discard", "--yes").code == 0
    assert [path.name for path in Path(store.path).parent.glob("agent.db*")] == ["agent.db"]
    ran = store.command("recall", "lamp attic", "--relevant")
    assert (ran.light, "attic" in ran.out) == (True, False)


def test_a_write_after_the_file_was_removed_begins_another_and_is_kept(store):
    store.start()
    assert store.command("remember", "The lamp is in the attic").light
    os.unlink(store.path)
    assert store.command("recall", "lamp").code == 2
    assert store.command("remember", "The desk is in the study").code == 0
    store.command("warm", "stop")
    with Memory(store.path, settings=PLAIN) as memory:
        assert [record.text for record in memory.list()] == ["The desk is in the study"]


def test_one_process_serves_stores_of_several_folders(store, tmp_path):
    link = store.start()
    for name in "abc":
        with Memory(tmp_path / f"{name}.db", settings=PLAIN) as memory:
            memory.remember(f"note of {name}")
        opened(link, str(tmp_path / f"{name}.db"))
    state = json.loads(link.ask("state"))
    assert [Path(entry["path"]).name for entry in state["stores"]] == ["a.db", "b.db", "c.db"]
    asking.release(str(tmp_path / "b.db"))
    state = json.loads(link.ask("state"))
    assert [Path(entry["path"]).name for entry in state["stores"]] == ["a.db", "c.db"]


# ── start and end ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_several_that_start_at_once_one_stays(warm):
    os.makedirs(asking.folder(), mode=0o700)
    processes = [subprocess.Popen(SERVICE) for _ in range(4)]
    until(lambda: bool(running()))
    (pid,) = running()
    others = [process for process in processes if process.pid != pid]
    assert [process.wait(LAST_RESORT_SECONDS) for process in others] == [0, 0, 0]
    (first,) = (process for process in processes if process.pid == pid)
    assert first.poll() is None
    asking.Link().ask("stop")
    assert first.wait(LAST_RESORT_SECONDS) == 0
    assert asking.sockets() == []


def test_it_needs_no_package_of_an_extra(store):
    extras = ["anyio", "httptools", "httpx2", "mcp", "pydantic", "starlette", "tomlkit", "uvicorn", "uvloop"]
    hidden = f"import sys; sys.modules.update(dict.fromkeys({extras}))"
    os.makedirs(asking.folder(), mode=0o700)
    main = "from recallite_server.warm.__main__ import main; main()"
    process = subprocess.Popen([sys.executable, "-c", f"{hidden}; {main}"])
    until(lambda: bool(running()))
    assert running() == [process.pid]
    hook = json.dumps({"session_id": "s", "cwd": "/", "prompt": "Which port does the API listen on?"})
    for command in (["recall", "office"], ["remember", "The office has a lift"]):
        assert store.command(*command).light
    fields = asking.store_fields(store.path, os.environ["RECALLITE_SETTINGS"])
    of_hook = {asking.HOOK: asking.in_field("\0".join(("prompt", "claude-code", "/work", "", "/", "/")))}
    assert b"9090" in asking.Link().ask("hook", hook.encode(), fields | of_hook)
    asking.Link().ask("stop")
    assert process.wait(LAST_RESORT_SECONDS) == 0


def test_it_closes_idle_stores_and_then_ends(store):
    Path(os.environ["RECALLITE_SETTINGS"]).write_text('embedder = "none"\nwarm = {idle_minutes = 0.001}\n')
    link = store.start()
    (pid,) = running()
    opened(link, store.path)
    until(lambda: has_ended(pid))
    answers_itself(store)


def test_the_command_shows_starts_and_ends_it(store):
    assert store.command("warm", "status").code == 1
    started = store.command("warm", "start", "--json", CI="1")
    (state,) = json.loads(started.out)
    assert [entry["path"] for entry in state["stores"]] == [os.path.realpath(store.path)]
    assert json.loads(store.command("warm", "status", "--json").out)[0]["pid"] == state["pid"]
    assert store.command("recall", "office").light
    assert store.command("warm", "stop").code == 0
    until(lambda: has_ended(state["pid"]))
    assert store.command("warm", "stop").code == 1


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (["recall", "office"], True), (["remember", "the office has a lift"], True), (["stats"], False),
        (["--no-warm", "recall", "office"], False),
    ],
)  # fmt: skip
def test_only_what_it_answers_starts_it_for_the_next_command(store, words, starts):
    assert not store.command(*words).light
    assert os.path.isdir(asking.folder()) == starts
    if starts:
        until(lambda: bool(running()))
        assert store.command(*words).light


def test_no_command_starts_it_in_continuous_integration(store):
    assert store.command("recall", "office", CI="1").code == 0
    assert not os.path.isdir(asking.folder())


# ── whatever befalls it ────────────────────────────────────────────────────────────────────────────────────────────


def answers_itself(warm):
    ran = warm.command("recall", "office", "-n", "1")
    assert (ran.code, ran.err, ran.light) == (0, "", False)
    assert "The office is in Oslo" in ran.out


def test_a_dead_socket_is_passed_by_and_replaced(store):
    os.makedirs(asking.folder(), mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(asking.address())
    answers_itself(store)
    store.start()
    assert store.command("recall", "office").light


def test_a_stopped_process_is_not_waited_for(store):
    store.start()
    (pid,) = running()
    os.kill(pid, signal.SIGSTOP)
    answers_itself(store)
    os.kill(pid, signal.SIGCONT)
    assert store.command("recall", "office").light


def test_a_process_that_is_killed_while_it_answers_is_replaced_in_the_same_answer(store):
    os.makedirs(asking.folder(), mode=0o700)
    listener, _ = local_socket.listen(asking.address())
    asked = []

    def answer():
        connection, _ = listener.accept()
        with connection:
            _, challenge = frame(connection), frame(connection)
            proof = asking.DONE + asking.proof(b"", challenge)
            connection.sendall(len(proof).to_bytes(4, "big") + proof)
            asked.append(frame(connection))
            connection.sendall((900).to_bytes(4, "big") + asking.DONE + b'{"hits":[')

    thread = threading.Thread(target=answer)
    thread.start()
    answers_itself(store)
    thread.join(LAST_RESORT_SECONDS)
    listener.close()
    assert asked[0].startswith(b"\nrecall\n")


def test_another_version_and_another_environment_have_a_process_of_their_own(store, monkeypatch):
    store.start()
    ours = asking.address()
    monkeypatch.setattr(asking, "__version__", "9.9")
    assert asking.address() != ours
    monkeypatch.undo()
    assert not store.command("recall", "office", RECALLITE_QUERY_CACHE_SIZE="7").light
    assert store.command("recall", "office", OPENAI_API_KEY="sk-of-another-caller").light
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-caller")
    assert asking.address() == ours
    monkeypatch.setenv("RECALLITE_LLM_MODEL", "openai/gpt-4o-mini")
    with_model = asking.address()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-third")
    assert len({ours, with_model, asking.address()}) == 3
    monkeypatch.delenv("RECALLITE_LLM_MODEL")
    for name, value in (("RECALLITE_WARM", "0"), ("RECALLITE_KEY_FILE", "/nowhere")):
        assert not store.command("recall", "office", **{name: value}).light


def test_it_keeps_no_key_unless_its_environment_names_a_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-one-caller")
    monkeypatch.setenv("RECALLITE_EMBEDDER", "openai/text-embedding-3-small")
    forget_keys()
    assert os.environ["OPENAI_API_KEY"] == "sk-of-one-caller"
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    forget_keys()
    assert "OPENAI_API_KEY" not in os.environ


def test_a_setting_turns_it_off(store):
    link = store.start()
    Path(os.environ["RECALLITE_SETTINGS"]).write_text('embedder = "none"\nwarm = {use = false}\n')
    answers_itself(store)
    assert json.loads(link.ask("state"))["stores"] == []


def test_where_it_cannot_be_started_commands_and_hosts_answer_themselves(store):
    Path(asking.folder()).write_text("a file in the place of the folder")
    with pytest.raises(asking.Unanswered):
        store.start()
    answers_itself(store)
    with Host(store) as host:
        assert "Oslo" in host.recall("office")


# ── who may ask ────────────────────────────────────────────────────────────────────────────────────────────────────


def frame(connection):
    """The bytes of the next frame; fewer if the connection ends."""
    with connection.makefile("rb", buffering=0) as stream:
        return stream.read(int.from_bytes(stream.read(4), "big"))


def asked_as(user, path):
    """What a process of a user is answered."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setuid(user)
            with socket.socket(socket.AF_UNIX) as asker:
                asker.connect(path)
                asker.sendall(b"\0\0\0\6\nprove\0\0\0\0")
                os.write(writing, frame(asker))
        except ConnectionError:  # it was dropped before it had asked
            pass
        except BaseException:
            os.write(writing, b"failed")
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, "rb") as answer:
        return answer.read()


def test_only_its_user_reaches_it(store):
    store.start()
    folder, path = asking.folder(), asking.address()
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.chmod(folder, 0o755)
    answers_itself(store)
    if os.geteuid() != 0:
        return
    os.chmod(folder, 0o777)
    os.chmod(path, 0o666)
    os.chmod(os.path.dirname(folder), 0o755)
    assert asked_as(0, path).startswith(asking.DONE)
    assert asked_as(65_534, path) == b""
    os.chmod(folder, 0o700)


def test_a_socket_of_another_user_is_not_asked(store, monkeypatch):
    store.start()
    monkeypatch.setattr(local_socket, "is_own", lambda _: False)
    with pytest.raises(asking.Unanswered, match="another user's"):
        asking.Link()


def test_windows_has_a_port_and_a_token(warm, monkeypatch):
    import types

    from recallite_server.warm.__main__ import serve

    os.makedirs(asking.folder(), mode=0o700)
    monkeypatch.setattr(local_socket, "sys", types.SimpleNamespace(platform="win32"))
    path = asking.address()
    thread = threading.Thread(target=lambda: asyncio.run(serve(Path(path))))
    thread.start()
    until(lambda: os.path.exists(path) and os.path.getsize(path))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with FolderLock(Path(local_socket.lock_of(path))).held():  # as the process itself holds it
        link = asking.Link()
        port = Path(path).read_text().partition(" ")[0]
        for text in (f"{port} guessed", f"{port}", "", "0 x"):
            Path(path).write_text(text)
            with pytest.raises(asking.Unanswered):
                asking.Link()
        link.ask("stop")
        thread.join(LAST_RESORT_SECONDS)
    assert not os.path.exists(path)


def test_a_port_that_a_killed_process_has_left_is_told_no_token_and_forgotten(warm, monkeypatch):
    import types

    os.makedirs(asking.folder(), mode=0o700)
    monkeypatch.setattr(local_socket, "sys", types.SimpleNamespace(platform="win32"))
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as another:  # a program that was given the port since
        Path(asking.address()).write_text(f"{another.getsockname()[1]} secret-token")

        def answer():
            connection, _ = another.accept()
            with connection:
                heard.append(connection.recv(65_536))
                connection.sendall(b"\0\0\0\5done\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(asking.Unanswered):
            asking.Link()
        thread.join(LAST_RESORT_SECONDS)
    assert heard[0].startswith(b"\0\0\0\6\nprove")
    assert b"secret-token" not in heard[0]
    assert asking.sockets() == []


# ── hosts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Host:
    """A host of `recallite mcp` over standard input."""

    def __init__(self, warm, *words, **environment):
        command = [*quick_start(), "--db", warm.path, "mcp", *words]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
        self._last = 0

    def __enter__(self):
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert self.ask("initialize", client)["serverInfo"]["name"] == "recallite"
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        assert self._process.wait(LAST_RESORT_SECONDS) == 0
        self._process.stdout.close()

    def _send(self, message):
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method, params):
        self.begin(method, params)
        return self.end()

    def begin(self, method, params):
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})

    def end(self):
        while (answer := json.loads(self._process.stdout.readline())).get("id") != self._last:
            assert answer["method"] == "notifications/progress"
        return answer["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def recall(self, query):
        return self.call("recall", query=query)["content"][0]["text"]

    def is_thin(self):
        """Whether it has loaded neither numbers, nor models, nor the SDK, and takes less than 40 MB."""
        maps, status = (Path(f"/proc/{self._process.pid}/{name}").read_text() for name in ("maps", "status"))
        kilobytes = int(status.partition("VmRSS:")[2].split()[0])
        return not any(name in maps for name in ("numpy", "llvmlite", "onnxruntime", "pydantic")) and kilobytes < 40_000


def test_hosts_share_one_process_and_are_thin(store):
    with Host(store) as first, Host(store, "--read-only", "--scope", "/work") as second:
        written = first.call("remember", text="The office has a garden")["structuredContent"]
        assert written["outcome"] == "created"
        assert "garden" in first.recall("office garden")
        tools = [tool["name"] for tool in second.ask("tools/list", {})["tools"]]
        assert "remember" not in tools
        assert "recall" in tools
        assert "port" in second.recall("API")
        assert "Oslo" not in second.recall("office")
        if sys.platform == "linux":
            assert first.is_thin()
            assert second.is_thin()
    assert len(running()) == 1


@pytest.mark.parametrize("again", ["the process is started again", "it may not be started"])
def test_a_conversation_outlives_the_process(store, again):
    store.start()
    environment = {} if again.startswith("the") else {"CI": "1"}
    with Host(store, **environment) as host:
        assert "Oslo" in host.recall("office")
        for kill_at in ("between two calls", "while it answers"):
            pids = running()
            for pid in pids:
                os.kill(pid, signal.SIGSTOP if kill_at == "while it answers" else signal.SIGKILL)
            host.begin("tools/call", {"name": "recall", "arguments": {"query": "office"}})
            for pid in pids:
                with suppress(ProcessLookupError):  # killed before the call, and gone
                    os.kill(pid, signal.SIGKILL)
            assert "Oslo" in host.end()["content"][0]["text"]
        assert bool(running()) == (not environment)


def test_a_host_serves_itself_without_a_process(store):
    with Host(store, CI="1") as host:
        assert "Oslo" in host.recall("office")
        assert not running()
    done = subprocess.run(
        [sys.executable, "-m", "recallite", "--db", store.path, "mcp", "--tools", "drop"], capture_output=True,
        stdin=subprocess.DEVNULL, timeout=LAST_RESORT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"'drop' is no tool" in done.stderr


def test_a_conversation_outlives_the_idle_store(store):
    Path(os.environ["RECALLITE_SETTINGS"]).write_text('embedder = "none"\nwarm = {idle_minutes = 0.005}\n')
    with Host(store) as host:
        assert "Oslo" in host.recall("office")
        until(lambda: not running())
        assert "Oslo" in host.recall("office")
