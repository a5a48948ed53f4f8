"""How much of Python a recall and a write run: what grows here costs every agent at every step."""

from __future__ import annotations

import os
import sys
from collections import Counter
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest

import recallite
from recallite import Memory
from recallite.model.records import NewRecord
from tests.conftest import PLAIN
from tests.limits import LAST_RESORT_SECONDS

PACKAGE = f"{Path(recallite.__file__).parents[1]}{os.sep}"
NAMES = ("Amara", "Bela", "Chiyo", "Dov", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")
THINGS = ("kettle", "ladder", "violin", "printer", "canoe", "camera", "oven", "bicycle", "telescope", "tent")


def calls_of(work):
    """The calls of this thread by file of the package, without the kernels: compiled, each is one call."""
    calls = Counter()

    def see(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            calls[file.removeprefix(PACKAGE)] += 1

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def fewest(work, times=3):
    """The fewest calls of some runs: what the background commits meanwhile adds to a run, and takes from none."""
    return min((calls_of(work) for _ in range(times)), key=Counter.total)


def check(calls, most_calls, most_files):
    """Compare with bars about a twentieth above what was measured."""
    assert calls.total() <= most_calls, calls.most_common(20)
    assert len(calls) <= most_files, sorted(calls)


def facts():
    """Facts, each told once."""
    return (f"{NAMES[n % 10]} keeps the {THINGS[n // 10 % 10]} in room {n}" for n in count())


def questions():
    """Questions, each asked once."""
    return (f"In which room is the {THINGS[n % 10]} of {NAMES[n // 10 % 10]}, number {n}?" for n in count())


@pytest.fixture
def used(path):
    """A memory with the settings of users, some facts and questions later."""
    with Memory(path) as memory:
        memory.remember_many(islice(facts(), 60))
        for question in ("Who keeps a violin?", "Where is the tent of Ines?"):
            memory.recall(question)
            memory.recall(question, relevant=True)
        yield memory


def test_a_warm_recall_with_a_vector_makes_few_calls(tmp_path):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((62, 16)).astype(np.float32)
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        memory.remember_many(
            [{"text": f"note {n} of many words", "vector": each} for n, each in enumerate(vectors[:60])]
        )

        def recall(number=3):
            return memory.recall("which note has many words", vector=vectors[number])

        for _ in range(3):
            assert len(recall()) == 10
        check(fewest(recall), 102, 21)
        for number in (60, 61):
            memory.remember(NewRecord(f"note {number} of many words", vector=vectors[number]))
            after = calls_of(lambda: recall(number))  # noqa: B023
        # The view of the index is made again; nothing is read of what was written.
        check(after, 125, 25)


def test_a_batch_makes_few_calls_a_question(tmp_path):
    generator, batch = np.random.default_rng(0), 64
    vectors = generator.standard_normal((batch, 16)).astype(np.float32)
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        memory.remember_many([{"text": f"note {n} of many words", "vector": each} for n, each in enumerate(vectors)])
        # What relates to others is read for it alone.
        newer, older = (each.id for each in memory.list(limit=2))
        memory.supersede(older, newer)
        memory.store.catch_up()
        questions = [f"which note has many words, {n}" for n in range(batch)]

        def recall():
            return memory.recall_many(questions, vectors=vectors)

        for _ in range(2):
            assert [len(hits) for hits in recall()] == [10] * batch
        check(fewest(recall), 47 * batch, 27)


def test_a_recall_of_a_new_question_makes_few_calls(used):
    new = questions()
    check(fewest(lambda: used.recall(next(new))), 181, 29)


def test_a_recall_of_what_answers_makes_few_calls(used):
    new = (f"In which room is the {thing} of Amara?" for thing in THINGS)
    check(fewest(lambda: used.recall(next(new), relevant=True)), 253, 30)


def test_the_first_recall_after_a_bulk_write_makes_few_calls(used):
    told, new = islice(facts(), 60, None), questions()

    def first_recall():
        used.remember_many(islice(told, 100))
        assert used._engine.comparing.wait(LAST_RESORT_SECONDS)
        return calls_of(lambda: used.recall(next(new)))

    check(min((first_recall() for _ in range(3)), key=Counter.total), 322, 34)


def test_a_write_makes_few_calls(used):
    # What other tests of this process have told is read already, and makes fewer.
    told = islice(facts(), 20_000, None)
    check(fewest(lambda: used.remember(next(told))), 518, 36)


def test_a_bulk_write_makes_few_calls_a_record(used):
    records, told = 100, islice(facts(), 10_000, None)

    def bulk():
        batch = [*islice(told, records)]
        calls = calls_of(lambda: used.remember_many(batch))
        assert used._engine.comparing.wait(LAST_RESORT_SECONDS)
        return calls

    check(min((bulk() for _ in range(3)), key=Counter.total), 14.2 * records, 34)
