"""Coding agents are connected and disconnected: what a person has in their files stays, and nothing of ours is left."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from recallite import __version__
from recallite_server.hooks import connecting
from recallite_server.hooks.connecting import HOOKED
from recallite_server.main import main
from recallite_server.warm.quick import quick_start
from tests.system.doors.hooking import repository


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person's folder of their own."""
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "RECALLITE_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def run(home, *words):
    return main(["--db", str(home / "agent.db"), *words])


def files(home):
    return {path.relative_to(home).as_posix(): path.read_text() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("host", HOOKED)
def test_nothing_is_left_of_a_connection(home, host, capfd):
    assert run(home, "connect", host, "--dry-run") == 0
    assert "+" in capfd.readouterr().err
    assert files(home) == {}
    assert run(home, "connect", host, "--yes") == 0
    connected = files(home)
    assert f"--host {host}" in "".join(connected.values()).replace('", "', " ")
    assert run(home, "connect", host, "--yes") == 0
    assert "nothing was changed" in capfd.readouterr().err
    assert files(home) == connected
    assert run(home, "disconnect", host, "--yes") == 0
    assert [*home.iterdir()] == []


@pytest.mark.parametrize(
    "command",
    [
        'echo "recallite" && my-tool hook turn',
        "/opt/recallite-helper/bin/notify hook prompt --host claude-code",
        "recallite --db /elsewhere.db hook turn --host claude-code | tee /tmp/log",
        "sh -c 'recallite hook session-start --host claude-code; say hello'",
        "recallite hook turn",
        "# recallite hook turn --host claude-code",
        "'unfinished recallite hook turn",
    ],
)
def test_hooks_of_a_person_that_only_name_ours_stay(home, command):
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    mine = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}
    settings.write_text(json.dumps(mine))
    assert run(home, "connect", "claude-code", "--yes") == 0
    connected = json.loads(settings.read_text())["hooks"]
    assert connected["Stop"][0] == mine["hooks"]["Stop"][0]
    own = connected["Stop"][1]["hooks"][0]["command"]
    settings.write_text(json.dumps({"hooks": {"Stop": [*connected["Stop"], {"hooks": [
        {"type": "command", "command": f"{own} && {command}"}]}]}}))  # fmt: skip
    assert run(home, "disconnect", "claude-code", "--yes") == 0
    left = [group["hooks"][0]["command"] for group in json.loads(settings.read_text())["hooks"]["Stop"]]
    assert left == [command, f"{own} && {command}"]


def test_hooks_of_another_python_and_store_are_replaced(home):
    settings = home / ".claude" / "settings.json"
    assert run(home, "connect", "claude-code", "--yes", "--scope", "/team") == 0
    text = settings.read_text()
    settings.write_text(
        text.replace(sys.executable, "/old/python3").replace(quick_start()[-1], "/old/lib/recallite").replace(
            "agent.db", "old.db")
    )  # fmt: skip
    assert run(home, "connect", "claude-code", "--yes", "--scope", "/team") == 0
    assert settings.read_text() == text


def test_a_plugin_of_a_person_is_not_overwritten(home, capfd):
    plugin = home / "opencode" / "plugins" / "recallite.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const Mine = async () => ({})\n")
    assert run(home, "connect", "opencode", "--yes") == 2
    assert "is not of Recallite" in capfd.readouterr().err
    assert run(home, "disconnect", "opencode", "--yes") == 0
    assert plugin.read_text() == "export const Mine = async () => ({})\n"


def test_what_has_to_be_trusted_is_said(home, capfd):
    assert run(home, "connect", "codex", "--yes") == 0
    assert "only once you trust them: type /hooks there" in capfd.readouterr().err
    assert run(home, "connect", "status") == 0
    (codex,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("codex\t"))
    assert "/hooks" in codex


def test_a_commented_file_stops_nothing_from_being_disconnected(home, capfd):
    assert run(home, "connect", "claude-code", "--yes") == 0
    settings = home / ".claude" / "settings.json"
    commented = settings.read_text().replace("{", "{ // mine\n", 1)
    settings.write_text(commented)
    capfd.readouterr()
    assert run(home, "disconnect", "claude-code", "--yes") == 0
    assert "take hooks out by hand" in capfd.readouterr().err
    assert files(home) == {".claude/settings.json": commented}


