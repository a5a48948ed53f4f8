"""Every snippet of the README and the documentation runs, and prints what the page shows."""

from __future__ import annotations

import pytest

from tests.system.docs.snippets import PAGES, ROOT, blocks, matches, needs, run

RUNNABLE = [page for page in PAGES if any(block.language in ("python", "sh") for block in blocks(page))]


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """A working folder in which the user's data folder is too, and no settings from outside."""
    for name in ("RECALLITE_DB", "RECALLITE_SETTINGS", "RECALLITE_KEY", "RECALLITE_KEY_FILE", "RECALLITE_EMBEDDER",
                 "EMBEDDING_PROVIDER", "RECALLITE_LLM_BASE_URL", "RECALLITE_LLM_MODEL"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run_and_print_what_it_shows(page, empty_folder, capsys):
    for module in needs(page):
        pytest.importorskip(module, reason=f"{module} is not installed")
    run(page, lambda: capsys.readouterr().out)


def test_a_block_that_is_not_run_says_why():
    unsaid = [
        f"{page.relative_to(ROOT)}:{block.line}"
        for page in PAGES
        for block in blocks(page)
        if block.language in ("bash", "console", "shell", "py", "pycon")
    ]
    assert not unsaid, f"use python or sh, which run, or say <!-- not run: why -->: {unsaid}"


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("0.91  MySQL\n", "0.91  MySQL", True),
        ("took 3.1 ms\nend\n", "took ... ms\nend\n", True),
        ("a\nb\n", "a\n", False),
        ("a.b\n", "a-b\n", False),
    ],
)
def test_an_output_is_compared_whole_but_for_ellipses(printed, shown, same):
    assert matches(printed, shown) is same
