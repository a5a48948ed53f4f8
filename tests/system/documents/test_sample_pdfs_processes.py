"""Ten real PDFs of py-pdf/sample-files: text in reading order with pages, and a clear reason where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.documents.test_sample_pdfs import FOLDER, LOREM, load  # noqa: F401

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"no folder {FOLDER}: RECALLITE_TEST_PDFS names one with the PDFs of py-pdf/sample-files",
)


@pytest.mark.parametrize(
    "name", ["002-trivial-libre-office-writer.pdf", "minimal-document.pdf", "with-attachment.pdf"]
)  # fmt: skip
def test_a_paragraph_is_one_line(load, name):
    loaded = load(name)
    assert loaded.text.count(LOREM) == 2
    assert "no sea takimata sanctus" in loaded.text
    assert (loaded.pages, "\n" in loaded.text) == ([0], False)
