"""Questions made from facts: the same each time, each type in one split, answered by what they point to."""

from __future__ import annotations

import string
import tomllib
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.training import data, facts

FOLDER = Path(facts.__file__).parent / "facts"


def test_a_seed_makes_the_same_stores_and_another_one_others() -> None:
    first = list(facts.stores("vectors", 5))
    assert list(facts.stores("vectors", 5)) == first
    assert list(islice(facts.stores("vectors"), 5)) == first, "the count does not change the first ones"
    assert list(facts.stores("vectors", 5, seed=1)) != first


def test_no_type_is_in_both_splits() -> None:
    vectors, ranking = (facts.kinds(split) for split in data.SPLITS)
    assert not {kind.name for kind in vectors} & {kind.name for kind in ranking}
    assert len(vectors) + len(ranking) >= 150
    assert 0.6 < len(vectors) / (len(vectors) + len(ranking)) < 0.8


def test_no_statement_is_in_both_splits() -> None:
    vectors, ranking = ({text for kind in facts.kinds(split) for text in kind.say} for split in data.SPLITS)
    assert not vectors & ranking


@pytest.mark.parametrize("split", data.SPLITS)
def test_every_type_has_statements_questions_and_open_questions(split: data.Split) -> None:
    slots = tomllib.loads((FOLDER / "slots.toml").read_text("utf-8"))
    for kind in facts.kinds(split):
        assert len(kind.say) >= 3, kind.name
        assert len(kind.ask) >= 2, kind.name
        assert len(kind.off) >= 2, kind.name
        said = [set(named(text)) for text in kind.say]
        for text in (*kind.say, *kind.ask, *kind.off):
            assert all(slot.rstrip("2") in slots for slot in named(text)), text
        for text in (*kind.ask, *kind.off):
            assert all(slot in used for slot in named(text) for used in said), f"{text} asks for what is not said"


def named(text: str) -> list[str]:
    return [slot for _, slot, _, _ in string.Formatter().parse(text) if slot]


@pytest.mark.parametrize("split", data.SPLITS)
def test_questions_point_to_a_statement_of_the_one_they_ask_about(split: data.Split) -> None:
    unanswerable = 0
    for store in facts.stores(split, 60):
        assert [turn["position"] for turn in store.turns] == list(range(len(store.turns)))
        assert all("{" not in turn["text"] for turn in store.turns)
        assert len({question.text for question in store.questions}) == len(store.questions)
        people = {turn["context"] for turn in store.turns}
        for question in store.questions:
            unanswerable += not question.answerable
            assert len(question.gold) == question.answerable
            about = [name for name in people if name and question.text.split(name)[0] != question.text]
            for place in question.gold:
                assert not about or store.turns[place]["context"] in about
    assert unanswerable > 60


@pytest.mark.parametrize(
    ("asked", "about_ada", "asked_back"),
    [
        ("Where do I live?", "Where does Ada live?", "Where do you live?"),
        ("Am I a musician?", "Is Ada a musician?", "Are you a musician?"),
        ("Who is my vet?", "Who is Ada's vet?", "Who is your vet?"),
        ("How is my pet called by me?", "How is Ada's pet called by them?", "How is your pet called by you?"),
        ("Where do I keep my money?", "Where does Ada keep their money?", "Where do you keep your money?"),
    ],
)
def test_first_person_questions_by_name_and_back(asked: str, about_ada: str, asked_back: str) -> None:
    assert facts.by_name(asked, "Ada") == about_ada
    assert facts.to_you(asked) == asked_back


def test_facts_are_a_set_of_the_training_data(tmp_path: Path) -> None:
    loaded = data.stores(tmp_path, "ranking", ("facts",))
    assert loaded == list(facts.stores("ranking"))
