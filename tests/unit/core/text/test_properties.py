"""A value replaces a value only of the same property of the same subject, or nothing."""

from __future__ import annotations

from itertools import product

import pytest

from recallite.text.statements import Verdict, judge, keys_of, statement_of
from recallite.text.statements.keys import outline_of_statement
from recallite.text.statements.properties import traits_of

SUBJECTS = ("Gwen", "Dr. Hale", "My brother", "The tenant", "Customer 12", "Node 3", "Kestrel's API")
FACTS = (
    "{} is on the second floor", "{} runs on Mondays", "{}'s rent is 740 pounds", "{}'s PIN is 4417", "{} uses Firefox",
    "{} takes 10 mg of lisinopril", "{} works at Marlow", "{} lives in Leith", "{} is allergic to latex",
    "{} has an eye test on 4 May", "{}'s lease ends on 30 April", "{} speaks Welsh", "{}'s flight leaves at 6:45",
)  # fmt: skip
CHANGES = (
    "{} moved to a new desk on 2 June", "{} swims on Fridays now", "{}'s deposit went up to 800 pounds",
    "{}'s locker code is 9902 now", "{} switched from Barclays to Monzo", "{} takes 40 mg of atorvastatin now",
    "{} quit smoking in March", "{} is allergic to kiwi now", "{}'s exam was moved to 11 June",
    "{} was promoted on 3 May",
    "{}'s ferry was cancelled",
    "{} speaks Cornish now", "{}'s sister lives in Truro now", "{} extended the stay until 9 July",
)  # fmt: skip


