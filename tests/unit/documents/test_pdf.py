"""PDFs: text in reading order, as paragraphs, with pages and headings; what cannot be read says why."""

from __future__ import annotations

import io

import pypdf
import pytest

from recallite.documents.pdf import _date, load_pdf
from recallite.errors import DocumentError
from tests.raising import raises
from tests.unit.documents.support import Put, encrypted, image_pdf, paragraph, pdf, raw_pdf, written

PROSE = ["The quick brown fox jumps over the lazy dog and", "runs on through the wood until the evening falls",
         "on the hills."]  # fmt: skip
LEFT = [f"Left column line {n} with some words to fill it" for n in range(8)]
RIGHT = [f"Right column line {n} with other words in it" for n in range(8)]


def load(data, password=None, max_chars=1_000_000):
    return load_pdf(data, password, max_chars)


def test_lines_become_paragraphs():
    loaded = load(pdf(paragraph(72, 700, PROSE) + paragraph(72, 620, ["Another paragraph."])))
    assert loaded.text == " ".join(PROSE) + "\n\nAnother paragraph."
    assert (loaded.markdown, loaded.exact, loaded.pages) == (False, False, [0])


def test_words_parted_at_the_end_of_a_line_are_joined():
    parted = ["The knowledge base keeps what it has to be re-", "membered, and self-", "made things of Jean-",
              "Paul as well-", "known; they are well-known indeed."]  # fmt: skip
    said = load(pdf(paragraph(72, 700, parted))).text.replace("\n", " ")
    assert "remembered" in said
    assert "Jean-Paul" in said
    assert "well-known; they" in said


def test_columns_are_read_one_after_the_other_however_they_are_drawn():
    left, right = paragraph(50, 700, LEFT), paragraph(330, 700, RIGHT)
    across = [put for pair in zip(left, right, strict=True) for put in pair]
    for drawn in (left + right, across):
        said = load(pdf(drawn)).text
        places = [said.index(line) for line in LEFT + RIGHT]
        assert places == sorted(places)


def test_rows_of_a_table_stay_rows():
    rows = [("Country", "Capital", "Language"), ("Austria", "Vienna", "German"), ("Belgium", "Brussels", "Dutch")]
    puts = [Put(72 + 150 * place, 700 - 20 * number, cell)
            for number, row in enumerate(rows) for place, cell in enumerate(row)]  # fmt: skip
    assert load(pdf(puts)).text.splitlines() == ["Country | Capital | Language", "Austria | Vienna | German",
                                                "Belgium | Brussels | Dutch"]  # fmt: skip


def test_pages_begin_where_they_say_and_their_numbers_are_no_text():
    pages = [[*paragraph(72, 700, [f"Here is all of page {n}, and no more than it."]), Put(290, 40, str(n))]
             for n in (1, 2, 3)]  # fmt: skip
    loaded = load(pdf(*pages))
    ends = [*loaded.pages[1:], len(loaded.text)]
    said = [loaded.text[begin:end].strip() for begin, end in zip(loaded.pages, ends, strict=True)]
    assert said == [f"Here is all of page {n}, and no more than it." for n in (1, 2, 3)]


def test_a_sentence_runs_on_over_the_page():
    loaded = load(pdf([Put(72, 700, "This sentence begins on one page and")], [Put(72, 700, "ends on the next.")]))
    assert loaded.text == "This sentence begins on one page and ends on the next."
    assert loaded.text[loaded.pages[1] :] == "ends on the next."


def test_large_print_is_a_heading_and_the_largest_the_title():
    puts = [Put(72, 760, "The Handbook", 24), Put(72, 720, "Installing", 16), *paragraph(72, 690, PROSE)]
    loaded = load(pdf(puts))
    assert loaded.text == "# The Handbook\n\n## Installing\n\n" + " ".join(PROSE)
    assert (loaded.title, loaded.markdown) == ("The Handbook", True)


def test_the_outline_tells_headings():
    plain = pdf([Put(72, 700, "1 First steps"), *paragraph(72, 660, PROSE)],
                [Put(72, 700, "Details"), *paragraph(72, 660, PROSE)])  # fmt: skip
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(plain))
    chapter = writer.add_outline_item(title="First steps", page_number=0)
    writer.add_outline_item(title="Details", page_number=1, parent=chapter)
    assert [line for line in load(written(writer)).text.splitlines() if line.startswith("#")] == [
        "# 1 First steps", "## Details",
    ]  # fmt: skip


def test_title_author_and_date():
    loaded = load(pdf([Put(72, 700, "words")], title="A Title"))
    assert loaded.title == "A Title"
    assert loaded.metadata == {"author": "A. Writer", "created": "2024-01-02T03:04:05+00:00", "page_count": 1}


def test_an_attachment_is_named():
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([Put(72, 700, "words")])))
    writer.add_attachment("figures.csv", b"1,2")
    assert load(written(writer)).warnings == ["'figures.csv' is attached to it and was not read"]


def test_images_without_text_are_said_to_be_that():
    with raises(DocumentError, "unreadable", match=r"images and no text: it needs text recognition \(OCR\)"):
        load(image_pdf())
    with raises(DocumentError, "unreadable", match="it holds no text"):
        load(raw_pdf(b" "))


def test_a_password_opens_what_is_encrypted():
    locked = encrypted(pdf([Put(72, 700, "secret words")]), "opensesame")
    assert load(locked, "opensesame").text == "secret words"
    with raises(DocumentError, "encrypted", match=r"give its password"):
        load(locked)
    with raises(DocumentError, "encrypted", match="this is not its password"):
        load(locked, "wrong")


@pytest.mark.parametrize("data", [b"%PDF-1.7\nno more", b"%PDF-", pdf([Put(72, 700, "words")])[:200]])
def test_a_damaged_file_says_so(data):
    with raises(DocumentError, "unreadable", match=r"damaged|no pages|no text"):
        load(data)


def test_a_damaged_page_is_left_out_and_said():
    whole = pdf([Put(72, 700, "the first page")], [Put(72, 700, "the second page")])
    loaded = load(whole.replace(b"/Kids [4 0 R 6 0 R]", b"/Kids [4 0 R 9 0 R]"))
    assert (loaded.text, loaded.pages) == ("the first page", [0, 14])
    assert loaded.warnings == ["1 of 2 pages are damaged and were not read"]


def test_more_text_than_the_limit_is_refused():
    with raises(DocumentError, "too_large", match="longer than 20 characters"):
        load(pdf(paragraph(72, 700, PROSE)), max_chars=20)


@pytest.mark.parametrize(
    ("stated", "read"),
    [("D:20210709180500+02'00'", "2021-07-09T18:05:00+02:00"), ("D:20210709160500Z00'00'", "2021-07-09T16:05:00+00:00"),
     ("D:202107091605-05'00", "2021-07-09T16:05:00-05:00"), ("D:20210709", "2021-07-09T00:00:00+00:00"),
     ("2021-07-09", "2021-07-09T00:00:00+00:00"), ("D:20210230101010Z", "D:20210230101010Z"), ("", None)],
)  # fmt: skip
def test_a_date_is_read_or_kept_to_be_reported(stated, read):
    assert _date(stated) == read
