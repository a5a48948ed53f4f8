"""Columns of values in the binary formats of PostgreSQL: as the rows of COPY, and as arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# https://www.postgresql.org/docs/current/sql-copy.html, Binary Format
_COPY_HEADER, _COPY_TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_NULL_BYTES = -1


class _Type(NamedTuple):
    """A type of PostgreSQL, the oid of its arrays, and how to encode values: by a letter of `struct`, or one by one."""

    name: str
    array: int
    letter: str = ""
    encode: Callable[[Any], bytes] = bytes


TYPES: dict[int, _Type] = {
    16: _Type("bool", 1000, "?"),
    17: _Type("bytea", 1001),
    20: _Type("bigint", 1016, "q"),
    25: _Type("text", 1009, encode=str.encode),
    701: _Type("double precision", 1022, "d"),
}
"""The types of the columns that many rows are inserted into, by their oids."""


class Column(NamedTuple):
    """Values of one column, None for NULL, and the oid of its type."""

    type: int
    values: Sequence[Any]


class _Cells(NamedTuple):
    """Values as they are sent: all of one size and in one piece, or each by itself with its size."""

    bytes_each: int | None
    together: bytes
    sizes: Sequence[int] = ()
    separate: Sequence[bytes] = ()


def as_copied(columns: Sequence[Column]) -> bytes:
    """Return rows as COPY reads them, header and trailer included."""
    return _COPY_HEADER + _rows(columns, [("columns", ">i2", len(columns))]) + _COPY_TRAILER


def as_array(column: Column) -> bytes:
    """Return the values of a column as an array of one dimension."""
    head = struct.pack(">iiiii", 1, None in column.values, column.type, len(column.values), 1)
    return head + _rows([column], [])


def _rows(columns: Sequence[Column], begin: list[tuple[str, str, Any]]) -> bytes:
    """Return the rows one after another, each with `begin` and then the size and the bytes of each value.

    NumPy lays out the values that have one size in all rows, together with the sizes of those that follow.
    """
    count = len(columns[0].values)
    fields, streams = begin, []
    for place, column in enumerate(columns):
        cells = _cells(column)
        if cells.bytes_each is None:
            fields.append((f"size{place}", ">i4", cells.sizes))
            streams += [_laid_out(fields, count).tolist(), cells.separate]
            fields = []
            continue
        fields.append((f"size{place}", ">i4", cells.bytes_each))
        if cells.together:
            type = f"V{cells.bytes_each}"
            fields.append((f"value{place}", type, np.frombuffer(cells.together, dtype=type)))
    if not streams:
        return _laid_out(fields, count).tobytes()
    if fields:
        streams.append(_laid_out(fields, count).tolist())
    return b"".join(chain.from_iterable(zip(*streams, strict=True)))


def _laid_out(fields: Sequence[tuple[str, str, Any]], count: int) -> NDArray[np.void]:
    """Return the bytes of each row of these fields."""
    rows = np.empty(count, dtype=[(name, type) for name, type, _ in fields])
    for name, _, values in fields:
        rows[name] = values
    return rows.view(f"V{rows.itemsize}")


def _cells(column: Column) -> _Cells:
    type, values = TYPES[column.type], column.values
    if None not in values:
        if type.letter:
            packed = struct.pack(f">{len(values)}{type.letter}", *values)
            return _Cells(len(packed) // len(values), packed)
        separate = list(map(type.encode, values))
        sizes = list(map(len, separate))
    else:
        encode = struct.Struct(f">{type.letter}").pack if type.letter else type.encode
        separate = [b"" if value is None else encode(value) for value in values]
        sizes = [_NULL_BYTES if value is None else len(sent) for value, sent in zip(values, separate, strict=True)]
    if len(set(sizes)) == 1:
        return _Cells(sizes[0], b"".join(separate))
    return _Cells(None, b"", sizes, separate)
