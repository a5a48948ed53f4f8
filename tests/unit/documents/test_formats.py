"""HTML, DOCX and text: what a reader sees becomes text, whatever it is called and however it is encoded."""

from __future__ import annotations

import codecs
import zipfile

import pytest

from recallite.documents.detecting import detect
from recallite.documents.docx import load_docx
from recallite.documents.html import load_html
from recallite.documents.loaded import Limits
from recallite.documents.plain import decode, load_text
from recallite.errors import DocumentError
from tests.raising import raises
from tests.unit.documents.support import pdf, word, word_bomb

LIMITS = Limits(max_bytes=5_000_000, max_chars=100_000)


def html(body, head=""):
    return load_html(f"<html><head>{head}</head><body>{body}</body></html>".encode(), 100_000)


# ── HTML ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_headings_lists_tables_code_and_quotes_survive():
    body = """<h1>Guide</h1><p>First <b>para</b>graph<br>in two lines.</p><ul><li>one<ul><li>inner</ul><li>two</ul>
    <ol start=3><li>x<li>y</ol><table><tr><th>A<th>B<tr><td>1<td>2|3</table>
    <pre><code class="language-python">def f():\n    return 1\n</code></pre><blockquote><p>said</p></blockquote>"""
    assert html(body).text == (
        "# Guide\n\nFirst paragraph\nin two lines.\n\n- one\n  - inner\n- two\n\n3. x\n4. y\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n\n```python\ndef f():\n    return 1\n```\n\n> said"
    )


def test_what_a_reader_does_not_see_is_dropped():
    body = """<nav>Home</nav><script>evil()</script><style>p{}</style><p hidden>a</p><p style="display: none">b</p>
    <p aria-hidden=true>c</p><template>d</template><noscript>e</noscript><!-- f --><p>Seen.</p><footer>g</footer>"""
    assert html(body).text == "Seen."


def test_the_main_part_is_taken_where_it_is_marked():
    assert html("<div>Menu</div><main><p>Body.</p></main>").text == "Body."
    assert html("<div>Menu</div><article><p>Body.</p></article>").text == "Body."
    assert html("<nav>Only this.</nav>").text == "Only this."


def test_title_and_metadata():
    loaded = html("<h1>H</h1>", "<title> A\n Title</title><meta name=author content='A. Writer'>")
    assert (loaded.title, loaded.metadata) == ("A Title", {"author": "A. Writer"})
    assert html("<h1>H</h1>").title == "H"


def test_text_cannot_pose_as_markdown_structure():
    assert html("<p># not a heading</p><p>--- </p><pre>```\nx</pre>").text == (
        "\\# not a heading\n\n\\---\n\n````\n```\nx\n````"
    )


def test_a_table_that_lays_out_a_page_is_no_table():
    assert html("<table><tr><td><h2>News</h2><td><p>Today.</p></table>").text == "## News\n\nToday."


def test_20_000_nested_elements_are_read():
    assert html("<div>" * 20_000 + "deep").text == "deep"
    assert "deep" in html("<ul><li>" * 2_000 + "deep").text


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("<meta charset='iso-8859-1'><p>Größe</p>".encode("latin-1"), None),
        ("<p>Größe</p>".encode("latin-1"), "iso-8859-1"),
        ("<p>Größe</p>".encode(), "iso-8859-1"),
        ("<p>Größe</p>".encode("utf-16"), None),
    ],
)
def test_the_encoding_of_a_page(data, charset):
    assert load_html(data, 1000, charset).text == "Größe"


def test_a_charset_that_is_none_is_passed_over():
    text = "Die Größe der Übertragung wächst, während die Prüfung läuft. Schöne Grüße aus Köln."
    for charset in ("rot13", "nonsense", "hex", "undefined", "a\0b", "idna", "x" * 100_000):
        assert load_html(f"<p>{text}</p>".encode("latin-1"), 1000, charset).text == text


def test_html_without_text_or_with_too_much():
    with raises(DocumentError, "unreadable", match="holds no text"):
        html("<script>render()</script>")
    with raises(DocumentError, "too_large", match="longer than 100,000 characters"):
        html("<p>" + "x" * 100_001)


