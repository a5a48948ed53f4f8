"""The sets that are read from a folder or a git repository of theirs, on small made-up ones."""

from __future__ import annotations

import json
import subprocess

import pytest

from benchmarks.quality import beam, boards, precision_bench, realtalk
from benchmarks.quality.__main__ import SETS, evaluate
from recallite import Memory


def committed(folder):
    """The folder as a git repository without its files."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "set"], check=True)
    return folder / ".git"


CHAT = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "My kettle leaks. ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "Mend it."},
            ],
            [{"role": "user", "id": 2, "content": "The violin is in the attic."}],
        ],
    },
    {"batch_number": 2, "turns": [[{"role": "user", "id": 3, "content": "I sold the violin."}]]},
]
ASKED = {
    "abstention": [{"question": "What colour is my hat?"}],
    "event_ordering": [{"question": "What happened to the violin?", "source_chat_ids": [2, [3]]}],
    "knowledge_update": [
        {"question": "Does the kettle leak?", "source_chat_ids": {"updated_info": [1], "original_info": [0]}}
    ],
    "summarization": [{"question": "What is named nowhere?", "source_chat_ids": [99]}],
}


@pytest.fixture
def beam_folder(tmp_path):
    for name in "12345":
        folder = tmp_path / "chats" / "100K" / name
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "chat.json").write_text(json.dumps(CHAT))
        (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(ASKED))
    return tmp_path


def test_a_message_of_beam_is_a_record_of_its_batch_dated_by_its_anchor(beam_folder):
    messages = next(beam.read(beam_folder)).messages
    assert [(each["text"], each["context"], each["source"], each["position"]) for each in messages] == [
        ("My kettle leaks.", "user", "batch 1", 0),
        ("Mend it.", "assistant", "batch 1", 1),
        ("The violin is in the attic.", "user", "batch 1", 2),
        ("I sold the violin.", "user", "batch 2", 0),
    ]
    assert messages[2]["created_at"].isoformat() == "2024-03-15T00:00:00+00:00"
    assert "created_at" not in messages[3]


def test_evidence_of_beam_is_read_in_every_form(beam_folder):
    assert [(kind, sorted(gold)) for _, kind, gold in next(beam.read(beam_folder)).questions] == [
        ("abstention", []),
        ("event_ordering", [2, 3]),
        ("knowledge_update", [0, 1]),
    ]


def test_beam_is_asked_by_type_and_abstention_questions_apart(beam_folder, open_memory):
    result = beam.evaluate(beam_folder, open_memory, lambda done, total: None)
    assert (result["questions"], result["records"], result["stores"]) == (10, 20, 5)
    # Four messages and a limit of forty.
    assert result["figures"]["default"]["all@40"] == 1.0
    assert result["figures"]["default"]["abstention: ROC AUC"] == 1.0
    assert list(result["categories"]) == ["event_ordering", "knowledge_update"]
    assert list(result["whole_story"]) == ["event_ordering"]
    assert set(result["whole_story"]["event_ordering"]["figures"]) == set(beam.WHOLE_STORY)


@pytest.fixture
def realtalk_folder(tmp_path):
    def turn(id, speaker, text, **more):
        return {"dia_id": id, "speaker": speaker, "clean_text": text, "date_time": "29.12.2023, 22:42:04", **more}

    chat = {
        "name": {"speaker_1": "Ada", "speaker_2": "Bob"},
        "session_1": [turn("D1:1", "Ada", "Look!", blip_caption="a kettle"), turn("D1:2", "Bob", "It leaks.")],
        "events_session_1": {},
        "session_2": [turn("D1:30", "Ada", "I sold it.")],
        "qa": [{"question": "What leaks?", "category": 1, "evidence": ["D1:1; D1:30"]}],
    }
    (tmp_path / "data" / "locomo").mkdir(parents=True)
    (tmp_path / "data" / "Chat_1_Ada_Bob.json").write_text(json.dumps(chat))
    return tmp_path


def test_a_chat_of_realtalk_is_read_as_one_of_locomo(realtalk_folder):
    (chat,) = realtalk.read(realtalk_folder)
    assert [(turn["text"], turn["context"], turn["source"], turn["position"]) for turn in chat.turns] == [
        ("Look! [shares a photo of a kettle]", "Ada", "session 1", 0),
        ("It leaks.", "Bob", "session 1", 1),
        ("I sold it.", "Ada", "session 2", 0),
    ]
    assert chat.turns[0]["created_at"].isoformat() == "2023-12-29T22:42:04+00:00"
    assert [question.gold for question in chat.questions] == [{0, 2}]


@pytest.mark.parametrize("module", [beam, realtalk])
def test_a_git_repository_reads_as_its_folder(module, beam_folder, realtalk_folder):
    read = list(module.read(beam_folder))
    assert list(module.read(committed(beam_folder))) == read != []


def test_only_sets_with_a_folder_run(realtalk_folder):
    run = evaluate({"realtalk": realtalk_folder}, "instant", None)
    assert list(run["sets"]) == ["realtalk"]
    assert set(SETS) > {"beam", "realtalk"}


def belief(id, content, **fields):
    return {
        "_id": id, "user_id": "test-user", "type": "preference", "canonical_name": id, "aliases": [],
        "content": content, "why_it_matters": "", "scope": ["code"], "pinned": False, "superseded_by": None,
        "resolved_at": None, "created_at": "2026-03-02T09:00:00Z", **fields,
    }  # fmt: skip


@pytest.fixture
def beliefs_folder(tmp_path):
    beliefs = [
        belief("kettle", "Boils water with gas", aliases=["samovar"]),
        belief("violin", "Plays in the attic", participants=["bow"], type="relation"),
        belief("bow", "Is made of horsehair", pinned=True),
        belief("piano", "Was sold", superseded_by="violin"),
        belief("stranger", "Boils water with gas", user_id="other", pinned=True),
    ]
    case = {"scope": ["code"], "category": "Alias resolution"}
    only = {"relevantBeliefs": {"shouldOnlyInclude": ["kettle"]}, "pinnedFacts": {"mustInclude": ["bow"]}}
    cases = [
        {**case, "caseId": "named", "query": "samovar", "expect": only},
        {**case, "caseId": "none", "query": "", "expect": {"personaPrelude": {"contains": ["brief"]}}},
        {**case, "caseId": "wrong", "query": "samovar", "expect": {"relevantBeliefs": {"mustExclude": ["kettle"]}}},
    ]
    turn = {"scope": ["code"], "userMessage": "flute", "expect": {"relevantBeliefs": {"mustInclude": ["kettle"]}}}
    turns = [
        {**turn, "turnIndex": 0, "updateBeliefAtTurn": {"beliefId": "kettle", "addAliases": ["Flute"]}},
        {**turn, "turnIndex": 1},
    ]
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "src").mkdir()
    for name, value in {
        "beliefs.seed": beliefs,
        "retrieval.cases": cases,
        "session-retrieval.cases": [{"turns": turns}],
    }.items():
        (tmp_path / "fixtures" / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "src" / "retrieval.external.eval.test.ts").write_text('universal:\n  "Be brief.",')
    return tmp_path


SHORT = "recall@20 within 8,000 characters"


def by_words():
    return Memory(":memory:", embedder="none")


def test_precision_counts_the_cases_whose_beliefs_are_the_expected_ones(beliefs_folder):
    result = precision_bench.evaluate(beliefs_folder, by_words, lambda done, total: None)
    assert list(result["figures"]) == list(precision_bench.ADAPTERS)
    assert (result["questions"], result["records"]) == (5, 5)
    figures = result["figures"]["wire, relevant"]
    assert (figures["passes"], figures["active passes"], figures["empty passes"], figures["turns"]) == (2, 1, 1, 1)
    assert result["failed"]["wire, relevant"] == ["wrong", "turn 0"]


def test_boards_show_an_interval_for_each_figure(beliefs_folder):
    result = precision_bench.evaluate(beliefs_folder, by_words, lambda done, total: None)
    facts = {"figures": {"default": {"455 facts: current first": 0.5}}, "seconds": {}}
    locomo = {
        "questions": 4, "figures": {"default": dict.fromkeys(("recall@20", SHORT, "hit@20", "MRR"), 1.0)},
        "intervals": {"recall@20": (0.9, 1.0), SHORT: (0.8, 1.0), "MRR": (0.7, 1.0)}, "seconds": {},
    }  # fmt: skip
    run = {
        "sets": {"precision": result, "facts": {**facts, "commit": "abb"}, "locomo": locomo}, "commit": "abc",
        "date": "2026-03-02", "embedder": "none", "cores": 2,
    }  # fmt: skip
    lines = boards.markdown(run).splitlines()
    assert f"|  | {SHORT} | 4 | 1.000 | 0.800 to 1.000 |" in lines
    assert lines[-1] == "Embedder none, commit abc, 2026-03-02, 0 s on 2 cores; FactConsolidation at commit abb."
    assert "| FactConsolidation | 455 facts: current first | 100 | 0.500 | 0.404 to 0.596 |" in lines
    assert sum("passes | 77 |" in line for line in lines) == 2 * len(precision_bench.ADAPTERS)
