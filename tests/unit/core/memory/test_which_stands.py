"""Which of two statements stands: one rule, whether they are written one by one, at once, compared later or changed."""

from __future__ import annotations

import io
import json
import random
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import NamedTuple
from unittest import mock

import pytest

from recallite import Memory, NewRecord
from recallite.errors import InvalidInput, NotFound
from recallite.model.authority import AUTHORITIES
from recallite.model.settings import WritePolicy
from recallite.remember import pending
from recallite.remember.pending import MANY
from recallite.remember.relations import Claim, which_stands
from recallite.system.turnstile import StepSize
from tests.unit.core.memory.support import PLAIN
from tests.unit.core.memory.test_catching_up import paused

PEOPLE = ("Ines", "Piet", "Noor")
TOWNS = ("Delft", "Ghent", "Turku")
HOURS = ("four", "five", "nine")
SAYINGS = (
    (("{} lives in {}.", "{} moved to {}.", "{} is based in {}."), TOWNS),
    (("The {} branch opens at {}.",), HOURS),
)


def claim(*days, authority=0, pinned=False, expires=False, over_at=None):
    return Claim(days, authority, pinned, expires, over_at)


@pytest.mark.parametrize(
    ("old", "new", "stands"),
    [
        (claim(1), claim(2), True),
        (claim(1, 3), claim(2, 4), True),
        (claim(1, 5), claim(2, 4), False),
        (claim(1, authority=-1), claim(2), True),
        (claim(1), claim(2, authority=-1), False),
        (claim(1, pinned=True), claim(2), False),
        (claim(1), claim(2, expires=True), False),
        (claim(1, expires=True), claim(2, expires=True), True),
        (claim(3), claim(4, over_at=2), False),
        (claim(2), claim(2), False),
    ],
)
def test_the_one_that_was_said_last_stands_if_it_may(old, new, stands):
    for pair in ((old, new), (new, old)):
        assert (which_stands(*pair) is new) is stands


class Say(NamedTuple):
    text: str
    day: int
    authority: str
    pinned: bool


class Change(NamedTuple):
    """An update to another value, or to be forgotten: of the memory that the statement of this number became."""

    statement: int
    text: str | None


def history(seed):
    """Statements in any order of time, repeated and by several speakers, with changes in between; None is a rebuild."""
    draws = random.Random(seed)
    days = [*range(1, draws.randrange(4, 10))]
    if draws.random() < 0.6:
        draws.shuffle(days)
    steps, subjects = [], []
    for day in days:
        subjects.append((draws.choice(SAYINGS), draws.choice(PEOPLE[:2])))
        authority = draws.choice(["user"] * 4 + ["agent", "web"])
        steps.append(Say(saying(draws, *subjects[-1]), day, authority, draws.random() < 0.1))
        statement = draws.randrange(len(subjects))
        match draws.randrange(12):
            case 0:
                steps.append(Change(statement, saying(draws, *subjects[statement])))
            case 1:
                steps.append(Change(statement, None))
            case 2:
                steps.append(None)
    return steps


def saying(draws, forms_and_values, person):
    forms, values = forms_and_values
    return draws.choice(forms).format(person, draws.choice(values))


def current(memory):
    return {(record.text, record.authority) for record in memory.list(limit=None) if "crate" not in record.text}


def lower_over_higher(memory):
    """The pairs of which a lower authority supersedes a higher one."""
    every = {record.id: record for record in memory.list(limit=None, include_superseded=True)}
    return [
        (old.text, every[new].text)
        for old in every.values()
        for new in old.superseded_by
        if AUTHORITIES.index(every[new].authority) > AUTHORITIES.index(old.authority)
    ]


