"""Checks of vectors that callers give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recallite.errors import InvalidInput
from recallite.model.checks import check_list
from recallite.system.messages import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_PARTS = 1_000
"""Vectors of one record."""


def check_vector(vector: object, dimension: int | None, name: str = "vector") -> NDArray[np.float32]:
    """One unit float32 vector of `dimension` components; NaN, infinity and all zeros are refused."""
    import numpy as np

    try:
        values = np.asarray(vector)
        if values.dtype.kind not in "biuf":
            raise TypeError
        array = values.astype(np.float64)  # the squares of large float32 components overflow
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name} is {type(vector).__name__} {shown(vector)}: give a sequence of numbers", "vector"
        ) from None
    if not array.size:
        raise InvalidInput(f"{name} is empty: give a sequence of numbers", "vector")
    if array.ndim != 1 or (dimension is not None and array.shape[0] != dimension):
        wanted = "one dimension" if dimension is None else f"shape ({dimension},)"
        raise InvalidInput(f"{name} has shape {array.shape}: this store takes {wanted}", "vector")
    if values.dtype == np.float32 and 0.0 < (square := float(array @ array)) < math.inf:
        plain: NDArray[np.float32] = (array / math.sqrt(square)).astype(np.float32)
        return plain
    peak = float(np.abs(array).max())
    if not peak < math.inf:  # NaN too
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidInput(f"{name} holds {array[bad]} at {bad}: every component is a finite number", "vector")
    if peak == 0.0:
        raise InvalidInput(f"{name} is all zeros, which has no direction: leave it out to embed the text", "vector")
    array /= peak
    unit: NDArray[np.float32] = (array / math.sqrt(array @ array)).astype(np.float32)
    return unit


def check_vectors(vector: object, dimension: int | None, name: str = "vector") -> NDArray[np.float32]:
    """The vectors of a record as unit float32 (parts, dimension): one as `check_vector` takes it, or several."""
    import numpy as np

    if isinstance(vector, np.ndarray):
        several = vector.ndim == 2
    else:
        inner = vector[0] if isinstance(vector, list | tuple) and vector else None
        several = isinstance(inner, np.ndarray | list | tuple)
    if not several:
        return check_vector(vector, dimension, name)[None]
    parts = check_list(vector, name)
    if not 0 < len(parts) <= MAX_PARTS:
        raise InvalidInput(f"{name} has {len(parts):,} vectors: give at least one and at most {MAX_PARTS}", "vector")
    first = check_vector(parts[0], dimension, f"{name}[0]")
    rest = [check_vector(part, len(first), f"{name}[{place}]") for place, part in enumerate(parts[1:], 1)]
    return np.stack([first, *rest])
