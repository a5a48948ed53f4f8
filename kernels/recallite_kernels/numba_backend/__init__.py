"""The kernels compiled by numba, and those that NumPy does as well. Importing this compiles nothing."""

from recallite_kernels import python_backend
from recallite_kernels.protocol import NAMES, functions_of

globals().update({name: getattr(python_backend, name) for name in NAMES} | functions_of(__name__))
