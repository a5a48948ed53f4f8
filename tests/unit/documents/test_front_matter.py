"""The block of values at the head of a Markdown file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite_documents.front_matter import front_matter, properties_text
from tests.limits import examples


def test_values_are_those_of_json_and_dates_stay_as_written():
    text = (
        "---\ntitle: A note\ndate: 2026-01-02\nat: 12:30\nno: no\ncount: 3\nratio: 0.5\nzip: 007\ndraft: true\n"
        "tags: [a, b]\nauthor: {name: J, 1: x}\nfar: 1.5e+30\nempty:\n---\n# Body\n"
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
        "far": 1.5e30,
        "empty": None,
    }
    assert text[begin:] == "# Body\n"


def test_tags_that_yaml_takes_for_a_comment_are_kept():
    text = "---\ntags: #boat #sea\nlist:\n  - #one\n  - two\ndraft: # set it before July\ntext: |\n  a: #b\n---\n"
    for written in (text, text.replace("\n", "\r\n")):
        values, _ = front_matter(written)
        assert values == {"tags": "#boat #sea", "list": ["#one", "two"], "draft": None, "text": "a: #b\n"}


def test_front_matter_of_toml():
    text = (
        '+++\n# Hugo\ntitle = "A note"\ndate = 2026-01-02\nat = 2026-01-02T10:00:00Z\ntags = ["a", "b"]\nlimit = inf\n'
        "large = 99999999999999999999\n[extra]\nratio = 0.5\n+++\n# Body\n"
    )
    values, begin = front_matter(text)
    assert values == {
        "title": "A note", "date": "2026-01-02", "at": "2026-01-02 10:00:00+00:00", "tags": ["a", "b"], "limit": "inf",
        "large": "99999999999999999999", "extra": {"ratio": 0.5},
    }  # fmt: skip
    assert text[begin:] == "# Body\n"


def test_one_bad_value_of_toml_leaves_the_others():
    values, begin = front_matter('+++\ntitle = "A note"\ndate = 2026-1-2\ntags = ["a"]\n+++\nBody')
    assert (values, begin) == ({"title": "A note", "date": "2026-1-2", "tags": ["a"]}, 54)


@pytest.mark.parametrize("text", ["+++\nA rule of pluses\n+++\n", "+++\na = 1\n", "+++\na: 1\n---\n"])
def test_what_is_no_front_matter_of_toml(text):
    assert front_matter(text) == ({}, 0)


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
        "---\nNote: a rule stands above this line,\nand another one below it\n---\n",
        "---\na: " + "[" * 100_000 + "\n---\n",
        "---\na: " + "x" * 70_000 + "\n---\n",
        "---\na: b\n? [c]\n: d\n---\n",
        "---\n" + "# " * 30_000 + "\n---\n",
        "---\n" + "- " * 30_000 + "\n---\n",
    ],
    ids=range(13),
)
def test_what_cannot_be_used_stays_in_the_body(text):
    assert front_matter(text) == ({}, 0)


@pytest.mark.parametrize(
    ("bad", "value"),
    [("subtitle: Lamps: a history", "Lamps: a history"), ("by: @mira", "@mira"), ("stars: ***", "***"),
     ("parent: {{folder}}", "{{folder}}"), ('motto: "no end', '"no end'), ("cost: %5", "%5"), ("see: `code`", "`code`"),
     ("status: [Draft] second part", "[Draft] second part"), ("list: [a, b", "[a, b"), ("k: {a: b", "{a: b"),
     ("quote: 'a' and b", "'a' and b"), ("deep: " + "[" * 20 + "]" * 20, "[" * 20 + "]" * 20),
     ("words: one\ntwo at the margin", "one two at the margin"), ("items:\n  - one: two\n  - 'x", "- one: two - 'x")],
)  # fmt: skip
@pytest.mark.parametrize("order", ["{bad}\n{good}", "{good}\n{bad}"], ids=["first", "last"])
def test_a_property_that_cannot_be_read_is_its_text_and_spoils_no_other(bad, value, order):
    good = "tags:\n- a\n- b\nwhen: 2026-01-02"
    values, begin = front_matter("---\n" + order.format(bad=bad, good=good) + "\n---\nBody")
    assert values == {bad.partition(":")[0]: value, "tags": ["a", "b"], "when": "2026-01-02"}
    assert begin > 0


@pytest.mark.parametrize(
    "value",
    ["!!timestamp zz", "!!bool zz", "!!int ''", "!!float 1:1:.", "!!float " + "1:" * 400, "!!float .inf",
     "!!binary aGk=", "!!set {b}", "!own b", "! b", "!!str b", "!!map [b]", "[!!int '']", "*x",
     "{!!bool zz: b}", "!!python/name:os.system", "!!python/object/apply:os.system ['true']", "{a: " * 5_000],
)  # fmt: skip
def test_values_with_tags_aliases_or_deep_nesting_are_their_text(value):
    """The YAML library raises AttributeError, KeyError, IndexError and OverflowError for some of them."""
    assert front_matter(f"---\na: {value}\nb: 1\n---\n")[0] == {"a": value.strip(), "b": 1}


def test_a_mark_of_exclamation_is_no_tag():
    assert front_matter("---\na: Hello!\nb: '!x'\n---\n")[0] == {"a": "Hello!", "b": "!x"}


@pytest.mark.parametrize("fault", [AttributeError, RecursionError, OverflowError])
def test_whatever_the_library_raises_leaves_the_text_of_the_values(monkeypatch, fault):
    def fail(*arguments):
        raise fault

    monkeypatch.setattr("yaml.load", fail)
    assert front_matter("---\na: b\n---\n")[0] == {"a": "b"}


def test_properties_as_text_name_what_links_show_and_leave_out_what_says_nothing():
    values = {
        "with": ["[[Mira Holm|Mira]]", None],
        "at": {"city": "Bergen", "floor": 2},
        "paid": True,
        "x": None,
        "y": "--",
    }
    assert properties_text(values, without={"paid"}) == "with: Mira; at: city Bergen, floor 2"
    assert properties_text({"a": "two\n lines", "Paid": False}, without={"b"}) == "a: two lines; Paid: false"
    assert properties_text({"x": "", "y": []}) == ""


def test_the_closing_line_at_the_very_end():
    assert front_matter("---\ntitle: A\n---") == ({"title": "A"}, len("---\ntitle: A\n---"))


@settings(derandomize=True, max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,?. \n\t1é汉~0e+"), max_size=60))
def test_any_block_gives_values_that_json_holds_or_none(inner):
    text = f"---\nkey: 1\n{inner}\n---\nbody"
    values, begin = front_matter(text)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert (values == {}) == (begin == 0)
