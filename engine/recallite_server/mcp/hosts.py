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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from recallite.errors import InvalidInput, StoreError
from recallite.system.files import replacing
from recallite.system.folders import read_regular
from recallite.system.messages import install_command
from recallite_server.warm.quick import quick_start

NAME = "recallite"
"""The name of the server in a configuration."""
# The header of our table, or of one within it, below the key of a host's servers.
_HEADER = re.compile(rf"\s*\[\s*([\w-]+)\s*\.\s*{NAME}\s*[.\]]")
_MOST_BYTES = 1 << 26  # Claude Code keeps all projects in one file
_FOLDERS = (".claude", ".codex", ".copilot", ".cursor", ".gemini", ".opencode", ".qwen", ".vscode")
_WITHIN = {".copilot": "hooks", ".github": "copilot", ".opencode": "plugins"}


class Host(NamedTuple):
    """A host: the key of its servers, its own file for a person, and the file within a project, if it reads one.

    An entry may have `fixed` fields, and the command and its arguments `in_list`.
    """

    title: str
    key: str
    file: Callable[[], Path]
    project: str | None = None
    fixed: Mapping[str, Any] = {}
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


def _opencode() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode" / "opencode.json"


def _copilot() -> Path:
    return Path(os.environ.get("COPILOT_HOME") or Path.home() / ".copilot")


HOSTS: dict[str, Host] = {
    "claude-desktop": Host(
        "Claude Desktop", "mcpServers", _in_application_data("Claude", "claude_desktop_config.json")
    ),
    "claude-code": Host("Claude Code", "mcpServers", _in_home(".claude.json"), ".mcp.json"),
    "cursor": Host("Cursor", "mcpServers", _in_home(".cursor", "mcp.json"), ".cursor/mcp.json"),
    "vscode": Host(
        "VS Code",
        "servers",
        _in_application_data("Code", "User", "mcp.json"),
        ".vscode/mcp.json",
        fixed={"type": "stdio"},
    ),
    "codex": Host(
        "Codex", "mcp_servers", lambda: Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    ),
    "gemini-cli": Host("Gemini CLI", "mcpServers", _in_home(".gemini", "settings.json"), ".gemini/settings.json"),
    "qwen-code": Host("Qwen Code", "mcpServers", _in_home(".qwen", "settings.json"), ".qwen/settings.json"),
    "copilot-cli": Host(
        "Copilot CLI",
        "mcpServers",
        lambda: _copilot() / "mcp-config.json",
        ".github/mcp.json",
        fixed={"type": "local", "tools": ["*"]},
    ),
    "opencode": Host("OpenCode", "mcp", _opencode, "opencode.json", in_list=True),
}
"""The hosts that can be configured, by the name on the command line."""


class FileChange(NamedTuple):
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
        before, after, name = (self.before or "").splitlines(), (self.after or "").splitlines(), str(self.path)
        return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))


def entry(host: Host, arguments: Sequence[str]) -> dict[str, Any]:
    """The entry that starts the server with these arguments, in this Python's environment."""
    program, *words = [*quick_start(), *arguments]
    if host.in_list:
        return {"type": "local", "command": [program, *words], "enabled": True}
    return {**host.fixed, "command": program, "args": words}


def configured(host: Host, project: Path | None, wanted: Mapping[str, Any] | None) -> FileChange:
    """The file of a host with the entry `wanted`, or without the server (None).

    Raises InvalidInput if the file cannot be changed without a loss.
    """
    path = file_of(host, project)
    if path.suffix == ".toml":
        path, before = _read(path)
        if wanted is None and NAME not in (before or ""):
            return FileChange(path, before, before)
        return FileChange(path, before, _toml(path, before or "", host.key, wanted) or None)
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


def edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> FileChange:
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
            return FileChange(path, before, before, _by_hand(path, text, edit))
        raise InvalidInput(
            f"{path} is not plain JSON ({fault}); comments would be lost. Change it by hand: "
            f"{json.dumps(wanted, indent=2)}"
        ) from None
    if not isinstance(configuration, dict):
        raise InvalidInput(f"{path} holds something else than a JSON object: change it by hand")
    was = copy.deepcopy(configuration)
    edit(configuration)
    if configuration == was:
        return FileChange(path, before, before)
    if not configuration:
        return FileChange(path, before, None)
    if not text.strip():
        return FileChange(path, before, written(configuration))
    try:
        after = changed(text, configuration)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{path} cannot be changed ({fault}): change it by hand") from None
    return FileChange(path, before, (before or "")[: len(before or "") - len(text)] + after)


