"""The knowledge base: what is ingested is found with its place, once, and is gone when it is deleted."""

from __future__ import annotations

import os

from recallite.errors import (
    DocumentError,
)
from tests.raising import raises
from tests.unit.core.documents.test_knowledge import embedder, folder, memory, outcomes, reasons  # noqa: F401
from tests.unit.documents.support import Put, encrypted, image_pdf, paragraph, pdf, word

# ── ingest and search ──────────────────────────────────────────────────────────────────────────────────────────────


def test_pages_of_a_pdf_stand_on_its_chunks(memory):
    pages = [paragraph(72, 700, [f"Page {n} speaks of {word_of} and of nothing else at all."])
             for n, word_of in enumerate(("penguins", "gateways", "volcanoes"), 1)]  # fmt: skip
    memory.knowledge.ingest(pdf(*pages, title="Report"), name="report.pdf")
    (hit,) = memory.knowledge.search("volcanoes")
    assert (hit.metadata["page"], hit.metadata["last_page"], hit.metadata["title"]) == (1, 3, "Report")
    assert (hit.source.path, hit.source.lines) == ("report.pdf", None)


def test_every_format_goes_in(memory, folder):
    (folder / "letter.docx").write_bytes(word(("Heading 1", "Letter"), ("Normal", "Dear Ada")))
    (folder / "page.html").write_text("<title>Page</title><p>Hello there")
    (folder / "report.pdf").write_bytes(pdf([Put(72, 700, "the report")]))
    (folder / "notes.txt").write_bytes("Größe".encode("utf-16"))
    done = memory.knowledge.ingest(folder)
    assert [(os.path.basename(each.source), each.title) for each in done.documents] == [
        ("guide.md", "The Guide"), ("letter.docx", "letter"), ("notes.txt", "notes"), ("page.html", "Page"),
        ("report.pdf", "report"),
    ]  # fmt: skip
    assert (done.skipped, done.counts) == ((), {"created": 5})


# ── what fails ─────────────────────────────────────────────────────────────────────────────────────────────────────


# ── the same again ─────────────────────────────────────────────────────────────────────────────────────────────────


# ── delete ─────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_document_raises_and_a_folder_reports(memory, folder):
    (folder / "image.pdf").write_bytes(image_pdf())
    (folder / "locked.pdf").write_bytes(encrypted(pdf([Put(72, 700, "secret words")]), "sesame"))
    (folder / "empty.md").write_bytes(b"")
    (folder / "binary.txt").write_bytes(b"\0\1\2\3")
    (folder / "broken.docx").write_bytes(b"PK\x03\x04broken")
    (folder / "program.exe").write_bytes(b"MZ")
    for name, reason, said in (
        ("image.pdf", "unreadable", r"image\.pdf: it holds images and no text"),
        ("locked.pdf", "encrypted", r"give its password"),
        ("empty.md", "unreadable", "it is empty"),
        ("binary.txt", "unreadable", "it is not text"),
        ("absent.md", "unreadable", "it is not there"),
    ):
        with raises(DocumentError, reason, match=said):
            memory.knowledge.ingest(folder / name)
    done = memory.knowledge.ingest(folder)
    assert outcomes(done) == [("guide.md", "created")]
    assert set(reasons(done)) == {"image.pdf", "locked.pdf", "empty.md", "binary.txt", "broken.docx", "program.exe"}
    opened = memory.knowledge.ingest(folder / "locked.pdf", password="sesame")
    assert outcomes(opened) == [("locked.pdf", "created")]
    with raises(DocumentError, "encrypted", match="this is not its password"):
        memory.knowledge.ingest(encrypted(pdf([Put(72, 700, "other")]), "sesame"), password="wrong")


# ── out and in again ───────────────────────────────────────────────────────────────────────────────────────────────


def test_metadata_say_nothing_of_the_place_of_a_chunk(memory):
    given = {"page": 5, "last_page": "q", "lines": "z", "path": "/etc", "headings": 1, "chars": None, "title": "no"}
    memory.knowledge.ingest(b"<title>Page</title><p>Hello there", name="a.html", metadata=given)
    memory.knowledge.ingest(b"<title>Page</title><p>Hello there", name="a.html", metadata={**given, "more": 1})
    (hit,) = memory.knowledge.search("hello")
    assert (hit.source.path, hit.source.lines, "page" in hit.metadata) == ("a.html", None, False)
    assert (hit.metadata["title"], hit.metadata["more"]) == ("Page", 1)
