"""The block of values at the head of a Markdown file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite.text.chunking import front_matter
from tests.limits import examples


def test_values_are_those_of_json_and_dates_stay_as_written():
    text = (
        "---\ntitle: A note\ndate: 2026-01-02\nat: 12:30\nno: no\ncount: 3\nratio: 0.5\nzip: 007\ndraft: true\n"
        "tags: [a, b]\nauthor: {name: J, 1: x}\nempty:\n---\n# Body\n"
    )
    values, begin = front_matter(text)
    assert values == {
        "title": "A note",
        "date": "2026-01-02",
        "at": "12:30",
        "no": "no",
        "count": 3,
        "ratio": 0.5,
        "zip": "007",
        "draft": True,
        "tags": ["a", "b"],
        "author": {"name": "J", "1": "x"},
        "empty": None,
    }
    assert text[begin:] == "# Body\n"


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_any_line_ends_and_a_byte_order_mark(ends, mark):
    text = mark + ends.join(["---", "title: A", "...", "Body"])
    values, begin = front_matter(text)
    assert (values, text[begin:]) == ({"title": "A"}, "Body")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "title: A\n---\n",
        "\n---\ntitle: A\n---\n",
        "---\ntitle: A\n",
        "---\nA rule, and a heading under it\n---\n",
        "---\n\n---\n",
        "---\ntitle: [A\n---\n",
        "---\ntitle: 'A\n---\n",
        "---\na: &x [1, 2]\nb: *x\n---\n",
        "---\na: " + "[" * 20 + "]" * 20 + "\n---\n",
        "---\na: " + "[" * 100_000 + "\n---\n",
        "---\na: " + "x" * 70_000 + "\n---\n",
        "---\na: !!python/object/apply:os.system ['true']\n---\n",
        "---\na: b\n? [c]\n: d\n---\n",
        "---\n" + "# " * 30_000 + "\n---\n",
        "---\n" + "- " * 30_000 + "\n---\n",
        "---\na: " + "{a: " * 5_000 + "\n---\n",
    ],
    ids=range(18),
)
def test_what_cannot_be_used_stays_in_the_body(text):
    assert front_matter(text) == ({}, 0)


@pytest.mark.parametrize(
    "value",
    ["!!timestamp zz", "!!bool zz", "!!int ''", "!!float 1:1:.", "!!float " + "1:" * 400, "!!float .inf",
     "!!binary aGk=", "!!set {b}", "!own b", "! b", "!!str b", "!!map [b]", "[!!int '']",
     "{!!bool zz: b}", "!!python/name:os.system"],
)  # fmt: skip
def test_values_with_tags_stay_in_the_body(value):
    """The YAML library raises AttributeError, KeyError, IndexError and OverflowError for some of them."""
    assert front_matter(f"---\na: {value}\n---\n") == ({}, 0)


def test_a_mark_of_exclamation_is_no_tag():
    assert front_matter("---\na: Hello!\nb: '!x'\n---\n")[0] == {"a": "Hello!", "b": "!x"}


@pytest.mark.parametrize("fault", [AttributeError, RecursionError, OverflowError])
def test_whatever_the_library_raises_leaves_the_block_in_the_body(monkeypatch, fault):
    def fail(*arguments):
        raise fault

    monkeypatch.setattr("yaml.load", fail)
    assert front_matter("---\na: b\n---\n") == ({}, 0)


def test_the_closing_line_at_the_very_end():
    assert front_matter("---\ntitle: A\n---") == ({"title": "A"}, len("---\ntitle: A\n---"))


@settings(derandomize=True, max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,?. \n\t1é汉~0e+"), max_size=60))
def test_any_block_gives_values_that_json_holds_or_none(inner):
    text = f"---\nkey: 1\n{inner}\n---\nbody"
    values, begin = front_matter(text)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert (values == {}) == (begin == 0)
