"""Which questions ask for a whole story, and for which topic. Negatives are questions that look like one."""

from __future__ import annotations

import pytest

from recallite.text.questions import Story, recognise

STORIES = {
    "In what order did I bring up my hobbies?": Story("my hobbies", True),
    "Can you list the order in which I brought up different aspects of my garden throughout our conversations, in "
    "order? Mention ONLY and ONLY five items.": Story("my garden", True),
    "Can you list in order how I mentioned the trips?": Story("the trips", True),
    "Summarise how my project developed.": Story("my project", False),
    "Could you please give me a detailed summary of how the kitchen renovation has progressed over the past few "
    "months?": Story("the kitchen renovation", False),
    "Summarize everything we've discussed about taxes": Story("about taxes", False),
    "How did my plans for the wedding change over time?": Story("my plans for the wedding", False),
    "How has my running evolved since I started?": Story("my running", False),
    "Tell me the whole story of the flat in Porto": Story("the flat in Porto", False),
    "What is the timeline of the merger?": Story("What is the merger", False),
    "Walk me through my job search from the beginning to now": Story("my job search now", False),
    "Trace how Maria's health developed": Story("Maria's health", False),
    "in which order were the rooms painted": Story("the rooms painted", False),
}
OTHERS = (
    "",
    "What did I order at the restaurant?",
    "In what order should I install the drivers?",
    "Is my desk in order?",
    "Did the order arrive in one piece?",
    "Summarize the e-mail from Bob",
    "What is in the summary of the report?",
    "How do I change a tyre?",
    "How did Caroline change her hair colour?",
    "What changed in version 3?",
    "How did you recommend that I track progress throughout the week?",
    "When did the project start?",
    "Who developed the theory of relativity?",
    "Walk me through the installation",
    "What is the history of Lisbon?",
    "Where did we talk about the budget?",
    "I have progressed to the second level",
    "Over time I forgot the password, what is it?",
)


@pytest.mark.parametrize("question", STORIES)
def test_a_question_about_a_whole_story_is_its_topic(question):
    assert recognise(question).story == STORIES[question]
    assert recognise(question.upper()).story == STORIES[question]._replace(
        topic=recognise(question.upper()).story.topic
    )


@pytest.mark.parametrize("question", OTHERS)
def test_other_questions_are_left_as_they_are(question):
    assert recognise(question).story is None


def test_a_question_that_is_all_frame_is_its_own_topic():
    assert recognise("In what order did we?").story == Story("In what order did we?", False)


def test_a_long_request_is_no_question_about_a_story():
    assert recognise("In what order did I bring up my hobbies? " + "And then there was more. " * 30).story is None


@pytest.mark.parametrize("question", ["GIVE ME A SUMMARY OF MY WORK SO FAR", "Give me a ſummary of my work so far"])
def test_the_case_of_letters_does_not_matter(question):
    assert recognise(question).story is not None
