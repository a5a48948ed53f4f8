"""Items of JSON arrays of any size."""

from __future__ import annotations

import io
import json
import random

import pytest

from recallite.errors import InvalidInput
from recallite_connect.importers.reading import array_items, begins_array, json_value

LEAVES = ['a"b\\', "\\", "[", "}{", ",", "", "é\n", '\\"', 1, None, True, 1.5]


def _value(rng, depth=0):
    kind = rng.random()
    if depth > 4 or kind < 0.4:
        return rng.choice(LEAVES)
    if kind < 0.7:
        return [_value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return {rng.choice(["results", "a", "]"]): _value(rng, depth + 1) for _ in range(rng.randint(0, 3))}


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 50, 1 << 20])
def test_items_are_those_of_the_whole_array(block_bytes, monkeypatch):
    monkeypatch.setattr("recallite_connect.importers.reading._BLOCK_BYTES", block_bytes)
    rng = random.Random(block_bytes)
    for case in range(150):
        values = [_value(rng) for _ in range(rng.randint(0, 5))]
        text = json.dumps(values, indent=2 if case % 2 else None, ensure_ascii=bool(case % 3))
        items = list(array_items(io.BytesIO(text.encode())))
        assert [json_value(item.data) for item in items] == values
        assert [item.number for item in items] == list(range(1, len(values) + 1))
        for item in items:
            assert text.split("\n")[item.line - 1].encode().find(item.data.split(b"\n")[0]) >= 0
        within = json.dumps({"a": [1, [2]], "b": {"results": [3]}, "results": values, "z": values}).encode()
        assert [json_value(item.data) for item in array_items(io.BytesIO(within), ["results"])] == values


def test_an_array_that_is_cut_off_says_so_and_keeps_what_is_whole():
    *whole, last = array_items(io.BytesIO(b'[1,\n{"a": 2}, {"a'))
    assert [item.data for item in whole] == [b"1", b'{"a": 2}']
    assert (last.number, last.line, last.data, last.problem) == (3, 2, b"", "the file ends before the array does")


def test_an_item_that_is_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr("recallite_connect.importers.reading._MAX_ITEM_BYTES", 100)
    monkeypatch.setattr("recallite_connect.importers.reading._BLOCK_BYTES", 16)
    first, second = array_items(io.BytesIO(json.dumps(["a" * 1000, "b"]).encode()))
    assert (first.data, first.problem) == (b"", "it has more than 100 bytes")
    assert (second.data, second.problem) == (b'"b"', None)


def test_deep_nesting_takes_no_memory():
    (only,) = array_items(io.BytesIO(b"[" * 100_000))
    assert only.problem == "the file ends before the array does"


def test_values_that_strict_readers_refuse():
    assert json_value(b'"\\ud83d"') == "\ud83d"
    assert json_value(b'"a\xff"') == "a\ufffd"
    with pytest.raises(InvalidInput, match="is not JSON"):
        json_value(b"[" * 100_000)
    with pytest.raises(InvalidInput, match="is not JSON"):
        json_value(b"{a: 1}")


def test_whether_a_file_is_one_array():
    assert begins_array(b"\xef\xbb\xbf\n [{")
    assert not begins_array(b'{"a": []}')
