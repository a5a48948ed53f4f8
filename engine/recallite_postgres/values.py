"""Values as PostgreSQL takes them: every int as bigint and every str as text, so that a statement is planned once."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

_INT8, _INT8_ARRAY, _TEXT, _TEXT_ARRAY, _BYTEA, _BYTEA_ARRAY = 20, 1016, 25, 1009, 17, 1001
_size = struct.Struct(">i").pack
_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


class IdArray:
    """Row ids, as bigint[]."""

    def __init__(self, ids: Sequence[int] | NDArray[np.int64]) -> None:
        self.ids = np.ascontiguousarray(ids, dtype=np.int64)


class BytesArray:
    """Byte sequences, as bytea[]."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values


class TextArray(BytesArray):
    """Texts, as text[]."""

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__([value.encode() for value in values])


class _IdArrayDumper(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: IdArray) -> bytes:
        elements = np.empty(len(obj.ids), dtype=_ELEMENT)
        elements["size"], elements["value"] = 8, obj.ids
        return _head(_INT8, len(elements)) + elements.tobytes()


class _BytesArrayDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY
    element = _BYTEA

    def dump(self, obj: BytesArray) -> bytes:
        return _head(self.element, len(obj.values)) + b"".join([_size(len(value)) + value for value in obj.values])


class _TextArrayDumper(_BytesArrayDumper):
    oid, element = _TEXT_ARRAY, _TEXT


def _head(type: int, count: int) -> bytes:
    """The beginning of an array of one dimension, or of none for an empty one, without NULLs."""
    return struct.pack(">iiiii", 1, 0, type, count, 1) if count else struct.pack(">iii", 0, 0, type)


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection send values so."""
    for type, dumper in (
        (int, Int8BinaryDumper), (float, FloatBinaryDumper), (str, StrBinaryDumper), (IdArray, _IdArrayDumper),
        (TextArray, _TextArrayDumper), (BytesArray, _BytesArrayDumper),
    ):  # fmt: skip
        connection.adapters.register_dumper(type, dumper)
