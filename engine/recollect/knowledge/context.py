"""Passages of documents as Markdown for a prompt: with their sources, quoted, within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from recollect.records import Hit, Hits
from recollect.text.quoting import NOTICE, visible

__all__ = ["compose"]

_HEAD = "# Knowledge\n\n" + NOTICE.replace("memory", "documents") + "\n"
_NARROW = 0.9
_SHORT_WORD = 2
_WINDOW_CHARS, _SOON_CHARS = 400, 100
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|[。！？]")


class _Passage(NamedTuple):
    """Neighbouring chunks of one document as one text."""

    first: Hit
    last: Hit
    text: str


def compose(hits: Hits, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    """The passages of as many hits, best first, as there is room for; "" where there is none for any.

    Chunks of a document that overlap or follow each other stand as one passage, in the order of the document, which
    stands where its best hit is. Of a best hit that has more tokens than the budget stands the part that has most of
    the query's words.
    """
    if not hits:
        return ""
    head, *costs = count_tokens([_HEAD, *(_block(_Passage(hit, hit, hit.text)) for hit in hits)])
    if head + costs[0] > budget_tokens:
        return _shortened(hits[0], hits.query, budget_tokens, count_tokens)
    chosen, left = [], budget_tokens - head
    for hit, cost in zip(hits, costs, strict=True):
        if cost <= left:
            chosen.append(hit)
            left -= cost
    # Tokens of the whole may be more than those of its parts: the last ones go until it fits.
    while chosen:
        text = _text(chosen)
        if count_tokens([text])[0] <= budget_tokens:
            return text
        chosen.pop()
    return _shortened(hits[0], hits.query, budget_tokens, count_tokens)


def _shortened(hit: Hit, query: str, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    words = {word for word in re.findall(r"\w+", query.casefold()) if len(word) > _SHORT_WORD}
    begins = [0, *(match.end() for match in _SENTENCE_END.finditer(hit.text))]

    def held(begin: int) -> tuple[int, int]:
        """How many of the words follow, and how many soon."""
        part = hit.text[begin : begin + _WINDOW_CHARS].casefold()
        return sum(word in part for word in words), sum(word in part[:_SOON_CHARS] for word in words)

    begin = max(begins, key=held)
    length = len(hit.text) - begin
    while length > 1:
        said = ("… " if begin else "") + hit.text[begin : begin + length].rstrip()
        shown = said + (" …" if begin + length < len(hit.text) else "")
        text = _HEAD + _block(_Passage(hit, hit, shown))
        if count_tokens([text])[0] <= budget_tokens:
            return text
        length = int(length * _NARROW)
    return ""


def _text(hits: Sequence[Hit]) -> str:
    by_document: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        by_document.setdefault((hit.scope, "" if hit.source is None else hit.source.id), []).append(hit)
    return _HEAD + "".join(_block(passage) for held in by_document.values() for passage in _passages(held))


def _passages(hits: Sequence[Hit]) -> list[_Passage]:
    """Chunks of one document in its order, those that meet as one."""
    passages: list[_Passage] = []
    for hit in sorted(hits, key=_begin):
        before = passages[-1] if passages else None
        if before is None or not _follows(before.last, hit):
            passages.append(_Passage(hit, hit, hit.text))
            continue
        repeated = _end(before.last) - _begin(hit)
        joined = hit.text[repeated:] if repeated > 0 else f"\n\n{hit.text}"
        passages[-1] = _Passage(before.first, hit, before.text + joined)
    return passages


def _follows(before: Hit, after: Hit) -> bool:
    """Whether nothing but blanks stands between two chunks of a document."""
    if _end(before) > _begin(after) >= 0:
        return True
    places = [hit.source.position if hit.source is not None else None for hit in (before, after)]
    return places[0] is not None and places[1] is not None and places[1] == places[0] + 1


def _block(passage: _Passage) -> str:
    """A heading that says where the passage stands, and the passage, every line of it quoted.

    A line that begins with a mark of quotation can neither end the quotation nor stand as a heading or an instruction
    of its own; what cannot be seen is written out.
    """
    metadata = passage.first.metadata
    title = [str(metadata["title"])] if "title" in metadata else []
    said = " > ".join(dict.fromkeys([*title, *map(str, metadata.get("headings", ()))]))
    lines = [_one_line(line) for line in passage.text.expandtabs(4).splitlines()]
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"\n## {_one_line(f'{said} ({_place(passage)})').strip()}\n\n{quoted}\n"


def _place(passage: _Passage) -> str:
    source = passage.first.source
    name = "" if source is None else source.path or source.id
    if source is not None and source.lines is not None:
        last = passage.last.source
        end = source.lines[1] if last is None or last.lines is None else last.lines[1]
        return f"{name}:{source.lines[0]}-{end}"
    ends = passage.last.metadata
    first, last_page = passage.first.metadata.get("page"), ends.get("last_page", ends.get("page"))
    if first is None:
        return name
    return f"{name}, page {first}" if last_page in (None, first) else f"{name}, pages {first}-{last_page}"


def _one_line(text: str) -> str:
    """A line as it is, with escapes for what would be there without being seen or turn its order."""
    return visible(" ".join(text.splitlines()))


def _begin(hit: Hit) -> int:
    return _span(hit.metadata)[0]


def _end(hit: Hit) -> int:
    return _span(hit.metadata)[1]


def _span(metadata: dict[str, Any]) -> tuple[int, int]:
    chars = metadata.get("chars")
    return (chars[0], chars[1]) if isinstance(chars, list) and len(chars) == 2 else (-1, -1)
