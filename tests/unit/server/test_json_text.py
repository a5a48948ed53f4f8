"""A JSON text is changed where its value changes, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite_server.mcp.hosts import changed, without_extras

VALUES = st.recursive(
    st.sampled_from([1, 2.5, None, True, "x", 'ä " \n', "a,}", "// no", "/* no */"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
ENTRY = {"command": "x", "args": ["a", {"b": 1}]}


def spelt(value, draw, indent, line, base=""):
    """The text of a value, each object and list on one line or on several."""
    if not isinstance(value, list | dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    items = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    alone = draw(st.booleans())
    inner = base if alone else base + indent
    gap = "" if alone else line + inner
    colon = draw(st.sampled_from([":", ": ", " : "]))
    texts = [
        (f"{json.dumps(name)}{colon}" if name is not None else "") + spelt(item, draw, indent, line, inner)
        for name, item in items
    ]
    ends = "{}" if isinstance(value, dict) else "[]"
    return (
        ends[0]
        + gap
        + ("," + (gap or draw(st.sampled_from(["", " "])))).join(texts)
        + gap[: -len(indent) or None] * (not alone)
        + ends[1]
    )


@given(OBJECTS, st.data(), st.sampled_from(["  ", "    ", "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_what_is_put_in_and_taken_out_leaves_no_trace(value, data, indent, line):
    text = spelt(value, data.draw, indent, line) + data.draw(st.sampled_from(["", line]))
    assert json.loads(text) == value
    wanted = {**value, "servers": {"ours": ENTRY}}
    for name, each in value.items():
        if isinstance(each, list):
            wanted[name] = [*each, ENTRY]
    put_in = changed(text, wanted)
    assert json.loads(put_in) == wanted
    assert changed(put_in, value) == text


@given(OBJECTS, OBJECTS, st.data())
def test_a_text_can_become_any_other_object(one, other, data):
    text = spelt(one, data.draw, "  ", "\n")
    assert json.loads(changed(text, other)) == other


@given(VALUES)
def test_what_some_hosts_allow_is_read(value):
    text = json.dumps({"a": value, "b": [1, 2]}, indent=1)
    extras = text.replace("{\n", '{ // a, "b"\n', 1).replace("\n]\n", ",\n /* } */ ]\n") + " /* the end */ // ."
    assert json.loads(without_extras(extras)) == {"a": value, "b": [1, 2]}


def test_a_name_that_comes_twice_is_changed_where_it_counts():
    assert changed('{"a": 1, "a": {"b": 2}}', {"a": {"b": 3}}) == '{"a": 1, "a": {"b": 3}}'
    assert json.loads(changed('{"a": 1, "b": 0, "a": 2}', {"b": 0})) == {"b": 0}


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "[1 2]", '{"a": 1,}'])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError):
        changed(text, {"a": 2})
