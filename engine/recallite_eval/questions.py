"""Questions with what they should find: decoded, checked, and made requests of recall."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from recallite.errors import InvalidInput, RecalliteError
from recallite.model import checks
from recallite.model.filters import FilterFields
from recallite.recall.request import Request, build_request, recall_arguments
from recallite.system.messages import shown
from recallite.transfer.formats import Lines, reading

Source = str | os.PathLike[str] | IO[str] | Iterable[Mapping[str, Any]]

_MAX_LINE_CHARS = 1_000_000
_EXAMPLE = '{"question": "Where does Ada live?", "expected": ["Ada moved to Bergen"]}'
_FILTER = tuple(FilterFields.__annotations__)
# A line: the filter checks its own fields.
_Line: Any = msgspec.defstruct(
    "_Line",
    [
        ("question", str),
        ("expected", list[str]),
        ("id", str | int | UnsetType, UNSET),
        *((name, Any, UNSET) for name in _FILTER),
    ],
    forbid_unknown_fields=True,
)


class Question(NamedTuple):
    """A question, its name in the report, how its expected memories are named, and its own fields of a filter.

    `place` is what errors call it.
    """

    id: str
    text: str
    expected: tuple[str, ...]
    fields: dict[str, Any]
    place: str


def read_questions(source: Source, store: str) -> list[Question]:
    """Return the questions of a file, of a text stream or of a list, all checked; `store` is the path of the store."""
    questions: dict[str, Question] = {}
    for number, place, item in _entries(source, store):
        try:
            question = _question(item, str(number), place)
        except InvalidInput as fault:
            raise InvalidInput(f"{place}: {fault}") from None
        if (other := questions.setdefault(question.id, question)) is not question:
            raise InvalidInput(f"{place}: the id {shown(question.id)} is that of {other.place} too")
    if not questions:
        raise InvalidInput(f"there is no question in the input: a line is {_EXAMPLE}")
    return [*questions.values()]


def request_of(question: Question, base: str, profile: Any, k: int, options: Mapping[str, Any], now: int) -> Request:
    """Return the request that asks a question; its own fields of a filter go before those of the options."""
    if "limit" in options:
        raise InvalidInput("limit is no option here: k says how many hits count")
    try:
        request = build_request(base, profile, limit=k, **recall_arguments({**options, **question.fields}))
    except InvalidInput as fault:
        if not question.fields:
            raise
        raise type(fault)(f"{question.place}: {fault}", fault.reason) from None
    return msgspec.structs.replace(request, now=now, counted=False)


def _entries(source: Source, store: str) -> Iterator[tuple[int, str, Any]]:
    if isinstance(source, str | os.PathLike) or callable(getattr(source, "readline", None)):
        file: Any = source
        with reading(file, store=store, count=False) as (stream, _):
            yield from _decoded(Lines(stream, max_chars=_MAX_LINE_CHARS))
        return
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InvalidInput(
            f"questions is {shown(source)}: give the path of a file with a JSON object on each line, or a list of dicts"
        )
    for number, item in enumerate(source, 1):
        yield number, f"question {number}", item


def _decoded(lines: Lines) -> Iterator[tuple[int, str, Any]]:
    while True:
        try:
            text = next(lines, None)
        except RecalliteError as fault:
            raise InvalidInput(f"line {lines.number}: {fault}") from None
        if text is None:
            return
        if not text.strip():
            continue
        place = f"line {lines.number}"
        try:
            yield lines.number, place, msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as fault:
            raise InvalidInput(f"{place}: {shown(text.strip())} is not JSON ({fault}): write {_EXAMPLE}") from None


def _question(item: object, number: str, place: str) -> Question:
    if not isinstance(item, Mapping):
        raise InvalidInput(f"{shown(item)} is no question: write {_EXAMPLE}")
    try:
        line = msgspec.convert(dict(item), _Line)
    except msgspec.ValidationError as fault:
        raise InvalidInput(_reason(str(fault), item)) from None
    if not line.question.strip():
        raise InvalidInput("the question is blank")
    for name in line.expected:
        if not name.strip():
            raise InvalidInput(f"expected holds {shown(name)}: give a text or an id, or an empty list for no answer")
    fields = {name: getattr(line, name) for name in _FILTER}
    return Question(
        id=number if line.id is UNSET else str(line.id),
        text=checks.check_query(line.question, "question"),
        expected=tuple(dict.fromkeys(line.expected)),
        fields={name: value for name, value in fields.items() if value is not UNSET and value is not None},
        place=place,
    )


def _reason(fault: str, item: Mapping[str, Any]) -> str:
    """Say a fault that msgspec found in the words of other errors."""
    if fault.startswith("Object contains unknown field"):
        return f"unknown field {fault.split('`')[1]!r}: use question, expected, id, {', '.join(_FILTER)}"
    if fault.startswith("Object missing required field"):
        name = fault.split("`")[1]
        return f'{name} is missing: write {_EXAMPLE}, with "expected": [] if the store has no answer'
    name = fault.rpartition("$.")[2].split("[")[0].rstrip("`")
    wanted = {"question": "a str", "expected": "a list of texts or ids", "id": "a str"}.get(name, "another value")
    return f"{name} is {shown(item.get(name))}: give {wanted}"