def told(steps, compare, changes):
    """The memory of a history. `changes` says which of the changes are made: those of what is current one by one."""
    memory = paused(Memory(":memory:", settings=PLAIN))
    ids, waiting = [], []

    def write():
        while waiting:
            authority = waiting[0].authority
            alike = [say for say in waiting if say.authority == authority]
            alike = alike[: next((n for n, say in enumerate(waiting) if say.authority != authority), len(waiting))]
            del waiting[: len(alike)]
            fill = [f"crate {len(ids)} {number} holds {number * 13} plums" for number in range(MANY)]
            policy = WritePolicy(authority=authority, compare=compare)
            ids.extend(memory.remember_many([*map(record, alike), *fill], policy=policy)[: len(alike)])

    for number, step in enumerate(steps):
        if isinstance(step, Say):
            if compare is None:
                ids.append(memory.remember(record(step), policy=WritePolicy(authority=step.authority)).id)
            else:
                waiting.append(step)
            continue
        write()
        if step is None:
            assert memory.store.rebuild().ok
            continue
        try:
            if compare is None:
                changes[number] = not memory.get(ids[step.statement]).superseded_by
            if changes[number] and step.text is not None:
                memory.store.catch_up()  # an update waits for what was written before its memory, not for the rest
                memory.update(ids[step.statement], text=step.text)
            elif changes[number]:
                memory.forget(ids[step.statement])
        except NotFound:
            changes[number] = False
    write()
    memory.store.catch_up()
    return memory


def record(say):
    return NewRecord(say.text, created_at=f"2025-03-{say.day:02d}T10:00:00Z", pinned=say.pinned)


@pytest.mark.parametrize("seed", range(24))
def test_one_by_one_at_once_and_later_end_with_the_same(seed):
    steps, changes = history(seed), {}
    with (
        told(steps, None, changes) as alone,
        told(steps, "now", changes) as now,
        told(steps, "later", changes) as later,
    ):
        for memory in (alone, now, later):
            assert lower_over_higher(memory) == []
            assert memory.store.verify().problems == ()
        assert current(now) == current(alone)
        assert current(later) == current(alone)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 600))
def test_more_histories_end_with_the_same(seed):
    test_one_by_one_at_once_and_later_end_with_the_same(seed)


def fill(count=MANY):
    return [f"crate {number} holds {number * 13} plums" for number in range(count)]


@pytest.mark.parametrize("compare", [None, "now", "later"])
def test_a_value_that_comes_back_is_the_current_one(compare):
    towns = ["Delft", "Ghent", "Delft", "Ghent", "Turku", "Ghent"]
    for count in range(2, len(towns) + 1):
        steps = [Say(f"Piet lives in {town}.", day, "user", False) for day, town in enumerate(towns[:count], 1)]
        with told(steps, compare, {}) as memory:
            assert current(memory) == {(f"Piet lives in {towns[count - 1]}.", "user")}
            assert memory.recall("Where does Piet live?", limit=1)[0].text == f"Piet lives in {towns[count - 1]}."


def test_what_replaced_a_statement_is_replaced_when_that_is_said_again(memory):
    memory.remember("Noor lives in Ghent.", created_at="2025-03-01T10:00:00Z")
    moved = memory.remember("Noor moved to Turku.", created_at="2025-03-02T10:00:00Z")
    again = memory.remember("Noor lives in Ghent.", created_at="2025-03-03T10:00:00Z")
    assert again.supersedes == (moved.id,)


def test_it_holds_from_when_it_was_said_again(memory):
    texts = ("The Delft branch opens at nine.", "The Delft branch opens at four.", "The Delft branch opens at nine.")
    days = [{"text": text, "created_at": f"2025-03-0{day}T10:00:00Z"} for day, text in enumerate(texts, 1)]
    ids = paused(memory).remember_many([*days, *fill()])
    memory.store.catch_up()
    assert f"{memory.get(ids[1]).held_until:%m-%d}" == "03-03"
    at = memory.recall("When does the Delft branch open?", valid_at="2025-03-02T12:00:00Z", limit=3)
    assert texts[1] in [hit.text for hit in at]


def test_a_repetition_later_in_a_bulk_is_compared_again(memory):
    policy = WritePolicy(authority="agent")
    mine = memory.remember("The Ghent branch opens at five.", created_at="2025-03-01T10:00:00Z")
    theirs = memory.remember("The Ghent branch opens at nine.", created_at="2025-03-02T10:00:00Z", policy=policy)
    assert memory.get(theirs.id).superseded_by == ()
    again = {"text": "The Ghent branch opens at five.", "created_at": "2025-03-03T10:00:00Z"}
    assert paused(memory).remember_many([again, *fill()])[0] == mine.id
    memory.store.catch_up()
    assert memory.get(theirs.id).superseded_by == (mine.id,)
    assert memory.store.verify().problems == ()


