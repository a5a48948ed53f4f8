from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recallite.text.words import content_hash
from tests.limits import examples

properties = settings(derandomize=True, max_examples=examples(200), deadline=None)


def test_a_hash_is_sixteen_bytes_and_stable() -> None:
    assert content_hash("hello").hex() == "a7b6eda801e5347d76a4e36695fd0838"
    assert content_hash("héllo", "Caroline").hex() == "135dd36ec231afcbb5a70dafc40ffd20"


def test_encodings_of_one_text_are_equal() -> None:
    assert content_hash("caf\u00e9", "No\u00ebl") == content_hash("cafe\u0301", "Noe\u0308l")
    assert content_hash("text") == content_hash("text", None) == content_hash("text", "")


def test_case_spaces_and_the_border_of_context_count() -> None:
    texts = [
        ("ab", "c"),
        ("b", "ca"),
        ("cab", ""),
        ("Cab", ""),
        ("cab ", ""),
        ("ca", "b"),
        ("b", "ac"),
        ("", "cab"),
    ]
    assert len({content_hash(text, context) for text, context in texts}) == len(texts)


@given(st.text(st.characters()), st.none() | st.text(st.characters()))
@properties
def test_no_text_is_refused(text: str, context: str | None) -> None:
    assert len(content_hash(text, context)) == 16
