"""Stores, intervals and tables of the comparison with memory systems, and Recallite in it on a few turns."""

from __future__ import annotations

import gzip
import json

import pytest

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.memory_systems import report
from benchmarks.memory_systems.process import interval, longmemeval_stores
from benchmarks.memory_systems.system import Embed, Said, by_text
from benchmarks.memory_systems.systems import OURS, SYSTEMS
from recallite.embedding import load


def test_an_interval_holds_the_mean_and_is_a_point_if_all_are_equal():
    assert interval([1.0, 1.0, 1.0]) == {"mean": 1.0, "low": 1.0, "high": 1.0}
    spread = interval([0.0, 1.0] * 50)
    assert 0.35 < spread["low"] < spread["mean"] == 0.5 < spread["high"] < 0.65


def test_the_first_of_equal_lines_is_the_one_that_a_text_names():
    assert by_text(["a", "b", "a"]) == {"a": 0, "b": 1}


def test_sessions_are_what_the_user_said_whole_or_by_turns(tmp_path):
    sample = {
        "question_id": "q", "question": "Where?", "question_date": "2023/05/30 (Tue) 23:25",
        "haystack_session_ids": ["answer_1", "other"], "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/01 (Mon) 10:00", "2023/05/02 (Tue) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."},
             {"role": "user", "content": "By the sea."}],
            [{"role": "user", "content": "Hello."}],
        ],
    }  # fmt: skip
    with gzip.open(tmp_path / "longmemeval_s_dev.json.gz", "wt") as file:
        json.dump([sample], file)
    ((turns, questions),) = longmemeval_stores(tmp_path, whole_sessions=False)
    assert [turn.text for turn in turns] == ["I live in Oslo.", "By the sea.", "Hello."]
    assert [(text, gold) for text, _, gold in questions] == [("Where?", {"session 0"})]
    ((sessions, _),) = longmemeval_stores(tmp_path, whole_sessions=True)
    assert [session.text for session in sessions] == ["I live in Oslo.\n\nBy the sea.", "Hello."]


def test_recallite_answers_with_the_places_of_turns(tmp_path):
    embed = Embed(CachedEmbedder(load("instant")))
    turns = [Said(text, "Ada", "one", place, None) for place, text in enumerate(["My dog is called Rex", "I like tea"])]
    system = SYSTEMS[OURS].load()(tmp_path, embed)
    system.write(turns)
    assert system.recall("What is the dog called?", 1, None) == [0]
    system.close()
    assert turns[0].line == "Ada: My dog is called Rex"
    assert embed(["tea"]).shape == (1, embed.dimension)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_has_a_module_of_its_own(name):
    entry = SYSTEMS[name]
    assert entry.place.count(":") == 1
    assert entry.how
    assert entry.model


def test_failures_and_figures_stand_in_the_tables():
    value = {"mean": 0.5, "low": 0.4, "high": 0.6}
    measured = {
        "version": "1", "questions": 9, "records": 3, "recall": {"p50_ms": 1.0}, "writes_per_second": 5.0,
        "added_mb": 1.0, "commit": "abc", "figures": {"recall@20": value, "hit@20": value, "MRR": value},
    }  # fmt: skip
    better = {**measured, "figures": {**measured["figures"], "recall@20": {**value, "mean": 0.9}}}
    results = {OURS: {"default": better}, "mem0": {"default": measured}, "memweave": {"default": {"failed": "no"}}}
    about = {"processor": "one", "cores": 1, "date": "today", "results": {"locomo": results}}
    text = report.markdown(about)
    assert text.index("**recallite**") < text.index("| mem0 ")
    assert "- memweave, default: no" in text
    alone = {column: {"recall@20": 0.7} for column in ("vector", "keyword")}
    claim = " ".join(report.claims(about, {"sets": {"locomo": {"figures": alone}}}).split())
    assert "90.0 % (40.0 to 60.0) of the evidence" in claim
    assert "mem0, the best of 1 other systems" in claim
