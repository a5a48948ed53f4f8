"""Hooks that add to the pages as mkdocs builds the site: generated references, and files from outside docs/.

`python docs/site_hooks.py` writes the settings reference, so that it can be read without the site.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recallite.model.configuration import SettingInfo

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (
    "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "RELEASING.md", "models/README.md",
    "benchmarks/training/README.md", "benchmarks/results/README.md",
)  # fmt: skip
# How the site's search treats the pages whose addresses begin so; the guides come first.
SEARCH = {"project/benchmarks/results/": {"exclude": True}, "reference/api/": {"boost": 0.5}}
_REMOTE = re.compile(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)"')
SETTINGS = ROOT / "docs" / "reference" / "settings.md"
_MARKER = re.compile(r"<!-- generated: (\w+) -->(?:.*?<!-- end -->)?", re.DOTALL)


def on_files(files: Any, config: Any, **_: object) -> Any:
    """Add the project's own pages."""
    from mkdocs.structure.files import File

    for name in PROJECT:
        up = "../" * name.count("/")
        text = (ROOT / name).read_text("utf-8").replace(f"]({up}docs/", f"](../{up}")
        files.append(File.generated(config, f"project/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Fill the markers, and lead links to files outside docs/ to their copies in the site."""
    for address, treated in SEARCH.items():
        if page.file.src_uri.startswith(address):
            page.meta.setdefault("search", treated)
    markdown = _MARKER.sub(lambda marker: GENERATED[marker[1]](), markdown)
    up = "../" * page.file.src_uri.count("/")
    for name in PROJECT:
        markdown = markdown.replace(f"]({up}../{name}", f"]({up}project/{name}")
    return markdown


def filled(text: str) -> str:
    """A page with what its markers name between them and their ends."""
    return _MARKER.sub(lambda marker: f"<!-- generated: {marker[1]} -->\n{GENERATED[marker[1]]()}\n<!-- end -->", text)


def on_post_page(output: str, page: Any, **_: object) -> str:
    """Refuse a page that loads anything from elsewhere."""
    from mkdocs.exceptions import PluginError

    if address := _REMOTE.search(output):
        raise PluginError(f"{page.file.src_uri} loads {address[1]}: the site has to work offline")
    return output


def command_line() -> str:
    """Every command with its arguments and options."""
    from recallite_cli.run import app

    context = app.make_context("recallite", [], resilient_parsing=True)
    epilog = (app.epilog or "").replace("\b\n", "").strip()
    lines = _command_lines(app, "recallite", "##", context)
    return "\n".join((*lines, "## Exit codes and environment", "", "```text", epilog, "```"))


def _command_lines(command: Any, words: str, level: str, context: Any) -> Iterator[str]:
    """Yield the lines about a command and those of its group."""
    usage = " ".join((words, *command.collect_usage_pieces(context)))
    yield from (f"{level} `{words}`", "", command.help, "", "**Usage**:", "", "```text", f"$ {usage}", "```", "")
    params = command.get_params(context)
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    group = {name: command.get_command(context, name) for name in names}
    lists = {
        "Arguments": [param.line for param in params if param.param_type_name == "argument"],
        "Options": [param.get_help_record(context) for param in params if param.param_type_name == "option"],
        "Commands": [
            (name, re.split(r"(?<=\.)\s", member.help)[0].replace("\n", " ")) for name, member in group.items()
        ],
    }
    for title, rows in lists.items():
        if rows:
            yield from (f"**{title}**:", "", *(f"* `{name}`{about and f': {about}'}" for name, about in rows), "")
    for name, member in group.items():
        yield from _command_lines(member, f"{words} {name}", f"{level}#", context)


def operations() -> str:
    """Return a table for each group of operations, with the name of each in every interface."""
    from recallite.doors.operation import SERVER
    from recallite.doors.operations import GROUPS, PREFIX, every_operation

    lines = []
    for group, title in GROUPS.items():
        lines += [
            f"## {title}",
            "",
            "| Python | HTTP | TypeScript | command | tools | what it does |",
            "|---|---|---|---|---|---|",
        ]
        for operation in every_operation():
            if operation.group == group:
                path = f"`{operation.method} {PREFIX}{operation.path}`" if operation.path else ""
                camel = re.sub(r"_(\w)", lambda match: match[1].upper(), operation.id)
                method = f"`{camel}`" if operation.path else ""
                names = dict.fromkeys("MCP" if tool.name == SERVER else f"`{tool.name}`" for tool in operation.tools)
                tools = ", ".join(names)
                command = f"`{operation.words}`" if operation.words else ""
                lines.append(
                    f"| `{operation.python}` | {path} | {method} | {command} | {tools} | {operation.summary} |"
                )
        lines.append("")
    return "\n".join(lines)


def settings() -> str:
    """Every setting by its key in a file."""
    from recallite.compat.dialects import DialectProfile
    from recallite.model.configuration import list_settings
    from recallite.model.settings import Settings

    general = {setting.name for setting in list_settings(Settings)}
    further = [setting for setting in list_settings(DialectProfile, "profile") if setting.name not in general]
    title = "### `profile` named `reeve`, `hermes` or `memweave`"
    return _settings_table(list_settings(Settings)) + "\n\n" + _settings_table(further).replace("### `profile`", title)


def workspace_settings() -> str:
    """Every setting of a workspace by its key in a file."""
    from recallite.model.configuration import list_settings
    from recallite_notes.config import WorkspaceConfig

    return _settings_table(list_settings(WorkspaceConfig))


def environment() -> str:
    """Every environment variable that is read."""
    from recallite.model.environment import VARIABLES

    return "\n".join(
        ("| variable | meaning |", "|---|---|", *(f"| `{name}` | {doc} |" for name, doc in VARIABLES.items()))
    )


def _settings_table(settings: list[SettingInfo]) -> str:
    """A table for each table of the file, by its key."""
    tables: dict[str, list[str]] = {}
    for setting in settings:
        rows = tables.setdefault(setting.name.rpartition(".")[0], [])
        cells = setting.allowed, f"`{setting.default!r}`", setting.doc
        rows.append(" | ".join((f"| `{setting.name}`", *(cell.replace("|", "\\|") for cell in cells))) + " |")
    head = "| setting | value | default | meaning |\n|---|---|---|---|"
    return "\n\n".join("\n".join((f"### `{key}`\n" * bool(key) + head, *rows)) for key, rows in tables.items())


GENERATED: dict[str, Callable[[], str]] = {
    "cli": command_line,
    "operations": operations,
    "settings": settings,
    "workspace_settings": workspace_settings,
    "environment": environment,
}

if __name__ == "__main__":
    SETTINGS.write_text(filled(SETTINGS.read_text("utf-8")), "utf-8")