def test_an_older_statement_does_not_undo_an_update(memory):
    first = memory.remember("The Turku branch opens at four.", created_at="2025-03-01T10:00:00Z")
    memory.update(first.id, text="The Turku branch opens at nine.")
    late = memory.remember("The Turku branch opens at five.", created_at="2025-03-02T10:00:00Z")
    assert memory.get(first.id).superseded_by == ()
    assert memory.get(late.id).superseded_by == (first.id,)


def test_an_update_supersedes_as_a_write_of_its_text_does(memory):
    old = memory.remember("Ines lives in Delft.", created_at="2025-03-01T10:00:00Z")
    note = memory.remember("Ask Ines for the keys.", created_at="2025-03-02T10:00:00Z")
    memory.update(note.id, text="Ines moved to Ghent.")
    assert memory.get(old.id).superseded_by == (note.id,)
    memory.restore(old.id)
    memory.restore(note.id, 0)
    assert current(memory) == {("Ines lives in Delft.", "user"), ("Ask Ines for the keys.", "user")}


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("fields", [{"source": "https://example.org/rates"}, {"context": "assistant"}])
def test_a_text_of_a_lower_authority_supersedes_no_word_of_the_user_by_name(memory, fields, pinned):
    mine = memory.remember(NewRecord("The rate of the loan is 3 %.", pinned=pinned))
    with pytest.raises(InvalidInput, match="only the user can say which one holds"):
        memory.remember(NewRecord("The rate of the loan is 9 %.", supersedes=mine.id, **fields))
    theirs = memory.remember(NewRecord("The rate of the loan is 8 %.", **fields))
    with pytest.raises(InvalidInput, match="only the user can say which one holds"):
        memory.supersede(mine.id, theirs.id)
    assert memory.get(mine.id).superseded_by == ()
    own = memory.remember(NewRecord("The rate of the loan is 7 %.", supersedes=mine.id))
    assert memory.get(mine.id).superseded_by == (own.id,)


def test_a_rebuild_while_records_wait_changes_nothing():
    found = []
    for rebuilds in (False, True):
        draws = random.Random(7)
        facts = [
            NewRecord(
                f"{draws.choice(PEOPLE)} moved to {draws.choice(TOWNS)}.", id=f"fact {number}",
                created_at=f"2025-03-{1 + number // 8:02d}T10:{number % 8:02d}:00Z",
            )
            for number in range(2 * MANY)
        ]  # fmt: skip
        with Memory(":memory:", settings=PLAIN) as memory:
            paused(memory).remember_many(facts)
            if rebuilds:
                assert memory.store.rebuild().ok
                assert memory.store.stats().to_compare == len(facts)
            memory.store.catch_up()
            found.append({each.id: each.superseded_by for each in memory.list(limit=None, include_superseded=True)})
    assert found[0] == found[1]


def test_an_export_says_what_superseded_what_though_it_waited():
    facts = [NewRecord(f"The Delft branch opens at {hour}.", created_at=f"2025-03-0{day}T10:00:00Z")
             for day, hour in enumerate(HOURS, 1)]  # fmt: skip
    exported = io.StringIO()
    with Memory(":memory:", settings=PLAIN) as memory, Memory(":memory:", settings=PLAIN) as other:
        paused(memory).remember_many([*facts, *fill()])
        memory.transfer.export(exported)
        other.transfer.import_(io.StringIO(exported.getvalue()))
        assert current(other) == current(memory) == {("The Delft branch opens at nine.", "user")}


