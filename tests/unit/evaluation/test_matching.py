"""Which memory an expected text or id stands for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest


def matched(memory, expected, **fields):
    """The ids that an expected text is taken for, or why there is none."""
    found = memory.review.evaluate([{"question": "apple", "expected": [expected], **fields}], mode="keyword")
    (result,) = found.results
    return [each.id for each in result.expected] or found.not_stored[0].reason


@pytest.mark.parametrize(
    "expected",
    [
        "The apple tree is old",
        "  the APPLE tree\n is old. ",
        '"The apple tree is old"',
        "apple tree",
        "APPLE  TREE is",
        "ree is o",
    ],
)
def test_a_text_or_a_unique_part_of_it(memory, expected):
    tree = memory.remember("The apple tree is old")
    memory.remember("The apple pie is fresh")
    assert matched(memory, expected) == [tree.id]


def test_a_whole_text_goes_before_the_part_of_another(memory):
    short = memory.remember("apple pie")
    memory.remember("apple pie with cream")
    assert matched(memory, "Apple pie.") == [short.id]


def test_a_part_of_several_texts_is_none(memory):
    ids = [memory.remember(f"apple pie number {number}").id for number in range(7)]
    said = matched(memory, "apple pie")
    assert said == f"is part of the text of 7 memories: {', '.join(ids[:5])}, ..."


def test_an_id_or_a_unique_start_or_end_of_it(memory):
    apple = memory.remember("apple")
    memory.remember("pear")
    for expected in (apple.id, apple.id[-8:], apple.id[:-1]):
        assert matched(memory, expected) == [apple.id]
    assert matched(memory, apple.id[:6]).startswith("is part of the id of 2 memories: ")
    assert matched(memory, apple.id[-3:]) == "no memory has this text or id", "too short to mean one"
    assert matched(memory, apple.id[3:-3]) == "no memory has this text or id", "neither the start nor the end"


def test_several_memories_of_one_text_are_one(memory):
    first, second = memory.remember("apple"), memory.remember("Apple", scope="/b")
    found = memory.review.evaluate([{"question": "apple", "expected": ["apple"], "scope": "/b"}])
    assert (found.figures.recall, found.results[0].expected[0].id) == (1.0, second.id)
    found = memory.review.evaluate([{"question": "apple", "expected": ["apple", first.id], "scope": "/c"}])
    assert (found.figures.recall, len(found.results[0].expected)) == (0.0, 1)


def test_two_names_of_one_memory_count_once(memory):
    apple = memory.remember("apple")
    found = memory.review.evaluate([{"question": "apple", "expected": ["apple", apple.id, "pple"]}])
    assert [each.expected for each in found.results[0].expected] == ["apple"]
    assert found.figures.ndcg == 1


def test_what_is_not_stored_is_set_apart_with_what_is_most_similar(memory):
    apple = memory.remember("apple pie with cream")
    found = memory.review.evaluate([
        {"question": "apple", "expected": ["apple pie with cinnamon", "apple pie with cream"]},
        {"question": "plum", "expected": ["plum cake"], "id": "plum"},
    ])  # fmt: skip
    assert found.counted == 1
    assert found.figures.recall == 1
    first, second = found.not_stored
    assert (first.question, first.expected, first.nearest) == ("1", "apple pie with cinnamon", apple.id)
    assert first.nearest_text == "apple pie with cream"
    assert (second.question, second.reason, second.nearest) == ("plum", "no memory has this text or id", None)
    assert found.results[1].figures is None


def test_an_expired_memory_is_in_the_store_and_hidden(memory):
    memory.remember("apple", created_at="2020-01-01T00:00:00Z", expires_at="2021-01-01T00:00:00Z")
    found = memory.review.evaluate([{"question": "apple", "expected": ["apple"]}])
    (lost,) = found.results[0].expected
    assert (lost.stage, lost.confidence) == ("filter", None)
    assert "expired" in lost.reason
    assert found.not_stored == ()


def test_a_text_of_the_time_that_is_asked_about(memory):
    kept = memory.remember("apple pie")
    then = datetime.now(UTC).isoformat()
    memory.update(kept.id, text="plum cake")
    assert matched(memory, "apple pie") == "no memory has this text or id"
    assert matched(memory, "apple pie", as_of=then) == [kept.id]
    assert memory.review.evaluate([{"question": "apple", "expected": ["apple pie"]}], as_of=then).figures.recall == 1


def test_a_handle_matches_what_it_sees(memory):
    inside = memory.remember("apple", scope="/a/b")
    memory.remember("apple", scope="/ab")
    memory.remember("apple pie", scope="/z")
    handle = memory.scoped("/a")
    assert matched(handle, "apple") == [inside.id]
    assert matched(handle, "apple pie") == "no memory has this text or id"
    assert handle.review.evaluate([{"question": "apple", "expected": ["apple"], "scope": "/b"}]).figures.recall == 1
