"""How a lone query chooses between one thread and two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recallite_models
from recallite.embedding import onnx
from recallite.embedding.load import read_folder
from recallite.embedding.onnx import Runtime

SHORT = {"input_ids": np.array([[101, 7592, 102]], np.int64)}
LONG = {"input_ids": np.array([[101, *[7592] * 50, 102]], np.int64)}


class Fake:
    """Stands for a session: counts its runs, and the preemptions that the system tells of."""

    def __init__(self, counts: list[int] | None = None, lost: int = 0) -> None:
        self.runs, self.lost = 0, lost
        self.counts = [0] if counts is None else counts

    def run(self, outputs: list[str], feeds: dict[str, Any]) -> list[Any]:
        self.runs += 1
        self.counts[0] += self.lost
        return [np.zeros((1, 384), np.float32)]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setattr(onnx, "usable_cpus", lambda: 2)
    return Runtime(read_folder(recallite_models.path()))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found = [0]
    monkeypatch.setattr(onnx, "preemptions", lambda: found[0])
    return found


def ask(runtime: Runtime, times: int, feeds: dict[str, Any] = LONG) -> None:
    for _ in range(times):
        runtime.run_query(["sentence_embedding"], feeds)[0]


def test_short_queries_have_one_thread(runtime: Runtime, counts: list[int]) -> None:
    alone, pair = Fake(counts), Fake(counts)
    runtime._sessions = {1: alone, 2: pair}
    ask(runtime, 3, SHORT)
    assert (alone.runs, pair.runs) == (3, 0)


def test_long_queries_have_two_threads_while_nobody_wants_the_cores(runtime: Runtime, counts: list[int]) -> None:
    alone, pair = Fake(counts), Fake(counts)
    runtime._sessions = {1: alone, 2: pair}
    ask(runtime, 50)
    assert (alone.runs, pair.runs) == (0, 50)


def test_queries_of_a_busy_machine_keep_to_one_thread(runtime: Runtime, counts: list[int]) -> None:
    alone, pair = Fake(counts), Fake(counts, lost=1)
    runtime._sessions = {1: alone, 2: pair}
    ask(runtime, 6 + 1 + 2 + 4 + 8 + 16 + 32)
    assert (alone.runs, pair.runs) == (63, 6)
    pair.lost = 0
    ask(runtime, 20)
    assert (alone.runs, pair.runs) == (63, 26)


def test_a_lost_core_in_a_quiet_time_costs_one_query(runtime: Runtime, counts: list[int]) -> None:
    alone, pair = Fake(counts), Fake(counts)
    runtime._sessions = {1: alone, 2: pair}
    for _ in range(3):
        pair.lost = 1
        ask(runtime, 1)
        pair.lost = 0
        ask(runtime, 10)
    assert (alone.runs, pair.runs) == (3, 30)


def test_a_session_is_opened_when_it_is_first_needed(runtime: Runtime, counts: list[int]) -> None:
    assert list(runtime._sessions) == [1]
    ask(runtime, 3, SHORT)
    assert list(runtime._sessions) == [1]
    ask(runtime, 1)
    assert list(runtime._sessions) == [1, 2]


def test_one_thread_and_two_give_the_same_vector(runtime: Runtime, counts: list[int]) -> None:
    pair = runtime.run_query(["sentence_embedding"], LONG)[0]
    runtime._pause = 1
    np.testing.assert_allclose(runtime.run_query(["sentence_embedding"], LONG)[0], pair, atol=1e-5)
    assert runtime._pause == 0
