"""Facts about named people, works, tools and settings: which of them end each other."""

from __future__ import annotations

from itertools import permutations

import pytest

from recallite.model.policies import WritePolicy
from recallite.text.statements import Verdict, judge, keys_of, may_relate, outline_of, statement_of

COSINES = (None, *(step / 10 for step in range(-2, 11)))
SURE = WritePolicy().supersede_confidence or 1.0


def verdict(old: str, new: str, cosine: float | None = None) -> Verdict:
    return judge(statement_of(new), statement_of(old), cosine=cosine, later=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # what two are to each other, told of each
        ("Marie Curie is married to Pierre Curie.", "Pierre Curie is married to Marie Curie."),
        ("Barack Obama is married to Michelle Obama", "Michelle Obama is married to Barack Obama"),
        ("Prince William is married to Catherine", "Catherine is married to Prince William"),
        ("Ada is married to Ben", "Ben is married to Ada"),
        (
            "Ada King is married to William King-Noel, Earl of Lovelace",
            "William King-Noel is married to Ada King",
        ),
        ("Nina is a friend of Karl", "Karl is a friend of Nina"),
        # two works of one performer
        ("Imagine was performed by John Lennon.", "Jealous Guy was performed by John Lennon."),
        ("Hey Jude was performed by The Beatles.", "Let It Be was performed by The Beatles."),
        ("The singer of Hello is Adele", "The singer of Skyfall is Adele"),
        ("Adele sang Hello", "Adele sang Skyfall"),
        # citizenship and birthplace
        ("Albert Einstein is a citizen of Switzerland.", "Albert Einstein was born in the city of Ulm."),
        ("Albert Einstein is a citizen of United States of America.", "Albert Einstein was born in Germany."),
        # two persons, and sentences that are none
        (
            "The univeristy where Ada Byron was educated is University of London.",
            "The univeristy where Alan Turing was educated is University of Cambridge.",
        ),
        (
            "The univeristy where Ada was educated is University of London.",
            "The univeristy where Alan was educated is University of London.",
        ),
        (
            "Ada Byron was educated is University of London.",
            "Alan Turing was educated is University of Cambridge.",
        ),
        (
            "The univeristy Ada Byron was educated is University of London.",
            "The univeristy where Alan Turing was educated is Cambridge.",
        ),
        (
            "univeristy where Ada Byron educated is University of London",
            "The where Alan Turing was educated is University of Cambridge.",
        ),
        # said of a tool, not which one is used
        ("Prettier is a formatter", "Prettier was replaced by Biome"),
        ("Prettier was written by James Long", "Prettier was replaced by Biome"),
        ("I like Prettier", "Prettier was replaced by Biome"),
        ("The laptop has a battery", "The battery was replaced for free"),
        ("We use Jenkins for CI", "We switched to Grafana for monitoring"),
        ("We use Jenkins for CI", "Monitoring now runs on Grafana"),
        ("Max tokens is 4096", "Set top_p to 1"),
    ],
)
def test_facts_that_hold_beside_each_other_do_not_end_each_other(one: str, other: str) -> None:
    for cosine in COSINES:
        for old, new in ((one, other), (other, one)):
            assert verdict(old, new, cosine).outcome not in ("supersedes", "same"), (old, new, cosine)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We use Jenkins for CI", "We switched to GitHub Actions for CI"),
        ("We use Jenkins for CI", "CI now runs on GitHub Actions"),
        ("CI runs on Jenkins", "We switched to GitHub Actions for CI"),
        ("Max tokens is 4096", "Set max tokens to 8192"),
        ("Max tokens is 4096.", "Set max tokens to 8192."),
        ("The timeout is 30 seconds", "Set the timeout to 60 seconds"),
        ("We use Prettier for formatting", "Prettier was replaced by Biome"),
        ("We use Prettier", "Prettier was replaced by Biome"),
        ("Our formatter is Prettier", "Prettier was replaced by Biome"),
        ("Slack is our chat tool", "Slack has been replaced by Teams"),
        ("The backend runs on Django", "Django was replaced with FastAPI"),
        # they are the same two, and yet it changed
        ("Ada is married to Ben", "Ben is divorced from Ada now"),
    ],
)
def test_what_is_in_use_is_superseded_by_what_takes_its_place(old: str, new: str) -> None:
    for cosine in (None, 0.4, 0.6, 0.8):
        found = verdict(old, new, cosine)
        assert found.outcome == "supersedes"
        assert found.confidence >= SURE
    assert not set(keys_of(statement_of(old))).isdisjoint(keys_of(statement_of(new)))


def test_pairs_that_need_no_judging_are_those_that_are_independent() -> None:
    texts = [
        "Dana lives in Oslo", "Dana lives in Bergen now", "Dana now lives in Oslo", "Dana moved to Bergen",
        "My dentist is Dr. Lee", "Dr. Lee is my dentist now", "The trip is booked for May", "The trip is cancelled",
        "Tom is my husband", "Tom and I are divorced", "I no longer own a car", "I own a car", "I sold the car",
        "We use Jenkins for CI", "CI now runs on GitHub Actions", "Jenkins was replaced by Drone", "I like tea",
        "I hate tea", "Max tokens is 4096", "Set max tokens to 8192", "Is it late?", "Thanks!", "", "I am here. " * 30,
        "I was in Rome and I saw Ann. It rained. We left.", "Ich wohne in Bonn", "Ich wohne jetzt in Kiel",
        "Bob eats meat", "Bob doesn't eat meat", "If I moved to Oslo I'd miss the sun",
        "I studied law, I passed the exam",
    ]  # fmt: skip
    outlines = {text: outline_of(text, None, text.encode()) for text in texts}
    independent = 0
    for new, old in permutations(texts, 2):
        if not may_relate(outlines[new], outlines[old]):
            verdict = judge(statement_of(new), statement_of(old), cosine=0.7, later=True)
            assert verdict.outcome == "independent", (new, old)
            independent += 1
    assert independent > 0.45 * len(texts) ** 2
    assert all(may_relate(outline, outline) for outline in outlines.values())
