"""What a search drops, what it says of it, choices by call, and results as JSON."""

from __future__ import annotations

import json

import pytest

from recallite import Memory, Workspace
from recallite.errors import InvalidInput
from recallite.recall.confidence import least_confidence
from recallite_notes.config import WorkspaceConfig
from recallite_notes.search import MIN_CONFIDENCE, MIN_SCORE, RawSearchRow
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.notes.support import config, write


@pytest.fixture
def workspace(tmp_path):
    write(tmp_path, "memory/zebra.md", "The striped zebra drinks at the river in the evening.")
    write(tmp_path, "memory/2020-01-01.md", "A tall giraffe eats the leaves of the acacia tree.")
    write(tmp_path, "memory/stack.md", "The service runs on PostgreSQL and Valkey in the cloud.")
    with Workspace(tmp_path, config(), embedder=WordEmbedder(dimension=256)) as opened:
        opened.index()
        yield opened


def paths(found):
    return [each.path for each in found]


def test_what_is_hardly_an_answer_is_dropped_by_its_confidence(workspace):
    assert paths(workspace.search("striped zebra at the river", min_confidence=0.5)) == ["memory/zebra.md"]
    every = workspace.search("striped zebra at the river", min_score=0.0)
    assert len(every) == 3
    assert every[0].confidence > 2 * every[1].confidence
    kept = workspace.search("striped zebra at the river")
    assert paths(kept) == [each.path for each in every if each.score >= MIN_SCORE]  # the embedder is not a fitted one
    found = workspace.search("quarterly revenue", min_confidence=0.3)
    assert paths(found) == []
    assert found.dropped > 0
    every = workspace.search("quarterly revenue", min_score=0.0)
    near = sorted((each.confidence for each in every if each.confidence >= 0.1), reverse=True)
    assert [each.confidence for each in found.weak] == near[:3]
    (gap,) = found.evidence_gaps
    assert "none reaches confidence 0.30; the best is memory/" in gap
    assert "A minimum score of 0 shows them" in gap


NOTES = ("Ada is on call for the billing service this week.", "The office plants are watered on Fridays by Tom.")
ANSWERED = ("Who is on call for billing?", "When are the plants watered?")
UNANSWERABLE = (
    "Who won the world cup in 1998?", "What is the capital of Peru?", "How do I bake sourdough bread?",
    "When was Mozart born?", "What is my blood type?", "Where are the passports?", "How old is the oak tree?",
    "What is the recipe for goulash?", "Which wine goes with fish?", "Where do penguins live?",
)  # fmt: skip


@pytest.mark.parametrize("strategy", ["hybrid", "vector", "keyword"])
def test_a_folder_of_one_or_two_notes_does_not_answer_everything(tmp_path, strategy):
    with Workspace(tmp_path, config()) as workspace:
        for number, note in enumerate(NOTES):
            write(tmp_path, f"note{number}.md", note)
            workspace.index()
            assert paths(workspace.search(ANSWERED[number], strategy=strategy)) == [f"note{number}.md"]
            for question in UNANSWERABLE:
                found = workspace.search(question, strategy=strategy)
                assert paths(found) == [], question
                assert found.evidence_gaps or not found.dropped


WORKSHOP = (
    "# Kiln\nThe kiln is fired on Saturdays. It reaches 1,240 degrees after nine hours.",
    "# Glazes\nThe celadon glaze comes from Meister Weiss in Graz.\n\nNever mix it with tin oxide.",
    "# Orders\nThe restaurant Salvia ordered forty bowls for the end of May.",
    "# Wheel\nThe belt of the second wheel squeaks. Spare belts are in the drawer below the sink.",
    "# Courses\nThe beginners' course is on Tuesdays at six and costs 45 euros.",
    "# Clay\nStoneware clay is delivered by Tonwerk every second month. Porcelain is kept in the cold room.",
)
WORKSHOP_ANSWERED = (
    ("How hot does the kiln get?", 0), ("Who sells us the celadon glaze?", 1), ("How many bowls did Salvia order?", 2),
    ("Where are the spare belts?", 3), ("What does the beginners' course cost?", 4), ("Who delivers the clay?", 5),
)  # fmt: skip
WORKSHOP_NOTHING = (
    "When is the rent due?", "Who painted the sign?", "What is the alarm code?", "Which bank do we use?",
    "Where do the students park?", "Who feeds the cat?", "What is the phone number of the plumber?",
    "When was the studio founded?", "Which radio station do we listen to?", "How much is the insurance?",
)  # fmt: skip


