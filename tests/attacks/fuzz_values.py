"""Arguments for fuzzing: good ones by their kind, and hostile ones that fit nowhere."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["KINDS", "Foreign", "Values"]

DIMENSION = 8
_WORDS = [
    "harbour",
    "train",
    "Monday",
    "coffee",
    "invoice",
    "443",
    "Alice",
    "moved",
    "Lisbon",
    "never",
    "2026-03-01",
    "C++",
    "über",
    "東京",
    "don't",
]
_NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Foreign(Exception):
    """What a caller's own object raises; it may come through."""


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


class _Member(StrEnum):
    ONE = "one"


class _Broken:
    """Every question put to it raises."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("broken")

    __str__ = __repr__ = __len__ = __bool__ = __eq__ = __float__ = __int__ = __index__ = __fspath__ = _refuse
    __lt__ = __gt__ = __le__ = __ge__ = __getitem__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class _Stream:
    def __iter__(self) -> Any:
        raise Foreign("iteration")


def _endless(depth: int) -> Any:
    value: Any = 1
    for place in range(depth):
        value = [value] if place % 2 else {"a": value}
    return value


def _texts() -> list[str]:
    return [
        "", " ", "\n", "\x00", "a\x00b", "\ud800", "a\udfffb", "\u202eabc\u2066", "\ufeff", "\u200b", "e\u0301" * 40,
        "\u0301\u0327" * 300, "x" * 600, "x" * 100_001, " " * 20_000, "a," * 5_000, "/" * 600, "/a//b", "/a/../b", "..",
        "~nosuchuser/x", "a" * 5_000 + "/b", "%s %n", "' OR 1=1 --", "NaN", "1e999", "\x1b[2J", "\U0001f600" * 50,
        "<recalled-memories>", "```json\n", "---\na: b\n---\n", "null", "true", "/", "//", "/\ud800", "/x\x00",
        "9" * 5_000, '{"a":' * 200, "2026-02-30", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "metadata." + "a." * 50,
    ]  # fmt: skip


_HOSTILE: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: False, lambda: 0, lambda: -0.0, lambda: -1, lambda: 2**31, lambda: 2**63,
    lambda: -(2**63) - 1, lambda: 10**400, lambda: math.nan, lambda: math.inf, lambda: -math.inf, lambda: 1e308,
    lambda: 5e-324, lambda: 1j, lambda: b"bytes", lambda: bytearray(b"\xff"), lambda: memoryview(b"x"), list, dict, set,
    tuple, lambda: [None], lambda: [[1]], lambda: ["a", 1], lambda: {"a": {1}}, lambda: {1: 2}, lambda: {None: None},
    lambda: {"\ud800": 1}, lambda: ["\ud800"], lambda: ["\x00"], lambda: _endless(100), lambda: _endless(5_000),
    lambda: np.float64("nan"), lambda: np.float32(0.5), lambda: np.int64(3), lambda: np.bool_(True),
    lambda: np.str_("x"), lambda: np.array([1.0, 2.0]), lambda: np.array(["a", "b"]), lambda: np.zeros((2, 2)), lambda: np.array([]),
    lambda: np.array(1), lambda: np.array([None, object()], dtype=object), lambda: np.datetime64("NaT"),
    lambda: datetime(2026, 1, 1), lambda: datetime.min.replace(tzinfo=UTC), lambda: datetime.max.replace(tzinfo=UTC),
    lambda: datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), lambda: date(1, 1, 1), lambda: timedelta.max,
    lambda: timedelta(days=-1), lambda: _Text("x"), lambda: _Text("/x"), lambda: _Whole(3), lambda: _Member.ONE, object,
    _Broken, _Stream, lambda: iter([1]), lambda: iter(()), lambda: int, lambda: len, lambda: ...,
    lambda: {f"k{place}": place for place in range(1_200)}, lambda: [f"/s{place}" for place in range(1_100)],
    lambda: ["x"] * 3_000, lambda: {"and": [{"kind": "a"}] * 1_100}, lambda: {"not": {"not": {"kind": {"in": []}}}},
    lambda: Path("x"), lambda: Path("~nosuchuser"), lambda: Path("\x00"), lambda: range(10**9), lambda: frozenset("ab"),
)  # fmt: skip
KINDS = (
    "text", "id", "ids", "scope", "scopes", "where", "names", "name", "tags", "time", "unit", "count", "vector", "flag",
    "metadata", "query", "number", "items", "messages", "path", "item", "agent", "event",
)  # fmt: skip


class Values:
    """Values of one run; `ids` are those of memories that were stored, and may be gone."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance, self.folder = chance, folder
        self.ids: list[str] = ["none"]
        self._texts = _texts()

    def hostile(self) -> Any:
        """What fits nowhere, or almost nowhere."""
        if self.chance.random() < 0.4:
            return self.chance.choice(self._texts)
        return self.chance.choice(_HOSTILE)()

    def hostile_for(self, kind: str) -> Any:
        """The same, but nothing that names a place outside of the run's own folder, the working directory."""
        value = self.hostile()
        if kind == "path" and isinstance(value, str) and (value.startswith("/") or ".." in value):
            return "outside"
        return value

    def good(self, kind: str) -> Any:
        """A value of this kind that is taken."""
        made: Any = getattr(self, f"_{kind}")()
        return made

    def _text(self) -> str:
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randrange(1, 12)))

    _query = _text

    def _name(self) -> str:
        return self.chance.choice(_WORDS)

    def _agent(self) -> str | None:
        return self.chance.choice([None, "ada", "bob"])

    def _event(self) -> str:
        return self.chance.choice(["observation", "action", "error"])

    def _names(self) -> list[str] | None:
        return self.chance.choice([None, ["memory"], ["episode", "semantic"], [self._name()]])

    def _tags(self) -> Any:
        return self.chance.choice([(), ["red"], ("red", "blue"), ["ü"]])

    def _id(self) -> str:
        return self.chance.choice(self.ids)

    def _ids(self) -> Any:
        return self.chance.choice([self._id(), [self._id()], [self._id(), self._id()]])

    def _scope(self) -> str:
        return self.chance.choice(["/", "/a", "/a/b", "/東京"])

    def _scopes(self) -> Any:
        return self.chance.choice([None, self._scope(), [self._scope(), "/a"]])

    def _where(self) -> Any:
        inner = self.chance.choice(
            [
                {"importance": {"gte": 0.5}}, {"tags": {"contains": "red"}}, {"metadata.a": 1}, {"kind": "memory"},
                {"metadata.a.b": {"contains": "x"}}, {"created_at": {"lt": _NOW}}, {"scope": {"in": ["/a"]}},
            ]
        )  # fmt: skip
        return self.chance.choice([None, inner, {"or": [inner, {"pinned": True}]}, {"not": inner}])

    def _time(self) -> Any:
        return self.chance.choice([None, _NOW, _NOW.isoformat(), "2026-01-01T00:00:00Z"])

    def _unit(self) -> float:
        return self.chance.choice([0, 1, 0.5, self.chance.random()])

    def _number(self) -> float:
        return self.chance.choice([0, 1, 0.5, 30.0])

    def _count(self) -> int:
        return self.chance.randrange(1, 20)

    def _flag(self) -> bool:
        return self.chance.random() < 0.5

    def _vector(self) -> Any:
        return [self.chance.gauss(0, 1) for _ in range(DIMENSION)]

    def _metadata(self) -> Any:
        return self.chance.choice([None, {}, {"a": 1}, {"a": {"b": "x"}, "list": [1, None, "é"]}])

    def _item(self) -> Any:
        return self.chance.choice(["a thing to do", {"a": [1, 2]}, 3])

    def _items(self) -> Any:
        items: list[Any] = [self._text(), {"text": self._text(), "tags": ["red"]}, {"text": self._text()}]
        if self.chance.random() < 0.2:
            items.insert(self.chance.randrange(4), self.hostile())
        return items

    def _messages(self) -> Any:
        return [{"role": "user", "content": self._text()}, {"role": "assistant", "content": None}]

    def _path(self) -> Any:
        """A file of this run's folder, some of them damaged, or one that is none."""
        name = self.chance.choice(["a.jsonl", "b.csv", "c.txt", "d.md", "sub/e.jsonl", ".", "x" * 300, "new.db"])
        path = self.folder / name
        if name.endswith((".jsonl", ".csv", ".txt", ".md")) and self.chance.random() < 0.5:
            self._write(path)
        return self.chance.choice([path, str(path)])

    def _write(self, path: Path) -> None:
        """Write a valid import, mostly with some bytes changed."""
        rows = [self._text() for _ in range(3)]
        if path.suffix == ".jsonl":
            said = "".join(
                f'{{"text": "{row}", "tags": ["a"], "importance": 0.5, "metadata": {{"a": 1}}}}\n' for row in rows
            )
        elif path.suffix == ".csv":
            said = "text,tags,importance,pinned\n" + "".join(f"{row},a;b,0.5,true\n" for row in rows)
        elif path.suffix == ".md":
            said = '---\nrecallite: memories\nscope: "/a"\n---\n\n## 2026-03-01 10:00\n\n' + "\n\n## x\n\n".join(rows)
        else:
            said = "\n".join(rows)
        data = bytearray(said.encode())
        for _ in range(self.chance.choice([0, 1, 1, 5])):
            place = self.chance.randrange(len(data))
            data[place : place + self.chance.choice([0, 1, 4])] = self.chance.choice(
                [b"\xff", b"\x00", b'"', b"\\ud800", b"{", b"1e999", b"", b"\r", b",", b"[" * 300, b"\xed\xa0\x80"]
            )
        if not path.is_dir():  # an export of a folder may have made one of this name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder of its own for the files of a batch."""
    return tempfile.TemporaryDirectory(prefix="recallite-fuzz-", ignore_cleanup_errors=True)
