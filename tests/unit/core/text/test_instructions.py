"""Two instructions: which a later one replaces, which it may contradict, and which hold beside it."""

from __future__ import annotations

import pytest

from recallite.text.statements import judge, statement_of
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.keys import record_keys

REPLACED = (
    ("Always write to me in Swedish", "Please reply in Finnish from now on"),
    ("Call me Doc", "From now on call me Nora"),
    ("Always write amounts as integers", "From here on, write amounts as decimals"),
    ("Never add footnotes", "Always add footnotes"),
    ("Always quote the law", "You no longer need to quote the law"),
    ("Don't reorder the imports", "You may reorder the imports again"),
    ("Always check spelling before sending, please", "Don't check spelling before sending, the editor does"),
    ("Indent with 8 spaces from now on", "Always indent with 3 spaces"),
    ("Always use felt tips for posters", "Use crayons instead of felt tips for posters from now on"),
    ("Every time I log a run, add it to the chart", "Every time I log a run, don't add it to the chart"),
)
OPEN = (
    ("Always use crayons for posters", "Use markers for posters from now on"),
    ("Always keep replies brief", "Keep replies thorough from now on"),
    ("Always send the minutes to Rosa", "Always send the minutes to Ivan"),
    ("Always put the legend at the left", "From now on put the legend at the bottom"),
    ("Please fix the fence. Never add footnotes", "Always add footnotes"),
)
LIMITED = (
    ("Always write to me in Swedish", "For this book, always write to me in Finnish"),
    ("Never add footnotes", "Never add footnotes without a source"),
    ("Always quote the law", "Don't quote the law in letters to children"),
    ("Call me Doc", "In front of patients, always call me Dr. Sand"),
)
BESIDE = (
    ("Always write to me in Swedish", "Always write to me in short sentences"),
    ("Never use crayons", "Always use markers"),
    ("Never use crayons", "Never use chalk"),
    ("Always add footnotes to essays", "Always add footnotes to articles"),
    ("Always include page 3", "Always include page 9"),
    ("Always check spelling before sending", "Always check links before sending"),
    ("Call me Doc", "Never call me on Sundays"),
    ("Always write tests for readers", "Always write examples for readers"),
)


def verdict(old: str, new: str, *, later: bool = True, by: tuple[str | None, str | None] = (None, None)) -> str:
    return judge(statement_of(new, by[1]), statement_of(old, by[0]), later=later).outcome


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_later_instruction_replaces_what_it_plainly_reverses_or_gives_another_value(old, new):
    assert verdict(old, new) == "supersedes"
    assert verdict(old, new, later=False) == "contradicts"
    assert verdict(old, new, by=("Ana", "Ben")) == "contradicts"


@pytest.mark.parametrize(("old", "new"), OPEN)
def test_one_that_may_leave_room_for_the_earlier_contradicts_it(old, new):
    assert verdict(old, new) == "contradicts"


@pytest.mark.parametrize(("old", "new"), LIMITED)
def test_an_exception_or_a_narrower_case_replaces_nothing(old, new):
    assert verdict(old, new) in ("contradicts", "independent")


@pytest.mark.parametrize(("old", "new"), [*BESIDE, *(pair[::-1] for pair in BESIDE)])
def test_instructions_about_two_things_hold_beside_each_other(old, new):
    assert verdict(old, new) == "independent"


@pytest.mark.parametrize(("old", "new"), [*REPLACED, *OPEN])
def test_instructions_about_one_thing_find_each_other(old, new):
    assert set(record_keys(old, None).stored) & set(record_keys(new, None).sought)


@pytest.mark.parametrize(
    "text",
    [
        "I never write in Swedish", "The server never restarts by itself", "Write this one in Finnish", "Never mind",
        "Don't deploy today", "Should I always write in Finnish?", "From now on the office is in Turku",
    ],
)  # fmt: skip
def test_habits_facts_questions_and_wishes_for_once_are_no_instructions(text):
    assert instructions_of(text) == ()
