"""Compiled kernels as machine code: linked without numba, refused where they do not belong, called with arrays only."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from recallite_kernels import cache, native

VECTORS = np.random.default_rng(0).standard_normal((3, 128)).astype(np.float32)


@pytest.fixture
def sketch(jit, compiled_kernels):
    """What is kept of the kernel `sketch`."""
    native.prepare()
    return compiled_kernels.read("sketch")


def test_a_kernel_is_linked_any_number_of_times(sketch):
    found = []
    for _ in range(3):
        out = np.zeros((3, 2), np.uint64)
        assert native.linked("sketch", sketch)(VECTORS, out) == 1
        found.append(out.tolist())
    assert found[0] == found[1] == found[2]
    assert any(map(any, found[0]))


@pytest.mark.parametrize(
    "wrong", [VECTORS.tolist(), None, 3, VECTORS[0], VECTORS[None]], ids=["list", "None", "int", "row", "cube"]
)
def test_what_is_no_such_array_is_refused(sketch, wrong):
    call = native.linked("sketch", sketch)
    with pytest.raises(TypeError, match="kernel sketch: an argument is no array"):
        call(wrong, np.zeros((3, 2), np.uint64))


def test_one_for_another_processor_is_not_linked(sketch):
    own = sketch.split(b"\n", 1)[0]
    assert native.linked("sketch", sketch.replace(own, own + b",+another", 1)) is None


def test_one_that_calls_what_is_not_here_is_not_linked(sketch):
    """LLVM would end the process."""
    needed = b" PyTuple_GetItem"
    assert needed in sketch
    assert native.linked("sketch", sketch.replace(needed, needed + b" of_no_library", 1)) is None


def test_loading_compiled_kernels_imports_no_numba(jit, compiled_kernels):
    code = (
        "import sys, recallite_kernels as k; k.warmup(); "
        "print(k.status().active, 'numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["numba", "False", "True"]
    assert cache.existing().folder == compiled_kernels.folder