def test_what_waits_under_an_unreadable_policy_is_left_out_and_reported(path):
    with Memory(path, settings=PLAIN) as memory:
        unreadable = paused(memory).remember_many(["Ines lives in Delft.", *fill()])
        with memory._engine.store.atomic() as writer:
            writer.connection.execute("UPDATE uncompared SET policy = '{\"of a later version\": 1}'")
    with Memory(path, settings=PLAIN) as memory:
        facts = [{"text": f"Piet lives in {town}.", "created_at": f"2025-03-0{day}T10:00:00Z"}
                 for day, town in enumerate(TOWNS, 1)]  # fmt: skip
        ids = paused(memory).remember_many([*facts, *(f"{text} again" for text in fill())])
        memory.store.catch_up()
        assert memory.get(ids[0]).superseded_by
        stats, problems = memory.store.stats(), memory.store.verify().problems
        assert stats.to_compare == len(unreadable)
        assert any("cannot be read" in note for note in stats.notes)
        assert [problem.name for problem in problems] == ["policy of records that wait to be compared is unreadable"]
        assert memory.store.rebuild().ok
        assert memory.store.catch_up() == len(unreadable)
        assert memory.store.stats().notes == stats.notes[:-1] or not memory.store.stats().to_compare


def test_what_holds_again_is_compared_again(memory):
    web = WritePolicy(authority="web")
    memory.remember("The Turku branch opens at four.", created_at="2025-03-01T10:00:00Z", policy=web)
    mine = memory.remember("The Turku branch opens at nine.", created_at="2025-03-04T10:00:00Z")
    memory.remember("The Turku branch opens at five.", created_at="2025-03-02T10:00:00Z", policy=web)
    gone = memory.forget(mine.id)
    assert current(memory) == {("The Turku branch opens at five.", "web")}
    assert [memory.get(id).text for id in gone.holds_again] == ["The Turku branch opens at five."]


def test_what_is_forgotten_waits_no_longer(memory):
    ids = paused(memory).remember_many(fill())
    memory.forget(ids[:3])
    assert memory.store.stats().to_compare == len(ids) - 3


def test_a_repeated_statement_is_one_current_memory_however_it_is_worded():
    texts = ["Noor's budget is 400 euros.", "Noor's budget is 400 euros!"]
    found = Counter()
    for compare in (None, "now", "later"):
        steps = [Say(text, day, "user", False) for day, text in enumerate(texts, 1)]
        with told(steps, compare, {}) as memory:
            found[tuple(sorted(current(memory)))] += 1
    assert len(found) == 1


def test_an_older_line_without_an_id_is_imported_as_what_was_replaced(memory):
    now = memory.remember("The Ghent branch opens at nine.", created_at="2025-03-09T10:00:00Z")
    line = '{"text": "The Ghent branch opens at four.", "created_at": "2025-03-01T10:00:00Z"}\n'
    paused(memory).transfer.import_(io.StringIO(line), format="jsonl")
    memory.store.catch_up()
    assert current(memory) == {("The Ghent branch opens at nine.", "user")}
    assert [former.text for former in memory.recall("When does the Ghent branch open?")[0].supersedes] == [
        "The Ghent branch opens at four."
    ]
    assert memory.get(now.id).superseded_by == ()


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_history_does_not_depend_on_how_many_are_compared_at_a_time(size, monkeypatch):
    monkeypatch.setattr(pending, "StepSize", lambda **_: StepSize(size, size, size))
    draws, found = random.Random(3), []
    facts = [
        NewRecord(
            f"{draws.choice(PEOPLE)} lives in {draws.choice(TOWNS)}.", id=f"fact {number}",
            created_at=f"2025-03-{1 + number // 8:02d}T10:{number % 8:02d}:00Z",
        )
        for number in range(2 * MANY)
    ]  # fmt: skip
    for compare in ("now", "later"):
        with Memory(":memory:", settings=PLAIN) as memory:
            paused(memory).remember_many(facts, policy=WritePolicy(compare=compare))
            memory.store.catch_up()
            found.append({each.id: each.superseded_by for each in memory.list(limit=None, include_superseded=True)})
    assert found[0] == found[1]


def test_records_of_which_none_is_current_any_more_wait_no_longer(memory):
    ids = paused(memory).remember_many(fill())
    new = memory.remember("All crates are empty.")
    memory.supersede(ids, new.id)
    assert memory.store.stats().to_compare == len(ids)
    assert memory.store.catch_up() == len(ids)
    assert memory.store.stats().to_compare == 0


# ── a clock that is ahead ──────────────────────────────────────────────────────────────────────────────────────────

