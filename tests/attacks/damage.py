"""What a bad disk, a bad memory or a careless hand does to a file: bits, pages and ends."""

from __future__ import annotations

import os
import random
from pathlib import Path

__all__ = ["spoil"]

_PAGE = 4096
_WAYS = ("one bit", "many bits", "truncated", "zeroed page", "random page", "swapped pages", "more at the end", "empty")
_WEIGHTS = (8, 3, 4, 2, 2, 1, 1, 1)


def spoil(path: Path, chance: random.Random) -> str:
    """Damage a file in place, as whoever has it open sees it too; says how."""
    with path.open("r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        way = chance.choices(_WAYS, _WEIGHTS)[0] if size else "more at the end"
        data = os.pread(file.fileno(), size, 0)
        # Not in a hole, and often in the head, which decides most.
        ends = {start: len(data[start : start + _PAGE].rstrip(b"\0")) for start in range(0, size, _PAGE)}
        filled = [start for start, end in ends.items() if end] or [0]

        def place() -> int:
            start = chance.choice(filled)
            return start + chance.randrange(max(1, ends.get(start, 0)))

        at = place() if chance.random() < 0.8 else chance.randrange(max(1, min(size, 512)))
        page = at // _PAGE * _PAGE
        match way:
            case "one bit" | "many bits":
                for each in {at} if way == "one bit" else {place() for _ in range(32)}:
                    os.pwrite(file.fileno(), bytes([data[each] ^ 1 << chance.randrange(8)]), each)
            case "truncated":
                file.truncate(at)
            case "zeroed page" | "random page":
                length = min(_PAGE, size - page)
                os.pwrite(file.fileno(), bytes(length) if way == "zeroed page" else chance.randbytes(length), page)
            case "swapped pages":
                other = place() // _PAGE * _PAGE
                length = min(_PAGE, size - page, size - other)
                first, second = os.pread(file.fileno(), length, page), os.pread(file.fileno(), length, other)
                os.pwrite(file.fileno(), second, page)
                os.pwrite(file.fileno(), first, other)
            case "more at the end":
                os.pwrite(file.fileno(), chance.randbytes(chance.choice((1, 100, 2 * _PAGE))), size)
            case "empty":
                file.truncate(0)
    return f"{way} at {at:,} of {size:,} bytes"
