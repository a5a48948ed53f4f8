"""Where documents are cut, shown on small ones."""

from __future__ import annotations

import pytest

from recallite.errors import InvalidInput
from recallite_documents import markdown_sections
from recallite_documents.chunking import ChunkSize, chunk_markdown, chunk_plain, with_columns, with_properties
from recallite_documents.markdown_sections import page_starts
from tests.unit.documents.chunks import check, token_starts

LARGE = ChunkSize(1000, 100)


def cut(text, max_tokens=1000, overlap_tokens=0, begin=0):
    size = ChunkSize(max_tokens, overlap_tokens)
    starts = token_starts(text)
    chunks = chunk_markdown(text, starts, size, begin=begin)
    check(text, chunks, starts, size, begin)
    return chunks


def texts(chunks):
    return [chunk.text for chunk in chunks]


def test_headings_make_boundaries():
    chunks = cut("Before.\n\n# Guide\n\nText.\n\n## Install\n\nRun it.\n\nSetext\n===\n\nMore.\n")
    assert [(chunk.text, chunk.lines, chunk.headings) for chunk in chunks] == [
        ("Before.", (1, 1), ()),
        ("# Guide\n\nText.", (3, 5), ("Guide",)),
        ("## Install\n\nRun it.", (7, 9), ("Guide", "Install")),
        ("Setext\n===\n\nMore.", (11, 14), ("Setext",)),
    ]


def test_a_heading_with_nothing_under_it_goes_with_the_section_that_follows():
    chunks = cut("# Guide\n\n## Install\n\nRun it.\n\n## Empty\n# Next\n\nText.\n\n## Last\n")
    assert [(chunk.text, chunk.headings) for chunk in chunks] == [
        ("# Guide\n\n## Install\n\nRun it.", ("Guide", "Install")),
        ("## Empty\n# Next\n\nText.", ("Next",)),
        ("## Last", ("Next", "Last")),
    ]


def test_a_footnote_is_under_the_headings_of_what_refers_to_it():
    text = (
        "# Port\n\n## Fees\n\nDue at noon.[^1] Twice[^b].\n\n## Rest\n\nClosed.[^c]\n\n"
        "[^1]: On weekdays.\n    Not in May.\n\n    Nor in June.\n[^b]: https://port.test\n[^c]: Since March.\n"
        "[^d]: Nobody asks.\n"
    )
    expected = [
        ("# Port\n\n## Fees\n\nDue at noon.[^1] Twice[^b].", ("Port", "Fees")),
        ("## Rest\n\nClosed.[^c]", ("Port", "Rest")),
        ("[^1]: On weekdays.\n    Not in May.\n\n    Nor in June.\n[^b]: https://port.test", ("Port", "Fees")),
        ("[^c]: Since March.\n[^d]: Nobody asks.", ("Port", "Rest")),
    ]
    assert [(chunk.text, chunk.headings) for chunk in cut(text)] == expected
    titled = cut(text.replace("[^1]: On", "## Notes\n\n[^1]: On"))
    assert [(chunk.text[:8], chunk.headings[1]) for chunk in titled[2:]] == [
        ("## Notes", "Fees"), ("[^c]: Si", "Rest"), ("[^d]: No", "Notes"),
    ]  # fmt: skip
    # Small sections join each other, and no note joins them.
    text = text.replace("Closed", "Closed " * 100).replace("Due", "Due " * 100)
    size = ChunkSize(1000, 0, None, 50)
    chunks = chunk_markdown(text, token_starts(text), size)
    assert [chunk.headings for chunk in chunks] == [headings for _, headings in expected]


def test_what_looks_like_a_footnote_in_code_is_code():
    text = "## Fees\n\nDue at noon.[^1]\n\n## Rest\n\nWrite:\n```\n[^1]: On weekdays.\n```\n"
    assert [(chunk.text, chunk.headings) for chunk in cut(text)] == [
        ("## Fees\n\nDue at noon.[^1]", ("Fees",)),
        ("## Rest\n\nWrite:\n```\n[^1]: On weekdays.\n```", ("Rest",)),
    ]


