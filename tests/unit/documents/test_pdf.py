"""PDFs: text in reading order, as paragraphs, with pages and headings; what cannot be read says why."""

from __future__ import annotations

import io

import pypdf
import pytest
from pypdf.annotations import Link, Text
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from recallite.errors import DocumentError
from recallite_documents.pdf import Line, _date, compose, load_pdf
from tests.raising import raises
from tests.unit.documents.support import IMAGE, Put, encrypted, image_pdf, paragraph, pdf, raw_pdf, written

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
              "Paul as well-", "known; they are well-known indeed, and up-to-", "date."]  # fmt: skip
    said = load(pdf(paragraph(72, 700, parted))).text.replace("\n", " ")
    assert "up-to-date" in said
    assert "remembered" in said
    assert "Jean-Paul" in said
    assert "well-known; they" in said


@pytest.mark.parametrize(("size", "y"), [(40, 686), (54, 672)])
def test_the_large_first_letter_of_a_paragraph_is_of_its_word(size, y):
    first, *others = PROSE
    drawn = [Put(72, y, first[0], size), Put(74 + 0.62 * size, 700, first[1:]), *paragraph(72, y - 14, others)]
    assert load(pdf(drawn)).text.replace("\n", " ").replace("  ", " ") == " ".join(PROSE)


def test_a_word_parted_at_the_end_of_a_page_is_joined():
    first, second = (
        paragraph(72, 700, [*PROSE[:2], "and drinks from the reser-"]),
        paragraph(72, 700, ["voir at noon."]),
    )
    loaded = load(pdf(first, second))
    assert loaded.text.endswith("from the reservoir at noon.")
    assert loaded.text[loaded.pages[1] :] == "voir at noon."


@pytest.mark.parametrize("matrix", ["0 1 -1 0 {down} 100", "0 -1 1 0 {up} 700", "-1 0 0 -1 500 {down}"])
def test_pages_on_their_side_and_upside_down_are_read_from_their_top(matrix):
    lines = "".join(
        f"BT /F1 11 Tf {matrix.format(down=100 + 14 * place, up=500 - 14 * place)} Tm ({line}) Tj ET\n"
        for place, line in enumerate(PROSE)
    )
    assert load(raw_pdf(lines.encode())).text == " ".join(PROSE)


def test_columns_are_read_one_after_the_other_however_they_are_drawn():
    left, right = paragraph(50, 700, LEFT), paragraph(330, 700, RIGHT)
    across = [put for pair in zip(left, right, strict=True) for put in pair]
    for drawn in (left + right, across):
        said = load(pdf(drawn)).text
        places = [said.index(line) for line in LEFT + RIGHT]
        assert places == sorted(places)


def test_three_columns_drawn_across_are_read_one_after_the_other():
    puts = [Put(40 + 180 * column, 700 - 13 * line, f"column {column} says in line {line} what it says", 9)
            for line in range(8) for column in range(3)]  # fmt: skip
    said = load(pdf([Put(40, 760, "Three columns", 20), *puts])).text
    places = [said.index(f"column {column} says in line {line}") for column in range(3) for line in range(8)]
    assert places == sorted(places)


def test_the_mark_of_an_item_is_no_cell():
    items = ["Moor at the buoy only.", "No fires on deck."]
    puts = [put for number, item in enumerate(items)
            for put in (Put(60, 700 - 15 * number, f"{number + 1}."), Put(90, 700 - 15 * number, item))]  # fmt: skip
    assert load(pdf(puts)).text == "1. Moor at the buoy only.\n2. No fires on deck."


def test_rows_of_a_table_stay_rows():
    rows = [("Country", "Capital", "Language"), ("Austria", "Vienna", "German"), ("Belgium", "Brussels", "Dutch")]
    puts = [Put(72 + 150 * place, 700 - 20 * number, cell)
            for number, row in enumerate(rows) for place, cell in enumerate(row)]  # fmt: skip
    loaded = load(pdf(puts))
    assert loaded.text.splitlines() == [
        "| Country | Capital | Language |", "| --- | --- | --- |", "| Austria | Vienna | German |",
        "| Belgium | Brussels | Dutch |",
    ]  # fmt: skip
    assert loaded.markdown


