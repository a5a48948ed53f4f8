"""The pages agree with each other, with the saved results and with the project."""

from __future__ import annotations

import inspect
import pkgutil
import re
import runpy
from itertools import pairwise

import markdown_it
import pytest

import recallite
import recallite_kernels
from benchmarks import pages, saving
from recallite import Settings
from tests.system.docs.snippets import PAGES, ROOT

README = (ROOT / "README.md").read_text("utf-8")
NAMED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]


def name(page):
    return str(page.relative_to(ROOT))


def parsed(page):
    return markdown_it.MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))


def targets(page):
    """Where the links and images of a page lead."""
    for token in parsed(page):
        for inner in token.children or ():
            if target := inner.attrGet("href") or inner.attrGet("src"):
                yield str(target)


def anchors(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    tokens = parsed(page)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", NAMED, ids=name)
def test_links_lead_to_pages_and_headings_that_exist(page):
    for target in targets(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{name(page)} links to {target}"
        assert not anchor or anchor in anchors(found), f"{name(page)} links to {target}, which has no such heading"


@pytest.mark.parametrize("page", pages.PAGES, ids=name)
def test_tables_are_the_saved_results(page):
    text = page.read_text("utf-8")
    assert pages.filled(text) == text, "run python -m benchmarks.pages"


def test_the_reference_has_every_public_name():
    listed = {
        path: pkgutil.resolve_name(path)
        for page in (ROOT / "docs" / "reference").rglob("*.md")
        for path in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.M)
    }
    members = [getattr(each, "__all__", ()) for each in listed.values() if inspect.ismodule(each)]
    named = {path.rpartition(".")[2] for path in listed}.union(*members)
    assert set(recallite.__all__) - named == {"__version__", "tools"}
    kernels = {
        name for name, value in vars(recallite_kernels).items() if not inspect.ismodule(value) and name[0] != "_"
    }
    assert kernels - named == {
        "ABSENT", "CONTENT", "DONE", "EVIDENCE", "FIGURES", "NAMED", "RESIDUAL_STEPS", "ROOM", "SCAN_ALL", "SIGNALS",
        "UNCOUNTED",
    }  # fmt: skip


def test_generated_references_have_every_command_and_setting():
    hooks = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))
    generated, page = hooks["GENERATED"], hooks["SETTINGS"].read_text("utf-8")
    assert hooks["filled"](page) == page, "run python docs/site_hooks.py"
    markers = [
        marker for page in PAGES for marker in re.findall(r"^<!-- generated: (\w+) -->$", page.read_text("utf-8"), re.M)
    ]
    assert sorted(markers) == sorted(generated)
    commands = generated["cli"]()
    assert "\n### `recallite recall`" in commands
    assert "\n#### `recallite knowledge ingest`" in commands
    assert "Exit codes:" in commands
    table = generated["settings"]()
    assert [name for name in Settings.__struct_fields__ if f"| `{name}` |" not in table] == []


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|toml|yml|yaml))`", page.read_text("utf-8"))
    homes = (ROOT, ROOT / "engine", ROOT / "engine" / "recallite", ROOT / "kernels", ROOT / "models")
    assert [path for path in named if not any((home / path).exists() for home in homes)] == []


def test_the_readme_is_short():
    assert len(README.encode()) <= 9_000


def test_figures_in_prose_are_the_saved_results():
    results = ROOT / "benchmarks" / "results"
    sizes = saving.read(results / "scaling.json")["results"]
    attacks = saving.read(results / "resilience.json")
    times = [f"{sizes[size]['hybrid']['p50_ms']:.1f} ms" for size in ("100000", "1000000")]
    text = " ".join(README.split())
    assert f"takes {times[0]} with 100,000 memories and {times[1]} with a million" in text
    assert f"{attacks['kills']['tries']:,} runs of `kill -9` and {attacks['power loss']['tries']:,} simulated" in text
    assert not attacks["kills"]["failures"] | attacks["power loss"]["failures"]
