"""Rows checked against their types: values of another program raise StoreCorrupt here instead of failing later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from recallite.errors import StoreCorrupt
from recallite.model.checks import EARLIEST_US, LATEST_US
from recallite.system.messages import shown

# Microseconds since 1970 that a datetime can show.
Moment = Annotated[int, msgspec.Meta(ge=EARLIEST_US, le=LATEST_US)]
_PLACE = re.compile(r"`\$\[(\d+)\]")
Typed = TypeVar("Typed")


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of consecutive row ids, as the first and the last of each, ascending."""
    distinct = {*ids}
    if distinct and max(distinct) - min(distinct) == len(distinct) - 1:  # those of a bulk write are one run
        return [(min(distinct), max(distinct))]
    runs: list[tuple[int, int]] = []
    for row_id in sorted(distinct):
        first = runs.pop()[0] if runs and runs[-1][1] == row_id - 1 else row_id
        runs.append((first, row_id))
    return runs


def read_row(row: tuple[Any, ...], type: type[Typed], table: str) -> Typed:
    """A row as the NamedTuple `type`; StoreCorrupt, which names it by its first column, if a value has another type."""
    try:
        return msgspec.convert(row, type)
    except msgspec.ValidationError as fault:
        place = _PLACE.search(str(fault))
        column = "a column" if place is None else type._fields[int(place[1])]  # type: ignore[attr-defined]
        raise StoreCorrupt(
            f"{table} {shown(row[0])}: {column} is not what was stored ({fault}): another program changed it; "
            "correct or remove the row"
        ) from None


def read_rows(rows: Iterable[tuple[Any, ...]], type: type[Typed], table: str) -> list[Typed]:
    """`read_row` of each."""
    return [read_row(row, type, table) for row in rows]


def stored_json(text: object, what: str, type: type[Typed]) -> Typed:
    """Stored JSON as `type`; StoreCorrupt if another program has changed it."""
    try:
        return msgspec.json.decode(text if isinstance(text, str) else b"", type=type)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise StoreCorrupt(f"{what} is not what was stored ({fault}): another program changed it") from None
