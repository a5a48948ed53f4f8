"""Facts about named people, works, tools and settings: which of them end each other."""

from __future__ import annotations

from itertools import permutations

import pytest

from recallite.model.settings import WritePolicy
from recallite.text.statements import Verdict, frames_of, judge, keys_of, may_replace, outline_of, statement_of
from recallite.text.statements.keys import over_of
from recallite_kernels.arguments import DENIED, ENDED, OVER

# A word of change within a title changes nothing.
TITLES = {
    "Can't Buy Me Love was performed by Madonna": "Get Back was performed by Madonna",
    "Let It Be was performed by Anna": "The Long Road Back was performed by Anna",
    "Ben likes Abbey Road": 'Ben likes "Changed for Good"',
    "The film was directed by Ana": "The film Nothing Ended was directed by Ana",
}
SURE = WritePolicy().supersede_confidence or 1.0


def verdict(old: str, new: str) -> Verdict:
    return judge(statement_of(new), statement_of(old), later=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # what two are to each other, told of each
        ("Marie Curie is married to Pierre Curie.", "Pierre Curie is married to Marie Curie."),
        ("Barack Obama is married to Michelle Obama", "Michelle Obama is married to Barack Obama"),
        ("Prince William is married to Catherine", "Catherine is married to Prince William"),
        ("Ada is married to Ben", "Ben is married to Ada"),
        ("Ada Lee is married to Ben Lee", "Ben Lee is married to Ada Lee"),
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
    for old, new in ((one, other), (other, one)):
        assert verdict(old, new).outcome not in ("supersedes", "same"), (old, new)


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
        ("We deploy with Heroku", "Heroku was replaced by EKS"),
        ("We use Slack for chat", "Zulip replaced Slack for us"),
        ("We switched from TSLint to ESLint", "We use Biome now. It replaced ESLint."),
        ("Uses ESLint for linting", "Uses Biome. Replaced ESLint and Prettier."),
        ("The user lints with TSLint", "The user lints with Biome now"),
        ("Dana lives in Oslo", "Dana used to live in Oslo"),
        ("Uses TSLint", "Previously used TSLint."),
    ],
)
def test_what_is_in_use_is_superseded_by_what_takes_its_place(old: str, new: str) -> None:
    found = verdict(old, new)
    assert found.outcome == "supersedes"
    assert found.confidence >= SURE
    assert not set(keys_of(statement_of(old))).isdisjoint(keys_of(statement_of(new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We use GitHub", "CircleCI replaced GitHub Actions"),
        ("We use Slack", "Acme replaced Slack with Zulip"),
        ("We use Slack", "Slack will be replaced by Zulip next year"),
        ("We use Slack", "Slack may be replaced by Zulip"),
        ("We use Slack", "Tom says Zulip replaced Slack"),
        ("We use Slack", "Was Slack replaced by Zulip?"),
        ("We use Slack", 'He wrote "Zulip replaced Slack"'),
        ("We use Slack and Zoom", "Zulip replaced Slack"),
        ("We use Redis as a cache", "Redis was replaced by Valkey in the shop"),
        ("Slack is slow", "Zulip replaced Slack"),
        ("I play with Tom", "Tom was replaced by Ann"),
        ("Messi plays for Barcelona", "Alba replaced Messi as captain in 1998"),
        ("The phone has a battery", "Tom replaced the battery"),
        ("Dana lives in Oslo", "Dana used to live in Rome"),
        ("Dana smokes", "Dana's father used to smoke"),
        ("He lives in Oslo", "He used to live in Oslo"),
        ("Dana used to live in Oslo", "Dana lives in Rome"),
        ("We use Webpack", "The tool used to build the app is Vite"),
        ("Ann Lee is a citizen of France", "Ann Lee was born in the city of Los Angeles"),
        ("University of Coimbra is a citizen of Peru", "The school where Ann Lee studied is University of Coimbra"),
    ],
)
def test_what_tells_of_a_part_a_plan_or_another_ends_nothing(old: str, new: str) -> None:
    found = verdict(old, new)
    assert found.outcome != "supersedes" or found.confidence < SURE


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("I used to live in Berlin", ENDED),
        ("Previously used TSLint.", ENDED),
        ("Previously, we used Jenkins", ENDED),
        ("We formerly deployed with Heroku", ENDED),
        ("Was debating whether to use Postgres", ENDED),
        ("The user was previously a nurse", ENDED),
        ("TSLint. Previously used TSLint. Replaced by ESLint.", ENDED),
        ("Switched from TSLint to ESLint. Later replaced by Biome.", ENDED),
        ("I no longer live in Berlin", DENIED),
        ("I live in Bonn", 0),
        ("Heroku was replaced by EKS", 0),
        ("It will be replaced by EKS", 0),
        ("User previously lived in Oslo and now lives in Bergen", 0),
        ("X, formerly Twitter, has 500 employees", 0),
        ("Formerly Twitter, X is based in Austin", 0),
        ("I'm used to long flights", 0),
        ("The knife is used to cut bread", 0),
        ("The tool used to build the app is Vite", 0),
        ("Tom says Ann used to live in Berlin", 0),
        ("Did I use to live in Berlin?", 0),
    ],
)
def test_what_says_itself_that_it_is_over(text: str, over: int) -> None:
    statement = statement_of(text)
    assert over_of(statement) == over
    assert (frames_of(statement)[-1:] == ((OVER, over),)) == bool(over)
    assert (OVER, over) not in frames_of(statement, turn=True)


