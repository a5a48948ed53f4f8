"""Code and names inside sentences exist: commands with their options, variables, extras, the API and its settings."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args

import markdown_it
import pytest

import recallite
from recallite import Memory
from recallite.agents.sessions import Session
from recallite.model import settings
from recallite.model.environment import VARIABLES
from recallite.model.records import Hit, Hits, Record
from recallite_cli.run import app
from recallite_notes import config
from tests.system.docs.snippets import PAGES, ROOT, blocks

# What a variable of that name is in a sentence.
VARIABLES_OF_SENTENCES = {"hit": Hit, "hits": Hits, "record": Record, "session": Session, "tools": recallite.tools}
# Pages that quote names of other programs.
OTHERS = re.compile(r"/integrations/|/migrating\.md")


def code(page) -> Iterator[str]:
    """The code inside the sentences of a page, with one space in place of a line's end."""
    for token in markdown_it.MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8")):
        yield from (" ".join(each.content.split()) for each in token.children or () if each.type == "code_inline")


def commands(page) -> Iterator[str]:
    """The calls of `recallite` in the sentences and in all blocks of a page."""
    lines = (line for block in blocks(page) for line in block.text.replace("\\\n", " ").splitlines())
    for text in (*code(page), *lines):
        if found := re.match(r"(?:\w+=\S+ |\S*/bin/|\w+=\$\()*recallite(?= )", text):
            yield re.sub(r"\s#.*|\)$|\s[<>|&].*", "", text[found.end() :])


@cache
def tree() -> dict[tuple[str, ...], set[str]]:
    """The options of each command, by its words."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        yield words, {option for param in command.get_params(context) for option in param.opts + param.secondary_opts}
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from walk(command.get_command(context, name), (*words, name))

    context = app.make_context("recallite", [], resilient_parsing=True)
    return dict(walk(app, ()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page):
    wrong = []
    for command in commands(page):
        words: tuple[str, ...] = ()
        given = shlex.split(command)
        for word in given:
            words = (*words, word) if (*words, word) in tree() else words
        takes = [tree()[()], *(options for name, options in tree().items() if name[: len(words)] == words)]
        options = {word.partition("=")[0] for word in given if re.match(r"--?\w", word)}
        if options - set.union(*takes) or not (words or re.match(" (-|[A-Z])", command)):
            wrong.append(command)
    known = set.union(*tree().values())
    alone = [text for text in code(page) if re.match(r"--\w", text)]
    assert wrong == []
    assert [text for text in alone if re.split(r"[ =]", text)[0] not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_modules_and_extras_exist(page):
    text = page.read_text("utf-8")
    assert set(re.findall(r"\bRECALLITE_[A-Z_]+\b", text)) - set(VARIABLES) == set()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    asked = {extra for group in re.findall(r"(?:\.|recallite)\[([\w,-]+)\]'", text) for extra in group.split(",")}
    assert asked - set(extras) == set()
    named = {*re.findall(r"`(recallite(?:_\w+)?(?:\.\w+){2,}|recallite_\w+\.\w+)", text), *imported(page)}
    assert [name for name in named if not is_defined(name)] == []


def is_defined(name: str) -> bool:
    """Whether a module has this name, or a module has the name of its last parts; nothing is imported."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        for home in ("engine", "kernels", "models"):
            path = ROOT.joinpath(home, *parts[:i])
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.exists():
                    return i == len(parts) or re.search(rf"\b{parts[i]}\b", file.read_text("utf-8")) is not None
    return False


def imported(page) -> Iterator[str]:
    """What the Python blocks of a page import of Recallite, also those that do not run."""
    for block in blocks(page):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and re.match("recallite", node.module):
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def memory():
    with Memory(":memory:") as memory:
        yield memory


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_take_what_sentences_give_them(page, memory):
    wrong = []
    for text in code(page):
        try:
            tree = ast.parse("" if re.search(r"\.(db|jsonl?|md|py)$", text) else text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            try:
                if isinstance(node, ast.Attribute):
                    resolved(node, memory)
                elif isinstance(node, ast.Call):
                    check(node, resolved(node.func, memory))
                elif isinstance(node, ast.keyword | ast.Assign) and re.match("profile ?= ?{['\"]", ast.unparse(node)):
                    memory.recall("tea", profile=ast.literal_eval(node.value))
            except (AttributeError, TypeError, ValueError) as fault:
                wrong.append(f"{text}: {fault}")
    assert wrong == []


def resolved(node: ast.expr, memory: Memory) -> Any:
    """The object that an expression names, or None if it is not one of ours."""
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, memory)
        return None if owner is None else attribute(owner, node.attr)
    if not isinstance(node, ast.Name):
        return None
    if node.id == "memory":
        return memory
    homes = (recallite, settings, config)
    found = next((getattr(home, node.id) for home in homes if node.id[0].isupper() and hasattr(home, node.id)), None)
    return found or VARIABLES_OF_SENTENCES.get(node.id) or getattr(memory, node.id, None)


def attribute(owner: Any, name: str) -> Any:
    if name in getattr(owner, "__struct_fields__", ()) and isinstance(owner, type):
        return None
    return getattr(owner, name)


def check(call: ast.Call, function: Callable[..., Any] | None) -> None:
    """Raise TypeError if a function takes no such keyword; a profile has to be one."""
    if not callable(function):
        return
    parameters = inspect.signature(function).parameters
    takes = set(parameters)
    for parameter in parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            hints = inspect.get_annotations(inspect.unwrap(function), eval_str=False)
            options = next(iter(get_args(hints.get(parameter.name))), None)
            if options is None:
                return
            takes |= set(options.__annotations__)
    unknown = [each.arg for each in call.keywords if each.arg not in takes]
    if unknown:
        raise TypeError(f"no argument {', '.join(map(str, unknown))}")


@cache
def words_of_the_code() -> set[str]:
    files = [*(ROOT / "engine").rglob("*.py"), *(ROOT / "kernels").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    return {word for file in files for word in re.findall(r"\w+", file.read_text("utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_sentences_are_in_the_code(page):
    found = (re.match(r"([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+)(?:[(=]|$)", text) for text in code(page))
    named = {name[1] for name in found if name}
    assert OTHERS.search(str(page)) or named - words_of_the_code() == set()
