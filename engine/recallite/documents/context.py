"""Passages of documents as Markdown for a prompt: quoted, with their sources, within a token budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from recallite.model.records import Hit, Hits
from recallite.text.quotes import NOTICE, visible

_HEAD = "# Knowledge\n\n" + NOTICE.replace("memory", "documents") + "\n"
_NARROW = 0.9
_SHORT_WORD = 2
_WINDOW_CHARS, _SOON_CHARS = 400, 100
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|[。！？]")


class _Passage(NamedTuple):
    """Adjacent chunks of one document as one text."""

    first: Hit
    last: Hit
    text: str


def compose(hits: Hits, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    """Return the passages of as many hits as fit, best first; "" if none fits.

    Chunks of a document that overlap or follow each other form one passage, in document order, ranked by its best hit.
    If the best hit alone exceeds the budget, the part with most of the query's words is shown.
    """
    if not hits:
        return ""
    head, *costs = count_tokens([_HEAD, *(_block(_Passage(hit, hit, hit.text)) for hit in hits)])
    if head + costs[0] > budget_tokens:
        return _shortened(hits[0], hits.query, budget_tokens, count_tokens)
    fitting, left = [], budget_tokens - head
    for hit, cost in zip(hits, costs, strict=True):
        if cost <= left:
            fitting.append(hit)
            left -= cost
    # The whole may have more tokens than its parts together: the last passages are dropped until it fits.
    while fitting:
        text = _text(fitting)
        if count_tokens([text])[0] <= budget_tokens:
            return text
        fitting.pop()
    return _shortened(hits[0], hits.query, budget_tokens, count_tokens)


def _shortened(hit: Hit, query: str, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    words = {word for word in re.findall(r"\w+", query.casefold()) if len(word) > _SHORT_WORD}
    begins = [0, *(match.end() for match in _SENTENCE_END.finditer(hit.text))]

    def matches(begin: int) -> tuple[int, int]:
        """Return the number of the words that follow, and of those that follow soon."""
        part = hit.text[begin : begin + _WINDOW_CHARS].casefold()
        return sum(word in part for word in words), sum(word in part[:_SOON_CHARS] for word in words)

    begin = max(begins, key=matches)
    length = len(hit.text) - begin
    while length > 1:
        part = ("… " if begin else "") + hit.text[begin : begin + length].rstrip()
        part += " …" if begin + length < len(hit.text) else ""
        text = _HEAD + _block(_Passage(hit, hit, part))
        if count_tokens([text])[0] <= budget_tokens:
            return text
        length = int(length * _NARROW)
    return ""


def _text(hits: Sequence[Hit]) -> str:
    by_document: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        by_document.setdefault((hit.scope, "" if hit.source is None else hit.source.id), []).append(hit)
    return _HEAD + "".join(_block(passage) for chunks in by_document.values() for passage in _passages(chunks))


def _passages(hits: Sequence[Hit]) -> list[_Passage]:
    """Return chunks of one document in its order, adjacent ones joined."""
    passages: list[_Passage] = []
    for hit in sorted(hits, key=_span):
        before = passages[-1] if passages else None
        if before is None or not _follows(before.last, hit):
            passages.append(_Passage(hit, hit, hit.text))
            continue
        begin, end = _span(hit)
        # The headings of a table that it begins in are said in the chunk, and stand above it in the passage.
        text = hit.text[max(0, len(hit.text) - (end - begin)) :]
        repeated = _span(before.last)[1] - begin
        joined = text[repeated:] if repeated > 0 else f"\n\n{text}"
        passages[-1] = _Passage(before.first, hit, before.text + joined)
    return passages


def _follows(before: Hit, after: Hit) -> bool:
    """Whether only white space is between two chunks of a document."""
    if _span(before)[1] > _span(after)[0] >= 0:
        return True
    first, second = (hit.source.position if hit.source is not None else None for hit in (before, after))
    return first is not None and second == first + 1


def _block(passage: _Passage) -> str:
    """Return a heading with the source of the passage, and the passage, every line of it quoted.

    A quoted line can neither end the quotation nor be read as a heading or an instruction; invisible characters are
    escaped.
    """
    metadata = passage.first.metadata
    title = [str(metadata["title"])] if "title" in metadata else []
    heading = " > ".join(dict.fromkeys([*title, *map(str, metadata.get("headings", ()))]))
    lines = [_one_line(line) for line in passage.text.expandtabs(4).splitlines()]
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"\n## {_one_line(f'{heading} ({_place(passage)})').strip()}\n\n{quoted}\n"


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
    """Return a text on one line, with invisible characters and those that change its direction escaped."""
    return visible(" ".join(text.splitlines()))


def _span(hit: Hit) -> tuple[int, int]:
    """Return the begin and end of a chunk in its document; -1 if they are unknown."""
    chars = hit.metadata.get("chars")
    return (chars[0], chars[1]) if isinstance(chars, list) and len(chars) == 2 else (-1, -1)