def test_a_small_folder_answers_what_it_has_and_is_silent_on_the_rest(tmp_path):
    for number, note in enumerate(WORKSHOP):
        write(tmp_path, f"memory/{number}.md", note)
    with Workspace(tmp_path, config()) as workspace:
        workspace.index()
        for question, number in WORKSHOP_ANSWERED:
            found = workspace.search(question)
            assert f"memory/{number}.md" in paths(found), question
            assert all(each.confidence >= max(MIN_CONFIDENCE, found[0].confidence / 2) for each in found)
        assert [question for question in WORKSHOP_NOTHING if workspace.search(question)] == []
        weak = workspace.search("How hot does the kiln get?", min_confidence=0.999)
        assert (list(weak), weak.weak[0].path) == ([], "memory/0.md")


def test_from_thirty_chunks_on_the_threshold_is_the_fitted_one(tmp_path):
    assert least_confidence(MIN_CONFIDENCE, "recallite-minilm", "vectors", 30) == MIN_CONFIDENCE
    rising = [least_confidence(MIN_CONFIDENCE, "recallite-minilm", "vectors", records) for records in (29, 20, 5, 1, 0)]
    assert MIN_CONFIDENCE < rising[0] < rising[1] < rising[2] < rising[3] == rising[4] < 0.7
    assert least_confidence(0.0, "recallite-minilm", "vectors", 1) == 0.0


def test_a_score_that_is_given_is_memweaves_threshold_alone(workspace, tmp_path):
    every = workspace.search("striped giraffe of Lisbon", min_score=0.0)
    assert len(every) > len(workspace.search("striped giraffe of Lisbon"))
    kept = workspace.search("striped giraffe of Lisbon", min_score=0.35)
    assert paths(kept) == [each.path for each in every if each.score >= 0.35]
    given = WorkspaceConfig.from_dict({"workspace_dir": str(tmp_path), "query": {"min_score": 0.35}})
    with Workspace(given, embedder=WordEmbedder(dimension=256)) as other:
        assert paths(other.search("striped giraffe of Lisbon")) == paths(kept)
    both = workspace.search("striped giraffe of Lisbon", min_score=0.0, min_confidence=0.5)
    assert all(each.confidence >= 0.5 for each in both)


def test_a_keyword_search_has_the_same_threshold(workspace):
    (whole,) = workspace.search("valkey", strategy="keyword")
    (part,) = workspace.search("valkey revenue Lisbon quarterly office Porto", strategy="keyword", min_score=0.0)
    assert whole.path == part.path == "memory/stack.md"
    assert part.confidence < whole.confidence
    assert paths(workspace.search("valkey", strategy="keyword", min_confidence=whole.confidence + 0.01)) == []


def test_rows_of_a_strategy_of_ones_own_are_dropped_by_score(workspace):
    class Fixed:
        def search(self, db, query, vector, model, limit, *, source_filter=None):
            return [
                RawSearchRow(chunk_id=f"c{score}", path="memory/zebra.md", source="memory", start_line=1, end_line=1,
                             text="x", score=score)
                for score in (0.34, 0.36)
            ]  # fmt: skip

    workspace.register_strategy("fixed", Fixed())
    assert [each.score for each in workspace.search("zebra", strategy="fixed")] == [0.36]


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
def test_a_query_of_stop_words_alone_is_no_evidence(workspace, strategy):
    found = workspace.search("the of in at", strategy=strategy, min_score=0.0)
    assert found
    assert max(each.text_score for each in found) <= 0.3
    assert max(each.score for each in found) < 0.35 or strategy == "hybrid"
    assert max(each.score for each in found) < 1.0
    assert paths(workspace.search("the of in at", strategy="keyword")) == []


