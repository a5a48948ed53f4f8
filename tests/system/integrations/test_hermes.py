"""The Hermes agent recalls from a memory, keeps its turns in it, and works on it with a tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recallite import Memory
from recallite.errors import InvalidInput

provider_module = pytest.importorskip("agent.memory_provider", reason="hermes-agent is not installed")

from agent.memory_manager import MemoryManager  # noqa: E402
from plugins.memory import load_memory_provider  # noqa: E402

from recallite_connect import hermes  # noqa: E402


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "hermes"
    folder.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    hermes.install()
    (folder / "config.yaml").write_text("memory:\n  provider: recallite\n", "utf-8")
    return folder


def managed(home, **kwargs):
    """Hermes' manager with the plugin that it loads from HERMES_HOME."""
    manager = MemoryManager()
    manager.add_provider(load_memory_provider("recallite"))
    manager.initialize_all("s1", hermes_home=str(home), platform="cli", **kwargs)
    return manager


def call(manager, **arguments):
    return json.loads(manager.handle_tool_call("recallite_memory", arguments))


def test_turns_are_kept_and_recalled_in_the_next_session(home):
    manager = managed(home)
    assert "recallite_memory" in manager.build_system_prompt()
    assert manager.prefetch_all("Who is on call for billing?") == ""
    manager.sync_all("Ada is on call for billing", "Noted.", session_id="s1")
    manager.sync_all("thanks!", "You're welcome.", session_id="s1")
    assert manager.flush_pending(timeout=60)
    manager.shutdown_all()
    manager = managed(home)
    assert "user: Ada is on call for billing" in manager.prefetch_all("Who is on call for billing?")
    assert manager.prefetch_all("How tall is the Eiffel tower?") == ""
    manager.shutdown_all()
    with Memory(home / "recallite.db") as memory:
        (session,) = memory.scoped("/hermes/default").sessions.list()
        assert (session.id, session.messages) == ("s1", 4)


def test_the_tool_writes_recalls_and_removes(home):
    manager = managed(home)
    assert manager.has_tool("recallite_memory")
    assert call(manager, action="write", text="The deploy key is in the vault")["outcome"] == "created"
    assert "vault" in json.dumps(call(manager, action="search", query="deploy key"))
    assert call(manager, action="remove", old_text="The deploy key is in the vault")["outcome"] == "removed"
    assert call(manager, action="fly")["error"]["type"] == "unknown_action"
    manager.shutdown_all()


def test_users_and_profiles_are_kept_apart(home):
    for kwargs in (
        {"user_id": "ada"}, {"user_id": "a/b"}, {"chat_id": "7"}, {"chat_id": "8"}, {"agent_identity": "coder"},
    ):  # fmt: skip
        manager = managed(home, **kwargs)
        assert manager.prefetch_all("Where is the vault key?") == ""
        manager.sync_all("The vault key is in the drawer", "Noted.", session_id="s1")
        assert manager.flush_pending(timeout=60)
        assert "drawer" in manager.prefetch_all("Where is the vault key?")
        manager.shutdown_all()


def test_the_same_id_on_two_platforms_is_two_users(home):
    provider = hermes.RecalliteProvider()
    for platform in ("telegram", "discord"):
        provider.initialize("s1", hermes_home=str(home), platform=platform, user_id="7")
        assert provider.prefetch("Where is the vault key?") == ""
        provider.sync_turn("The vault key is in the drawer", "Noted.")
    provider.shutdown()


def test_a_subagent_reads_and_writes_nothing(home):
    manager = managed(home, agent_context="subagent")
    manager.sync_all("Ada is on call", "Noted.", session_id="s1")
    assert manager.flush_pending(timeout=60)
    provider = manager.get_provider("recallite")
    provider.on_memory_write("add", "user", "Ada likes tea")
    provider.on_delegation("look", "found")
    assert "cannot change" in call(manager, action="write", text="x")["error"]
    assert call(manager, action="search", query="Ada")["results"] == []
    manager.shutdown_all()
    assert provider.prefetch("Ada") == provider.system_prompt_block() == ""
    assert json.loads(provider.handle_tool_call("recallite_memory", {"action": "list"})) == {
        "error": "the memory is closed"
    }
    with Memory(home / "recallite.db") as memory:
        assert memory.count() == 0