def test_headings_are_plain_text():
    assert cut("# Fees {#fees .open}\n\nText.")[0].headings == ("Fees",)
    chunks = cut("# The `write()` *verb*: [docs](http://a) &amp; <b>more</b> \\# ##\n\nText.")
    assert chunks[0].headings == ("The write() verb: docs & more #",)


def test_a_heading_in_html_is_one():
    text = (
        '<div align="center">\n<img src="logo.png">\n<h1>The <b>Boat</b></h1>\n<p>It floats.</p>\n</div>\n\n'
        "## Install\n\nRun it.\n\n<p>An <h3>inner</h3> one is none.</p>\n"
    )
    assert [chunk.headings for chunk in cut(text, max_tokens=40)] == [("The Boat",)] * 2 + [("The Boat", "Install")]


def test_what_only_looks_like_a_heading_is_none():
    text = "```sh\n# shell\n```\n\n    # indented\n\n- # item\n\n> # quote\n\n<!--\n# hidden\n-->\n\n#nospace\n"
    (chunk,) = cut(text)
    assert chunk.headings == ()


def test_front_matter_that_is_metadata_is_in_no_chunk():
    text = "---\ntitle: A\n---\n# B\n\nText.\n"
    chunks = cut(text, begin=text.index("# B"))
    assert [(chunk.text, chunk.lines) for chunk in chunks] == [("# B\n\nText.", (4, 6))]


def test_front_matter_that_is_not_taken_is_text_and_makes_no_heading():
    chunks = cut("---\ntitle: [A\n---\n# B\n\nText.\n")
    assert [(chunk.text, chunk.headings) for chunk in chunks] == [
        ("---\ntitle: [A\n---", ()),
        ("# B\n\nText.", ("B",)),
    ]


def test_a_byte_order_mark_hides_no_heading():
    (chunk,) = cut("\ufeff# B\n\nText.")
    assert (chunk.text, chunk.start, chunk.lines, chunk.headings) == ("# B\n\nText.", 1, (1, 3), ("B",))


def test_lines_are_counted_as_an_editor_counts_them():
    text = "one\r\ntwo \u2028 \x0b \x0c same\rthree\n\n# four\r\n\r\nsix"
    assert [(chunk.text, chunk.lines) for chunk in cut(text)] == [
        ("one\r\ntwo \u2028 \x0b \x0c same\rthree", (1, 3)),
        ("# four\r\n\r\nsix", (5, 7)),
    ]


@pytest.mark.parametrize(
    "block",
    [
        "```python\na = 1\n\nb = 2\n\nc = 3\n```",
        "a | b\n--- | ---\n1 | 2\n3 | 4",
        "- one thing\n- another thing\n  - and a third\n- last",
        "One sentence here. Another sentence there. A third.",
        "> quoted one two\n>\n> quoted three four",
    ],
    ids=["code", "table", "list", "paragraph", "quote"],
)
def test_blocks_stay_whole_where_they_fit(block):
    room = len(token_starts(block)) + 3
    found = texts(cut(f"{'word ' * room}\n\nFirst words.\n\n{block}\n\nLast words, but one.", room))
    assert len(found) == 3
    assert any(block in text for text in found)


def test_code_too_large_alone_is_cut_at_blank_lines():
    halves = ["```\na = 1\nb = 2\nc = 3", "d = 4\ne = 5\nf = 6\n```"]
    assert texts(cut("\n\n".join(halves), 18)) == halves


def test_a_list_too_large_alone_is_cut_between_items():
    items = [f"- item {i} has a first line\n  and a second line" for i in range(6)]
    assert texts(cut("\n".join(items), 22)) == ["\n".join(items[i : i + 2]) for i in (0, 2, 4)]


def test_a_table_too_large_alone_is_cut_between_rows():
    rows = ["a | b", "--|--", *(f"row{i} | x" for i in range(8))]
    found = texts(cut("\n".join(rows), 20))
    assert found == ["\n".join(rows[:5]), "\n".join(rows[5:])]