def test_pairs_that_need_no_judging_are_those_that_are_independent() -> None:
    texts = [
        "Dana lives in Oslo", "Dana lives in Bergen now", "Dana now lives in Oslo", "Dana moved to Bergen",
        "My dentist is Dr. Lee", "Dr. Lee is my dentist now", "The trip is booked for May", "The trip is cancelled",
        "Tom is my husband", "Tom and I are divorced", "I no longer own a car", "I own a car", "I sold the car",
        "We use Jenkins for CI", "CI now runs on GitHub Actions", "Jenkins was replaced by Drone", "I like tea",
        "I hate tea", "Max tokens is 4096", "Set max tokens to 8192", "Is it late?", "Thanks!", "", "I am here. " * 30,
        "I was in Rome and I saw Ann. It rained. We left.", "Ich wohne in Bonn", "Ich wohne jetzt in Kiel",
        "Bob eats meat", "Bob doesn't eat meat", "If I moved to Oslo I'd miss the sun",
        "I studied law, I passed the exam", "I used to like tea", "Previously used Jenkins.", "Uses Jenkins",
        "Drone replaced Jenkins", "Jenkins. Used Jenkins. Later replaced by Drone.", "Drone. Uses Drone for CI.",
    ]  # fmt: skip
    outlines = {text: outline_of(text, None) for text in texts}
    independent = 0
    for new, old in permutations(texts, 2):
        if not may_replace(outlines[new], [outlines[old]])[0][0]:
            verdict = judge(statement_of(new), statement_of(old), later=True)
            assert verdict.outcome == "independent", (new, old)
            independent += 1
    assert independent > 0.45 * len(texts) ** 2
    assert all(may_replace(outline, [outline]) == [(True, True)] for outline in outlines.values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Use the cool shot to set the style", "Use a dry shampoo between washes"),
        ("Don't water cacti in winter", "Always repot orchids in spring"),
        ("Avoid loud music at night", "Avoid drinks with sugar"),
        ("It uses a lot of power", "It uses two cables"),
        ("Answer in German from now on", "Always write tests for bugs"),
    ],
)
def test_commands_and_instructions_about_other_things_need_no_judging(old: str, new: str) -> None:
    assert may_replace(outline_of(new, None), [outline_of(old, None)]) == [(False, False)]


@pytest.mark.parametrize(("old", "new"), TITLES.items())
def test_a_word_of_change_in_a_title_is_no_change(old, new):
    assert verdict(old, new).outcome == "independent"
