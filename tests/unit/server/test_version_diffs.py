"""What each version changed: the parts make both texts again, and no pair of texts takes long."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite import Memory
from recallite_server import timeline
from recallite_server.timeline import text_diff, version_diffs
from tests.conftest import PLAIN

_WORDS = st.text(alphabet="ab \n.é\U0001f600_", max_size=60)


def side(parts, left_out):
    return "".join(text for operation, text in parts if operation != left_out)


def check(old, new):
    parts = text_diff(old, new)
    assert side(parts, "insert") == old
    assert side(parts, "delete") == new
    assert all(text for _, text in parts)
    assert all(one[0] != other[0] for one, other in pairwise(parts))
    return parts


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_parts_of_any_texts_make_both_again(old, new):
    check(old, new)


@given(_WORDS, _WORDS, _WORDS, _WORDS)
def test_the_parts_of_texts_alike_make_both_again(begin, old, new, end):
    check(begin + old + end, begin + new + end)


@given(_WORDS, _WORDS, st.integers(0, 6), st.integers(0, 6))
def test_with_any_bound(old, new, words, lines):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(timeline, "_MOST_WORDS", words)
        patched.setattr(timeline, "_MOST_LINES", lines)
        check(old, new)


def test_words_are_compared():
    assert text_diff("I live in Paris, France", "I live in Berlin, Germany now") == [
        ("equal", "I live in "), ("delete", "Paris"), ("insert", "Berlin"), ("equal", ","), ("delete", " France"),
        ("insert", " Germany now"),
    ]  # fmt: skip
    assert text_diff("the same", "the same") == [("equal", "the same")]
    assert text_diff("", "new") == [("insert", "new")]
    assert text_diff("old", "") == [("delete", "old")]
    assert text_diff("", "") == []


def test_no_word_is_divided():
    assert text_diff("painting", "painted") == [("delete", "painting"), ("insert", "painted")]
    assert text_diff("unhappy", "happy") == [("delete", "unhappy"), ("insert", "happy")]
    assert text_diff("on 2024-01-05", "on 2024-01-15") == [
        ("equal", "on 2024-01-"), ("delete", "05"), ("insert", "15"),
    ]  # fmt: skip


def test_long_texts_are_compared_by_lines():
    old = [f"line {number} of a long text" for number in range(900)]
    new = ["first", *old[:-1], "last"]
    new[450] = "another"
    parts = check("\n".join(old), "\n".join(new))
    assert ("delete", "line 449 of a long text\n") in parts
    assert ("insert", "another\n") in parts


def test_very_long_texts_are_replaced_as_a_whole():
    old, new = "\n".join(map(str, range(5_000))), "\n".join(map(str, range(10_000, 15_000)))
    assert check(old, new) == [("delete", old), ("insert", new)]


def test_a_change_within_a_very_long_text_is_found_by_words():
    words = [f"word{number}" for number in range(50_000)]
    changed = [*words[:25_000], "another", *words[25_001:]]
    assert check(" ".join(words), " ".join(changed))[1:3] == [("delete", "word25000"), ("insert", "another")]


def test_the_versions_of_a_memory():
    with Memory(":memory:", settings=PLAIN) as memory:
        id = memory.remember("Ada lives in Paris").id
        memory.update(id, text="Ada lives in Berlin")
        memory.update(id, text="Ada moved to Berlin")
        history = memory.history(id)
        found = version_diffs(history)
        assert version_diffs(history[:1]) == version_diffs([]) == []
    assert [(each.from_, each.to) for each in found] == [
        (history[0].recorded_from, history[1].recorded_from), (history[1].recorded_from, history[2].recorded_from),
    ]  # fmt: skip
    said = found[1].to_dict()
    assert set(said) == {"from", "to", "parts"}
    assert said["parts"] == [
        ["equal", "Ada "], ["delete", "lives in"], ["insert", "moved to"], ["equal", " Berlin"],
    ]  # fmt: skip
