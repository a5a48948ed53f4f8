"""JSON of any size: the items of an array one at a time, and values that a strict reader refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import IO, Any, NamedTuple

import msgspec

from recallite.errors import InvalidInput
from recallite.system.messages import shown

_BLOCK_BYTES = 1 << 20
_MAX_ITEM_BYTES = 256 << 20
_MAX_KEY_BYTES = 1000
_IN_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+("?)'
_string_rest = re.compile(_IN_STRING, re.DOTALL)
_marks = re.compile(rb'"' + _IN_STRING + rb"|[\[\]{},]", re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_BEFORE_ARRAY = b"\xef\xbb\xbf \t\r\n"


class Item(NamedTuple):
    """An item of an array: its number from 1, the line it begins in, and its JSON, or why there is none."""

    number: int
    line: int
    data: bytes
    problem: str | None = None

    def value(self) -> Any:
        """Return its value. Raises InvalidInput if there is none."""
        if self.problem is not None:
            raise InvalidInput(self.problem)
        return json_value(self.data)


def json_value(data: bytes) -> Any:
    """The value of a JSON text, in which bytes that are not UTF-8 and halves of surrogate pairs may be.

    InvalidInput for what is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        try:
            return json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise InvalidInput(f"{shown(data[:60].decode('utf-8', 'replace'))} is not JSON: {fault}") from None


def begins_array(start: bytes) -> bool:
    """Whether a file that starts so is one JSON array."""
    return start.lstrip(_BEFORE_ARRAY).startswith(b"[")


def array_items(stream: IO[bytes], keys: Collection[str] = ()) -> Iterator[Item]:
    """The items of the array that a stream is, or that is in an object under one of `keys`; all such arrays are read.

    An item that is too large, and one that the stream ends in, has a problem. No more than one item is held.
    """
    yield from _Scan({b'"%b"' % key.encode() for key in keys}).items(stream)


class _Scan:
    """The state of a scan: how deep it is, and the bytes of the item that it is in."""

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = keys
        self._depth = 0
        self._base = 0  # the depth of the items; 0 outside of an array that is read
        self._in_string = False
        self._named = b""  # the last string, with its quotes
        self._held = bytearray()
        self._oversize = False
        self._number = 0
        self._line = self._item_line = 1
        self._counted = 0  # how far lines of the block are counted

    def items(self, stream: IO[bytes]) -> Iterator[Item]:
        rest = b""
        while read := stream.read(_BLOCK_BYTES):
            block = rest + read
            rest = b""
            if block.endswith(b"\\"):  # what it escapes comes with the next block
                block, rest = block[:-1], block[-1:] if (len(block) - len(block.rstrip(b"\\"))) % 2 else b""
                block = block if rest else block + b"\\"
            yield from self._block(block)
        if self._base or self._in_string or self._depth:
            yield Item(self._number + 1, self._item_line, b"", "the file ends before the array does")

    def _block(self, block: bytes) -> Iterator[Item]:
        begun = place = 0  # of the item, and of the scan
        if self._in_string:
            rest = _string_rest.match(block)
            assert rest is not None
            self._in_string, place = not rest[1], rest.end()
            self._name(block[:place])
        self._counted = 0
        for mark in _marks.finditer(block, place):
            first = block[mark.start()]
            if first == 0x22:
                self._in_string, self._named = not mark[1], b""
                self._name(mark[0])
            elif first in _OPENING:
                self._depth += 1
                if not self._base and first == 0x5B and (
                    self._depth == 1 or (self._depth == 2 and self._named in self._keys)
                ):  # fmt: skip
                    self._base, begun = self._depth, mark.end()
                    self._count_lines(block, begun)
            elif self._base and self._depth == self._base and first != 0x7D:
                yield from self._item(block[begun : mark.start()])
                begun = mark.end()
                self._count_lines(block, begun)
                if first == 0x5D:
                    self._base, self._depth = 0, self._depth - 1
            elif first in _CLOSING:
                self._depth -= 1
        if self._base:
            self._hold(block[begun:])
        self._line += block.count(b"\n", self._counted)

    def _name(self, part: bytes) -> None:
        """Keep a part of a string that may be the key of an array to read."""
        if self._depth == 1 and not self._base and len(self._named) + len(part) < _MAX_KEY_BYTES:
            self._named += part

    def _count_lines(self, block: bytes, place: int) -> None:
        self._line += block.count(b"\n", self._counted, place)
        self._counted, self._item_line = place, self._line

    def _hold(self, part: bytes) -> None:
        self._oversize = self._oversize or len(self._held) + len(part) > _MAX_ITEM_BYTES
        if self._oversize:
            self._held.clear()
        else:
            self._held += part

    def _item(self, end: bytes) -> Iterator[Item]:
        self._hold(end)
        item, oversize = bytes(self._held), self._oversize
        data = item.strip()
        self._held.clear()
        self._oversize = False
        if oversize or data:
            self._number += 1
            problem = f"it has more than {_MAX_ITEM_BYTES:,} bytes" if oversize else None
            line = self._item_line + item[: len(item) - len(item.lstrip())].count(b"\n")
            yield Item(self._number, line, data, problem)
