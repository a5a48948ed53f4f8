"""Configurations of hosts: the entry is shown, put in and taken out, and nothing else is lost."""

from __future__ import annotations

import json
import stat
import sys

import pytest

from recallite_server.main import main
from recallite_server.warm.quick import quick_start

HOSTS = {
    "claude-desktop": ("config/Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": (".claude.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": ("config/Code/User/mcp.json", "servers"),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person's folder of their own."""
    for name, folder in (("HOME", "."), ("XDG_CONFIG_HOME", "config"), ("APPDATA", "config"), ("CODEX_HOME", ".codex")):
        monkeypatch.setenv(name, str((tmp_path / folder).resolve()))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("RECALLITE_SETTINGS", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def configure(home, *arguments):
    return main(["--db", str(home / "agent.db"), "mcp", *arguments, "--yes"])


@pytest.mark.parametrize("host", HOSTS)
def test_the_server_is_put_in_and_taken_out(home, host, capfd):
    name, key = HOSTS[host]
    file = home / name
    assert configure(home, "install", host, "--scope", "/users/ada", "--read-only") == 0
    said = capfd.readouterr().err
    assert "+" in said
    assert '"recallite"' in said
    entry = json.loads(file.read_text())[key]["recallite"]
    assert entry["command"] == sys.executable
    assert entry["args"] == [
        *quick_start()[1:], "--db", str(home / "agent.db"), "mcp", "--scope", "/users/ada", "--read-only",
    ]  # fmt: skip
    assert configure(home, "install", host, "--scope", "/users/ada", "--read-only") == 0
    assert "nothing was changed" in capfd.readouterr().err
    assert configure(home, "uninstall", host) == 0
    assert f"removed: {file}" in capfd.readouterr().err
    assert not file.exists()


def test_what_stands_in_a_file_is_kept(home, capfd):
    file = home / ".claude.json"
    before = {
        "theme": "dark", "mcpServers": {"other": {"command": "x"}, "recallite": {"command": "old", "env": {"A": "1"}}},
        "last": [1, 2],
    }  # fmt: skip
    file.write_text(json.dumps(before, indent=4))
    file.chmod(0o640)
    assert configure(home, "install", "claude-code") == 0
    after = json.loads(file.read_text())
    assert list(after) == list(before)
    assert after["mcpServers"]["other"] == {"command": "x"}
    assert after["mcpServers"]["recallite"]["env"] == {"A": "1"}
    assert '    "theme": "dark"' in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert configure(home, "uninstall", "claude-code") == 0
    assert json.loads(file.read_text()) == {**before, "mcpServers": {"other": {"command": "x"}}}


def test_comments_and_order_of_toml_are_kept(home):
    pytest.importorskip("tomlkit", reason="the extra mcp is not installed")
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    before = '# my settings\nmodel = "o4"\n\n[mcp_servers.other]\ncommand = "x" # keep\n'
    file.write_text(before)
    assert configure(home, "install", "codex") == 0
    text = file.read_text()
    assert text.startswith(before.rstrip())
    assert "[mcp_servers.recallite]" in text
    assert configure(home, "uninstall", "codex") == 0
    assert file.read_text() == before
    between = '[a]\r\nx = 1\r\n[mcp_servers.o]\r\nc = [\r\n  "1",\r\n]\r\n\r\n\r\n[b]\r\n# last\r\n'
    file.write_bytes(between.encode())
    assert configure(home, "install", "codex") == configure(home, "install", "codex", "--read-only") == 0
    file.write_bytes(file.read_bytes() + b"\r\n[mcp_servers.recallite.env]\r\nA = 1\r\n# mine\r\n")
    assert configure(home, "uninstall", "codex") == 0
    assert file.read_bytes() == between.encode() + b"# mine\r\n"
    file.unlink()
    assert configure(home, "install", "codex") == configure(home, "uninstall", "codex") == 0
    assert not file.parent.exists()


def test_a_project_has_a_file_of_its_own(home):
    project = home / "project"
    project.mkdir()
    for host, name in (("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")):
        assert configure(home, "install", host, "--project", str(project)) == 0
        assert (project / name).exists()
    assert configure(home, "install", "codex", "--project", str(project)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  // mine\n  "mcpServers": {}\n}', "comments would be lost. Change it by hand: "),
        ("[]", "holds something else"),
        ('{"mcpServers": []}', "holds something else"),
        ("{broken", "not plain JSON"),
    ],
)
def test_a_file_that_would_lose_something_stays_as_it_is(home, capfd, text, message):
    file = home / ".claude.json"
    file.write_text(text)
    assert configure(home, "install", "claude-code") == 2
    assert message in capfd.readouterr().err
    assert file.read_text() == text


ODD = """\
{
\t"hooks": { "Stop": [ "a","b" ] },
\t"permissions": {"allow": ["Bash(ls:*)", "Read"],
\t\t"deny":   [] },
\t"mcpServers" :
\t{
\t\t"other": {"command": "x", "args": [1,2]}
\t}

}"""


@pytest.mark.parametrize("text", [ODD, ODD.replace("\n", "\r\n"), '{"a":[1, 2],"b" : {}}\n', "\ufeff" + ODD])
def test_the_rest_of_a_file_keeps_its_form(home, text):
    file = home / ".claude.json"
    file.write_bytes(text.encode())
    assert configure(home, "install", "claude-code") == 0
    put_in = file.read_bytes().decode()
    assert json.loads(put_in.removeprefix("\ufeff"))["mcpServers"]["recallite"]["command"] == sys.executable
    assert put_in.startswith(text[: text.rindex(":")])
    assert configure(home, "uninstall", "claude-code") == 0
    assert file.read_bytes().decode() == text


def test_a_commented_file_is_left_alone_and_what_to_do_is_said(home, capfd):
    file = home / ".claude.json"
    file.write_text('{\n  // mine\n  "mcpServers": {"other": {"command": "x"},},\n}')
    assert configure(home, "uninstall", "claude-code") == 0
    assert "by hand" not in capfd.readouterr().err
    with_ours = '{ /* recallite */ "mcpServers": {"other": {}, "recallite": {"command": "https://x" }} // }\n}'
    file.write_text(with_ours)
    assert configure(home, "uninstall", "claude-code") == 0
    assert "take mcpServers.recallite out by hand" in capfd.readouterr().err
    assert file.read_text() == with_ours


def test_a_file_in_which_nothing_was_put_stays(home):
    file = home / ".claude.json"
    for text in ("{}", '{"mcpServers": {}}'):
        file.write_text(text)
        assert configure(home, "uninstall", "claude-code") == 0
        assert file.read_text() == text


def test_a_link_of_a_project_leads_nowhere_else(home, capfd):
    project, elsewhere = home / "project", home / "settings.json"
    project.mkdir()
    elsewhere.write_text("{}")
    (project / ".mcp.json").symlink_to(elsewhere)
    assert configure(home, "install", "claude-code", "--project", str(project)) == 2
    assert "a link out of the project" in capfd.readouterr().err
    assert elsewhere.read_text() == "{}"


def test_wrong_arguments_write_nothing(home, capfd):
    for arguments in (
        ("install", "emacs"), ("install", "cursor", "--tools", "drop"), ("install", "cursor", "--scope", "a/b"),
        ("install", "cursor", "--token-budget", "3"),
    ):  # fmt: skip
        assert configure(home, *arguments) == 2
    assert main(["--db", ":memory:", "mcp", "install", "cursor", "--yes"]) == 2
    assert main(["--db", str(home / "agent.db"), "mcp", "install", "cursor"]) == 2  # nobody can be asked
    assert "needs --yes" in capfd.readouterr().err
    assert not (home / ".cursor").exists()
