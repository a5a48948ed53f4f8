"""What the confidence is fitted on, and the regression that fits it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.training.data import Question, Store
from benchmarks.training.logistic import fit_logistic
from benchmarks.training.questions import _part, _taken_out, _without


@pytest.fixture
def store():
    turns = [{"text": f"turn {place}", "context": "Ada", "source": "s", "position": place} for place in range(40)]
    questions = [Question(f"question {number}?", (4 * number, 4 * number + 1)) for number in range(8)]
    return Store("made/0", turns, [*questions, Question("open?", (), answerable=False)])


def test_half_of_the_questions_lose_their_answer_and_all_else_stays(store):
    gone = _taken_out(store.questions, random.Random(1))
    variant = _without(("made", "0"), "whole", store, None, random.Random(1))
    assert len(variant.turns) == len(store.turns) - len(gone)
    left = [gold for _, gold in variant.questions if gold]
    assert len(left) == 4
    for (_, gold), asked in zip(variant.questions, store.questions, strict=True):
        texts = {variant.turns[place]["text"] for place in gold}
        assert texts in (set(), {f"turn {place}" for place in asked.gold})


def test_a_part_names_what_answers_in_it(store):
    for seed in range(20):
        part = _part(("made", "0"), store, store, random.Random(seed))
        assert 1 <= len(part.turns) <= 60
        golds = {each.text: {f"turn {place}" for place in each.gold} for each in store.questions}
        for text, gold in part.questions:
            assert {part.turns[place]["text"] for place in gold} <= golds[text]


def test_weights_are_those_that_made_the_truth_and_keep_their_sign():
    generator = np.random.default_rng(1)
    values = generator.standard_normal((20_000, 3))
    truth = generator.random(20_000) < 1 / (1 + np.exp(-(values @ [2.0, -1.0, 0.0] - 0.5)))
    found = fit_logistic(values, truth, np.ones(len(values)), np.array([1, 0, 0]), ridge=0.0)
    np.testing.assert_allclose(found, [2.0, -1.0, 0.0, -0.5], atol=0.08)
    held = fit_logistic(values, truth, np.ones(len(values)), np.array([1, 1, 0]), ridge=0.0)
    assert held[1] == 0