def test_a_paragraph_too_large_alone_is_cut_at_sentences():
    text = "Dr. Smith met J. Doe, i.e. Bob. They talked for 3.5 hours! Was it 1. good or 2. bad? Nobody knows."
    assert texts(cut(text, 16)) == [
        "Dr. Smith met J. Doe, i.e. Bob.",
        "They talked for 3.5 hours!",
        "Was it 1. good or 2. bad? Nobody knows.",
    ]


def test_lines_without_sentences_are_cut_between_lines():
    lines = [f"2026-01-02 12:00:{i:02} INFO request {i} took {i} ms" for i in range(12)]
    text = "\n".join(lines)
    for chunk in chunk_plain(text, token_starts(text), ChunkSize(60, 20)):
        assert set(chunk.text.split("\n")) <= set(lines)


def test_chinese_and_japanese_sentences_end_without_a_space():
    text = "第一句话在这里。第二句话在那里！第三句话呢？最后一句话。"
    assert texts(cut(text, 16)) == ["第一句话在这里。第二句话在那里！", "第三句话呢？最后一句话。"]


def test_a_long_line_without_spaces_is_cut_at_tokens():
    text = "字" * 95
    chunks = cut(text, 20)
    assert "".join(texts(chunks)) == text
    assert [len(chunk.text) for chunk in chunks] == pytest.approx([19] * 5, abs=2)


def test_a_large_section_is_shared_out_evenly():
    text = "# A\n\n" + "\n\n".join(f"Paragraph {i} of ten words and so it goes on." for i in range(11))
    counts = [len(token_starts(chunk.text)) for chunk in cut(text, 110)]
    assert len(counts) == 2
    assert abs(counts[0] - counts[1]) <= 12


def test_a_chunk_begins_with_whole_sentences_of_the_one_before():
    text = "\n\n".join(f"Begin {i} here now. Middle {i} here now. End {i} here now." for i in range(6))
    first, second, *_ = cut(text, 40, 10)
    assert first.text.endswith("Middle 1 here now. End 1 here now.")
    assert second.text.startswith("Middle 1 here now. End 1 here now.\n\nBegin 2")


def test_the_overlap_never_crosses_a_heading():
    words = "One two three four. " * 4
    chunks = cut(f"# A\n\n{words}\n\n# B\n\n{words}", 30, 10)
    assert [chunk.text for chunk in chunks] == [f"# A\n\n{words.strip()}", f"# B\n\n{words.strip()}"]


def test_the_overlap_is_never_half_a_line_of_code():
    code = [f"value_{i} = compute(one, two, three)" for i in range(12)]
    chunks = cut("```\n" + "\n".join(code) + "\n```", 60, 12)
    assert len(chunks) > 1
    for chunk in chunks[1:]:
        assert chunk.text.split("\n")[0] in code


def test_the_overlap_gives_way_to_a_block_that_needs_the_room():
    code = "```\n" + "a = b\n" * 12 + "```"
    chunks = cut(f"{'Some words here. ' * 8}\n\n{code}", 42, 10)
    assert chunks[-1].text == code


def test_what_introduces_a_list_goes_with_it():
    text = f"{'Some words here. ' * 9}\n\nWe decided as follows:\n\n- one of them is here\n- and another is there"
    assert [chunk.split("\n")[0][:10] for chunk in texts(cut(text, 40))] == ["Some words", "We decided"]


def test_a_section_that_fits_is_one_chunk_and_repeats_nothing():
    assert len(cut("# A\n\n" + "One two three.\n\n" * 200, 1000, 100)) == 1


def test_definitions_of_links_are_kept():
    assert texts(cut("Text [a].\n\n[a]: http://b 'c'\n\n# B\n\n[d]: http://e\n")) == [
        "Text [a].\n\n[a]: http://b 'c'",
        "# B\n\n[d]: http://e",
    ]


def test_nothing_but_whitespace_has_no_chunk():
    for text in ("", " ", "\n\n\t\r\n", "\ufeff", "\ufeff\n"):
        assert cut(text) == []
        assert chunk_plain(text, token_starts(text), LARGE) == []


