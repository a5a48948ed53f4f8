"""Groups of arguments: their fields as types."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from recallite_kernels.groups import fields_of


def test_arrays_are_known_by_both_forms_of_their_type():
    """NumPy 2.5 made NDArray an alias of its own: the first call of a kernel ended with an IndexError."""
    extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    array = np.ndarray[tuple[Any, ...], np.dtype[scalar]]
    alias = extensions.TypeAliasType("alias", array, type_params=(scalar,))
    fields = [("here", NDArray[np.int64]), ("whole", array[np.int64]), ("named", alias[np.float32]), ("count", int)]
    group = NamedTuple("group", fields)
    assert fields_of(group) == (
        ("here", np.dtype(np.int64), 1, False),
        ("whole", np.dtype(np.int64), 1, False),
        ("named", np.dtype(np.float32), 1, False),
        ("count", int, 0, False),
    )
