"""The configuration files of agent hosts: the entry that starts the server is put in, or taken out again.

All else that stands in a file is kept as it is written; comments of TOML too. A JSON file with comments is left alone.
"""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from recallite.errors import InvalidInput, StoreError
from recallite.system.atomic_file import unfinished
from recallite.system.extras import install_command
from recallite.system.folders import read_regular
from recallite_server.mcp import json_text
from recallite_server.warm.quick import quick_start

NAME = "recallite"
"""The name of the server in a configuration."""
# The header of our table, or of one within it, below the key of a host's servers.
_HEADER = re.compile(rf"\s*\[\s*([\w-]+)\s*\.\s*{NAME}\s*[.\]]")
_MOST_BYTES = 1 << 26  # Claude Code keeps all projects in one file
_FOLDERS = (".claude", ".codex", ".cursor", ".gemini", ".opencode", ".vscode")


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
    """A configuration file as it is (None: there is none) and as it will be (None: it is removed).

    `by_hand` is what a person has to do in it, if it cannot be changed without losing something.
    """

    path: Path
    before: str | None
    after: str | None
    by_hand: str = ""

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
        if wanted is None and NAME not in (before or ""):
            return Change(path, before, before)
        return Change(path, before, _toml(path, before or "", host.key, wanted) or None)
    return edited(path, lambda configuration: put_server(path, configuration, host.key, wanted))


def file_of(host: Host, project: Path | None) -> Path:
    """The file of a host for a person, or for a project. InvalidInput if the host has none for a project."""
    if project is not None and host.project is None:
        raise InvalidInput(f"{host.title} has no configuration of a project: leave --project out")
    return host.file() if project is None or host.project is None else within(project, host.project)


def within(project: Path, name: str) -> Path:
    """A file of a project. Raises InvalidInput for a link that leads out of it, as a stranger's may."""
    path = project / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project)):
        raise InvalidInput(f"{path} is a link out of the project: remove it, or change its target by hand")
    return path


def edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> Change:
    """A JSON file with what `edit` changes; one that holds nothing then is removed.

    Raises InvalidInput as above, unless `edit` only takes something out: then the change says what to do by hand.
    """
    path, before = _read(path)
    text = (before or "").removeprefix("\ufeff")
    try:
        configuration = json.loads(text) if text.strip() else {}
    except ValueError as fault:
        wanted: dict[str, Any] = {}
        edit(wanted)
        if not wanted:
            return Change(path, before, before, _by_hand(path, text, edit))
        raise InvalidInput(
            f"{path} is not plain JSON ({fault}); comments would be lost. Change it by hand: "
            f"{json.dumps(wanted, indent=2)}"
        ) from None
    if not isinstance(configuration, dict):
        raise InvalidInput(f"{path} holds something else than a JSON object: change it by hand")
    was = copy.deepcopy(configuration)
    edit(configuration)
    if configuration == was:
        return Change(path, before, before)
    if not configuration:
        return Change(path, before, None)
    if not text.strip():
        return Change(path, before, json_text.written(configuration))
    try:
        after = json_text.changed(text, configuration)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{path} cannot be changed ({fault}): change it by hand") from None
    return Change(path, before, (before or "")[: len(before or "") - len(text)] + after)


def _by_hand(path: Path, text: str, edit: Callable[[dict[str, Any]], None]) -> str:
    """Say what to take out by hand of a file that is not plain JSON; empty if nothing of ours is in it."""
    try:
        configuration = json.loads(json_text.without_extras(text))
        was = copy.deepcopy(configuration)
        edit(configuration)
        ours = [*json_text.removed(was, configuration)]
    except (ValueError, AttributeError, TypeError, InvalidInput):
        ours = [f"what names {NAME}"] if NAME in text else []
    what = " and ".join(ours)
    return f"{path} is not plain JSON, and is left as it is: take {what} out by hand" if ours else ""


def _read(path: Path) -> tuple[Path, str | None]:
    """The file behind links, which stay, and its text; None if there is no file."""
    path = Path(os.path.realpath(path))
    try:
        return path, read_regular(path, _MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        return path, None
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{path} cannot be read ({fault})") from None


def put_server(path: Path, configuration: dict[str, Any], key: str, wanted: Mapping[str, Any] | None) -> None:
    """Put the server into a configuration, or take it out. InvalidInput if something else is in its place."""
    if wanted is None and NAME not in (configuration.get(key) or {}):
        return
    servers = configuration.setdefault(key, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"{path} holds something else under {key!r}: change it by hand")
    _put(servers, wanted)
    if not servers:
        del configuration[key]


def write(change: Change) -> None:
    """Write a changed file, complete or not at all; or remove it, and its folder if it is empty. Raises StoreError."""
    path = change.path
    try:
        if change.after is None:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # others are in it, or it is the host's own
                for folder in [folder for folder in path.parents[:2] if _is_of_host(folder)]:
                    folder.rmdir()
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


def _is_of_host(folder: Path) -> bool:
    """Whether a folder is one in which a host looks for its files, and not a person's or a project's own."""
    of_opencode = _opencode().parent
    return (
        folder.name in _FOLDERS
        or folder in (of_opencode, of_opencode / "plugins")
        or (folder.name == "plugins" and folder.parent.name == ".opencode")
    )


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
    was_there = NAME in servers
    _put(servers, wanted)
    if not servers:
        del configuration[key]
    result = tomlkit.dumps(configuration)
    if wanted is not None and (was_there or not text):
        return result
    # tomlkit adds and leaves blank lines: what is at the end, or a table of its own, is put in or cut out as text.
    exact = _without_table(text, key) if wanted is None else _with_table(text, _toml(path, "", key, wanted))
    try:
        return exact if _values(exact, key) == _values(result, key) else result
    except tomllib.TOMLDecodeError:
        return result


def _values(text: str, key: str) -> dict[str, Any]:
    """The values of a TOML text, in which no servers are as good as an empty table of them."""
    values = tomllib.loads(text)
    return values if values.get(key) else {name: value for name, value in values.items() if name != key}


def _with_table(text: str, table: str) -> str:
    """A TOML text with a table at its end."""
    end = "\r\n" if "\r\n" in text else "\n"
    ended = text if text.endswith("\n") else text + end
    return ended + end + table.replace("\n", end)


def _without_table(text: str, key: str) -> str:
    """A TOML text without the table of the server, the blank line before it, and the tables within it."""
    others: list[str] = []
    after: list[str] = []  # comments and blank lines after the last of its values
    is_ours = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            header = _HEADER.match(line)
            was_ours, is_ours = is_ours, header is not None and header[1] == key
            others += [line_after for line_after in after if not is_ours or line_after.strip()]
            after = []
            if is_ours and not was_ours and others and not others[-1].strip():
                others.pop()
        if not is_ours:
            others.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            after.append(line)
        else:
            after = []
    return "".join(others + after)


def _put(servers: dict[str, Any], wanted: Mapping[str, Any] | None) -> None:
    """Put the server among those of a file, or take it out. What a person added to its entry stays."""
    if wanted is None:
        servers.pop(NAME, None)
    elif isinstance(servers.get(NAME), dict):
        servers[NAME].update(wanted)
    else:
        servers[NAME] = dict(wanted)
