"""The values in a pickle, without running any of it: what would be called or imported is an `Opaque` instead."""

from __future__ import annotations

import pickletools
from typing import Any

from recallite.errors import InvalidInput

_MAX_BYTES = 16 << 20
_MARK: Any = object()
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})


class Opaque:
    """An object of a class: only the state it was saved with is known."""

    def __init__(self) -> None:
        self.state: Any = None


def plain_values(data: bytes) -> Any:
    """The value of a pickle; sets are lists.

    InvalidInput for what is none, has more than 16 MiB, shares lists or dicts between its parts, or is of rare kinds.
    """
    if len(data) > _MAX_BYTES:
        raise InvalidInput(f"it has {len(data):,} bytes: at most {_MAX_BYTES:,} are read")
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            machine.step(opcode.name, argument)
        return machine.stack[-1]
    except InvalidInput:
        raise
    except Exception as fault:  # whatever a malformed file makes of the stack
        raise InvalidInput(f"it is not a pickle that can be read: {type(fault).__name__}") from None


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._repeated_chars = 0

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _IGNORED:
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in {"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"}:
            self._memo[len(self._memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in {"BINGET", "LONG_BINGET", "GET"}:
            stack.append(self._again(self._memo[argument]))
        elif name in {"STACK_GLOBAL", "GLOBAL", "NEWOBJ", "NEWOBJ_EX", "REDUCE"}:
            taken = {"STACK_GLOBAL": 2, "GLOBAL": 0, "NEWOBJ": 2, "NEWOBJ_EX": 3, "REDUCE": 2}[name]
            del stack[len(stack) - taken :]
            stack.append(Opaque())
        elif name == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], Opaque):
                stack[-1].state = state
        elif name in _TUPLES:
            items = stack[-_TUPLES[name] :]
            stack[-_TUPLES[name] :] = [tuple(items)]
        elif name == "TUPLE":
            stack.append(tuple(self._marked()))
        elif name == "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        elif name in {"APPENDS", "ADDITEMS"}:
            items = self._marked()
            stack[-1].extend(items)
        elif name in {"SETITEM", "SETITEMS"}:
            pairs = self._marked() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
        elif isinstance(argument, str | bytes | int | float):
            stack.append(argument)
        else:
            raise InvalidInput(f"it has a {name}, which is not read")

    def _again(self, value: Any) -> Any:
        """A value that is said once and used again; what would grow without bound, or hold itself, is refused."""
        self._repeated_chars += len(value) if isinstance(value, str | bytes) else 0
        if isinstance(value, list | dict) or (isinstance(value, tuple) and value) or self._repeated_chars > _MAX_BYTES:
            raise InvalidInput("its parts share values, which is not read")
        return value

    def _marked(self) -> list[Any]:
        """Takes what is on the stack above the last mark, and the mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items
