"""Options and stores that the cases share: pytest benchmarks --records 10000 --corpus FILE."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import recallite_kernels as kernels
from benchmarks import corpus
from recallite import Memory, Settings
from recallite.embedding import Embedder, load
from recallite_kernels import dispatch, python_backend

HELD_OUT = 2000


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--records` and `--corpus`."""
    group = parser.getgroup("recallite")
    group.addoption("--records", type=int, default=10_000, help="records in the stores that are asked")
    group.addoption("--corpus", type=Path, default=None, help="text file (.gz too), a memory per line; else made up")


@pytest.fixture(scope="session")
def record_count(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--records"))


@pytest.fixture(scope="session")
def all_lines(request: pytest.FixtureRequest, record_count: int) -> list[str]:
    return corpus.read_lines(request.config.getoption("--corpus"), record_count + HELD_OUT)


@pytest.fixture(scope="session")
def lines(all_lines: list[str], record_count: int) -> list[str]:
    return all_lines[:record_count]


@pytest.fixture(scope="session")
def held_out(all_lines: list[str], record_count: int) -> list[str]:
    """Lines that no store holds."""
    return all_lines[record_count:]


@pytest.fixture(scope="session")
def questions(held_out: list[str]) -> list[str]:
    return corpus.queries(held_out, 500)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return load()


@pytest.fixture(scope="session")
def vectors(record_count: int, embedder: Embedder) -> NDArray[np.float32]:
    """A vector a line. They are drawn, not embedded: that is enough for timing."""
    return corpus.mixture(record_count, embedder.dimension)


@pytest.fixture(scope="session")
def question_vectors(questions: list[str], embedder: Embedder) -> NDArray[np.float32]:
    return corpus.mixture(len(questions), embedder.dimension, seed=1)


@pytest.fixture(scope="session")
def store_path(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], vectors: NDArray[np.float32], embedder: Embedder
) -> Path:
    """A file with all lines in it, closed."""
    path = tmp_path_factory.mktemp("store") / "memory.db"
    with Memory(path, embedder=embedder) as memory:
        memory.remember_many(corpus.items(lines, vectors))
    return path


@pytest.fixture(scope="session")
def memory(store_path: Path, embedder: Embedder) -> Iterator[Memory]:
    """The store, opened and warm. Queries are not cached: every text is embedded."""
    with Memory(store_path, embedder=embedder, settings=Settings(query_cache_size=0)) as opened:
        opened.warmup()
        yield opened


@pytest.fixture(params=["numba", "python"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kernel backend in turn."""
    if request.param == "numba":
        if kernels.status().chosen != "numba":
            pytest.skip(kernels.status().reason)
        kernels.warmup()
        chosen = importlib.import_module("recallite_kernels.numba_backend")
    else:
        chosen = python_backend
    before, dispatch.active = dispatch.active, chosen
    yield request.param
    dispatch.active = before


@pytest.fixture
def turn() -> Callable[[int], int]:
    """The next number below a bound, again and again: each round of a case gets other data."""
    state = {"place": -1}

    def following(bound: int) -> int:
        state["place"] = (state["place"] + 1) % bound
        return state["place"]

    return following
