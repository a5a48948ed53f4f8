"""The kernels compiled by numba. Importing this compiles nothing."""

from recallite_kernels.protocol import functions_of

globals().update(functions_of(__name__))
