"""The pairs of `benchmarks.truth`: each line says what it should, and the vocabularies share no name."""

from __future__ import annotations

import calendar
import re

import pytest

from benchmarks.truth.cases import KINDS, VOCABULARIES, every, grids, negations, provoking, true_changes

# What any two people would write: calendar, titles, the parts of addresses, pronouns.
SHARED = {*calendar.month_name, *calendar.day_name, "Dr", "I", "Lane", "Street", "MB", "PIN", "VAT"}
every_vocabulary = pytest.mark.parametrize("vocabulary", VOCABULARIES)


def names(vocabulary):
    """Words that are written with a capital within a sentence, or only so."""
    texts = [text for pair in every(vocabulary) for text in (pair.older, pair.newer, pair.question)]
    words = [re.findall(r"[^\W\d_]+", text) for text in texts]
    lower = {word for some in words for word in some if word.islower()}
    capital = {word for some in words for word in some if word[0].isupper()}
    # A word that only begins sentences is a name if nobody writes it small.
    plural_days = {f"{day}s" for day in calendar.day_name}
    return {word for word in capital if word.lower() not in lower} - SHARED - plural_days


@every_vocabulary
def test_each_kind_has_its_share(vocabulary):
    counts = {kind: sum(pair.kind == kind for pair in every(vocabulary)) for kind in KINDS}
    assert counts["grid"] >= 8000
    assert 80 <= counts["provoking"] <= 120
    assert counts["changes"] >= 72
    assert counts["negations"] >= 30


@every_vocabulary
def test_no_pair_stands_twice(vocabulary):
    pairs = [(pair.older, pair.newer) for pair in every(vocabulary)]
    assert len(pairs) == len(set(pairs))


@every_vocabulary
def test_marks_name_facts(vocabulary):
    for grid in grids(vocabulary):
        facts = [fact.name for fact in grid.facts]
        assert len(facts) == len(set(facts))
        for change in grid.changes:
            assert change.changes | change.may_change <= set(facts), change


@every_vocabulary
def test_subjects_are_written_as_at_their_place_of_a_sentence(vocabulary):
    for pair in every(vocabulary):
        for text in (pair.older, pair.newer, pair.question):
            assert not re.search(r"\{(S|s|their)\}|\w (The|My|Our) ", text), text


@every_vocabulary
def test_the_older_statement_lacks_the_answer_and_the_newer_has_it(vocabulary):
    for pair in true_changes(vocabulary):
        assert pair.answer in pair.newer, pair
        assert pair.answer not in pair.older, pair


@every_vocabulary
def test_every_pair_asks(vocabulary):
    assert [pair for pair in every(vocabulary) if not pair.question.endswith("?")] == []


@every_vocabulary
def test_parts_are_marked_among_compounds_only(vocabulary):
    assert {pair.group for pair in provoking(vocabulary) if pair.in_part} == {"compounds and parts"}


def test_vocabularies_share_no_name():
    assert names("dev") & names("held") == set()


def test_vocabularies_share_no_statement_shape():
    def shapes(vocabulary):
        """Statements without names, numbers and quoted keys: what is left is how they are told."""
        pairs = [*provoking(vocabulary), *true_changes(vocabulary), *negations(vocabulary)]
        facts = [fact.pattern for grid in grids(vocabulary) for fact in grid.facts]
        changes = [change.pattern for grid in grids(vocabulary) for change in grid.changes]
        texts = [text for pair in pairs for text in (pair.older, pair.newer)] + facts + changes
        return {re.sub(r"\b[A-Z]\w*|[\d.,:]+", "_", text) for text in texts}

    alike = {shape for shape in shapes("dev") & shapes("held") if re.search(r"[a-z]{3} .*[a-z]{3}", shape)}
    assert alike == set()
