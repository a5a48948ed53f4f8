"""The chance that a statement replaces another is what the fit on the pairs gives, and holds for short statements."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.training.boosting import Boosted, boosted_logits, fit_boosted
from benchmarks.training.changes import Fit, Pair, chances, digest, pairs, recalls, terms_of
from benchmarks.training.wording import Wording, fit_wording
from recallite.text.statements import judge, statement_of
from recallite.text.statements.judging import judge_by_rules
from recallite.text.statements.likelihood import DEPTH, FILE, Ruled, chances_replaced, evidence_of, is_cued, is_known

MADE = json.loads(FILE.read_text(encoding="utf-8"))


def test_the_file_is_fitted_on_the_pairs() -> None:
    assert MADE["hash"] == digest()
    assert MADE["pairs"] == len(pairs())


def test_the_fit_finds_more_than_the_rules_with_higher_precision() -> None:
    figures = MADE["figures"]
    by_precision = figures["recall and threshold by precision"]
    assert figures["rules"]["precision"] < 0.9
    assert by_precision["0.9"][0] > 2 * figures["rules"]["recall"]
    assert figures["of those that tell of change"]["0.98"][1] == MADE["threshold"]
    assert figures["of those that do not, but a rule finds"]["0.98"][1] == MADE["threshold_uncued"]


@pytest.mark.parametrize("cosine", [None, 0.4])
def test_chances_are_those_of_the_script(cosine: float | None) -> None:
    fitted = Fit(np.array([*MADE["weights"], MADE["bias"]]), Boosted(MADE["base"], MADE["trees"]))
    wording = Wording(MADE["wording"], MADE["wording_bias"])
    seen = 0
    for pair in pairs()[:400]:
        new, old = statement_of(pair.new, pair.new_context), statement_of(pair.old, pair.old_context)
        rules = judge_by_rules(new, old)
        (chance,) = chances_replaced([Ruled(new, old, rules, cosine)])
        if chance is None:
            assert not is_known(new, old)
            continue
        found = evidence_of(new, old, rules, cosine) | {"wording": float(wording.logits(terms_of([pair]))[0])}
        cued = is_cued(new, old)
        least = MADE["threshold"] if cued else MADE["threshold_uncued"]
        expected = chances(fitted, np.array([[found.get(name, 0.0) for name in MADE["features"]]]))[0]
        unlikely = chance.value == 0.0 and not chance.sure
        assert chance.value == pytest.approx(expected) or (unlikely and (expected < least or not cued))
        seen += chance.value > 0
    assert seen > 40


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Invoice 2231 is unpaid.", "Invoice 2230 was paid on Tuesday, finally."),
        ("Is the pool closed?", "The pool has reopened."),
        ("I live in Bonn. I work for Telekom and I have two kids.", "I moved out of Bonn, Cologne is home now."),
        ("I lived there. " * 30, "I moved out."),
        ("!!!", "..."),
    ],
)
def test_of_what_the_fit_was_not_shown_it_says_nothing(old: str, new: str) -> None:
    one, other = statement_of(new), statement_of(old)
    (chance,) = chances_replaced([Ruled(one, other, judge_by_rules(one, other), None)])
    assert chance is None or chance == (0.0, False)


def test_what_began_earlier_or_another_said_is_not_replaced() -> None:
    new, old = statement_of("The Kawasaki is sold."), statement_of("The Kawasaki is for sale.")
    assert judge(new, old, cosine=None, later=False).outcome != "supersedes"


def test_trees_learn_what_two_columns_say_together() -> None:
    random = np.random.default_rng(1)
    values = random.integers(0, 2, (400, 4)).astype(np.float64)
    truth = (values[:, 0] > 0) != (values[:, 1] > 0)
    model = fit_boosted(values, truth, np.ones(400), trees=40, depth=DEPTH, rate=0.3, share=1.0)
    assert ((boosted_logits(model, values) > 0) == truth).mean() > 0.95


def test_words_are_weighed_by_what_they_tell() -> None:
    terms = [{"+sell", f"={place}"} for place in range(20)] + [{"+wash", f"={place}"} for place in range(20)]
    fitted = fit_wording(terms, [str(place) for place in range(40)], np.arange(40) < 20)
    assert fitted.weights.keys() == {"+sell", "+wash"}
    assert fitted.weights["+sell"] > 0 > fitted.weights["+wash"]
    assert fitted.logits([{"+sell"}, {"never seen"}])[0] > fitted.bias


def test_recalls_name_the_chance_from_which_precision_holds() -> None:
    chance, truth = np.array([0.9, 0.8, 0.7, 0.2]), np.array([True, True, False, True])
    assert recalls(chance, truth)["0.97"] == (0.667, 0.8)


def test_pairs_of_one_moment_or_two_speakers_are_left_out() -> None:
    assert not Pair("contradicts", "a", "b", "g", moment=True).told
    assert not Pair("contradicts", "a", "b", "g", old_context="Ana", new_context="Ben").told
    assert not Pair("contradicts", "a", "b", "g", new_context="Ben").told
    assert Pair("supersedes", "a", "b", "g", old_context="Ben", new_context="Ben").told
