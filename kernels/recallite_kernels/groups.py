"""The groups of arguments as types: what the compiler is told of their arrays, and what the checks hold them to."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from recallite_kernels.arguments import Forest, Records
from recallite_kernels.contract import KernelError, array, as_float, output, whole
from recallite_kernels.view import Asking, Hits, Plan, Stated, Terms, Vectors, Workspace

Group = TypeVar("Group", bound=tuple[Any, ...])

# Arrays have one dimension but for these.
_DIMENSIONS: dict[type, dict[str, int]] = {
    Records: {"speakers": 2},
    Forest: {"nodes": 2, "thresholds": 2, "leaves": 2},
    Vectors: {"sketches": 3, "codes": 2, "residuals": 2},
    Stated: {"frames": 3, "chains": 2},
    Plan: {"weights": 2},
    Asking: {"vectors": 2, "token_codes": 2},
    Hits: {
        "rows": 2, "keys": 2, "successors": 2, "scores": 2, "confidence": 2, "reasons": 2, "signals": 3, "contained": 3,
        "figures": 2,
    },
    Workspace: {
        "sketch": 2, "held_rows": 2, "held_distances": 2, "word_places": 2,
        "whole": 2, "single": 2, "double": 2, "best_three": 2, "beside": 2, "ranked": 2, "table": 2,
        "features": 2, "stated": 2, "values": 2, "changed": 2, "weighed": 2, "evidence": 2, "other_held": 2,
        "other_ranked": 2, "other_table": 2, "pool": 3, "pool_rows": 2, "pool_ranks": 2,
    },
}  # fmt: skip
# What is only read may be written too; these are written, or mixed with such.
_WRITTEN: dict[type, set[str]] = {
    Terms: {"frequencies"}, Vectors: {"places"}, Hits: set(Hits._fields), Workspace: set(Workspace._fields),
}  # fmt: skip


@cache
def fields_of(kind: type) -> tuple[tuple[str, Any, int, bool], ...]:
    """The name of each field, its type, a dtype for an array, then its dimensions and whether it is written."""
    dimensions, written = _DIMENSIONS.get(kind, {}), _WRITTEN.get(kind, set())
    fields = []
    for name, of in get_type_hints(kind).items():
        arguments = get_args(of)
        # NDArray[np.int64] is an alias of its own from NumPy 2.5 on, before that ndarray[..., dtype[np.int64]].
        type_ = np.dtype((get_args(arguments[-1]) or arguments)[0]) if arguments else of
        fields.append((name, type_, dimensions.get(name, 1) if arguments else 0, name in written))
    return tuple(fields)


def check_group(value: object, kind: type[Group], prefix: str = "") -> Group:
    """The group with its numbers as int and float; refused where a field is not of its type.

    Lengths, and what the arrays hold, are for the caller to check.
    """
    if not isinstance(value, kind):
        raise KernelError(f"{prefix or kind.__name__}: {type(value).__name__}; wanted {kind.__name__}")
    values: list[Any] = []
    for (name, of, dimensions, written), field in zip(fields_of(kind), value, strict=True):
        if isinstance(of, np.dtype):
            values.append((output if written else array)(prefix + name, field, of, *(None,) * dimensions))
        elif of is float:
            values.append(as_float(prefix + name, field))
        elif of is int:
            values.append(whole(prefix + name, field, -(2**63), 2**63 - 1))
        else:
            values.append(check_group(field, of, prefix))
    return kind(*values)
