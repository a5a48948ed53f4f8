"""Codes of tokens in the index: by the place of their vector, whatever order they come in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.index.vectors import TokenIndex
from recallite.store.sql.blocks import TokenBlock
from tests.unit.core.memory.support import raw, scored
from tests.unit.core.memory.test_token_codes import TEXTS, TokenWords


def block(codes: dict[int, list[int]]) -> TokenBlock:
    ids = sorted(codes)
    return TokenBlock(
        np.array(ids, np.int64),
        np.array([len(codes[each]) for each in ids], np.int64),
        np.array([code for each in ids for code in codes[each]], np.uint64),
    )


def held(index: TokenIndex) -> list[list[int]]:
    starts = index.starts.tolist()
    return [index.codes[start:stop].tolist() for start, stop in pairwise(starts)]


def test_codes_are_in_the_order_of_the_vectors():
    index = TokenIndex()
    index.extend(np.array([3, 4, 7], np.int64), block({3: [30, 31], 7: [70]}))
    index.extend(np.array([12, 9, 10, 11], np.int64), block({9: [90, 91], 11: [], 12: [120], 99: [1, 2]}))
    index.extend(np.array([], np.int64), block({}))
    assert held(index) == [[30, 31], [], [70], [120], [90, 91], [], []]
    assert len(index) == 7


@pytest.mark.parametrize("low_memory", [False, True])
def test_an_index_that_followed_ranks_as_one_from_the_store_and_from_the_snapshot(path, monkeypatch, low_memory):
    monkeypatch.setattr("recallite.index.snapshot._SMALLEST", 1)
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", str(int(low_memory)))
    queries = ["striped zebra", "a beach with an elephant", "crossing"]
    with Memory(path, embedder=TokenWords()) as memory:
        ids = memory.remember_many(TEXTS * 3)
        memory.recall(queries[0])
        # The texts of a later record, then of an earlier one: their vectors have descending row ids by record.
        memory.update(ids[7], text="an elephant crossing the beach")
        memory.update(ids[2], text="a zebra with striped shirt")
        memory.forget(ids[5])
        memory.remember("zebra elephant")
        followed = [scored(hits) for hits in memory.recall_many(queries)]
        assert any(hit.signals["rerank"] for hit in memory.recall(queries[0]))
    for _ in range(2):  # the second time from the snapshot that the first wrote at close
        with Memory(path, embedder=TokenWords()) as memory:
            assert [scored(hits) for hits in memory.recall_many(queries)] == followed


def test_another_process_sees_codes_that_reembed_adds_and_removes(path):
    without = Settings(token_codes=False)
    with Memory(path, embedder=TokenWords(), settings=without) as memory:
        memory.remember_many(TEXTS)
        assert memory.recall("striped zebra")[0].signals["rerank"] == 0.0
        with Memory(path, embedder=TokenWords()) as other:
            assert other.store.reembed() == 4
        assert memory.recall("striped zebra")[0].signals["rerank"] > 0
        memory.store.reembed()
        assert memory.recall("striped zebra")[0].signals["rerank"] == 0.0


def test_a_vector_without_its_record_takes_no_codes_from_others(path):
    with Memory(":memory:", embedder=TokenWords()) as memory:
        memory.remember_many([TEXTS[0], *TEXTS[2:]])
        wanted = {hit.text: hit.signals["rerank"] for hit in memory.recall("striped zebra")}
    with Memory(path, embedder=TokenWords(), settings=Settings(index_snapshot=False)) as memory:
        memory.remember_many(TEXTS)
    connection = raw(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM record WHERE id = 2")
    connection.close()
    with Memory(path, embedder=TokenWords(), settings=Settings(index_snapshot=False)) as memory:
        found = {hit.text: hit.signals["rerank"] for hit in memory.recall("striped zebra")}
    assert found == wanted
    assert found["the striped zebra"] > 0
