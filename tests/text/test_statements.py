"""Statements: what a later text replaces."""

from __future__ import annotations

from recollect.text.statements import frames_of, judge, keys_of, statement_of


def test_the_same_statement_with_another_value_supersedes() -> None:
    old = statement_of("The headquarters of Arup is located in the city of London.", None)
    new = statement_of("The headquarters of Arup is located in the city of Leeds.", None)
    assert judge(new, old, cosine=None, later=True).outcome == "supersedes"
    assert judge(new, new, cosine=None, later=True).outcome == "same"
    assert set(keys_of(new)) & set(keys_of(old))
    (frame, value), (other_frame, other_value) = frames_of(new)[0], frames_of(old)[0]
    assert frame == other_frame
    assert value != other_value
