"""The example programs run offline as they stand and print what their docstrings show."""

from __future__ import annotations

import ast
import runpy
import textwrap

import pytest

from tests.system.docs.snippets import ROOT, matches

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What an example needs beside the library: it says so with the extra.
NEEDS = {
    "langgraph_agent.py": ("langgraph.graph",),
    "openai_agents_agent.py": ("agents.testing",),
    "team_memory.py": ("uvicorn", "httpx2"),
}


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.name)
def test_an_example_prints_what_it_says(program, tmp_path, monkeypatch, capsys):
    for module in NEEDS.get(program.name, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    docstring = ast.get_docstring(ast.parse(program.read_text("utf-8"))) or ""
    shown = textwrap.dedent(docstring.partition("Output:\n\n")[2])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name="__main__")
    printed = capsys.readouterr().out
    assert shown, f"{program.name} shows no output"
    assert matches(printed, shown), f"{program.name} shows\n{shown}\nand prints\n{printed}"
    assert list(tmp_path.iterdir()) == []