def test_what_hermes_notes_and_delegates_is_remembered(home):
    manager = managed(home)
    manager.on_memory_write("add", "user", "Ada likes tea")
    manager.on_memory_write("remove", "user", "Ada likes coffee")
    manager.on_delegation("Find the owner of billing", "It is the payments team")
    manager.on_session_switch("s2")
    manager.get_provider("recallite").sync_turn("My cat is called Rex", "Nice.")
    manager.shutdown_all()
    with Memory(home / "recallite.db") as memory:
        assert {each.text for each in memory.list()} == {
            "Ada likes tea", "It is the payments team", "My cat is called Rex",
        }  # fmt: skip
        assert [each.id for each in memory.sessions.list()] == ["s2"]


def test_the_file_is_where_the_configuration_says(home, tmp_path):
    provider = hermes.RecalliteProvider()
    assert provider.is_available()
    assert provider.backup_paths() == []
    provider.save_config({"path": str(tmp_path / "other.db")}, str(home))
    assert provider.backup_paths() == [str(tmp_path / "other.db")]
    provider.initialize("s1", hermes_home=str(home))
    provider.shutdown()
    assert (tmp_path / "other.db").exists()
    assert not (home / "recallite.db").exists()
    (home / "recallite.json").write_text("[1]")
    with pytest.raises(InvalidInput, match=r"recallite\.json is not"):
        provider.initialize("s1", hermes_home=str(home))


def test_the_plugin_is_installed_and_removed_by_a_command(home):
    environment = {**os.environ, "HERMES_HOME": str(home)}
    for command, exists in (("uninstall", False), ("uninstall", False), ("install", True), ("install", True)):
        done = subprocess.run(
            [sys.executable, "-m", "recallite_connect.hermes", command],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == str(home / "plugins" / "recallite")
        assert (home / "plugins" / "recallite" / "plugin.yaml").exists() is exists
    (home / "plugins" / "recallite" / "__init__.py").write_text("changed")
    with pytest.raises(InvalidInput, match="not as it was installed"):
        hermes.uninstall()


class Model(BaseHTTPRequestHandler):
    """A model on this machine that calls the tool once, and keeps what it was asked."""

    asked: list[dict] = []  # noqa: RUF012

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "tools" not in request:  # what it asks of a server that may be Ollama's
            self.send_error(404)
            return
        self.asked.append(request)
        call = {"id": "c1", "type": "function", "index": 0, "function": {
            "name": "recallite_memory",
            "arguments": json.dumps({"action": "write", "text": "The deploy window is Tuesday"}),
        }}  # fmt: skip
        first = len(self.asked) == 1
        message = {"role": "assistant", "content": None if first else "Done."} | (
            {"tool_calls": [call]} if first else {}
        )
        why = "tool_calls" if first else "stop"
        body = {"id": "r", "object": "chat.completion", "created": 1, "model": "scripted",
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}  # fmt: skip
        if request.get("stream"):
            chunk = body | {
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": message, "finish_reason": why}],
            }
            data, kind = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"
        else:
            body["choices"] = [{"index": 0, "message": message, "finish_reason": why}]
            data, kind = json.dumps(body).encode(), "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


AGENT = """
import sys
from run_agent import AIAgent

agent = AIAgent(base_url=sys.argv[1], api_key="none", provider="custom", model="scripted", quiet_mode=True,
                enabled_toolsets=["memory"], skip_context_files=True, session_id="s7")
print(agent.run_conversation("Who is on call for billing?")["final_response"])
agent._memory_manager.flush_pending(timeout=60)
agent.shutdown_memory_provider()
"""


def test_an_agent_uses_it_in_its_own_loop(home):
    with Memory(home / "recallite.db") as memory:
        memory.remember("Ada is on call for billing", scope="/hermes/default")
    Model.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = subprocess.run(
            [sys.executable, "-c", AGENT, f"http://127.0.0.1:{server.server_port}/v1"],
            env={**os.environ, "HERMES_HOME": str(home)}, capture_output=True, text=True, timeout=300, cwd=home,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    assert "Done." in done.stdout, done.stdout + done.stderr
    assert "Ada is on call for billing" in json.dumps(Model.asked[0]["messages"])
    assert "recallite_memory" in [each["function"]["name"] for each in Model.asked[0]["tools"]]
    with Memory(home / "recallite.db") as memory:
        assert "The deploy window is Tuesday" in [each.text for each in memory.list()]
        assert [each.id for each in memory.scoped("/hermes/default").sessions.list()] == ["s7"]