def test_a_chunk_that_shares_no_word_has_a_text_score_of_zero(workspace):
    for each in workspace.search("striped zebra", min_score=0.0):
        shared = {"striped", "zebra"} & set(each.text.lower().replace(".", "").split())
        assert (each.text_score > 0) == bool(shared)


def test_weights_of_a_call_are_shares_and_one_is_enough(workspace):
    vector = workspace.search("striped giraffe", vector_weight=1.0, min_score=0.0)
    assert [each.score for each in vector] == pytest.approx([max(each.vector_score or 0, 0) for each in vector])
    text = workspace.search("striped giraffe", text_weight=1.0, min_score=0.0)
    assert [each.score for each in text] == pytest.approx([each.text_score for each in text])
    half = workspace.search("striped giraffe", vector_weight=0.5, text_weight=0.5, min_score=0.0)
    assert half[0].score != workspace.search("striped giraffe", min_score=0.0)[0].score
    with pytest.raises(InvalidInput, match="sum to 1"):
        workspace.search("zebra", vector_weight=0.5, text_weight=0.6)
    with pytest.raises(InvalidInput, match="candidate_multiplier"):
        workspace.search("zebra", candidate_multiplier=0)
    assert len(workspace.search("the striped zebra", candidate_multiplier=1, max_results=1, min_score=0.0)) == 1


def test_age_can_be_turned_off_and_on_by_call(tmp_path):
    write(tmp_path, "memory/2020-01-01.md", "A tall giraffe eats leaves.")
    fading = config(query={"temporal_decay": {"enabled": True}})
    with Workspace(tmp_path, fading, embedder=WordEmbedder()) as workspace:
        workspace.index()
        faded = workspace.search("tall giraffe")[0].score
        whole = workspace.search("tall giraffe", temporal_decay=False)[0].score
        assert faded < 0.001 < whole
        with pytest.raises(InvalidInput, match="temporal_decay is 3"):
            workspace.search("giraffe", temporal_decay=3)
    with Workspace(tmp_path, config(), embedder=WordEmbedder()) as workspace:
        assert workspace.search("tall giraffe")[0].score == whole
        assert workspace.search("tall giraffe", temporal_decay=True)[0].score == pytest.approx(faded, rel=0.01)


def test_results_turn_into_dicts_and_json(workspace):
    found = workspace.search("striped zebra")
    table = found[0].to_dict()
    assert (table["path"], table["start_line"], table["headings"]) == ("memory/zebra.md", 1, [])
    assert json.loads(found[0].to_json()) == table
    whole = json.loads(found.to_json())
    assert (whole["query"], whole["results"]) == ("striped zebra", [table])
    assert json.loads(json.dumps(workspace.status().to_dict()))["files"] == 3
    assert json.loads(workspace.files()[0].to_json())["chunks"] == 1


def test_hits_and_records_turn_into_dicts_and_json():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        record = memory.remember("the striped zebra", tags=["a"], created_at="2026-01-02T03:04:05Z")
        assert record.to_dict()["created_at"] == "2026-01-02T03:04:05Z"
        assert json.loads(record.to_json()) == record.to_dict()
        hits = memory.recall("zebra")
        assert json.loads(hits[0].to_json()) == hits[0].to_dict()
        assert hits[0].to_dict()["tags"] == ["a"]
        whole = json.loads(hits.to_json())
        assert (whole["query"], len(whole["hits"])) == ("zebra", 1)
        json.dumps(memory.store.stats().to_dict())
