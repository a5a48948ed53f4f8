"""Topics and near-duplicates with the real embedder: look-alikes keep their texts."""

from __future__ import annotations

import pytest

from recallite.model.records import NewRecord
from recallite.model.settings import Settings, WritePolicy
from tests.unit.core.text.topic_pairs import DIFFERENT, SAME

REPLACE = WritePolicy(merge_strategy="replace", topic_cosine=0.92)
HERMES = Settings(profile="hermes").write_policy


@pytest.mark.parametrize("strategy", ["latest", "replace"])
def test_reeve_two_invoices_are_two_topics(embedded, strategy):
    policy = WritePolicy(merge_strategy=strategy, topic_cosine=0.92)
    embedded.remember("Invoice 443 was paid", policy=policy)
    assert embedded.remember("Invoice 444 was paid", policy=policy).outcome == "created"
    assert sorted(record.text for record in embedded.list()) == ["Invoice 443 was paid", "Invoice 444 was paid"]


def test_hermes_two_invoices_are_no_near_duplicates(embedded):
    embedded.remember("Invoice 443 was paid", policy=HERMES)
    assert embedded.remember("Invoice 444 was paid", policy=HERMES).outcome == "created"
    assert embedded.remember("Invoice 444 was paid.", policy=HERMES).outcome == "duplicate"


def test_of_the_table_of_pairs_updates_merge_and_look_alikes_do_not(embedded):
    """By the cosine alone 39 updates merged, and 33 look-alikes of which one text was lost."""
    merged = []
    for kind, pairs in (("same", SAME), ("different", DIFFERENT)):
        for number, (one, other) in enumerate(pairs):
            where = {"scope": f"/{kind}/{number}"}
            embedded.remember(NewRecord(one, **where), policy=REPLACE)
            outcome = embedded.remember(NewRecord(other, **where), policy=REPLACE).outcome
            merged.append((kind, outcome in ("replaced", "merged", "duplicate")))
            if kind == "different":
                assert embedded.remember(other, scope=f"/hermes/{number}", policy=HERMES).outcome == "created"
                assert embedded.remember(one, scope=f"/hermes/{number}", policy=HERMES).outcome == "created"
    assert merged.count(("different", True)) == 0
    assert merged.count(("same", True)) == 41


def test_a_nearer_look_alike_does_not_hide_the_topic_behind_it(memory):
    policy = WritePolicy(merge_strategy="latest", topic_cosine=0.92)
    memory.remember(NewRecord("Invoice 443 is open", vector=[1.0, 0.0]), policy=policy)
    other = memory.remember(NewRecord("Invoice 444 is open", vector=[0.99, 0.141]), policy=policy)
    paid = memory.remember(NewRecord("Invoice 444 is paid", vector=[1.0, 0.0]), policy=policy)
    assert (paid.outcome, paid.id) == ("merged", other.id)


def test_texts_under_different_headings_are_on_different_topics(memory):
    policy = WritePolicy(merge_strategy="replace", topic_cosine=0.92)
    memory.remember(NewRecord("The tyre is flat", context="Car 1", vector=[1.0, 0.0]), policy=policy)
    assert (
        memory.remember(NewRecord("The tyre is flat", context="Car 2", vector=[1.0, 0.0]), policy=policy).outcome
        == "created"
    )
