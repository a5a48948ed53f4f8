"""A newer statement that may leave what the older one says as it is supersedes nothing."""

from __future__ import annotations

import pytest

from recallite.text.statements import judge, statement_of
from recallite.text.statements.judging import spelled_alike


def verdict(old, new):
    return judge(statement_of(new), statement_of(old), later=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # guessed, told or wished
        ("Dana lives in Oslo", "Maybe Dana lives in Bergen now"),
        ("Dana lives in Oslo", "Bob thinks Dana lives in Bergen now"),
        ("Dana lives in Oslo", "Bob said that Dana lives in Bergen now"),
        ("Dana lives in Oslo", "I wish Dana lived in Bergen now"),
        # nothing changed
        ("We use Postgres", "We did not switch from Postgres to MySQL"),
        ("I smoke", "I didn't quit smoking"),
        # later, long ago, for a while
        ("I live in Oslo", "I'm moving to Bergen next year"),
        ("We use Postgres", "We plan to switch from Postgres to MySQL"),
        ("I live in Oslo", "I moved to Bergen when I was five"),
        ("The gym closes at 10", "The gym closes at 6 today"),
        ("I work in Oslo", "I work in Bergen this week"),
        # of something else
        ("For admins the limit is 100", "For guests the limit is 10 now"),
        ("Ada's phone is 555", "Ada's office phone is 777 now"),
        ("Dana lives in Oslo", "Dana lives with Bob now"),
        ("The server is in Frankfurt", "The server is down now"),
        ("The server runs on port 80", "The server runs on Debian now"),
        ("We use Postgres", "Acme switched from Postgres to MySQL"),
        ("A friend of mine lives in Rome", "A friend of mine lives in Paris now"),
        # one more, or in part
        ("I take metformin", "I also take insulin now"),
        ("I'm allergic to nuts and milk", "I'm no longer allergic to milk"),
        ("Choir is on Tuesdays in the hall", "From now on choir is in the school instead of the hall"),
        ("The market is on Saturdays at the quay", "The market is on Sundays instead of Saturdays now"),
        ("We support Linux and Windows", "We dropped Windows"),
        ("Ann and Bob lead the team", "Bob no longer leads the team"),
        ("I eat meat", "I no longer eat meat on Fridays"),
        ("Dana works at Google", "Dana no longer works at Google Maps"),
        ("The feature is enabled", "The feature is disabled for guests"),
        ("Bob reports to Ann", "Bob no longer reports to Tom"),
        ("The height is 2 m", "The height is 200 cm"),
    ],
)
def test_what_may_still_hold_is_not_superseded(old, new):
    found = verdict(old, new)
    assert found.outcome != "supersedes" or found.confidence < 0.8, found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Dana lives in Oslo", "Dana lives in Bergen now"),
        ("The ticket costs 5 dollars", "The ticket went up from 5 to 7 dollars"),
        ("I sell cars", "I don't sell cars anymore"),
        ("I go to the gym", "I'm not going to the gym anymore"),
        ("The timeout is 30 seconds", "The timeout is 2 minutes now"),
        ("The standup is on Monday", "The standup is on Tuesday next week"),
        ("I work at Google", "I no longer work at Google"),
        ("I'm allergic to nuts and milk", "I'm no longer allergic to nuts or milk"),
        ("Staging runs Postgres", "Staging is on MySQL these days"),
        ("The repo is private", "The repo is public since today"),
    ],
)
def test_what_has_changed_is(old, new):
    assert verdict(old, new).outcome == "supersedes"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Password: abc", "Password: ABC"),
        ("I like Apple", "I like apple"),
        ("a < b", "a > b"),
        ("x = 1", "x == 1"),
        ("Use -v", "Use -V"),
        ("Use US", "Use us"),
        ("deploy to prod \u2705", "deploy to prod \u274c"),
        ("Red apple pie recipe", "Red apple pie recipe too"),
    ],
)
def test_what_is_spelled_otherwise_is_not_the_same(one, other):
    assert verdict(one, other).outcome != "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like apples", "i like apples."),
        ("The office closes at six!", "the office closes at six"),
        ("Dana lives in Oslo", "Dana lives in  Oslo"),
        ("\u201cquoted\u201d", '"quoted"'),
    ],
)
def test_the_same_in_other_punctuation_is(one, other):
    assert spelled_alike(one, other)
