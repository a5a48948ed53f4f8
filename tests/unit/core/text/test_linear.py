"""No text makes a pattern or a scanner of the packages take more than time in proportion to its length."""

from __future__ import annotations

import ast
import io
import re
from types import SimpleNamespace

import pytest

from recallite.agents.experience import error_pattern
from recallite.errors import RecalliteError
from recallite.recall.decomposition import split_question
from recallite.recall.snippets import cut_snippet
from recallite.text.quotes import (
    Quotation,
    announced,
    bracket_claims,
    quoted,
    stripped_head,
    stripped_tail,
    unquoted,
    without_quotes,
)
from recallite.text.topics import other_subject, topic_of
from recallite.text.words import content_hash, text_key, tokenize
from recallite.transfer.lines import Lines, parse
from recallite.transfer.streaming import _on_one_line
from recallite_documents.chunking import ChunkSize, chunk_markdown, chunk_plain
from recallite_documents.detecting import detect, load_text
from recallite_documents.front_matter import front_matter
from recallite_documents.html import load_html
from recallite_documents.ingesting import stated_by
from recallite_notes.config import FlushConfig
from recallite_notes.editable import markdown
from recallite_notes.flushing import _without_empty_headings, extract

from .adversarial import RUNS, attacks, growth, run_of
from .patterns import METHODS, modules, used_patterns

_SIZE = ChunkSize(max_tokens=1000, target_tokens=500, overlap_tokens=100)
_MOST = 1_000_000


def _statements(text):
    return other_subject(topic_of(text), topic_of(f"{text} not"))


def _lines(format):
    def read(text):
        try:
            return list(parse(format, Lines(io.StringIO(text), max_chars=_MOST), max_text_chars=_MOST))
        except ValueError as refused:
            return refused

    return read


def _html(text):
    try:
        return load_html(text.encode(), _MOST)
    except RecalliteError as refused:
        return refused


def _stated(text):
    return stated_by(load_text(f"a\n{text}".encode(), _MOST, markdown=True)) if "\x00" not in text else None


def _parsed_memory(text):
    try:
        return markdown.parse(f"---\nscope: /\n{text}\n---\nx")
    except RecalliteError as refused:
        return refused


def _flushed(text):
    model = SimpleNamespace(complete=lambda *_, **__: text)
    return extract(model, [{"role": "user", "content": "a"}], FlushConfig(), None, "2026-01-01")


SCANNERS = {
    "tokenize": tokenize,
    "content_hash": content_hash,
    "text_key": text_key,
    "split_question": split_question,
    "statements": _statements,
    "quotation": Quotation.of,
    "quoted": quoted,
    "unquoted": unquoted,
    "without_quotes": without_quotes,
    "announced": announced,
    "bracket_claims": bracket_claims,
    "stripped_head": lambda text: list(stripped_head(text)),
    "stripped_tail": lambda text: list(stripped_tail(text)),
    "front_matter": lambda text: front_matter(f"---\na: b\n{text}\n---\n"),
    "chunk_markdown": lambda text: chunk_markdown(text, lambda: range(0, len(text), 4), _SIZE),
    "chunk_plain": lambda text: chunk_plain(text, lambda: range(0, len(text), 4), _SIZE),
    "on_one_line": _on_one_line,
    "render_memory": lambda text: markdown.render(markdown.MemoryFile(text=text)),
    "parse_memory": _parsed_memory,
    "jsonl": _lines("jsonl"),
    "csv": _lines("csv"),
    "text": _lines("text"),
    "html": _html,
    "html_before": lambda text: detect(text.encode(), "page"),
    "stated_by": _stated,
    "error_pattern": error_pattern,
    "flushed": _flushed,
    "headings": lambda text: list(_without_empty_headings(text.split("\n"))),
    "snippet": lambda text: cut_snippet(text, "a 1", 200),
}


def test_every_use_of_a_pattern_is_found():
    """`re` is used under its own name, so that reading the source finds all that it is given; `written` fails for a
    pattern that only its function knows.
    """
    calls = 0
    for name, (_, tree) in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex"):
                assert {alias.name for alias in node.names} <= {"Match", "Pattern"}, f"{name}: import re itself"
            if isinstance(node, ast.Import):
                assert not any(alias.name in ("re", "regex") and alias.asname for alias in node.names), name
            calls += isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"
            calls += isinstance(node, ast.Call) and ast.unparse(node.func) == "lazily"
    assert calls > 60
    found = {use.pattern.pattern for use in used_patterns()}
    assert len(found) > 80
    held = {
        value.pattern
        for module, _ in modules().values()
        if module is not None
        for value in vars(module).values()
        if isinstance(value, re.Pattern)
    }
    assert held <= found
    assert {use.method for use in used_patterns()} <= METHODS


# Most runs that end in "!" match nothing, after every way was tried. All three ends take a seventh of all tests' time.
@pytest.mark.parametrize(
    "end", ["!", pytest.param("", marks=pytest.mark.slow), pytest.param("\n", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("use", used_patterns(), ids=str)
def test_a_pattern_takes_time_in_proportion_to_the_text(use, end):
    for begin, unit in attacks(use.pattern.pattern, use.pattern.flags):
        assert growth(use, run_of(unit, begin=begin, end=end)) is None, (begin, unit, end)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_takes_time_in_proportion_to_the_text(name):
    for unit in RUNS:
        assert growth(SCANNERS[name], run_of(unit, end="!")) is None, unit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s*[\r\n]\s*", "sub"),
        (r"<!-- recallite (.*?)[ \t]*-->[ \t]*", "fullmatch"),
        (r"##[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*", "fullmatch"),
        (r",\s+(?=and\b)|\s+[–—-]\s+|:\s+", "split"),
        (r"<recalled-memories>.*?</recalled-memories>", "sub"),
        (r"([\w-]+)\s*=\s*(\w+)", "findall"),
        (r"\b[a-z][a-z0-9+.-]*://[^\s]+", "sub"),
        (rb"\s*(?:<!--.*?-->\s*)*<html[\s>]", "match"),
    ],
)
def test_what_was_quadratic_here_is_seen(pattern, method):
    from .patterns import Used

    use = Used("before", re.compile(pattern, re.DOTALL if isinstance(pattern, str) else 0), method)
    assert any(
        growth(use, run_of(unit, begin=begin, end=end)) is not None
        for begin, unit in attacks(pattern)
        for end in ("", "!", "\n")
    )


def test_a_run_of_spaces_and_one_of_clauses_are_split_alike():
    assert split_question("who sold the red racing bicycle   -   who bought the old racing car?") == [
        "who sold the red racing bicycle",
        "who bought the old racing car?",
    ]
    long = split_question(", and ".join(f"who took the {place} bicycle from here" for place in range(4_000)))
    assert len(long) == 5
    assert sum(map(len, long)) > 100_000
