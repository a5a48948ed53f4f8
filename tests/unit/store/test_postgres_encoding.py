"""Columns are sent as the documents of PostgreSQL describe rows of COPY and arrays, value by value."""

from __future__ import annotations

import random
import struct

import pytest

from recallite.store.postgres.encoding import TYPES, Column, as_array, as_copied

BOOLEAN, BYTES, INTEGER, TEXT, REAL = 16, 17, 20, 25, 701


def sent(type, value):
    """The size of a value and its bytes; -1 alone for NULL."""
    if value is None:
        return struct.pack(">i", -1)
    plain = {
        BOOLEAN: lambda: b"\1" if value else b"\0",
        BYTES: lambda: value,
        INTEGER: lambda: value.to_bytes(8, "big", signed=True),
        TEXT: lambda: value.encode("utf-8"),
        REAL: lambda: struct.pack(">d", value),
    }[type]()
    return struct.pack(">i", len(plain)) + plain


def copied(columns):
    rows = zip(*(column.values for column in columns), strict=True)
    signature = b"PGCOPY\n\377\r\n\0" + struct.pack(">ii", 0, 0)
    types, count = [column.type for column in columns], struct.pack(">h", len(columns))
    return signature + b"".join(count + b"".join(map(sent, types, row)) for row in rows) + struct.pack(">h", -1)


def array(column):
    head = struct.pack(">iiiii", 1, None in column.values, column.type, len(column.values), 1)
    return head + b"".join(sent(column.type, value) for value in column.values)


def value_of(type, draw):
    return {
        BOOLEAN: lambda: draw.random() < 0.5,
        BYTES: lambda: draw.randbytes(draw.randrange(4)),
        INTEGER: lambda: draw.choice((0, -1, 2**63 - 1, -(2**63), draw.randrange(1000))),
        TEXT: lambda: "".join(draw.choices("aé\N{SNOWMAN}\N{GRINNING FACE}\n\\", k=draw.randrange(4))),
        REAL: lambda: draw.choice((0, -0.0, 0.5, float("inf"), draw.random())),
    }[type]()


def values_of(type, count, draw):
    """Values that are NULL in no row, in some, or in all; or all the same."""
    nulls = draw.choice((0, 0, 0.3, 1))
    if draw.random() < 0.3:
        return [value_of(type, draw)] * count
    return [None if draw.random() < nulls else value_of(type, draw) for _ in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_sent_value_by_value(seed):
    draw = random.Random(seed)
    count = draw.choice((1, 2, 9, 50))
    columns = [Column(type, values_of(type, count, draw)) for type in draw.choices([*TYPES], k=draw.randrange(1, 9))]
    assert as_copied(columns) == copied(columns)
    for column in columns:
        assert as_array(column) == array(column)


@pytest.mark.parametrize(
    ("type", "values"), [(INTEGER, [1.5, 2]), (INTEGER, [2**63, 1]), (TEXT, [b"a", "b"]), (REAL, ["1", 2.0])]
)
@pytest.mark.parametrize("null", [False, True])
def test_a_value_of_another_type_is_refused(type, values, null):
    with pytest.raises((struct.error, TypeError)):
        as_copied([Column(type, [*values, None] if null else values)])
