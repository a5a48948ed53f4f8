"""Recall on both kernel backends: pytest benchmarks/test_recall.py --records 100000 --benchmark-group-by=func."""

from __future__ import annotations

import pytest

BATCH = 64
SHAPES = {
    "plain": {},
    "weighted only": {"spread": 0.0, "decay": "none", "importance_weight": 0.0},
    "rrf": {"fusion": "rrf"},
    "vector": {"mode": "vector"},
    "keyword": {"mode": "keyword"},
    "limit 100": {"limit": 100},
    "grouped": {"group_by": "source"},
    "mmr": {"mmr_lambda": 0.5},
    "scope": {"scope": "/team/7"},
    "tags": {"tags": ["tenth"]},
    "token budget": {"token_budget": 500},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_recall_with_a_ready_vector(benchmark, backend, memory, questions, question_vectors, turn, shape):
    def recall():
        place = turn(len(questions))
        return memory.recall(questions[place], vector=question_vectors[place], **SHAPES[shape])

    benchmark(recall)


def test_recall_of_a_text(benchmark, backend, memory, questions, turn):
    """Embedding included; no query comes from the cache."""
    benchmark(lambda: memory.recall(questions[turn(len(questions))]))


def test_recall_many_with_ready_vectors(benchmark, backend, memory, questions, question_vectors):
    benchmark.extra_info["queries"] = BATCH
    benchmark.pedantic(
        lambda: memory.recall_many(questions[:BATCH], vectors=question_vectors[:BATCH]), rounds=5, warmup_rounds=1
    )


def test_recall_right_after_a_write(benchmark, memory, questions, question_vectors, held_out, turn):
    """The index takes in one new record, then answers."""

    def remembered():
        place = turn(len(questions))
        memory.remember(held_out[place], vector=question_vectors[place])
        return (questions[place],), {"vector": question_vectors[place]}

    benchmark.pedantic(memory.recall, setup=remembered, rounds=50)


def test_explain_a_record_that_was_not_returned(benchmark, memory, questions, question_vectors):
    last = memory.recall(questions[0], vector=question_vectors[0], limit=50)[-1]
    benchmark(lambda: memory.explain(questions[0], last.id, vector=question_vectors[0]))
