"""The kernels in Python and NumPy, without a compiler; they answer until the JIT is ready."""

from recallite_kernels.protocol import functions_of

globals().update(functions_of(__name__))
