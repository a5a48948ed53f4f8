"""The cut of `relevant` reads the first hits beside the question, with the bundled reader."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.embedding import onnx
from recallite.embedding.onnx import AnswerReader, load_reader
from recallite.recall import judge
from recallite.recall.confidence import MOST_READ, SURE_IF_READ, load_reading_weights, read_hits

FACTS = [
    "User works at Calder Freight", "User has a cat named Biscuit", "User's mother is called Birthe",
    "The car has done 143,000 km", "User takes tram 16 to the office", "Ebba administers the database",
]  # fmt: skip


class Text:
    def __init__(self, text: str, context: str | None = None) -> None:
        self.text, self.context = text, context


@pytest.fixture(scope="module")
def reader() -> AnswerReader:
    loaded = load_reader()
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def facts():
    with Memory(":memory:") as memory:
        memory.remember_many(FACTS)
        yield memory


def test_what_answers_has_a_higher_logit_than_its_neighbours(reader):
    for question, answer, neighbours in (
        ("What is the name of the user's cat?", "User has a cat named Biscuit", ["User feeds the cat at seven"]),
        (
            "Who is the user's dentist?",
            "User's dentist is Dr. Holm",
            ["User sees the dentist in May", "Dr. Aas is a vet"],
        ),
        ("What instrument does Ada play?", "Ada: I play the viola.", ["Ben: I play the viola.", "Ben: Do you play?"]),
    ):
        best, *others = reader.answers(question, [answer, *neighbours])
        assert best > max(others)


def test_a_text_beside_others_is_read_as_it_is_alone(reader):
    question = "Where does the user work?"
    assert reader.answers(question, FACTS) == [reader.answers(question, [fact])[0] for fact in FACTS]


def test_marks_of_the_tokenizer_within_a_text_part_nothing(reader):
    assert reader.answers("Where [SEP] to?", ["To [SEP] Rome"]) == reader.answers("Where to?", ["To Rome"])


def test_of_a_long_text_the_passage_with_the_words_of_the_question_is_read(reader):
    story = "The sea was calm and the crew told old tales. " * 12
    question, embedder = "Where does the user work?", load_reading_weights().embedder
    assert reader.answers(question, [story])[0] is None
    for text in (f"{story}{FACTS[0]}. {story}", f"{story}{FACTS[0]}."):
        records = {7: Text(text), 8: Text(story)}
        answers, other = read_hits(question, [7, 8], [0.5, 0.5], records, embedder)
        assert answers > 0.5 > other


@pytest.mark.parametrize(
    ("filler", "fact"),
    [
        ("今日は海がとても静かで、船員たちは古い物語を語った。", "User は Calder Freight で働いています。"),
        ("大海很平静，船员们讲着古老的故事。", "User 在 Calder Freight 工作。"),
        ("Море было спокойно, и матросы рассказывали старые истории. ", "User работает в Calder Freight. "),
        ("1,204.50 + 33.7 = 1,238.20; ", "User works at Calder Freight; "),
    ],
)
@pytest.mark.parametrize("context", [None, "船员", "The sailors. " * 12])
def test_of_a_long_text_in_any_script_as_much_is_read_as_the_model_reads(reader, monkeypatch, filler, fact, context):
    read = []
    monkeypatch.setattr(AnswerReader, "answers", lambda _, __, texts: read.extend(texts) or [0.0])
    question = "Is the user at Calder Freight?"
    read_hits(
        question, [7], [0.5], {7: Text(filler * 40 + fact + filler * 40, context)}, load_reading_weights().embedder
    )
    monkeypatch.undo()
    (text,) = read
    assert "Calder Freight" in text
    assert text.startswith((context or "").strip())
    assert reader.answers(question, [text]) != [None]


def test_a_text_without_a_token_is_read(reader):
    text = "\u200b" * 100
    assert reader.share_read(text) == 1
    (sure,) = read_hits("Who is it?", [7], [0.5], {7: Text(text)}, load_reading_weights().embedder)
    assert 0 < sure < 1


def test_hits_are_read_only_with_the_embedder_of_the_fit():
    records = {0: Text(FACTS[0])}
    assert (
        read_hits("Where does the user work?", [0, 1], [0.3, 0.3], records, load_reading_weights().embedder)[1] == 0.3
    )
    assert read_hits("Where does the user work?", [0], [0.3], records, "another") == [0.3]


def test_as_many_hits_are_read_as_the_profile_says_and_five_for_what_answers(facts):
    question = "Where does the user work?"
    facts.store.warmup()  # else the first answers may be Python's and later ones of compiled kernels

    def sure(**options):
        return {hit.text: hit.confidence for hit in facts.recall(question, **options)}

    plain, relevant = sure(), sure(relevant=True)
    assert sure(profile={"reading": 0}) == plain != sure(profile={"reading": MOST_READ})
    assert relevant.items() <= sure(profile={"reading": MOST_READ}).items()
    assert sure(relevant=True, profile={"reading": 0}).items() <= plain.items()
    assert sum(plain[text] != read for text, read in sure(profile={"reading": 2}).items()) == 2


@pytest.mark.parametrize(
    "prompt", ["Where does the user work?", "the employer and the cat", "Draft a letter to my employer"]
)
def test_a_prompt_of_any_form_is_read_in_english_alone(facts, monkeypatch, prompt):
    asked = []
    monkeypatch.setattr(judge, "read_hits", lambda question, _keys, before, *_: asked.append(question) or before)
    facts.recall(prompt, relevant=True)
    facts.recall("Wo arbeitet der Benutzer eigentlich?", relevant=True)
    assert asked == [prompt]


def test_the_cut_refuses_what_is_on_the_topic_alone(facts):
    question = "What is the user's salary?"
    assert facts.recall(question, limit=1)[0].confidence > 0.15
    assert facts.recall(question, relevant=True) == []
    assert [hit.text for hit in facts.recall("What is the user's cat called?", relevant=True)][:1] == [FACTS[1]]


@pytest.mark.parametrize(("sure", "answers"), [(SURE_IF_READ - 0.01, False), (SURE_IF_READ + 0.01, True)])
def test_a_hit_that_was_read_needs_more(facts, monkeypatch, sure, answers):
    monkeypatch.setattr(judge, "read_hits", lambda _question, _keys, before, *_: [sure] * len(before))
    found = facts.recall("What is the user's cat called?", relevant=True)
    assert [hit.confidence for hit in found] == [sure] * len(found)
    assert bool(found) == answers
    assert bool(found.evidence_gaps) != answers
    (hit,) = facts.recall("What is the user's cat called?", limit=1)
    said = facts.review.explain("What is the user's cat called?", hit.id, relevant=True)
    assert (said.returned, said.stage) == ((True, "returned") if answers else (False, "threshold"))


def test_plain_recall_reads_nothing(facts, monkeypatch):
    monkeypatch.setattr(onnx, "load_reader", lambda: pytest.fail("a hit was read"))
    assert facts.recall("Where does the user work?")
    with pytest.raises(pytest.fail.Exception):
        facts.recall("Where does the user work?", relevant=True)


def test_without_onnxruntime_the_cut_goes_by_confidence_alone(facts, monkeypatch):
    plain = facts.recall("Where does the user work?", limit=1)[0].confidence
    monkeypatch.setattr(onnx, "load_reader", lambda: None)
    assert facts.recall("Where does the user work?", relevant=True)[0].confidence == plain


def test_a_store_without_vectors_is_not_read(monkeypatch):
    monkeypatch.setattr(judge, "read_hits", lambda *arguments: pytest.fail("a hit was read"))
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.remember_many(FACTS)
        assert memory.recall("Where does the user work?", relevant=True)


def test_a_request_brings_what_has_to_be_known_for_it_and_nothing_to_another():
    with Memory(":memory:") as memory:
        memory.remember_many(
            ["I hate trains without a window seat", "Never book anything on a Sunday", "Bo lost his hat on a ferry",
             "The attic was swept in May", "My aunt keeps two parrots"]
        )  # fmt: skip
        hits = memory.recall("Book train tickets for me", relevant=True)
        assert {hit.text for hit in hits} >= {"I hate trains without a window seat", "Never book anything on a Sunday"}
        assert "The attic was swept in May" not in {hit.text for hit in hits}
        assert not memory.recall("Rewrite this sentence in the passive", relevant=True)
        assert not hits.evidence_gaps


PREFERENCES = [
    "I refuse to fly short distances", "I don't eat anything with sesame in it",
    "User wants to avoid films with violence",
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "bears"),
    [
        ("What would be a nice snack from the Lebanese place?", "I don't eat anything with sesame in it"),
        ("Can you suggest a good film for Friday night?", "User wants to avoid films with violence"),
    ],
)
def test_a_preference_is_what_a_wish_for_suggestions_needs(question, bears):
    with Memory(":memory:") as memory:
        memory.remember_many([*FACTS, *PREFERENCES])
        (hit,) = memory.recall(question, relevant=True)
    assert hit.text == bears


def test_a_preference_bears_on_nothing_that_is_far(facts):
    with Memory(":memory:") as memory:
        memory.remember_many(PREFERENCES)
        assert not memory.recall("How tall is the Eiffel Tower?", relevant=True)


def test_a_request_in_the_form_of_a_question_brings_what_has_to_be_known_for_it():
    with Memory(":memory:") as memory:
        memory.remember_many([*FACTS, "I hate trains without a window seat"])
        (hit,) = memory.recall("Could you book train tickets for me?", relevant=True)
    assert hit.text == "I hate trains without a window seat"
