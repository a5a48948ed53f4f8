"""Which questions describe something by something else."""

from __future__ import annotations

import pytest

from recallite.text.questions import recognise

STEPS = (
    "Where was the author of Dune born?",
    "What is the country of citizenship of the spouse of the author of Our Mutual Friend?",
    "Which country is the birthplace of the sport associated with Steve Sax?",
    "Who founded the religion that Clemens August followed?",
    "In which city does the head of the design team live?",
)
OTHERS = (
    "",
    "What is the capital of France?",
    "Who is the author of Dune?",
    "Where do I live?",
    "Where is the key of my boat?",
    "What did Maria say at the meeting?",
    "The author of Dune was born in the city of Tacoma.",
    "Summarise the history of the project of the new team",
)


@pytest.mark.parametrize("question", STEPS)
def test_a_question_of_several_steps(question):
    assert recognise(question).steps


@pytest.mark.parametrize("question", OTHERS)
def test_other_questions(question):
    assert not recognise(question).steps


def test_a_long_text_is_not_followed():
    assert not recognise(f"Where was the author of Dune {'very ' * 50}born?").steps