def test_plain_text_has_paragraphs_and_no_headings():
    text = "# one two three\nfour five\n\n\n- six seven eight nine\n\nten"
    chunks = chunk_plain(text, token_starts(text), ChunkSize(8, 0))
    assert [(chunk.text, chunk.lines, chunk.headings) for chunk in chunks] == [
        ("# one two three\nfour five", (1, 2), ()),
        ("- six seven eight nine\n\nten", (5, 7), ()),
    ]


def test_pages_end_with_form_feeds():
    assert page_starts("one\ftwo\f\fthree") == [0, 4, 8, 9]


@pytest.mark.parametrize("sizes", [(0, 0), (10, 10), (10, -1), (10, 0, 11), (10, 0, -1)])
def test_sizes_that_contradict_each_other_are_refused(sizes):
    with pytest.raises(InvalidInput, match="tokens"):
        ChunkSize(*sizes)


def test_a_large_document_has_the_sections_of_its_parts(monkeypatch):
    """It is parsed in runs of lines that no block crosses; a fence goes on over them."""
    part = (
        "# A\n\nText one.\n\n- item\n\n  more\n\n```\n\n# code\n\nx\n\n```\n\nEnd.\n\n> quote\n\n## B\n\nText two.\n\n"
    )
    text = "".join(part.replace("A", f"A{i}") for i in range(40))
    whole = cut(text)
    for chars in (1, 50, 500):
        monkeypatch.setattr(markdown_sections, "_SEGMENT_CHARS", chars)
        assert cut(text) == whole


def test_markup_that_would_fill_the_memory_is_cut_by_lines(monkeypatch):
    text = "# A\n\n" + "- one two\n" * 50
    monkeypatch.setattr(markdown_sections, "_MAX_TOKENS", 60)
    chunks = cut(text, 40)
    assert all(line in ("- one two", "# A", "") for chunk in chunks for line in chunk.text.split("\n"))
    assert all(chunk.headings == () for chunk in chunks)


WORDS = "One two three four five six seven eight nine ten. " * 2


def joined(text, max_tokens=60):
    size = ChunkSize(max_tokens, 0, least_tokens=14)
    starts = token_starts(text)
    chunks = chunk_markdown(text, starts, size)
    check(text, chunks, starts, size)
    return [(chunk.lines, chunk.headings) for chunk in chunks]


def test_a_small_section_goes_with_the_larger_one_before_it():
    text = f"# Pump\n\n## Parts\n\n{WORDS}\n\n## See also\n\n- Valves\n\n## Service\n\n{WORDS}\n"
    assert joined(text) == [((1, 9), ("Pump", "Parts")), ((11, 13), ("Pump", "Service"))]


def test_a_small_section_goes_with_the_one_after_it_that_is_nearer_or_has_room():
    text = f"# Pump\n\nIntro.\n\n## Parts\n\n{WORDS}\n\n# Crane\n\nOld.\n\n## Oil\n\n{WORDS}\n"
    assert joined(text) == [((1, 7), ("Pump", "Parts")), ((9, 15), ("Crane", "Oil"))]
    full = f"# A\n\n{WORDS * 2}\n\n# B\n\nSmall.\n\n# C\n\n{WORDS}\n"
    assert joined(full, 48) == [((1, 3), ("A",)), ((5, 11), ("C",))]


def test_small_sections_beside_each_other_are_joined_below_the_heading_that_both_have():
    text = "# Pump\n\n" + "".join(f"## Part {n}\n\nPart {n} is worn out.\n\n" for n in range(6)) + f"# B\n\n{WORDS}\n"
    assert joined(text) == [((1, 9), ("Pump",)), ((11, 17), ("Pump",)), ((19, 25), ("Pump",)), ((27, 29), ("B",))]


def test_small_sections_below_different_headings_stay_apart():
    text = f"# A\n\n{WORDS}\n\n# Flush\n\n## Browser\n\nIt listens.\n\n# Evening\n\n## Proxy\n\nIt waits.\n"
    assert joined(text) == [((1, 3), ("A",)), ((5, 9), ("Flush", "Browser")), ((11, 15), ("Evening", "Proxy"))]