def test_what_a_person_added_stays(home):
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    mine = {"hooks": [{"type": "command", "command": "notify done"}], "matcher": "startup"}
    before = {"theme": "dark", "hooks": {"Stop": [mine], "PreToolUse": [mine]}}
    settings.write_text(json.dumps(before, indent=2) + "\n")
    servers = home / ".claude.json"
    servers.write_text(json.dumps({"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}, indent=2) + "\n")
    untouched = files(home)
    assert run(home, "connect", "claude-code", "--yes") == 0
    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks["Stop"][0] == hooks["PreToolUse"][0] == mine
    assert len(hooks["Stop"]) == 2
    ours = hooks["Stop"][1]["hooks"]
    ours.append({"type": "command", "command": "say done"})
    settings.write_text(json.dumps({**before, "hooks": hooks}, indent=2) + "\n")
    assert run(home, "disconnect", "claude-code", "--yes") == 0
    left = json.loads(settings.read_text())["hooks"]["Stop"]
    assert left == [mine, {"hooks": [{"type": "command", "command": "say done"}]}]
    settings.write_text(untouched[".claude/settings.json"])
    assert files(home) == untouched


def test_a_folder_of_a_person_is_not_removed(home):
    for name in ("opencode", "plugins"):
        (home / name).mkdir()
        for _ in range(2):
            assert run(home, "connect", "opencode", "--project", str(home / name), "--yes") == 0
        assert run(home, "disconnect", "opencode", "--project", str(home / name), "--yes") == 0
        assert [*(home / name).iterdir()] == []


def test_a_project_has_files_of_its_own_and_a_shared_scope(home, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    assert run(home, "connect", "claude-code", "--project", str(project), "--scope", "/team", "--yes") == 0
    assert set(files(home)) == {"project/.claude/settings.local.json", "project/.mcp.json"}
    hooks = json.loads((project / ".claude/settings.local.json").read_text())["hooks"]
    command = shlex.split(hooks["UserPromptSubmit"][0]["hooks"][0]["command"])
    assert command == [
        *quick_start(), "--db", str(home / "agent.db"), "hook", "prompt", "--host", "claude-code", "--scope", "/team",
    ]  # fmt: skip
    server = json.loads((project / ".mcp.json").read_text())["mcpServers"]["recallite"]
    assert server["args"][-2:] == ["--scope", "/team"]
    assert run(home, "disconnect", "claude-code", "--project", str(project), "--yes") == 0
    assert files(home) == {}


def test_the_plugin_calls_what_connect_puts_in(home):
    plugin = Path(__file__).parents[3] / "plugins" / "claude-code"
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
    called = {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()}
    assert called == {
        event: f"recallite hook {ours} --host claude-code" for event, ours in HOOKED["claude-code"].events.items()
    }
    server = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["recallite"]
    assert run(home, "connect", "claude-code", "--yes") == 0
    put_in = json.loads((home / ".claude.json").read_text())["mcpServers"]["recallite"]
    assert put_in["args"][-len(server["args"]) :] == server["args"]
    assert json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())["version"] == __version__
    (listed,) = json.loads((plugin.parents[1] / ".claude-plugin" / "marketplace.json").read_text())["plugins"]
    assert (plugin.parents[1] / listed["source"]).resolve() == plugin


def test_status_shows_the_scope_of_the_folder_and_the_hosts(home, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(repository(tmp_path / "app", "git@github.com:ada/app.git"))
    assert run(home, "connect", "status") == 0
    said = capfd.readouterr().out
    assert "scope of this folder\t/projects/app-" in said
    assert "remote github.com/ada/app" in said
    assert "claude-code\tnot connected" in said
    assert run(home, "connect", "claude-code", "--yes") == 0
    capfd.readouterr()
    assert run(home, "connect", "status") == 0
    settings = home / ".claude" / "settings.json"
    assert f"claude-code\tconnected by {settings}\n" in capfd.readouterr().out
    settings.write_text(settings.read_text().replace(sys.executable, "/gone/python"))
    assert run(home, "connect", "status") == 0
    assert f"connected by {settings}, but /gone/python is gone: run recallite connect" in capfd.readouterr().out


def test_memory_files_are_read_where_asked_and_are_never_written(home, capfd):
    notes = home / ".claude" / "CLAUDE.md"
    notes.parent.mkdir()
    notes.write_text("# Mine")
    assert run(home, "connect", "claude-code", "--memories", "--yes") == 0
    assert "never written" in capfd.readouterr().err
    commands = connecting.hook_commands("claude-code", None)
    assert len(commands) == len(HOOKED["claude-code"].events)
    assert all(command.endswith("--host claude-code --memories") for command in commands)
    assert run(home, "disconnect", "claude-code", "--yes") == 0
    assert files(home) == {".claude/CLAUDE.md": "# Mine"}
    assert run(home, "connect", "codex", "--memories", "--yes") == 2
    assert "leave --memories out" in capfd.readouterr().err


def test_what_cannot_be_changed_without_a_loss_is_left_alone(home, capfd):
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    for text in ("{} // mine", '{"hooks": []}', "[]"):
        settings.write_text(text)
        assert run(home, "connect", "claude-code", "--yes") == 2
        assert "by hand" in capfd.readouterr().err
        assert files(home) == {".claude/settings.json": text}
    assert run(home, "disconnect", "netscape", "--yes") == 2
    assert "claude-code" in capfd.readouterr().err