def test_an_empty_cell_leaves_the_others_under_their_headings():
    rows = [("Part", "Hours", "Price"), ("Lamp", "", "19.50"), ("", "2", ""), ("Mirror", "1", "80.00")]
    by_row = [Put(72 + 150 * place, 700 - 20 * number, cell)
              for number, row in enumerate(rows) for place, cell in enumerate(row) if cell]  # fmt: skip
    by_column = sorted(by_row, key=lambda put: put.x)
    for drawn in (by_row, by_column):
        assert load(pdf(drawn)).text.splitlines()[2:] == [
            "| Lamp |  | 19.50 |", "|  | 2 |  |", "| Mirror | 1 | 80.00 |",
        ]  # fmt: skip


def test_a_cell_of_several_lines_is_one_cell():
    said = ["a frame of oak that", "holds the glass and", "is oiled each spring"]
    puts = [Put(72, 700, "Thing"), Put(200, 700, "Note"), Put(400, 700, "Count"),
            Put(72, 668, "Window"), *paragraph(200, 680, said, 12), Put(400, 668, "4"),
            Put(72, 634, "Door"), Put(200, 634, "plain"), Put(400, 634, "1")]  # fmt: skip
    assert "| Window | a frame of oak that holds the glass and is oiled each spring | 4 |" in load(pdf(puts)).text


def test_names_and_their_values_have_no_headings():
    pairs = [("Name:", "Mara Lind"), ("Town:", "Visby"), ("Floor:", "3")]
    puts = [put for number, (name, value) in enumerate(pairs)
            for put in (Put(72, 700 - 16 * number, name), Put(200, 700 - 16 * number, value))]  # fmt: skip
    assert load(pdf(puts)).text.splitlines() == [
        "|  |  |", "| --- | --- |", "| Name: | Mara Lind |", "| Town: | Visby |", "| Floor: | 3 |",
    ]  # fmt: skip


def test_a_table_over_two_pages_says_its_headings_on_both():
    def rows(first):
        return [Put(72 + 150 * place, 700 - 20 * number, cell) for number in range(3)
                for place, cell in enumerate((f"Mast {first + number}", f"{first + number}0", "oak"))]  # fmt: skip

    heading = [Put(72 + 150 * place, 720, name) for place, name in enumerate(("Mast", "Height", "Wood"))]
    loaded = load(pdf(heading + rows(1), rows(4)))
    assert loaded.text.count("| Mast | Height | Wood |") == 2
    assert "| Mast | Height | Wood |" in loaded.text[loaded.pages[1] :]


def test_what_stands_above_is_read_first_whenever_it_is_drawn():
    puts = [Put(72, 640, "Paid in two parts."), Put(72, 700, "Terms of payment", 18), Put(72, 760, "Contract", 26)]
    said = load(pdf(puts)).text
    assert said.index("Contract") < said.index("Terms") < said.index("Paid")


def test_running_lines_are_said_once_and_break_no_sentence():
    body = [
        "The harbour master keeps a list of all the moorings and",
        "their owners, which is read out each year to the",
    ]
    pages = [[Put(72, 800, f"Harbour rules, page {n}", 8), Put(72, 30, "Printed in Visby", 8), *paragraph(72, 740, [
        f"{n} {line}" if not place else line for place, line in enumerate(body)])] for n in (1, 2, 3, 4)]  # fmt: skip
    said = load(pdf(*pages)).text
    assert said.count("Harbour rules") == said.count("Printed in Visby") == 1
    assert said.count("keeps a list") == 4
    assert load(pdf(*pages[:2])).text.count("Harbour rules") == 2


def test_running_lines_of_several_cells_are_said_once_however_they_are_drawn():
    pages = [[Put(72, 800, "Harbour rules", 8), Put(500, 800, f"Part {n}", 8), *paragraph(72, 740, PROSE)]
             for n in (1, 2, 3)]  # fmt: skip
    pages[1][:2] = pages[1][1::-1]
    assert load(pdf(*pages)).text.count("Harbour rules") == 1


def test_a_value_that_is_the_number_of_the_page_is_none_beside_its_row():
    rows = [put for n, name in enumerate(("Rope", "Oars", "Sails")) for put in
            (Put(72, 700 - 14 * n, f"{3 - n}"), Put(200, 700 - 14 * n, name))]  # fmt: skip
    assert "| 1 | Sails |" in load(pdf(rows)).text


