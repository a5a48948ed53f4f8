"""Which questions ask how something was, and which only look like it."""

from __future__ import annotations

import pytest

from recallite.text.questions import Past, recognise

FORMER, FIRST = Past("former"), Past("first")
PAST = {
    "where did I live before": FORMER,
    "Where did Dana work before that?": FORMER,
    "what was my old address?": FORMER,
    "Which of my old passwords had a dash?": FORMER,
    "Who was Dana's previous employer?": FORMER,
    "What was the most recent previous price?": FORMER,
    "Where did I used to work?": FORMER,
    "What did Anna use to drink?": FORMER,
    "Which bank used to hold my mortgage": FORMER,
    "What was the price previously?": FORMER,
    "Which editor did we formerly recommend?": FORMER,
    "What was the limit in the past?": FORMER,
    "Which cloud did we migrate away from?": FORMER,
    "What did the new contract replace?": FORMER,
    "What was my first job?": FIRST,
    "where did I originally live?": FIRST,
    "What was the original deadline?": FIRST,
    "Which colour did Bob choose at first?": FIRST,
    "the history of my addresses": FIRST,
    "Where did I live before Bergen?": Past("before", "Bergen"),
    "Where did Dana live before she moved to Bergen?": Past("before", "she moved to Bergen"),
    "what was the deadline prior to the merger, in days?": Past("before", "the merger, in days"),
}
OTHERS = (
    "",
    "Where do I live?",
    "Where do I currently keep my old sneakers?",
    "Where does my old friend live?",
    "How old is Dana?",
    "What is my current job?",
    "What is the original language of the play?",
    "What is my first meeting today?",
    "What should I do before the meeting?",
    "How many days before the party did I buy the cake?",
    "Is Dana used to the weather by now?",
    "What is this tool used to measure?",
    "Which drug is used to treat acne?",
    "What did we say in our previous conversation?",
    "I moved to Bergen before the summer",
    "Have I ever worked with Flask before?",
    "What was said about the price?",
    "Who got the first prize?",
    "What did Anna say last week?",
    "Albendazole is used to treat helminths, and was previously given to children.",
)


@pytest.mark.parametrize("question", PAST)
def test_a_question_about_the_past(question):
    assert recognise(question).past == PAST[question]
    shouted = recognise(question.upper()).past
    assert shouted is not None
    assert shouted.which == PAST[question].which


@pytest.mark.parametrize("question", OTHERS)
def test_other_questions(question):
    assert recognise(question).past is None


def test_a_long_text_is_no_question_about_the_past():
    assert recognise("Where did I live before? " * 20).past is None
