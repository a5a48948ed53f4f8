"""Writing: pytest benchmarks/test_remember.py. Kernels have no part in a write until the next recall."""

from __future__ import annotations

from itertools import count

import pytest

from benchmarks import corpus
from recallite import Memory, Settings

TEXTS, GIVEN = 256, 5000


@pytest.fixture(params=["full", "normal"])
def open_empty(request, tmp_path, embedder):
    """Opens a new, empty file each time it is called; all are closed at the end."""
    opened = []

    def opening():
        settings = Settings(durability=request.param)
        opened.append(Memory(tmp_path / f"{len(opened)}.db", embedder=embedder, settings=settings))
        return opened[-1]

    yield opening
    for memory in opened:
        memory.close()


def test_remember_one_text(benchmark, open_empty, held_out):
    """Embedding, one transaction, one sync to the disk."""
    memory, numbers = open_empty(), count()
    benchmark(lambda: memory.remember(f"{held_out[0]} {next(numbers)}"))


def test_remember_one_with_a_given_vector(benchmark, open_empty, held_out, vectors):
    memory, numbers = open_empty(), count()
    benchmark(lambda: memory.remember(f"{held_out[0]} {next(numbers)}", vector=vectors[0]))


def test_remember_one_in_a_large_store(benchmark, memory, held_out, vectors):
    """What an insert costs where there are `--records` already."""
    numbers = count()
    benchmark(lambda: memory.remember(f"{held_out[0]} {next(numbers)}", vector=vectors[0]))


def test_remember_many_texts(benchmark, open_empty, lines):
    benchmark.extra_info["records"] = TEXTS
    benchmark.pedantic(
        lambda memory: memory.remember_many(corpus.items(lines[:TEXTS])), setup=lambda: ((open_empty(),), {}), rounds=3
    )


def test_remember_many_with_given_vectors(benchmark, open_empty, lines, vectors):
    ready = list(corpus.items(lines[:GIVEN], vectors))
    benchmark.extra_info["records"] = len(ready)
    benchmark.pedantic(lambda memory: memory.remember_many(ready), setup=lambda: ((open_empty(),), {}), rounds=3)
