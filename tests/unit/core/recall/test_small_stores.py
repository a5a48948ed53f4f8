"""Ranking and gaps where a store is too small to tell which words are common."""

from __future__ import annotations

import pytest

from recallite.text.words import share_of
from recallite_kernels import smoothed_idf


def idf(records, found, words):
    """The IDF of words of which each is in `found` of so many records."""
    return [float(smoothed_idf(records, found, share_of(word))) for word in words]


def test_a_common_word_weighs_little_in_a_small_store_and_as_counted_in_a_large_one():
    use, work, rare = idf(5, 1, ["use", "work", "zanzibar"])
    assert use < 0.7 * rare
    assert work < rare
    assert idf(1_000_000, 10_000, ["use"]) == pytest.approx(idf(1_000_000, 10_000, ["zanzibar"]), abs=0.001)


def test_words_that_ask_are_no_gaps(memory):
    memory.remember("Please tell me about Kubernetes")
    hits = memory.recall("Please tell me, can you remember how much the ticket cost?", profile={"gap_confidence": 1})
    assert hits.evidence_gaps == (
        "no hit mentions 'ticket'", "no hit mentions 'cost'", "no hit has a number", hits.evidence_gaps[-1]
    )  # fmt: skip


def test_a_time_that_a_hit_meets_is_no_gap(memory):
    memory.remember("We cooked soup", valid_from="2023-08-07")

    def gaps(question):
        return memory.recall(question, profile={"gap_confidence": 1.0}).evidence_gaps

    assert not any("August" in gap for gap in gaps("What did we cook in August 2023?"))
    assert any("May" in gap for gap in gaps("Which soup did we cook in May 2023?"))