def test_notes_that_are_all_small_stay_as_they_are():
    text = "# Cache\n\nValkey.\n\n# Queue\n\nKafka.\n"
    assert joined(text) == [((1, 3), ("Cache",)), ((5, 7), ("Queue",))]


def test_a_small_section_that_fits_nowhere_is_a_chunk():
    text = f"# A\n\n{WORDS * 2}\n\n# B\n\nSmall.\n\n# C\n\n{WORDS * 2}\n"
    assert joined(text, 46) == [((1, 3), ("A",)), ((5, 7), ("B",)), ((9, 11), ("C",))]


def test_short_properties_are_said_by_the_first_chunk_and_others_by_their_own():
    text = "---\nvendor: Grundfos\nbought: 2021\n---\n# Pump\n\nIt hums.\n\n# Oil\n\nMonthly.\n"
    begin = text.index("# Pump")
    size = ChunkSize(40, 0)
    chunks = chunk_markdown(text, token_starts(text), size, begin=begin)
    said = "vendor: Grundfos; bought: 2021"
    assert [chunk.properties for chunk in with_properties(chunks, text, said, size)] == [said, ""]
    own, *rest = with_properties([], text, said, size)
    assert (own.text, own.lines, own.headings, rest) == (said, (2, 3), (), [])
    long = "; ".join(f"name {n}: value {n}" for n in range(30))
    *parts, first, second = with_properties(chunks, text, long, size)
    assert " ".join(part.text for part in parts) == long
    assert {len(part.text) <= 80 for part in parts} == {True}
    assert [first, second] == chunks
    assert with_properties(chunks, text, "", size) == chunks


def test_later_chunks_of_a_table_say_its_columns_and_lines_of_the_rows():
    rows = [f"| Boat {n} | Skipper {n % 7} | {n * 3} |" for n in range(120)]
    text = "# Fleet\n\n| Boat | Skipper | Berth |\n|---|---|---|\n" + "\n".join(rows) + "\n\nThat is all.\n"
    chunks = [*with_columns(cut(text, 400), text, "markdown")]
    assert len(chunks) > 4
    assert chunks[0].columns == ""
    assert {chunk.columns for chunk in chunks[1:]} == {"| Boat | Skipper | Berth |\n|---|---|---|\n"}
    lines = text.split("\n")
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text == "\n".join(lines[chunk.lines[0] - 1 : chunk.lines[1]])


def test_later_chunks_of_a_list_say_what_introduces_it():
    items = [f"- person {n} cleans dock {n * 2}\n  and reports it" for n in range(30)]
    text = "# Duties\n\nBy day:\n\n" + "\n".join(items) + "\n\n" + WORDS * 20
    chunks = [*with_columns(cut(text, 60), text, "markdown")]
    of_list = [chunk.columns for chunk in chunks if chunk.text.startswith("- person")]
    assert len(of_list) > 3
    assert set(of_list) == {"By day:\n"}
    assert chunks[-1].columns == ""


def test_values_without_a_row_of_headings_have_no_columns():
    text = "".join(f"{n},{n * 2}\n" for n in range(400))
    chunks = chunk_plain(text, token_starts(text), ChunkSize(100, 0))
    assert {chunk.columns for chunk in with_columns(chunks, text, "separated")} == {""}


def test_rows_of_separated_values_are_whole_though_their_fields_have_several_lines():
    rows = [f'berth {n},"quay 5"" wide,\nlit at night {n}",{n}' for n in range(200)]
    text = "\n".join(["berth,remark,fee", *rows])
    chunks = chunk_plain(text, token_starts(text), ChunkSize(400, 0), rows=True)
    parts = [chunk.text for chunk in with_columns(chunks, text, "separated")]
    assert len(parts) > len(chunks) > 1
    assert "\n".join(parts) == text
    assert all(part.startswith("berth ") for part in parts[1:])