def verdict(old: str, new: str) -> Verdict:
    return judge(statement_of(new), statement_of(old), later=True)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_changes_of_one_property_leave_all_others(subject: str) -> None:
    for fact, change in product(FACTS, CHANGES):
        old, new = fact.format(subject), change.format(subject)
        assert verdict(old, new).outcome == "independent", (old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the same sentence with another value
        ("CACHE_TTL=300", "CACHE_TTL is 600"),
        ("The gateway runs nginx 1.24", "The gateway runs nginx 1.26"),
        ("The error rate is 2%", "The error rate is 0.5%"),
        ("Our vet is Dr. Pham", "Our vet is Dr. Solano"),
        ("Marit's tutor is Mr Okoro", "Marit's tutor is Ms Lind now"),
        ("Rolf takes 50 mg of losartan", "Rolf takes 100 mg of losartan now"),
        # one property in two forms
        ("Lotte's phone number is 030 555 0142", "Lotte has a new phone number: 030 555 0188"),
        ("Ivo has an eye test on 14 September", "Ivo's eye test was moved to 21 September"),
        ("Node 3 has a timeout of 30 seconds", "Node 3's timeout was raised to 60 seconds"),
        ("The search service stores sessions in Redis", "The search service moved its sessions from Redis to Valkey"),
        ("Yusuf is the treasurer", "Hanna is the treasurer now"),
        ("Our joiner is Duncan", "Wilhelmina is our joiner now"),
        ("Our joiner is Duncan", "Duncan is no longer our joiner"),
        ("Choir practice is on Tuesdays", "Choir practice has moved to Wednesdays"),
        ("The tannery opens at seven", "The tannery opens at half past seven now"),
        # an end, or the opposite
        ("Nadia drives a Peugeot", "Nadia sold the Peugeot"),
        ("Nadia smokes ten cigarettes a day", "Nadia quit smoking in March"),
        ("Petra's flight leaves at 9:10", "Petra's flight was cancelled"),
        ("The archive uses Solr", "The archive switched from Solr to Meilisearch"),
        ("Halden's lawyer is Mr Brandt", "Halden replaced Mr Brandt with Ms Achebe as its lawyer"),
        ("The side gate is open", "The side gate is closed now"),
    ],
)
def test_another_value_of_one_property_supersedes_with_certainty(old: str, new: str) -> None:
    found = verdict(old, new)
    assert (found.outcome, found.certain) == ("supersedes", True)
    assert not set(keys_of(statement_of(old))).isdisjoint(keys_of(statement_of(new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CACHE_TTL=300", "CACHE_TTL=600"),
        ("log_level: debug", "log_level: warning"),
        ("default_branch -> master", "default_branch -> main"),
        ('{"replicas": 2}', '{"replicas": 4}'),
    ],
)
def test_an_assignment_supersedes_without_certainty(old: str, new: str) -> None:
    found = verdict(old, new)
    assert (found.outcome, found.certain) == ("supersedes", False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("This page was moved to the wiki", "This page was moved to the archive"),
        ("Close 2", "Close 3"),
        ("Turn 4 said by Ann", "Turn 5 said by Ann"),
        ("His rent is 900 euros", "His rent is 950 euros now"),
    ],
)
def test_what_nobody_can_tell_apart_is_no_one_subject(old: str, new: str) -> None:
    assert verdict(old, new).outcome == "independent"
    assert outline_of_statement(statement_of(new)).newer & outline_of_statement(statement_of(old)).older


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The choir rehearses on Tuesdays", "The choir rehearses on Thursdays now"),
        ("We use Bugzilla", "Redmine replaced Bugzilla"),
        ("Our lawyer for tenancy law is Ms Roth", "We switched from Ms Roth to Mr Stein"),
        ("We use Travis for builds", "We no longer use Travis. Drone replaced Travis."),
    ],
)
def test_what_may_be_of_another_or_is_not_read_is_not_certain(old: str, new: str) -> None:
    found = verdict(old, new)
    assert (found.outcome, found.certain) == ("supersedes", False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # of somebody else, of another number or place
        ("The billing team uses Bugzilla", "Redmine replaced Bugzilla"),
        ("Ada's lawyer is Mr Roth", "We switched from Mr Roth to Mr Stein"),
        ("Shelf 3 holds 20 jars", "Shelf 4 holds 30 jars now"),
        ("Ivo works at Fenwick", "Ivo works in Graz now"),
        ("In Prague we stay at the Hotel Adria", "In Cracow we stay at the Hotel Polonia now"),
        ("Warehouse: parcel 1 is on shelf 4", "Warehouse: parcel 2 is on shelf 7"),
        ("My boss is Karen", "My boss's boss is Ahmed now"),
        ("The clinic opens at 8 on Mondays", "The clinic opens at 10 on Fridays now"),
        ("The fee for members is 10 euros", "The fee for guests is 15 euros now"),
        # what moved is nothing else now, and what it was changed from is named
        ("The tenant is Swiss", "The tenant moved to Swansea"),
        ("The indexer uses Kafka", "The indexer was moved to Helsinki"),
        ("Gwen uses Firefox", "Gwen switched to Monzo"),
        ("My laptop is grey", "My laptop was moved to the corridor"),
        ('{"host": "alpha", "workers": 4}', '{"host": "beta", "workers": 9}'),
        # not now, or nobody can tell of which
        ("A friend of mine lives in Rome", "A friend of mine lives in Paris now"),
        ("Ulla will move to Oslo", "Ulla lives in Lund"),
        ("Ada: yes", "Ada: no"),
    ],
)
def test_another_property_is_independent(old: str, new: str) -> None:
    assert verdict(old, new).outcome == "independent"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The mirror site is up", "The mirror site is down"),
        ("The roof leaks", "The roof does not leak"),
        ("Guests may park in the yard", "Guests may not park in the yard"),
        ("The kick-off is on 5 May and Ana brings the contracts", "The kick-off was moved to 12 May"),
        ("Bela teaches maths and physics", "Bela no longer teaches physics"),
        ("Dana lives in Leith", "Dana moved to Graz in 2009"),
        ("Mein Passwort ist 4711", "Mein Passwort ist 4812"),
        ("La réunion commence à 14:30", "La réunion commence à 15:00"),
    ],
)
def test_what_cannot_hold_beside_it_contradicts(old: str, new: str) -> None:
    assert verdict(old, new).outcome == "contradicts"


def test_a_property_is_read_alike_in_several_forms() -> None:
    forms = ("My boss is Karen", "Karen is my boss", "I have a new boss, Karen")
    (one,), *others = (traits_of(statement_of(text)).properties for text in forms)
    for (other,) in others:
        assert (one.subject, one.relation) == (other.subject, other.relation)
        assert [word.key for word in one.roles[""]] == [word.key for word in other.roles[""]]
