"""Every test that takes `backend` runs on both; the JIT one is really compiled."""

from __future__ import annotations

import importlib

import pytest

from recallite_kernels import dispatch, python_backend, status, warmup


@pytest.fixture(scope="session")
def jit(ready_kernels):
    if status().selected != "numba":
        pytest.skip(f"the JIT backend is not chosen here: {status().reason}")
    before = dispatch.active
    warmup()
    dispatch.active = before
    return importlib.import_module("recallite_kernels.numba_backend")


@pytest.fixture(scope="module", params=["python", "numba"])
def backend(request):
    """Makes one backend answer for the whole module."""
    chosen = request.getfixturevalue("jit") if request.param == "numba" else python_backend
    before, dispatch.active = dispatch.active, chosen
    yield request.param
    dispatch.active = before