def test_the_larger_mark_of_an_item_makes_no_heading_of_it():
    items = [put for n, line in enumerate(PROSE) for put in (Put(60, 600 - 30 * n, "•", 16),
             Put(72, 600 - 30 * n, line))]  # fmt: skip
    assert "#" not in load(pdf([*paragraph(72, 760, PROSE * 2), *items])).text


def test_headings_below_each_other_are_two_and_a_long_one_is_one():
    drawn = [Put(250, 780, "Handbook", 18), Put(72, 752, "Prices of the moorings in the", 18),
             Put(72, 731, "inner harbour", 18), *paragraph(72, 690, PROSE * 3, step=40)]  # fmt: skip
    said = load(pdf(drawn)).text
    assert said.startswith("# Handbook\n\n# Prices of the moorings in the inner harbour\n\n")


def test_text_at_another_angle_is_apart_and_said_once():
    page = "".join(f"BT /F1 11 Tf 72 {700 - 14 * n} Td ({line}) Tj ET\n" for n, line in enumerate(PROSE))
    mark = "BT /F1 60 Tf .7 .7 -.7 .7 80 600 Tm (DRAFT) Tj ET\n"
    stamp = "BT /F1 20 Tf 0 1 -1 0 30 600 Tm (series:2401.01234) Tj ET\n"
    said = load(raw_pdf(f"{page}{stamp}".encode(), f"{mark}{page}".encode(), f"{mark}{page}".encode())).text
    prose = " ".join(PROSE)
    assert said == f"{prose}\n\nseries:2401.01234\n\n{prose}\n\nDRAFT\n\n{prose}"


def test_the_address_of_a_link_stands_behind_its_words():
    lines = ["Pay by the portal. Or ask the master of", "the harbour, who answers."]
    writer = pypdf.PdfWriter(io.BytesIO(pdf(paragraph(72, 700, lines))))
    for box, address in (((122, 697, 154, 711), "pay"), ((265, 711, 226, 697), "ask"), ((72, 683, 129, 697), "ask"),
                         ((300, 500, 400, 600), "logo")):  # fmt: skip
        writer.add_annotation(0, Link(rect=box, url=f"https://{address}.example/"))
    said = " ".join(load(written(writer)).text.split())
    assert said == (
        "Pay by the portal <https://pay.example/>. Or ask the master of the harbour <https://ask.example/>, who "
        "answers. <https://logo.example/>"
    )


def test_the_hyphen_of_an_address_stays_at_the_end_of_a_line():
    parted = ["Ask at https://harbour.example/guest-", "moorings/free or in the har-", "bour office, or write to head-",
              "office@harbour.example."]  # fmt: skip
    said = load(pdf(paragraph(72, 700, parted))).text.replace("\n", " ")
    assert "guest-moorings/free" in said
    assert "harbour office" in said


def test_text_outside_the_visible_part_of_a_page_is_not_read():
    whole = pdf([Put(72, 700, "seen by all"), Put(72, 830, "printer's marks 4711")])
    loaded = load(whole.replace(b"/MediaBox [0 0 595 842]", b"/CropBox [0 0 595 800] /MediaBox [0 0 595 842]"))
    assert loaded.text == "seen by all"
    assert "characters outside the page were not read" in loaded.warnings[0]


def test_a_raised_digit_is_no_digit_of_the_number():
    drawn = b"BT /F1 12 Tf 72 700 Td (About 10) Tj /F1 7 Tf 5 Ts (6) Tj 0 Ts /F1 12 Tf ( cells) Tj ET"
    assert load(raw_pdf(drawn)).text == "About 10^6 cells"


def test_a_word_of_a_script_without_spaces_is_not_parted_at_the_end_of_a_line():
    line = Line(("港の規則は毎年",), 72, 300, 700, 11, ((72, 300),))
    text, _ = compose([[line, line._replace(cells=("読み上げられる",), baseline=686)]], {})
    assert text == "港の規則は毎年読み上げられる"


