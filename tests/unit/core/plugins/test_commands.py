"""The command line, where another package registers commands or importers."""

from __future__ import annotations

import importlib

import pytest

from recallite import Memory
from recallite.doors.operations import every_operation
from recallite.system import plugins
from recallite_tools import calling
from tests.unit.conftest import db, run  # noqa: F401
from tests.unit.core.memory.support import PLAIN


@pytest.mark.parametrize(("kind", "arguments", "other"), [
    ("commands", ("--help",), "recall"),
    ("importers", ("import", "--from", "?"), "obsidian"),
    ("exporters", ("export", "--to", "?"), "jsonl"),
])  # fmt: skip
def test_what_cannot_be_imported_is_one_line_of_stderr(run, install, kind, arguments, other):
    install("odd-package", kind, "odd", "odd_package:IT")
    done = run(*arguments)
    assert (done.code, other in done.out, "odd" in done.out) == (0, True, False)
    (line,) = done.err.splitlines()
    assert line.startswith(f"recallite: left out: the {kind[:-1]} 'odd' of odd-package (odd_package:IT) cannot be")


def test_a_command_that_cannot_be_imported_says_why(run, install):
    install("odd-package", "commands", "odd", "odd_package:IT")
    done = run("odd")
    assert done.code == 2
    assert "InvalidInput: the command 'odd' of odd-package (odd_package:IT) cannot be imported" in done.err


COMMANDS = """
from typing import Annotated

import click

from recallite_cli.command import argument, option


@click.command()
@click.option("--times", default=1)
@click.pass_context
def made(context: click.Context, times: int) -> None:
    "Print the store. More."
    click.echo(f"{context.obj} {times}")


def function(
    context: click.Context,
    first: Annotated[float, argument("FIRST")],
    rest: Annotated[list[int] | None, argument("REST")] = None,
    tag: Annotated[list[str] | None, option("TAG", "A tag; repeat for more.")] = None,
    name: Annotated[str, option("NAME", "A name.", "--name", "-n")] = "x",
) -> None:
    "Print everything. More."
    print(first, rest, tag, name)
"""


@pytest.fixture
def commands(install, tmp_path, monkeypatch):
    (tmp_path / "strange_commands.py").write_text(COMMANDS)
    monkeypatch.syspath_prepend(tmp_path)
    install("strange", "commands", "made", "strange_commands:made")
    install("strange", "commands", "function", "strange_commands:function")


@pytest.mark.usefixtures("commands")
def test_a_command_of_click_and_a_function_are_commands(run, db):
    assert run("made", "--times", "2").out == f"{db} 2\n"
    assert run("function", "--", "-1.5").out == "-1.5 None None x\n"
    assert run("function", "0", "1", "2", "--tag", "a", "-nb", "--tag", "c").out == "0.0 [1, 2] ['a', 'c'] b\n"
    listed = run("--help", store=None).out.partition("Other packages:\n")[2].partition("\n\n")[0]
    assert " ".join(listed.split()) == "function Print everything. made Print the store."


@pytest.mark.usefixtures("commands")
def test_a_function_has_the_help_of_its_annotations(run):
    shown = run("function", "-h", store=None).out
    assert "recallite function [OPTIONS] {FIRST} [REST]...\n" in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"FIRST <float> [required]", "REST <list[int]>", "-n, --name NAME A name. [default: x]"} <= {*lines}
    failed = run("function", "tea", store=None)
    assert (failed.code, "Invalid value for 'FIRST': 'tea' is not a valid float" in failed.err) == (2, True)


OPERATIONS = """
from recallite.doors.operation import Command, Operation, OperationSet, Tool


def longest(memory) -> str:
    return max((record.text for record in memory.list()), key=len)


SET = OperationSet(
    (
        Operation("longest", "Show the longest text.", group="memories", call="odd_sets:longest", command=Command()),
        Operation(
            "odd.first", "Show one.", group="memories", call="odd_sets:longest", command=Command("odd first"),
            tools=(Tool("odd"), Tool("memory", "longest")),
        ),
    ),
    {"odd": "What is odd."},
    {"odd": "Texts that are odd."},
)
"""


def test_operations_of_a_package_are_commands_of_one_word_or_two_and_tools(
    run, remember, install, tmp_path, monkeypatch
):
    (tmp_path / "odd_sets.py").write_text(OPERATIONS)
    monkeypatch.syspath_prepend(tmp_path)
    install("strange", "operations", "strange", "odd_sets:SET")
    every_operation.cache_clear()
    try:
        remember("Ada likes tea")
        assert run("longest").out == run("odd", "first").out == "Ada likes tea\n"
        shown = [" ".join(line.split()) for line in run("--help", store=None).out.splitlines()]
        assert {"longest Show the longest text.", "odd What is odd."} <= {*shown}
        importlib.reload(calling)
        assert calling.schemas()["odd"]["description"] == (
            "Texts that are odd.\nActions:\n- first: show one. Takes scope."
        )
        with Memory(":memory:", settings=PLAIN) as memory:
            memory.remember("Ada likes tea")
            for name, action in (("odd", "first"), ("memory", "longest")):
                assert calling.call(name, {"action": action}, memory=memory)["results"] == ["Ada likes tea"]
    finally:
        monkeypatch.undo()
        for cached in (every_operation, plugins._registered, plugins.load):
            cached.cache_clear()
        importlib.reload(calling)
