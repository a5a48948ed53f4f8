"""Ten real PDFs of py-pdf/sample-files: text in reading order with pages, and a clear reason where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite_documents.parser import Parser
from tests.raising import raises

ROOT = Path(__file__).parents[4]
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


def test_two_columns_one_after_the_other(load):
    loaded = load("multicolumn.pdf")
    said = [
        "# Two-Column Document with Lorem Ipsum", "## Abstract", "consectetuer adipiscing elit. Ut purus elit",
        "Pellentesque tincidunt purus vel magna. Integer non enim.", "Pellentesque habitant morbi tristique senectus",
        "Belgium | 11.5 | 30,689 | Brussels | Dutch, French, German",
    ]  # fmt: skip
    places = [loaded.text.index(each) for each in said[:4]] + [loaded.text.rindex(each) for each in said[4:]]
    assert places == sorted(places)
    assert (len(loaded.pages), loaded.title) == (3, "Two-Column Document with Lorem Ipsum")
    assert places[-1] > loaded.pages[2]


def test_a_table_and_a_title(load):
    loaded = load("google-doc-document.pdf")
    assert loaded.title == "PDF Example Document"
    assert "Special cases aren't special enough to break the rules.\n" in loaded.text
    assert "Capital | Jakarta | Berlin | Vienna | Paris | Vatican City" in loaded.text


def test_right_to_left(load):
    assert load("habibi.pdf").text == "حَبيبي habibi حَبيبي"


def test_headings_of_the_outline_and_pages(load):
    loaded = load("pdflatex-outline.pdf")
    headings = [line for line in loaded.text.splitlines() if line.startswith("# ")]
    assert headings == [f"# {n} {name}" for n, name in enumerate(["Foo", "Bar", "Baz"] * 3, 1)]
    assert [len(load(name).pages) for name in ("pdflatex-outline.pdf", "pdflatex-4-pages.pdf")] == [4, 4]


def test_reasons(load):
    with raises(DocumentError, "unreadable", match="it holds images and no text"):
        load("imagemagick-lzw.pdf")
    with raises(DocumentError, "encrypted", match=r"give its password"):
        load("libreoffice-writer-password.pdf")
    with raises(DocumentError, "encrypted", match="not its password"):
        load("libreoffice-writer-password.pdf", password="wrong")
    assert LOREM in load("libreoffice-writer-password.pdf", password="openpassword").text
