"""Folders and files that are no documents are told of in one sentence."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.errors import DocumentError
from recallite_documents.detecting import detect

HEADERS = ("Received: from a by b", "\twith smtp", "From: Ada <ada@example.org>", "Subject: Boats", "")
MAIL = "\r\n".join((*HEADERS, "The boat is blue.")).encode()


def test_an_empty_folder_is_told_of(tmp_path):
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        done = memory.knowledge.ingest(tmp_path)
        assert [each.reason for each in done.skipped] == [
            "no document is in it: PDF, DOCX, HTML, Markdown and text are read",
        ]  # fmt: skip


def test_an_e_mail_is_refused_by_its_headers():
    with pytest.raises(DocumentError, match="it looks like an e-mail"):
        detect(MAIL, "letter.eml")


@pytest.mark.parametrize("text", [b"From: the team\nTo: all\n\nWelcome", b"Plain"])
def test_a_text_with_a_header_or_two_is_no_e_mail(text):
    assert detect(text, "note.txt") == "text"
