"""The kernels compiled by numba. Importing this compiles nothing; `_jit.Kernel.load` does."""

from recollect_kernels.protocol import functions_of

globals().update(functions_of(__name__))
