"""The memories that expected texts and ids stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.remember.supersession import row_ids
from recallite.store.transaction import Reader
from recallite.text.normalise import bare_text, text_key

_MIN_ID_CHARS, _MAX_ID_CHARS = 4, 64
_IDS_SHOWN = 5


class Match(NamedTuple):
    """The memories that an expected text or id names: any of the ids will do, their text; or the reason for none."""

    name: str
    ids: tuple[str, ...] = ()
    text: str = ""
    reason: str = ""


def match_expected(reader: Reader, base: str, expected: Sequence[str], as_of: int | None, now: int) -> dict[str, Match]:
    """Match each expected text or id with memories that a handle bound to `base` sees.

    It is, in this order, an id; a text, but for case, white space, quote marks around it and a final stop; the only
    text that contains it; the only id that starts or ends with it. Several memories of one text are one. Texts are
    those of `as_of`, else those of now, also of expired memories: a filter may hide what a question expects.
    """
    matches = _by_id(reader, base, expected)
    rest = [name for name in expected if name not in matches]
    if rest and as_of is None:
        matches |= _by_text(reader, base, rest, now)
    elif rest:
        past = Filter().within(base).replaced(as_of=as_of)
        by_past = _in_one_pass(reader.records.find(past, now), rest)
        matches |= {name: match for name, match in by_past.items() if match.ids}
    rest = [name for name in expected if name not in matches]
    if rest:
        matches |= _in_one_pass(reader.records.find(Filter().within(base), now, versions="open"), rest)
    return matches


def _by_id(reader: Reader, base: str, expected: Sequence[str]) -> dict[str, Match]:
    rows = reader.records.fetch([*row_ids(reader, expected, base).values()])
    return {row.public_id: Match(row.public_id, (row.public_id,), row.text) for row in rows.values()}


def _by_text(reader: Reader, base: str, expected: Sequence[str], now: int) -> dict[str, Match]:
    """Match whole texts, through the index of texts."""
    names = {text_key(name): name for name in expected}
    matches: dict[str, Match] = {}
    for record in reader.records.current_by_text([*names], now):
        if base == "/" or record.scope == base or record.scope.startswith(f"{base}/"):
            name = names[text_key(record.text)]
            match = matches.get(name, Match(name, text=record.text))
            matches[name] = match._replace(ids=(*match.ids, record.public_id))
    return matches


def _in_one_pass(records: Iterable[Record], expected: Sequence[str]) -> dict[str, Match]:
    """Match each with these memories, which are read once."""
    anchored = _by_anchor(expected)
    id_parts = [name for name in expected if _MIN_ID_CHARS <= len(name) <= _MAX_ID_CHARS and " " not in name]
    equal: dict[str, list[Record]] = {name: [] for name in expected}
    containing: dict[str, list[Record]] = {name: [] for name in expected}
    with_id: dict[str, list[Record]] = {name: [] for name in expected}
    for record in records:
        text = bare_text(record.text)
        for anchor in anchored.keys() & {*text.split(" "), ""}:
            for name, sought in anchored[anchor]:
                if sought in text:
                    (equal if len(sought) == len(text) else containing)[name].append(record)
        for name in id_parts:
            if record.id.startswith(name) or record.id.endswith(name):
                with_id[name].append(record)
    return {name: _match(name, equal[name], containing[name], with_id[name]) for name in expected}


def _by_anchor(texts: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Group texts, each with its bare form, by a word of every text that holds them: their longest inner word, or "".

    A search for 480 texts in 20,000 takes 0.12 s with it and 1.24 s without.
    """
    anchored: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        bare = bare_text(text)
        anchored.setdefault(max(bare.split(" ")[1:-1], key=len, default=""), []).append((text, bare))
    return anchored


def _match(name: str, equal: list[Record], containing: list[Record], with_id: list[Record]) -> Match:
    named = equal or next((records for records in (containing, with_id) if len(records) == 1), [])
    if named:
        return Match(name, tuple(record.id for record in named), named[0].text)
    for records, relation in ((containing, "is part of the text of"), (with_id, "is part of the id of")):
        if records:
            ids = ", ".join(record.id for record in records[:_IDS_SHOWN])
            more = ", ..." if len(records) > _IDS_SHOWN else ""
            return Match(name, reason=f"{relation} {len(records):,} memories: {ids}{more}")
    return Match(name, reason="no memory has this text or id")
