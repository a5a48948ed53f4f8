"""Any text is parsed and compared, whatever words it begins and ends with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recallite.text.statements import frames_of, judge, keys_of, statement_of
from recallite.text.statements import statement_words as reading
from recallite.text.statements.keys import outline_of_statement
from recallite.text.words import normalized

# What rules ask about their neighbours: each of these can be first, last, alone and twice.
_WORDS = """
    I you my Dana Oslo Dana's he they it the a some lives live lived is are was am be been not no never n't don't won't
    no longer any more anymore still now yet already instead of from to at in on for since until about by with as left
    left moved moving switched cancelled changed called named renamed sold bought quit stopped started back over out up
    off has have had will would can must should and but or so because if who that which 3 42 50% 2019 May Tuesday 9:30
    v2 10k $5 . , ; : ! ? - ( ) " ' / # @ 's today yesterday married likes speaks owns old new two both one
"""
texts = st.one_of(st.lists(st.sampled_from(_WORDS.split()), max_size=14).map(" ".join), st.text(max_size=60))
contexts = st.none() | st.sampled_from(["Dana", "user", "doc: README", "", "@"])


@given(new=texts, old=texts, context=contexts, other=contexts)
def test_any_two_texts_are_parsed_and_judged(new: str, old: str, context: str | None, other: str | None) -> None:
    parsed, former = statement_of(new, context), statement_of(old, other)
    assert 0.0 <= judge(parsed, former, later=True).confidence <= 1.0
    assert all(-(2**63) <= key < 2**63 for key in keys_of(parsed))
    assert all(0 <= part < 2**32 for frame in frames_of(parsed) for part in frame)


_VERBS = """
    is are my The code boss city Dana I it we number of in by with to into until from said says made fixed put replaced
    rebuilt handed rebooked scheduled founded works joined won wrote took turned gave painted resolved , . : not instead
    and one blue Friday 9:30 3 that Rome repository public back over now married sold use
"""
sentences = st.lists(st.sampled_from(_VERBS.split()), min_size=3, max_size=9).map(" ".join)


@given(new=sentences, old=sentences, by=contexts)
def test_outlines_tell_only_independent_statements_apart(new: str, old: str, by: str | None) -> None:
    one, other = statement_of(new, by), statement_of(old)
    if not outline_of_statement(one).newer & outline_of_statement(other).older:
        assert judge(one, other, later=True).outcome == "independent"


def test_an_object_with_half_of_a_surrogate_pair_is_read_as_any_text() -> None:
    assert statement_of('{"port": "\ud800"}').clauses == statement_of(' "port": "\ud800"').clauses


def test_a_text_may_end_where_the_rules_would_look_further() -> None:
    assert statement_of("I finished the practice that I told you about", "Ada") is not None


@given(text=texts | st.text(alphabet="aAJ. ,;:'()$#@/_+-12mpé\t½“”", max_size=30))
def test_a_text_read_piece_by_piece_has_the_words_of_the_whole(text: str) -> None:
    plain = text if text.isascii() else normalized("NFKC", text)
    for mark, ascii_mark in zip("’‘“”", "''\"\"", strict=True):
        plain = plain.replace(mark, ascii_mark)
    tokens = reading._TOKEN.findall(plain)
    assert reading.read_words(text) == reading._join([word for token in tokens for word in reading._CACHE[token]], [])
