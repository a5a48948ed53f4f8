"""What holds for the chunks of any text: spans cover it, none is too large, lines are an editor's."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recallite_documents.chunking import ChunkSize, chunk_markdown, chunk_plain
from recallite_documents.front_matter import front_matter
from tests.limits import examples
from tests.unit.documents.chunks import check, token_starts

WORDS = st.sampled_from(
    [
        "word",
        "Ende.",
        "e.g.",
        "What?",
        "数据库。",
        "今天天气很好",
        "ひらがな",
        "🙂",
        "👩‍👩‍👧",
        "é",
        "`code`",
        "[a](b)",
        "x" * 90,
        "\u2028",
        "\x0b",
        "\x0c",
        "\x00",
        "|",
    ]
)
PROSE = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
LINES = st.lists(PROSE, min_size=1, max_size=6).map("\n".join)
INDENT = st.sampled_from(["", "  ", "    ", "\t", "> ", "> > ", "        "])


def indented(block: str, indent: str) -> str:
    return "\n".join(indent + line for line in block.split("\n"))


BLOCKS = st.one_of(
    LINES,
    st.builds(lambda level, title: "#" * level + " " + title, st.integers(1, 7), PROSE),
    st.builds(lambda title, rule: title + "\n" + rule, PROSE, st.sampled_from(["===", "---"])),
    st.builds(lambda code, close: "```python\n" + code + close, LINES, st.sampled_from(["\n```", ""])),
    st.lists(PROSE, min_size=1, max_size=8).map(lambda items: "\n".join("- " + item for item in items)),
    st.lists(st.tuples(INDENT, PROSE), max_size=8).map(
        lambda items: "\n".join(f"{indent}{i}. {item}" for i, (indent, item) in enumerate(items))
    ),
    st.lists(PROSE, max_size=6).map(lambda rows: "a | b\n--- | ---\n" + "\n".join(f"{row} | c" for row in rows)),
    st.sampled_from(["---", "<!-- a\n\nb -->", "<div>\n# no\n</div>", "[a]: http://b", "", " \t ", ">" * 40 + " deep"]),
    st.builds(lambda text, times: text * times, WORDS, st.integers(1, 60)),
)
DOCUMENTS = st.builds(
    lambda bom, head, blocks, ends: (bom + head + "\n\n".join(blocks)).replace("\n", ends),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "---\ntitle: a\n---\n", "---\n- a: [\n---\n", "\n\n", "---\n"]),
    st.lists(st.builds(indented, BLOCKS, INDENT), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
SIZES = st.sampled_from(
    [ChunkSize(1, 0), ChunkSize(8, 0), ChunkSize(8, 7), ChunkSize(40, 10), ChunkSize(40, 10, 0), ChunkSize(1000, 100)]
)


@settings(derandomize=True, max_examples=examples(120), deadline=None)
@given(DOCUMENTS, SIZES)
@example("\ufeff# a", ChunkSize(1, 0))
@example("a" + "\n" * 3000 + "b", ChunkSize(8, 2))
@example("> " * 30 + "one two three four five six seven eight nine ten", ChunkSize(8, 2))
@example("word\n\n\u2028\n\n    word\n    ===\n\nword\n\nword word word", ChunkSize(8, 7))
@example("- [a]: b\n  [c]: d\n  [e]: f\n  [g]: h\n", ChunkSize(8, 2))
def test_chunks_of_markdown(text, size):
    starts = token_starts(text)
    begin = front_matter(text)[1]
    chunks = chunk_markdown(text, starts, size, begin=begin)
    check(text, chunks, starts, size, begin)
    assert chunks == chunk_markdown(text, starts, size, begin=begin)


@settings(derandomize=True, max_examples=examples(80), deadline=None)
@given(DOCUMENTS, SIZES)
def test_chunks_of_plain_text(text, size):
    starts = token_starts(text)
    check(text, chunk_plain(text, starts, size), starts, size)


@settings(derandomize=True, max_examples=examples(60), deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=400), SIZES)
def test_chunks_of_any_characters(text, size):
    """One token every three characters, whatever they are: token starts may stand in whitespace."""
    starts = range(0, len(text), 3)
    check(text, chunk_markdown(text, starts, size), starts, size)
    check(text, chunk_plain(text, starts, size), starts, size)


@settings(derandomize=True, max_examples=examples(60), deadline=None)
@given(DOCUMENTS, st.sampled_from([ChunkSize(8, 0), ChunkSize(40, 0)]))
def test_without_overlap_no_character_stands_in_two_chunks(text, size):
    chunks = chunk_markdown(text, token_starts(text), size)
    assert all(before.end <= after.start for before, after in pairwise(chunks))


@pytest.mark.parametrize(
    "text",
    [
        ">" * 20_000,
        "[" * 20_000,
        "- " * 20_000 + "a",
        "".join(" " * (2 * min(depth, 300)) + "- a\n" for depth in range(2_000)),
        "".join(">" * (depth % 200) + " a\n" for depth in range(2_000)),
        "# " + "`a" * 10_000,
        "." * 20_000,
        "```\n" + "x\n" * 10_000,
        "<!-- " + "a\n\n" * 5_000,
        "汉字" * 5_000,
    ],
    ids=["quotes", "brackets", "markers", "lists", "ramps", "heading", "dots", "fence", "comment", "cjk"],
)
def test_hostile_markup_is_cut_like_any_text(text):
    size = ChunkSize(100, 10)
    starts = token_starts(text)
    chunks = chunk_markdown(text, starts, size)
    covered = 0
    for chunk in chunks:
        assert text[covered : chunk.start].strip() == ""
        assert text[chunk.start : chunk.end] == chunk.text
        covered = chunk.end
    assert text[covered:].strip() == ""
