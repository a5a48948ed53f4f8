"""Questions of several steps bring what is known of the values that their hits state."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments

QUESTION = "Where was the author of Dune born?"
AUTHOR, BORN = "The author of Dune is Frank Herbert", "Frank Herbert was born in Tacoma"


@pytest.fixture
def books():
    """A chain of two facts, and sixty that share as many words with the question as its end does and are newer."""
    with Memory(":memory:", embedder="none") as memory:
        memory.remember(AUTHOR)
        memory.remember(BORN)
        for number in range(60):
            memory.remember(f"Person {number} was born in Dunedin")
        yield memory


def test_what_the_value_of_a_hit_is_told_of_joins_the_hits(books):
    plain = books.recall(QUESTION, limit=5, profile={"hops": 0})
    assert BORN not in [hit.text for hit in plain]
    hits = books.recall(QUESTION, limit=5)
    assert len(hits) == 5
    assert [hit.text for hit in hits][:2] == [hit.text for hit in plain][:2]
    found = hits[2]
    assert (found.text, found.match_reasons[-1]) == (BORN, "step")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert "hops" in hits.stages
    told = books.review.explain(QUESTION, found.id, limit=5)
    assert (told.returned, told.rank) == (True, 3)
    assert told.reason == "it is hit 3: it tells of what another hit states"


def test_what_no_longer_holds_is_not_followed(books):
    books.remember(NewRecord("The author of Dune is Ada Byron", supersedes=books.recall(AUTHOR, limit=1)[0].id))
    books.remember("Ada Byron was born in London")
    texts = [hit.text for hit in books.recall(QUESTION, limit=5)]
    assert "Ada Byron was born in London" in texts
    assert BORN not in texts


@pytest.mark.parametrize(
    "options",
    [{"hops": 0}, {"adaptive": False}, {"token_budget": 1000}, {"mode": "keyword"}, {"profile": "hermes"}],
)
def test_other_recalls_have_no_steps(books, options):
    hits = books.recall(QUESTION, limit=5, **recall_arguments(options))
    assert "hops" not in hits.stages
    assert not any("step" in hit.match_reasons for hit in hits)


def test_a_question_of_one_step_is_asked_once(books):
    assert "hops" not in books.recall("Who is the author of Dune?", limit=5).stages
