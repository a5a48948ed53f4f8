"""Questions as they are read: lines, streams and dicts, and what is wrong with them."""

from __future__ import annotations

import io
import json

import pytest

from recallite.errors import InvalidInput
from recallite.model.filters import FilterFields
from recallite_eval.evaluate import read_questions
from tests.raising import raises

GOOD = {"question": "Which fruit?", "expected": ["apple"]}


def read(source):
    return read_questions(source, ":memory:")


def lines(*entries):
    return io.StringIO("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in entries))


def test_a_line_is_a_question(tmp_path):
    file = tmp_path / "q.jsonl"
    entries = [GOOD, "", "   ", {**GOOD, "id": "fruit", "scope": "/a", "tags": None}, {**GOOD, "expected": []}]
    file.write_text("\ufeff" + lines(*entries).getvalue().replace("\n", "\r\n"), encoding="utf-8")
    for source in (file, str(file), io.StringIO(file.read_text("utf-8"))):
        first, second, third = read(source)
        assert (first.id, first.text, first.expected, first.fields) == ("1", "Which fruit?", ("apple",), {})
        assert (second.id, second.fields, second.place) == ("fruit", {"scope": "/a"}, "line 4")
        assert (third.id, third.expected) == ("5", ())


def test_a_dict_is_a_question():
    first, second = read([GOOD, {**GOOD, "id": 7, "expected": ("a", "b", "a")}])
    assert (first.id, second.id, second.expected) == ("1", "7", ("a", "b"))
    assert [each.text for each in read(iter([GOOD]))] == ["Which fruit?"]


def test_a_question_takes_every_field_of_a_filter():
    given = dict.fromkeys(FilterFields.__annotations__, "x")
    assert read([{**GOOD, **given}])[0].fields == given


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{", "line 2: '{' is not JSON"),
        ("[1]", "line 2: [1] is no question: write {"),
        ('"text"', "line 2: 'text' is no question"),
        ({"question": "x"}, "line 2: expected is missing"),
        ({"expected": ["x"]}, "line 2: question is missing"),
        ({**GOOD, "question": 7}, "line 2: question is 7: give a str"),
        ({**GOOD, "question": " "}, "line 2: the question is blank"),
        ({**GOOD, "expected": "apple"}, "line 2: expected is 'apple': give a list of texts or ids"),
        ({**GOOD, "expected": [7]}, "line 2: expected is [7]: give a list of texts or ids"),
        ({**GOOD, "expected": [""]}, "line 2: expected holds ''"),
        ({**GOOD, "expect": []}, "line 2: unknown field 'expect': use question, expected, id, scope, "),
        ({**GOOD, "id": "1"}, "line 2: the id '1' is that of line 1 too"),
        ({**GOOD, "id": [1]}, "line 2: id is [1]: give a str"),
        ({**GOOD, "question": "x" * 100_001}, "line 2: question has 100,001 characters"),
        ("x" * 1_000_001, "line 2: the line has more than 1,000,000 characters"),
        ('{"question": "\\ud800", "expected": []}', "line 2: "),
    ],
)
def test_an_error_names_the_line(entry, said):
    with pytest.raises(InvalidInput) as raised:
        read(lines(GOOD, entry))
    assert str(raised.value).startswith(said)


def test_a_byte_that_is_not_utf_8_is_named(tmp_path):
    file = tmp_path / "q.jsonl"
    file.write_bytes(lines(GOOD).getvalue().encode() + b'{"question": "\xff"}\n')
    with pytest.raises(InvalidInput, match=r"^line 2: the byte 0xff at character 15 is not UTF-8"):
        read(file)


def test_an_error_of_a_dict_names_its_place():
    with pytest.raises(InvalidInput, match=r"^question 2: expected is missing"):
        read([GOOD, {"question": "x"}])


@pytest.mark.parametrize("source", [{"question": "x"}, 7, None, b"[]"])
def test_what_is_no_list_of_questions_is_refused(source):
    with pytest.raises(InvalidInput):
        read(source)


@pytest.mark.parametrize("source", [[], io.StringIO("\n\n")])
def test_no_question_is_an_error(source):
    with pytest.raises(InvalidInput, match="there is no question in the input"):
        read(source)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.jsonl cannot be read"):
        read(tmp_path / "none.jsonl")


def test_a_bad_filter_names_its_line_before_anything_is_asked(memory):
    memory.remember("apple")
    with raises(InvalidInput, "filter", match=r"^line 2: where.colour: unknown field 'colour'"):
        memory.review.evaluate(lines(GOOD, {**GOOD, "where": {"colour": "red"}}))
    with pytest.raises(InvalidInput, match=r"^line 1: since 'long ago' is not a time"):
        memory.review.evaluate(lines({**GOOD, "since": "long ago"}))
