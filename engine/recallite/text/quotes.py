"""Recognising text that a recall returned: whole memories, with bullets, quote marks, scores and provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from recallite.text.normalise import text_key
from recallite.text.quoting import NOTICE, unquoted
from recallite.text.wrappers import Claim, announced, bracket_claims, stripped_head, stripped_tail

M = TypeVar("M")

# Longer texts are only recognised as a whole.
_MOST_CHARS = 50_000
_MOST_LINES = 300
# A memory with more lines is only recognised on its own.
_MOST_LINES_EACH = 12

Reading = tuple[bytes, tuple[Claim, ...]]
"""The key of a memory with this text, and the claims of what was wrapped around it."""


class Quotation(Struct, frozen=True):
    """A text read as quotes of memories: its lines, and for each line the runs from there that may be one memory.

    A run is (the line after it, its readings with and without wrapping). The lines of JSON are the texts in it.
    """

    lines: tuple[str, ...]
    runs: tuple[tuple[tuple[int, tuple[Reading, ...]], ...], ...]

    @classmethod
    def of(cls, text: str) -> Quotation:
        """A text as a possible quotation."""
        text = unquoted(text)
        whole = cls((text,), (((1, ((text_key(text), ()),)),),))
        if len(text) > _MOST_CHARS:
            return whole
        if text.lstrip()[:1] in ("{", "["):
            try:
                items = list(_items(json.loads(text, object_pairs_hook=_object)))
            except (ValueError, RecursionError):
                items = []
            if items:
                runs = [
                    ((at + 1, ((text_key(quoted_text), tuple(claims)),)),)
                    for at, (quoted_text, claims) in enumerate(items)
                ]
                return cls(tuple(quoted_text for quoted_text, _ in items), tuple(runs))
        lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        return cls(lines, tuple(_runs(lines))) if len(lines) <= _MOST_LINES else whole

    @property
    def keys(self) -> set[bytes]:
        """The keys of all memories that it may quote."""
        return {key for runs in self.runs for _, readings in runs for key, _ in readings}

    def quoted(
        self, find: Callable[[bytes], Iterable[M]], known: Callable[[M, Sequence[Claim]], bool]
    ) -> list[M] | None:
        """The quoted memories, in order, where the text has nothing else; None otherwise.

        `find` gives the memories of a key, `known` tells whether all claims are true of one.
        """
        # From the end: the memories of each line from which on everything is quoted.
        rest: list[list[M] | None] = [None] * len(self.lines) + [[]]
        for start in range(len(self.lines) - 1, -1, -1):
            for stop, readings in reversed(self.runs[start]):
                after = rest[stop]
                if after is None:
                    continue
                memories = (
                    candidate for key, claims in readings for candidate in find(key) if known(candidate, claims)
                )
                memory = next(memories, None)
                if memory is not None:
                    rest[start] = [memory, *after]
                    break
            else:
                after, claims = rest[start + 1], announced(self.lines[start])
                if after is not None and claims is not None and (not claims or (after and known(after[0], claims))):
                    rest[start] = after
        return rest[0] or None


def _runs(lines: Sequence[str]) -> Iterator[tuple[tuple[int, tuple[Reading, ...]], ...]]:
    heads = [list(stripped_head(line)) for line in lines]
    tails = [list(stripped_tail(line)) for line in lines]
    for start in range(len(lines)):
        last = len(lines) if not start else min(len(lines), start + _MOST_LINES_EACH)
        stops = [stop for stop in range(start + 1, last + 1) if stop - start <= _MOST_LINES_EACH or stop == last]
        yield tuple((stop, tuple(_readings(heads[start], lines[start + 1 : stop], tails[stop - 1]))) for stop in stops)


def _readings(
    heads: Sequence[tuple[str, list[Claim]]], following: Sequence[str], tails: Sequence[tuple[str, list[Claim]]]
) -> Iterator[Reading]:
    """A run with each amount of wrapping removed.

    `heads` are the variants of its first line, `tails` of its last, which may be the first.
    """
    for head, head_claims in heads:
        if following:
            for tail, also in tails:
                yield text_key("\n".join([head, *following[:-1], tail])), (*head_claims, *also)
            continue
        for bare, also in stripped_tail(head):
            yield text_key(bare), (*head_claims, *also)
    if not following and "\t" in heads[0][0]:
        *columns, text = heads[0][0].split("\t")
        yield text_key(text), tuple(claim for column in columns for claim in bracket_claims(column))


def _items(value: object) -> Iterator[tuple[str, list[Claim]]]:
    """The texts of results with the claims about each; ValueError where there is anything else."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
        return
    if not isinstance(value, dict):
        raise ValueError("no result")
    claims: list[Claim] = [
        (name, claimed) for name, claimed in value.items() if name not in ("content", "text", "results")
    ]
    if value.get("notice") == NOTICE:
        claims.remove(("notice", NOTICE))
    texts = [value[name] for name in ("content", "text") if name in value]
    if texts:
        if len(texts) > 1 or not isinstance(texts[0], str) or "results" in value:
            raise ValueError("no result")
        yield texts[0], claims
        return
    nested = list(_items(value["results"])) if isinstance(value.get("results"), list) else []
    if not nested:
        raise ValueError("no result")
    # Claims about all results are checked with the first.
    yield nested[0][0], [*nested[0][1], *claims]
    yield from nested[1:]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; one with a repeated name is not a result of ours."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is given twice")
    return fields