# ── DOCX ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_headings_lists_and_tables_of_a_word_document():
    data = word(
        ("Title", "Handbook"), ("Heading 1", "Install"), ("Normal", "Run it."), ("List Bullet", "one"),
        ("List Number", "first"), title="The Handbook", author="A. Writer", table=[["A", "B"], ["1", "2|3"]],
    )  # fmt: skip
    loaded = load_docx(data, LIMITS)
    assert loaded.text == (
        "# Handbook\n\n# Install\n\nRun it.\n\n- one\n\n1. first\n\n| A | B |\n| --- | --- |\n| 1 | 2\\|3 |"
    )
    assert (loaded.title, loaded.metadata["author"], loaded.markdown) == ("The Handbook", "A. Writer", True)


def test_a_zip_bomb_is_refused_before_it_is_unpacked():
    bomb = word_bomb(20)
    assert len(bomb) < 100_000
    with raises(DocumentError, "too_large", match="expands to 20,"):
        load_docx(bomb, LIMITS)


def test_a_damaged_word_document():
    data = word(("Normal", "text"))
    with raises(DocumentError, "unreadable", match="damaged"):
        load_docx(data[:-200] + b"\0" * 200, LIMITS)
    with raises(DocumentError, "unreadable", match="holds no text"):
        load_docx(word(("Normal", " ")), LIMITS)


# ── text ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe".encode(), "Größe"),
        (codecs.BOM_UTF8 + "Größe".encode(), "Größe"),
        ("Größe".encode("utf-16"), "Größe"),
        (codecs.BOM_UTF16_BE + "Größe".encode("utf-16-be"), "Größe"),
        ("Größe".encode("utf-32"), "Größe"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n"),
    ],
)
def test_unicode_in_its_encodings(data, text):
    assert decode(data) == (text, [])


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Die Größe der Übertragung wächst, während die Prüfung läuft. Schöne Grüße aus Köln.", "latin-1"),
        ("Привет, мир! Это обычный русский текст для проверки кодировки.", "cp1251"),
        ("こんにちは世界。これは日本語のテキストです。", "shift_jis"),
        ("plain words in wide letters", "utf-16-le"),
    ],
)
def test_other_encodings_are_guessed_and_said(text, encoding):
    read, (warning,) = decode(text.encode(encoding))
    assert read == text
    assert "which it does not state" in warning


def test_a_few_wrong_bytes_in_utf_8_are_replaced_and_said():
    read, warnings = decode("Größe ".encode() * 1000 + b"\xff end")
    assert read.endswith("\ufffd end")
    assert warnings == ["1 bytes are not UTF-8: they were replaced"]


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"text\x00more", bytes(range(256)) * 10])
def test_what_is_no_text_is_refused(data):
    with raises(DocumentError, "unreadable", match="not text"):
        decode(data)


def test_blank_and_long_texts():
    with raises(DocumentError, "unreadable", match="holds no text"):
        load_text(b" \n\n", 10, markdown=False)
    with raises(DocumentError, "too_large", match="longer than 10"):
        load_text(b"x" * 11, 10, markdown=True)


# ── what it is ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (pdf([]), "report.txt", "pdf"),
        (b"junk before %PDF-1.4", "x", "pdf"),
        (word(("Normal", "x")), "letter", "docx"),
        (b"<!DOCTYPE html><p>x", "page", "html"),
        (b"  <!-- c --><html>", "page.php", "html"),
        (b"<p>x", "page.HTM", "html"),
        (b"# x", "README.MD", "markdown"),
        (b"# x", "notes.txt", "text"),
    ],
)
def test_content_tells_before_the_name_does(data, name, kind):
    assert detect(data, name) == kind


def test_a_server_may_say_what_it_is():
    assert detect(b"# x", "readme", "text/markdown") == "markdown"


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "a.md", "it is empty"),
        (b"\x89PNG\r\n\x1a\n", "a.pdf", "looks like a PNG image"),
        (b"plain words", "a.pdf", r"named \.pdf, but its content is not"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "a.doc", "old Office document"),
        (b"PK\x03\x04 not really", "a.docx", "damaged DOCX or zip"),
    ],
)
def test_what_is_not_read_is_named(data, name, said):
    with raises(DocumentError, "unreadable", match=said):
        detect(data, name)


def test_other_archives_are_named(tmp_path):
    for member, said in (("xl/workbook.xml", "spreadsheet"), ("a.txt", "unpack it")):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(member, "x")
        with raises(DocumentError, "unreadable", match=said):
            detect((tmp_path / "a.zip").read_bytes(), "a.zip")


def test_an_encrypted_office_document():
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    with raises(DocumentError, "encrypted", match="save it without a password"):
        detect(data, "a.docx")
