"""Bulk work with a store on a PostgreSQL server, to which several processes write at once."""

from __future__ import annotations

import threading

from recallite import Memory, Settings
from recallite.model.checks import is_address
from recallite.model.reports import Remembered
from recallite_bulk import Embed, recall_many, remember_many, write
from recallite_bulk.stages import KnownIds
from tests.system.bulk.test_bulk import lines, state

INSTANT = Settings(embedder="instant")


def test_workers_store_on_a_server_what_they_store_in_a_file(postgres_address, path):
    assert is_address(postgres_address)
    assert not is_address(path)
    found = []
    for store in (path, postgres_address):
        with Memory(store, settings=INSTANT) as memory:
            assert remember_many(memory, lines(100), workers=2, batch_size=40) == Remembered(records=100)
            assert remember_many(memory, lines(110), workers=2, batch_size=40) == Remembered(records=10, known=100)
            assert len(KnownIds.of(memory)) == 110
            found.append(state(memory))
    assert found[0] == found[1]


def test_writers_of_the_same_batches_store_each_record_once(postgres_address):
    """As workers do whose batches were given to others because they were thought lost."""
    records = Embed(settings=INSTANT).records(lines(120))
    batches = [records[begin : begin + 30] for begin in range(0, 120, 30)]
    totals: list[Remembered] = []

    def writer(shift: int) -> None:
        with Memory(postgres_address, settings=INSTANT) as memory:
            done = [write(batches[(place + shift) % 4], memory) for place in range(4)]
        totals.append(sum(done[1:], done[0]))

    with Memory(postgres_address, settings=INSTANT) as memory:
        threads = [threading.Thread(target=writer, args=(shift,)) for shift in (0, 0, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(totals) == 3
        assert sum(each.records for each in totals) == 120
        assert sum(each.known for each in totals) == 240
        assert len(KnownIds.of(memory)) == 120


def test_workers_answer_from_a_server_what_they_answer_from_a_file(postgres_address, path, ready_kernels):
    answers = []
    for store in (path, postgres_address):
        with Memory(store, settings=INSTANT) as memory:
            remember_many(memory, lines(60))
        asked = recall_many(
            store, [f"library number {number}" for number in range(12)], workers=2, settings=INSTANT, limit=3,
            now="2026-06-01T00:00:00Z", batch_size=4,
        )  # fmt: skip
        answers.append([[(hit.text, round(hit.score, 9)) for hit in hits] for hits in asked])
    assert answers[0] == answers[1]