OLD, NEW = "The rent of the flat is 900 euros", "The rent of the flat is 950 euros now"
FILLING = [f"There is a green crate {number}" for number in range(MANY)]


@contextmanager
def ahead():
    real = time.time_ns
    with mock.patch.object(time, "time_ns", side_effect=lambda: real() + 365 * 86_400 * 10**9):
        yield


@pytest.mark.parametrize("compared", ["ahead", "later"])
@pytest.mark.parametrize("new", ["one", "many"])
@pytest.mark.parametrize("old", ["one", "many"])
def test_what_a_clock_ahead_has_dated_was_said_when_it_was_written(old, new, compared):
    """However each is written, and with which clock what waits is compared."""
    with Memory(":memory:", settings=PLAIN) as memory:
        paused(memory)
        for how, text, clock in ((old, OLD, ahead), (new, NEW, nullcontext)):
            with clock():
                memory.remember(text) if how == "one" else memory.remember_many([text, *FILLING])
                if compared == "ahead" or text == NEW:
                    memory.store.catch_up()
        assert current(memory) == {(NEW, "user")}
        memory.store.rebuild()
        assert current(memory) == {(NEW, "user")}
        assert memory.recall("What is the rent of the flat?", limit=1)[0].text == NEW
        (former,) = (record for record in memory.list(limit=None, include_superseded=True) if record.text == OLD)
        assert former.superseded_at < datetime.now(UTC)
        assert memory.remember(OLD.replace("is", "is now")).superseded_by == ()
        assert memory.store.verify().problems == ()


def test_what_was_said_before_is_no_newer_for_a_clock_that_is_ahead():
    with Memory(":memory:", settings=PLAIN) as memory:
        with ahead():
            memory.remember(OLD.replace("is", "is now"))
        memory.remember(NEW, created_at="2024-01-01")
        assert [record.text for record in memory.list()] == [OLD.replace("is", "is now")]


@pytest.mark.parametrize("imported", [False, True])
def test_what_a_clock_ahead_has_written_is_not_as_old_as_what_was_backdated_after_it(imported):
    with Memory(":memory:", settings=PLAIN) as memory:
        paused(memory)
        memory.remember("There is a blue crate")
        with ahead():
            memory.remember_many([NEW, *FILLING])
        line = {"id": "old", "text": OLD, "created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z"}
        if imported:
            memory.transfer.import_(io.StringIO(json.dumps(line)))
        else:
            memory.remember(OLD, created_at=line["created_at"])
        memory.store.catch_up()
        assert current(memory) == {(NEW, "user")}


def test_an_audit_goes_by_when_what_a_clock_ahead_has_dated_was_written():
    policy = WritePolicy(supersede_confidence=None, contradict_confidence=None)
    with Memory(":memory:", settings=PLAIN) as memory:
        with ahead():
            old = memory.remember(OLD, policy=policy)
        new = memory.remember(NEW, policy=policy)
        (found,) = memory.review.audit(["contradictions"]).findings
        assert (found.id, found.other, found.verb) == (old.id, new.id, "supersede")


def test_who_says_what_a_memory_replaces_is_not_refused_for_a_clock_that_was_ahead():
    with Memory(":memory:", settings=PLAIN) as memory:
        with ahead():
            first, second = (memory.remember(f"The {of} is 900 euros") for of in ("rent", "fee"))
        new = memory.remember(NewRecord("Nothing is paid", supersedes=[first.id]))
        memory.supersede(second.id, new.id)
        assert [record.text for record in memory.list()] == ["Nothing is paid"]


def test_a_topic_gets_the_text_that_was_written_after_one_of_a_clock_ahead():
    with Memory(":memory:", settings=PLAIN) as memory:
        policy = WritePolicy(merge_strategy="latest")
        with ahead():
            memory.remember(NewRecord("900 euros", topic="rent"), policy=policy)
        memory.remember(NewRecord("950 euros", topic="rent"), policy=policy)
        memory.remember(NewRecord("850 euros", topic="rent", created_at="2024-01-01"), policy=policy)
        (record,) = memory.list()
        assert (record.text, len(memory.history(record.id))) == ("950 euros", 3)
