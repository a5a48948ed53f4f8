"""The command line, where another package registers commands or importers."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import db, run  # noqa: F401


@pytest.mark.parametrize(("kind", "arguments", "other"), [
    ("commands", ("--help",), "recall"),
    ("importers", ("import", "--from", "?"), "obsidian"),
    ("exporters", ("export", "--to", "?"), "obsidian"),
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
