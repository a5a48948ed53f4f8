"""Ten real PDFs of py-pdf/sample-files: text in reading order with pages, and a clear reason where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recallite.documents.loaded import Limits
from recallite.documents.parser import Parser

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("RECALLITE_TEST_PDFS") or ROOT.parent / "shared" / "eval" / "pdf")
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"no folder {FOLDER}: RECALLITE_TEST_PDFS names one with the PDFs of py-pdf/sample-files",
)
LOREM = "sed diam nonumy eirmod tempor invidunt ut labore et dolore magna aliquyam erat, sed diam voluptua."


@pytest.fixture(scope="module")
def load():
    with Parser(Limits()) as parser:
        yield lambda name, **options: parser.load((FOLDER / name).read_bytes(), name, **options)


@pytest.mark.parametrize(
    "name", ["002-trivial-libre-office-writer.pdf", "minimal-document.pdf", "with-attachment.pdf"]
)  # fmt: skip
def test_a_paragraph_is_one_line(load, name):
    loaded = load(name)
    assert loaded.text.count(LOREM) == 2
    assert "no sea takimata sanctus" in loaded.text
    assert (loaded.pages, "\n" in loaded.text) == ([0], False)
