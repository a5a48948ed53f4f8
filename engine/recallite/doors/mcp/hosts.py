"""The configuration files of agent hosts: the entry that starts the server is put in, or taken out again.

All else that stands in a file is kept, in its order; comments of TOML too. A JSON file with comments is left alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recallite.doors.warm.quick import quick_start
from recallite.errors import InvalidInput, StoreError
from recallite.system.atomic_file import unfinished
from recallite.system.extras import install_command

NAME = "recallite"
"""The name of the server in a configuration."""


class Host(NamedTuple):
    """A host: the key of its servers, its own file for a person, and the file within a project, if it reads one.

    An entry may name its type, and have the command and its arguments `in_list`.
    """

    title: str
    key: str
    file: Callable[[], Path]
    project: str | None = None
    typed: bool = False
    in_list: bool = False


def _in_home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _in_application_data(*parts: str) -> Callable[[], Path]:
    """A file in the folder where applications of this platform keep their settings."""

    def path() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        if sys.platform == "win32":
            return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming").joinpath(*parts)
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)

    return path


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"


def _opencode() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode" / "opencode.json"


HOSTS: dict[str, Host] = {
    "claude-desktop": Host(
        "Claude Desktop", "mcpServers", _in_application_data("Claude", "claude_desktop_config.json")
    ),
    "claude-code": Host("Claude Code", "mcpServers", _in_home(".claude.json"), ".mcp.json"),
    "cursor": Host("Cursor", "mcpServers", _in_home(".cursor", "mcp.json"), ".cursor/mcp.json"),
    "vscode": Host(
        "VS Code", "servers", _in_application_data("Code", "User", "mcp.json"), ".vscode/mcp.json", typed=True
    ),
    "codex": Host("Codex", "mcp_servers", _codex),
    "gemini-cli": Host("Gemini CLI", "mcpServers", _in_home(".gemini", "settings.json"), ".gemini/settings.json"),
    "opencode": Host("OpenCode", "mcp", _opencode, "opencode.json", in_list=True),
}
"""The hosts that can be configured, by the name on the command line."""


class Change(NamedTuple):
    """A configuration file as it is (None: there is none) and as it will be (None: it is removed)."""

    path: Path
    before: str | None
    after: str | None

    @property
    def diff(self) -> str:
        """The change, as lines that begin with - and +; empty where nothing changes."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(),
            (self.after or "").splitlines(),
            str(self.path),
            str(self.path),
            lineterm="",
        )
        return "\n".join(lines)


def entry(host: Host, arguments: Sequence[str]) -> dict[str, Any]:
    """The entry that starts the server with these arguments, in this Python's environment."""
    program, *words = [*quick_start(), *arguments]
    if host.in_list:
        return {"type": "local", "command": [program, *words], "enabled": True}
    transport = {"type": "stdio"} if host.typed else {}
    return {**transport, "command": program, "args": words}


def configured(host: Host, project: Path | None, wanted: Mapping[str, Any] | None) -> Change:
    """The file of a host with the entry `wanted`, or without the server (None).

    Raises InvalidInput if the file cannot be changed without a loss.
    """
    path = file_of(host, project)
    if path.suffix == ".toml":
        path, before = _read(path)
        return Change(path, before, _toml(path, before or "", host.key, wanted))
    return edited(path, lambda configuration: put_server(path, configuration, host.key, wanted))


def file_of(host: Host, project: Path | None) -> Path:
    """The file of a host for a person, or for a project. InvalidInput if the host has none for a project."""
    if project is not None and host.project is None:
        raise InvalidInput(f"{host.title} has no configuration of a project: leave --project out")
    return host.file() if project is None or host.project is None else project / host.project


def edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> Change:
    """A JSON file with what `edit` changes; one that holds nothing then is removed. Raises InvalidInput as above."""
    path, before = _read(path)
    text = before or ""
    try:
        configuration = json.loads(text.removeprefix("\ufeff")) if text.strip() else {}
    except ValueError as fault:
        wanted: dict[str, Any] = {}
        edit(wanted)
        raise InvalidInput(
            f"{path} is not plain JSON ({fault}); comments would be lost. Change it by hand: "
            f"{json.dumps(wanted, indent=2)}"
        ) from None
    if not isinstance(configuration, dict):
        raise InvalidInput(f"{path} holds something else than a JSON object: change it by hand")
    edit(configuration)
    if not configuration:
        return Change(path, before, None)
    indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    after = json.dumps(configuration, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    return Change(path, before, after)


def _read(path: Path) -> tuple[Path, str | None]:
    """The file behind links, which stay, and its text; None if there is no file."""
    path = Path(os.path.realpath(path))
    try:
        return path, path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return path, None
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{path} cannot be read ({fault})") from None


def put_server(path: Path, configuration: dict[str, Any], key: str, wanted: Mapping[str, Any] | None) -> None:
    """Put the server into a configuration, or take it out. InvalidInput if something else is in its place."""
    servers = configuration.setdefault(key, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"{path} holds something else under {key!r}: change it by hand")
    _put(servers, wanted)


def write(change: Change) -> None:
    """Write a changed file: complete, or not at all; or remove it. Raises StoreError."""
    path = change.path
    try:
        if change.after is None:
            path.unlink(missing_ok=True)
            return
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(f"{path.parent}{os.sep}", path.name) as part:
            os.write(part.descriptor, change.after.encode())
            part.finish()
            os.replace(part.path, path)
            part.give(mode)
    except OSError as fault:
        raise StoreError(f"{path} cannot be written ({fault.strerror}): nothing was changed") from fault


def _toml(path: Path, text: str, key: str, wanted: Mapping[str, Any] | None) -> str:
    try:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError
    except ImportError:
        raise InvalidInput(f"changing {path} needs tomlkit: {install_command('mcp')}") from None
    try:
        configuration = tomlkit.parse(text)
    except TOMLKitError as fault:
        raise InvalidInput(f"{path} is not TOML ({fault}): change it by hand") from None
    if key not in configuration:
        configuration[key] = tomlkit.table(is_super_table=True)
    servers = configuration[key]
    if not isinstance(servers, dict):
        raise InvalidInput(f"{path} holds something else under {key!r}: change it by hand")
    _put(servers, wanted)
    if not servers:
        del configuration[key]
    return tomlkit.dumps(configuration)


def _put(servers: dict[str, Any], wanted: Mapping[str, Any] | None) -> None:
    """Put the server among those of a file, or take it out. What a person added to its entry stays."""
    if wanted is None:
        servers.pop(NAME, None)
    elif isinstance(servers.get(NAME), dict):
        servers[NAME].update(wanted)
    else:
        servers[NAME] = dict(wanted)
