"""What is written many at a time is compared later: the same relations come out, and nothing is done twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory, copy_store
from recallite.derivation import TextDerivation
from recallite.model.settings import WritePolicy
from recallite.recall import plan
from recallite.remember import detection, pending
from recallite.remember.pending import MANY
from recallite.system.turnstile import StepSize
from tests.limits import LAST_RESORT_SECONDS, until
from tests.unit.core.memory.support import PLAIN

NOW = WritePolicy(compare="now")
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
PAIRS = [
    ("Dana lives in Oslo", "Dana moved to Bergen"),
    ("We use Jenkins for CI", "We switched to GitHub Actions for CI"),
    ("The deadline is 3 May", "The deadline is 9 May"),
    ("The meeting is at 10:00", "The meeting was moved to 14:00"),
    ("My manager is Tom", "My manager is now Ann"),
    ("Max tokens is 4096", "Max tokens is 8192"),
]


def unrelated(count=MANY):
    return [f"Shelf {number} of the cellar holds {number * 7} jars of plum jam" for number in range(count)]


def dated(texts):
    return [{"text": text, "created_at": BEGAN + timedelta(days=day)} for day, text in enumerate(texts)]


def paused(memory):
    """The memory without its background: what waits is compared by `catch_up` alone."""
    memory._engine.comparing.stop()
    return memory


def relations(memory):
    """The texts that supersede and contradict each other."""
    every = {each.id: each.text for each in memory.list(limit=1000, include_superseded=True)}
    replaced = {(each.text, every[new]) for each in memory.list(limit=1000, include_superseded=True)
                for new in each.superseded_by}  # fmt: skip
    against = {
        (every[link.source], every[link.target])
        for id in every
        for link in memory.neighbors(id, types=["contradicts"], direction="out")
    }
    return replaced, against


def test_the_same_relations_as_at_once():
    texts = dated([*[old for old, _ in PAIRS], *unrelated(), *[new for _, new in PAIRS]])
    found = []
    for policy in (NOW, WritePolicy()):
        with Memory(":memory:", settings=PLAIN) as memory:
            paused(memory).remember_many(texts, policy=policy)
            waiting = len(texts) if policy.compare == "later" else 0
            assert memory.store.stats().to_compare == waiting
            assert memory.store.catch_up() == waiting
            assert (memory.store.stats().to_compare, memory.store.verify().problems) == (0, ())
            found.append(relations(memory))
    assert found[0] == found[1]
    assert len(found[0][0]) >= 4


def test_few_are_compared_at_once(memory):
    memory.remember_many(dated([PAIRS[0][0], *unrelated(MANY - 3), PAIRS[0][1]]))
    assert memory.store.stats().to_compare == 0
    assert relations(memory)[0] == {PAIRS[0]}


def test_what_a_policy_does_not_compare_does_not_wait(memory):
    alone = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store")
    old, new = PAIRS[0]
    paused(memory).remember_many(dated([old, *unrelated(), old]), policy=alone)
    assert memory.store.stats().to_compare == 0 == memory.store.catch_up()
    assert relations(memory) == (set(), set())
    memory.remember(new)  # finds both by their statements
    assert memory.store.stats().superseded == 2
    assert memory.store.verify().problems == ()


def test_a_repeated_text_is_counted_at_once(memory):
    paused(memory).remember("Shelf 3 of the cellar holds 21 jars of plum jam")
    ids = memory.remember_many([*unrelated(), "shelf 5 of the cellar holds 35 jars of plum jam."])
    assert ids[-1] == ids[5]
    assert [memory.get(ids[place]).occurrences for place in (3, 4, 5)] == [2, 1, 2]
    assert memory.store.stats().records == MANY


def test_what_was_said_again_is_the_last_word(memory):
    old, new = PAIRS[0]
    paused(memory).remember_many(dated([old, new, *unrelated(), old]))
    memory.store.catch_up()
    assert relations(memory)[0] == {(new, old)}


def test_what_is_written_meanwhile_stands_after_what_waits(memory):
    old, new = PAIRS[0]
    paused(memory).remember_many(dated([old, *unrelated()]))
    memory.remember(new)
    assert memory.store.stats().superseded == 0
    memory.store.catch_up()
    assert relations(memory)[0] == {(old, new)}
    assert memory.store.verify().problems == ()


def test_a_write_has_no_waiting_text_read_again(memory, monkeypatch):
    read: list[str] = []
    stated = TextDerivation.frames

    def noted(derivation: TextDerivation, i: int) -> Sequence[tuple[int, int]]:
        read.append(derivation._texts.texts[i])
        return stated(derivation, i)

    monkeypatch.setattr(TextDerivation, "frames", noted)
    paused(memory).remember_many(dated([*unrelated(), PAIRS[0][0]]))
    memory.recall("plum jam")
    waiting = sorted(read)
    assert waiting
    memory.remember("The ferry leaves at noon")
    read.clear()
    memory.recall("plum jam")
    assert not set(read) & set(waiting)
    memory.update(memory.recall("Dana Oslo", limit=1)[0].id, text=PAIRS[0][1])
    memory.recall("Dana Bergen")
    assert memory.store.verify().problems == ()


def test_recall_puts_first_what_holds_now_while_it_waits(memory):
    old, new = "Dana lives in Oslo", "Dana lives in Bergen"
    question = "Where does Dana live?"
    paused(memory).remember_many(dated([old, *unrelated(), new]))
    plain = memory.recall(question, limit=2, profile={"superseded": "as_ranked", "half_life_days": 0})
    assert [hit.text for hit in plain] == [old, new]
    assert [hit.text for hit in memory.recall(question, limit=2, profile={"half_life_days": 0})] == [new, old]
    many = memory.recall_many([question, "plum jam"], limit=2, profile={"half_life_days": 0})
    assert [hit.text for hit in many[0]] == [new, old]


def test_what_waits_is_ranked_again_only_if_it_may_change_places(memory, monkeypatch):
    ranked: list[object] = []
    call = plan.call

    def noted(*arguments):
        ranked.append(arguments)
        return call(*arguments)

    monkeypatch.setattr(plan, "call", noted)
    paused(memory).remember_many(dated(["Dana lives in Oslo", *unrelated(), "Dana lives in Bergen"]))
    memory.recall("plum jam")
    assert len(ranked) == 1
    memory.recall("Where does Dana live?")
    assert len(ranked) == 3


def test_another_process_goes_on(path):
    with Memory(path, settings=PLAIN) as memory:
        paused(memory).remember_many(dated([PAIRS[0][0], *unrelated(), PAIRS[0][1]]))
    with Memory(path, settings=PLAIN) as memory:
        assert memory.store.stats().to_compare == MANY + 2
        memory.recall("plum jam")
        memory._engine.comparing.wait(30)
        assert memory.store.stats().to_compare == 0
        assert relations(memory)[0] == {PAIRS[0]}


@pytest.mark.parametrize("apart", [False, True], ids=["the background of one", "of another"])
def test_nobody_compares_what_somebody_compares(path, monkeypatch, apart):
    compared, compare_ahead = [], pending._Ahead

    def noted(engine, reader, first, stopped):
        compared.append(first.last_id - first.first_id + 1)
        return compare_ahead(engine, reader, first, stopped)

    monkeypatch.setattr(pending, "_Ahead", noted)
    texts = [PAIRS[0][0], *unrelated(3 * pending._READ_AHEAD), PAIRS[0][1]]
    with Memory(path, settings=PLAIN) as memory, Memory(path, settings=PLAIN) as other:
        memory.remember_many(dated(texts))
        until(lambda: compared)
        (other if apart else memory).store.catch_up()
        assert memory.store.stats().to_compare == 0
        assert memory._engine.comparing.wait(LAST_RESORT_SECONDS)
        assert len(texts) <= sum(compared) <= len(texts) + pending._READ_AHEAD
        assert relations(memory)[0] == {PAIRS[0]}


def test_the_background_goes_on_where_a_catch_up_fails(path, monkeypatch):
    compare, caller = pending._compare_next, threading.current_thread()

    def fails_here(*arguments):
        if threading.current_thread() is caller:
            raise OSError("the disk is gone")
        return compare(*arguments)

    monkeypatch.setattr(pending, "_compare_next", fails_here)
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many(dated([PAIRS[0][0], *unrelated(3 * pending._READ_AHEAD), PAIRS[0][1]]))
        with pytest.raises(OSError, match="gone"):
            memory.store.catch_up()
        assert memory._engine.comparing.wait(LAST_RESORT_SECONDS)
        assert (memory.store.stats().to_compare, memory._engine.comparing.failure) == (0, None)


def test_in_a_transaction_catching_up_waits_for_no_background(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many(dated([PAIRS[0][0], *unrelated(3 * pending._READ_AHEAD), PAIRS[0][1]]))
        with memory.transaction():
            memory.store.catch_up()
            assert memory.store.stats().to_compare == 0
        assert relations(memory)[0] == {PAIRS[0]}


def test_a_step_that_fails_is_done_again(memory, monkeypatch):
    monkeypatch.setattr(pending, "StepSize", lambda **_: StepSize(first=8, most=16))
    old, new = PAIRS[0]
    paused(memory).remember_many(dated([old, *unrelated(), new]))
    steps, compare = [], pending._compare_next

    def fails_at_the_third(*arguments):
        steps.append(compare(*arguments))
        if len(steps) == 3:
            raise OSError("the disk is gone")
        return steps[-1]

    monkeypatch.setattr(pending, "_compare_next", fails_at_the_third)
    with pytest.raises(OSError, match="gone"):
        memory.store.catch_up()
    assert memory.store.stats().to_compare == MANY + 2 - steps[0] - steps[1]
    memory.store.catch_up()
    assert (memory.store.stats().to_compare, memory.store.stats().superseded, memory.store.verify().problems) == (
        0,
        1,
        (),
    )


def test_statements_are_judged_before_the_store_is_locked(path, monkeypatch):
    memory = Memory(path, settings=PLAIN)
    judged, judge = {True: 0, False: 0}, detection.judge_all

    def noted(pairs, several):
        pairs = [*pairs]
        judged[memory._engine.store.writing] += len(pairs)
        return judge(pairs, several)

    texts = [text for pair in PAIRS for text in pair]
    paused(memory).remember_many(dated([*texts, *unrelated(200), *texts]))
    monkeypatch.setattr(detection, "judge_all", noted)
    memory.store.catch_up()
    assert len(relations(memory)[0]) >= 4
    assert 0 < judged[False] > 10 * judged[True]
    memory.close()


@pytest.mark.parametrize(
    ("text", "again", "replaced"),
    [
        (PAIRS[0][1], 1, {PAIRS[0]}),  # after which the others are compared again too
        ("Dana lives with two cats", 1, set()),
        ("The ferry leaves at noon", 0, set()),
    ],
)
def test_a_step_compares_with_what_was_written_after_its_statements_were_judged(
    memory, monkeypatch, text, again, replaced
):
    old, written, compared, compare_ahead, compare = PAIRS[0][0], [], [], pending._Ahead, pending._compared
    paused(memory).remember_many(dated([*unrelated()[:4], old, *unrelated()[4:]]))

    def compared_and_written(*arguments):
        ahead = compare_ahead(*arguments)
        if not written:
            written.append(memory.remember(text))
        return ahead

    def noted(engine, writer, rows, *arguments):
        compared.append([row.text for row in rows.values()])
        return compare(engine, writer, rows, *arguments)

    monkeypatch.setattr(pending, "_Ahead", compared_and_written)
    monkeypatch.setattr(pending, "_compared", noted)
    memory.store.catch_up()
    assert relations(memory)[0] == replaced
    assert compared[:1] == [[old]] * again
    assert bool(compared[1:]) == bool(replaced)
    assert memory.store.verify().problems == ()


def test_what_waits_and_is_said_again_after_it_was_judged_is_the_last_word(on_disk, monkeypatch):
    (old, new), compare_ahead, again = PAIRS[5], pending._Ahead, []
    paused(on_disk).remember_many(dated([old, *unrelated(), new]))

    def compared_and_said_again(*arguments):
        ahead = compare_ahead(*arguments)
        if not again:
            later = {"text": old, "created_at": BEGAN + timedelta(days=365)}
            again.extend(on_disk.remember_many([later, *(f"{text} and figs" for text in unrelated())]))
        return ahead

    monkeypatch.setattr(pending, "_Ahead", compared_and_said_again)
    on_disk.store.catch_up()
    assert relations(on_disk)[0] == {(new, old)}
    assert on_disk.get(again[0]).occurrences == 2


def test_what_was_compared_ahead_is_not_compared_again_unless_somebody_wrote(memory, monkeypatch):
    (old, new), compare, again = PAIRS[0], pending._compared, []
    monkeypatch.setattr(pending, "StepSize", lambda **_: StepSize(16, 16, 16))
    monkeypatch.setattr(pending, "_compared", lambda *arguments: again.append(1) or compare(*arguments))
    paused(memory).remember_many(dated([old, *unrelated(), new]))
    memory.store.catch_up()
    assert (relations(memory)[0], again) == ({(old, new)}, [])
    paused(memory).remember_many(dated([*unrelated(), old]))
    engine, was_stored = memory._engine, pending._Ahead.stored

    def stored_and_said_again(ahead, writer, **changed):
        was_stored(ahead, writer, **changed)
        writer.comparisons.add_occurrences([(1, 1, None)])  # which the feed has no change of

    monkeypatch.setattr(pending._Ahead, "stored", stored_and_said_again)
    assert pending.catch_up(engine) == len(unrelated()) + 1
    assert again


def test_what_waits_may_be_changed_and_forgotten(memory):
    old, new = PAIRS[0]
    ids = paused(memory).remember_many(dated([old, *unrelated(), "Nothing yet"]))
    memory.update(ids[-1], text=new)
    memory.forget(ids[1:10])
    assert memory.store.verify().problems == ()
    memory.store.catch_up()
    assert (memory.store.stats().to_compare, memory.store.verify().problems) == (0, ())
    assert memory.get(ids[0]).superseded_by in ((), (ids[-1],))


def test_a_copy_and_a_rebuild_keep_what_waits(path, tmp_path):
    with Memory(path, settings=PLAIN) as memory:
        paused(memory).remember_many(dated([PAIRS[0][0], *unrelated(), PAIRS[0][1]]))
        assert memory.store.rebuild().problems == ()
    other = str(tmp_path / "copy.db")
    copy_store(path, other)
    with Memory(other, settings=PLAIN) as memory:
        assert paused(memory).store.stats().to_compare == MANY + 2
        memory.store.catch_up()
        assert relations(memory)[0] == {PAIRS[0]}
        assert memory.store.verify().problems == ()


def test_inside_a_transaction_it_waits_for_a_later_write(memory):
    with memory.transaction():
        memory.remember_many(dated([PAIRS[0][0], *unrelated(), PAIRS[0][1]]))
    memory.remember("One more")
    memory._engine.comparing.wait(30)
    assert (memory.store.stats().to_compare, memory.store.stats().superseded) == (0, 1)


def test_a_record_with_an_id_of_its_own_repeats_no_other():
    items = [{"id": name, "text": text} for name, text in (("a", "Grace likes tea"), ("b", "Grace likes tea!"))]
    for policy in (NOW, WritePolicy()):
        with Memory(":memory:", settings=PLAIN) as memory:
            paused(memory).remember_many([*items, *unrelated()], policy=policy)
            memory.store.catch_up()
            assert (memory.get("a").superseded_by, memory.get("b").occurrences) == ((), 1)