def test_fields_boxes_and_notes_are_read_where_they_stand():
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([Put(72, 700, "Berth"), Put(72, 680, "Insured")])))
    form = ArrayObject()
    for kind, name, value, y in (
        ("/Tx", "berth", TextStringObject("C 14"), 698),
        ("/Btn", "insured", NameObject("/Yes"), 678),
    ):
        box = ArrayObject(map(FloatObject, (140, y, 240, y + 14)))
        widget = {"/Type": NameObject("/Annot"), "/Subtype": NameObject("/Widget"), "/FT": NameObject(kind),
                  "/T": TextStringObject(name), "/V": value, "/Rect": box, "/F": NumberObject(4)}  # fmt: skip
        if kind == "/Btn":
            states = DictionaryObject(
                {NameObject(state): writer._add_object(StreamObject()) for state in ("/Yes", "/Off")}
            )
            widget |= {"/AS": value, "/AP": DictionaryObject({NameObject("/N"): states})}
        form.append(writer._add_object(DictionaryObject({NameObject(key): each for key, each in widget.items()})))
    writer.pages[0][NameObject("/Annots")] = ArrayObject(form)
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): form})
    writer.add_annotation(0, Text(rect=(300, 600, 320, 620), text="Ask the owner again"))
    said = load(written(writer)).text
    assert [line for line in said.splitlines() if line.startswith("| B") or line.startswith("| I")] == [
        "| Berth | C 14 |", "| Insured | [x] |",
    ]  # fmt: skip
    assert "[Note: Ask the owner again]" in said


def test_what_a_reader_struck_out_says_so():
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([Put(72, 700, "Meet at nine sharp")])))
    points = ArrayObject(map(FloatObject, (112, 712, 135, 712, 112, 696, 135, 696)))
    writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/StrikeOut"),
        NameObject("/Rect"): ArrayObject(map(FloatObject, (112, 696, 135, 712))), NameObject("/QuadPoints"): points,
    }))])  # fmt: skip
    assert load(written(writer)).text == "Meet at ~~nine~~ sharp"


def test_pages_without_text_are_named():
    loaded = load(raw_pdf(b"BT /F1 11 Tf 50 700 Td (a page of words) Tj ET", IMAGE, IMAGE))
    assert loaded.warnings == ["2 of 3 pages hold images and no text (pages 2, 3)"]


@pytest.mark.parametrize("made_up", ["untitled", "report_final_v3.docx", "Microsoft Word - minutes"])
def test_a_title_that_a_program_made_up_is_none(made_up):
    loaded = load(pdf([Put(72, 760, "The lighthouse log", 24), *paragraph(72, 700, PROSE)], title=made_up))
    assert loaded.title == "The lighthouse log"


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
    assert loaded.warnings == ["1 of 2 pages are damaged and were not read (page 2)"]


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


@pytest.mark.parametrize("leader", [" ........................ ", " . . . . . . . . ", None])
def test_a_table_of_contents_is_not_read(leader):
    entries = [("1 Fees", "2"), ("1.1 Boats", "2"), ("2 Rest of the year", "3")]
    contents = [Put(72, 720, "Contents", 18)]
    for place, (title, page) in enumerate(entries):
        puts = [(72, title), (500, page)] if leader is None else [(72, title + leader + page)]
        contents += [Put(x, 690 - 16 * place, text) for x, text in puts]
    fees = [Put(72, 720, "1 Fees", 18), *paragraph(72, 690, ["Due at noon on every day of the week, and then at 9"])]
    rest = [Put(72, 720, "2 Rest of the year", 18), *paragraph(72, 690, ["The port is closed, but for the mail boat."])]
    loaded = load(pdf(contents, fees, rest))
    assert loaded.text == (
        "# Contents\n\n# 1 Fees\n\nDue at noon on every day of the week, and then at 9\n\n"
        "# 2 Rest of the year\n\nThe port is closed, but for the mail boat."
    )
    assert loaded.warnings == ["3 entries of contents were not read (page 1)"]


def test_a_table_that_names_headings_is_read():
    table = [Put(x, 690 - 16 * row, text) for row, cells in enumerate((("Fees", "40"), ("Rest", "30")))
             for x, text in zip((72, 500), cells, strict=True)]  # fmt: skip
    sections = [
        [Put(72, 720, name, 18), *paragraph(72, 690, ["Due at noon on weekdays."])] for name in ("Fees", "Rest")
    ]
    assert "| Fees | 40 |" in load(pdf([Put(72, 720, "Figures", 18), *table], *sections)).text
