"""New processes: pytest benchmarks/test_startup.py. Each case starts Python and lets it say what took how long."""

from __future__ import annotations

import pytest

import recallite_kernels as kernels
from benchmarks.latency.newprocess import run

ROUNDS = 5


@pytest.fixture(params=["numba", "python"])
def environment(request):
    if request.param == "numba":
        if kernels.status().chosen != "numba":
            pytest.skip(kernels.status().reason)
        kernels.warmup()
    return {"RECALLITE_KERNELS": request.param}


def test_start_python(benchmark):
    """The floor under every other case."""
    benchmark.pedantic(run, args=("nothing",), rounds=ROUNDS)


def test_import(benchmark):
    benchmark.pedantic(run, args=("import",), rounds=ROUNDS)


def test_first_recall(benchmark, environment, store_path, questions):
    """From the start of the process to the first hits: import, open, load the index, load the model, embed, search."""
    arguments = {"path": str(store_path), "query": questions[0]}
    benchmark.pedantic(run, args=("recall", arguments, environment), rounds=ROUNDS)


def test_first_keyword_recall(benchmark, environment, store_path, questions):
    """As above without the model."""
    arguments = {"path": str(store_path), "query": questions[0], "options": {"mode": "keyword"}}
    benchmark.pedantic(run, args=("recall", arguments, environment), rounds=ROUNDS)