def _by_hand(path: Path, text: str, edit: Callable[[dict[str, Any]], None]) -> str:
    """Say what to take out by hand of a file that is not plain JSON; empty if nothing of ours is in it."""
    try:
        configuration = json.loads(without_extras(text))
        was = copy.deepcopy(configuration)
        edit(configuration)
        ours = [*removed(was, configuration)]
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


def write(change: FileChange) -> None:
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
        with replacing(path, mode) as descriptor, open(descriptor, "wb", closefd=False) as stream:
            stream.write(change.after.encode())
    except OSError as fault:
        raise StoreError(f"{path} cannot be written ({fault.strerror}): nothing was changed") from fault


def _is_of_host(folder: Path) -> bool:
    """Whether a folder is one in which a host looks for its files, and not a person's or a project's own."""
    of_opencode = _opencode().parent
    return (
        folder.name in _FOLDERS
        or folder in (of_opencode, of_opencode / "plugins")
        or folder.name == _WITHIN.get(folder.parent.name)
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
    if wanted is None:
        exact = _without_table(text, key)
    else:
        end = "\r\n" if "\r\n" in text else "\n"
        table = _toml(path, "", key, wanted).replace("\n", end)
        exact = text + ("" if text.endswith("\n") else end) + end + table
    try:
        return exact if _values(exact, key) == _values(result, key) else result
    except tomllib.TOMLDecodeError:
        return result


def _values(text: str, key: str) -> dict[str, Any]:
    """The values of a TOML text, in which no servers are as good as an empty table of them."""
    values = tomllib.loads(text)
    return values if values.get(key) else {name: value for name, value in values.items() if name != key}


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
    """Put the server into a file, or take it out. What a person added to its entry stays."""
    if wanted is None:
        servers.pop(NAME, None)
    elif isinstance(servers.get(NAME), dict):
        servers[NAME].update(wanted)
    else:
        servers[NAME] = dict(wanted)


_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
# A string, which stays, or a comment; a string, or a comma before the end of a list or an object.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*"?)|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*"?)|,(?=\s*+[}\]])', re.DOTALL)


class _Node(NamedTuple):
    """A value and its span in the text, and its items: the members of an object with their keys, or a list's."""

    begin: int
    end: int
    value: Any
    items: tuple[tuple[int, str, _Node], ...] = ()


class _WrittenItem(NamedTuple):
    """An item as it will be written, and which one it was before; None for a new one."""

    text: str
    was: int | None


def changed(text: str, after: Any) -> str:
    """A text with the value `after`, and as few changes as that takes. Raises ValueError for no JSON."""
    json.loads(text)
    root = _node(text, _SPACE.match(text).end())  # type: ignore[union-attr]
    style = _Style(text)
    result = text[: root.begin] + style.edited(root, after, "") + text[root.end :]
    if json.loads(result) != after:
        raise ValueError("a change of it does not say what it should")
    return result


def written(value: Any) -> str:
    """The text of a new file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def without_extras(text: str) -> str:
    """A text without comments and commas before an end, which some hosts allow."""
    for extra in (_COMMENT, _LAST_COMMA):
        text = extra.sub(lambda match: match[1] or "", text)
    return text


def removed(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths of what one value has and the other has not."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            inner = f"{path}.{key}" if path else key
            if key not in after:
                yield inner
            elif before[key] != after[key]:
                yield from removed(before[key], after[key], inner)
    elif before != after:
        yield path


def _node(text: str, begin: int) -> _Node:
    if text[begin : begin + 1] not in ("{", "["):
        value, end = _DECODER.raw_decode(text, begin)
        return _Node(begin, end, value)
    is_object, i, items = text[begin] == "{", _next(text, begin + 1), []
    while text[i] not in "}]":
        start, key = i, ""
        if is_object:
            key, i = _DECODER.raw_decode(text, i)
            i = _next(text, _next(text, i) + 1)  # beyond the colon
        node = _node(text, i)
        items.append((start, key, node))
        i = _next(text, node.end)
        i = _next(text, i + 1) if text[i] == "," else i
    members = {key: node.value for _, key, node in items}
    return _Node(begin, i + 1, members if is_object else [node.value for _, _, node in items], tuple(items))


def _next(text: str, i: int) -> int:
    """Skip spaces."""
    return _SPACE.match(text, i).end()  # type: ignore[union-attr]


class _Style:
    """The way in which a text is written."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = "\r\n" if "\r\n" in text else "\n"
        indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
        self._indent = indent[1] if indent else "  "
        self._on_one_line = "\n" not in text.strip() and len(text.strip()) > len("{}")

    def edited(self, node: _Node, after: Any, base: str) -> str:
        """The text of a value; `base` is the indentation of the line that it begins in."""
        if node.value == after and type(node.value) is type(after):
            return self._text[node.begin : node.end]
        if isinstance(node.value, dict) and isinstance(after, dict):
            return self._joined(node, [*self._members(node, after, base)], base, "{}")
        if isinstance(node.value, list) and isinstance(after, list):
            return self._joined(node, [*self._elements(node, after, base)], base, "[]")
        return self._new(after, base, on_one_line=self._on_one_line)

    def _members(self, node: _Node, after: Mapping[str, Any], base: str) -> Iterator[_WrittenItem]:
        inner = self._inner(node, base)
        last = {key: i for i, (_, key, _) in enumerate(node.items)}  # of keys that come twice
        for i, (start, key, value) in enumerate(node.items):
            if key in after:
                value_after = after[key] if last[key] == i else value.value
                text = self._text[start : value.begin] + self.edited(value, value_after, inner or base)
                yield _WrittenItem(text, i)
        for key, value in after.items():
            if key not in last:
                name = json.dumps(key, ensure_ascii=False)
                yield _WrittenItem(f"{name}: {self._new(value, inner or '', on_one_line=inner is None)}", None)

    def _elements(self, node: _Node, after: Sequence[Any], base: str) -> Iterator[_WrittenItem]:
        inner, olds = self._inner(node, base), [json.dumps(value.value) for _, _, value in node.items]
        matcher = difflib.SequenceMatcher(None, olds, [*map(json.dumps, after)], autojunk=False)
        for _, begin, end, first, stop in matcher.get_opcodes():
            pairs = min(end - begin, stop - first)  # the rest of the old ones go, and of the new ones come
            for step in range(pairs):
                value = node.items[begin + step][2]
                yield _WrittenItem(self.edited(value, after[first + step], inner or base), begin + step)
            for value in after[first + pairs : stop]:
                yield _WrittenItem(self._new(value, inner or "", on_one_line=inner is None), None)

    def _inner(self, node: _Node, base: str) -> str | None:
        """The indentation of the items of a value; None for one that stands on one line."""
        if not node.items:
            return None if self._on_one_line else base + self._indent
        lead = self._text[node.begin + 1 : node.items[0][0]]
        return lead.rpartition("\n")[2] if "\n" in lead else None

    def _joined(self, node: _Node, items: Sequence[_WrittenItem], base: str, ends: str) -> str:
        """The text of an object or a list with these items; between old neighbours the text is kept."""
        if not items:
            return ends
        old, inner = node.items, self._inner(node, base)
        starts, stops = [start for start, _, _ in old], [value.end for _, _, value in old]
        lead = self._text[node.begin + 1 : starts[0]] if old else "" if inner is None else self._line + inner
        tail = self._text[stops[-1] : node.end - 1] if old else "" if inner is None else self._line + base
        between = "," + (lead if inner is not None else " ")
        if inner is None and len(old) > 1:
            between = self._text[stops[0] : starts[1]]
        text = items[0].text
        for before, item in pairwise(items):
            are_neighbours = before.was is not None and item.was == before.was + 1
            gap = self._text[stops[before.was] : starts[item.was]] if are_neighbours else between  # type: ignore[index]
            text += gap + item.text
        return ends[0] + lead + text + tail + ends[1]

    def _new(self, value: Any, indent: str, *, on_one_line: bool) -> str:
        if on_one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self._indent, ensure_ascii=False).split("\n")
        return (self._line + indent).join(lines)
