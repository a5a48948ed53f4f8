"""Fenced blocks of the pages in Markdown, and one run of a page's blocks in order.

- `python` blocks share one namespace per page.
- `sh` blocks are lines that begin with `recallite`; `name=$(recallite ...)` keeps an output as `$name`.
- A block with a title such as "notes/memory/stack.md" is written to that file.
- A `text` block titled "Output" is what the block before it prints; `...` stands for any text.
- A block after `<!-- not run: reason -->` is left alone, and so is one in any other language.
- A page with `<!-- needs: module -->` runs where that module is installed.
"""

from __future__ import annotations

import io
import re
import shlex
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import markdown_it

from recallite_server.main import main

__all__ = ["PAGES", "ROOT", "Block", "blocks", "matches", "needs", "run"]

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_NOT_RUN = re.compile(r"<!--\s*not run:\s*(.*?)\s*-->")
_NEEDS = re.compile(r"^<!-- needs: (.+) -->$", re.M)
_TITLE = re.compile(r'title="(.*)"')
_KEPT = re.compile(r"(\w+)=\$\((.*)\)")


class Block(NamedTuple):
    """One fenced block."""

    line: int
    language: str
    text: str
    is_output: bool = False
    file: str | None = None
    not_run: str | None = None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, not_run = [], None
    for token in markdown_it.MarkdownIt("commonmark").parse(page.read_text("utf-8")):
        if token.type == "html_block" and (comment := _NOT_RUN.search(token.content)):
            not_run = comment[1]
        elif token.type == "fence":
            language, _, rest = token.info.partition(" ")
            title = named[1] if (named := _TITLE.fullmatch(rest)) else None
            is_output = title == "Output"
            file = None if is_output else title
            found.append(Block(token.map[0] + 1, language, token.content, is_output, file, not_run))
            not_run = None
        elif token.nesting >= 0:
            not_run = None
    return found


def needs(page: Path) -> list[str]:
    """The modules that the blocks of a page import, beside what the tests install."""
    return [module for line in _NEEDS.findall(page.read_text("utf-8")) for module in line.split(", ")]


def run(page: Path, printed: Callable[[], str]) -> None:
    """Run the blocks of a page in the working folder; `printed` gives what was printed since its last call."""
    names: dict[str, object] = {"__name__": "__main__"}
    kept: dict[str, str] = {}
    last = ""
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.is_output:
            assert matches(last, block.text), f"{where} shows\n{block.text}\nand the block before prints\n{last}"
        elif block.file is not None:
            target = Path(block.file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, "utf-8")
        elif block.not_run is not None:
            continue
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            last = printed()
        elif block.language == "sh":
            last = "".join(_command(line, kept, printed, where) for line in _lines(block.text))


def matches(printed: str, shown: str) -> bool:
    """Whether the output is what is shown, but for the space at the ends of lines and what `...` stands for."""
    wanted = ".*".join(re.escape(part) for part in _trimmed(shown).split("..."))
    return re.fullmatch(wanted, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _lines(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def _command(line: str, kept: dict[str, str], printed: Callable[[], str], where: str) -> str:
    """Run one command in this process; what it prints, unless it is kept under a name."""
    assignment = _KEPT.fullmatch(line)
    words = shlex.split(string.Template(assignment[2] if assignment else line).substitute(kept), comments=True)
    assert words[0] == "recallite", f"{where}: {line!r} is no command of recallite; say why it is not run"
    given, sys.stdin = sys.stdin, io.StringIO()
    try:
        code = main(words[1:])
    finally:
        sys.stdin = given
    told = printed()
    assert code == 0, f"{where}: {line!r} ended with {code}\n{told}"
    if assignment:
        kept[assignment[1]] = told.strip()
        return ""
    return told
