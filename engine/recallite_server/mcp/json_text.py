"""Changes of a JSON text that leave the rest of it as it stands: its order, indentation, line ends and odd spaces.

`json.dumps` would write all of it anew: a person's file with four spaces here and a list on one line there comes back
as another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
# A string, which stays, or a comment; a string, or a comma before the end of a list or an object.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*"?)|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*"?)|,(?=\s*+[}\]])', re.DOTALL)


class _Node(NamedTuple):
    """A value, its place in the text, and those of its items: the members of an object with their keys, or a list's."""

    begin: int
    end: int
    value: Any
    items: tuple[tuple[int, str, _Node], ...] = ()


class _Item(NamedTuple):
    """An item as it will be written, and which one it was before; None for a new one."""

    text: str
    was: int | None


def changed(text: str, after: Any) -> str:
    """A text whose value is `after`, with as few changes as that takes. Raises ValueError for no JSON."""
    json.loads(text)
    root = _node(text, _SPACE.match(text).end())  # type: ignore[union-attr]
    style = _Style(text)
    result = text[: root.begin] + style.edited(root, after, "") + text[root.end :]
    if json.loads(result) != after:
        raise ValueError("a change of it does not say what it should")
    return result


def written(value: Any) -> str:
    """The text of a new file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def without_extras(text: str) -> str:
    """A text without comments and commas before an end, which some hosts allow."""
    for extra in (_COMMENT, _LAST_COMMA):
        text = extra.sub(lambda match: match[1] or "", text)
    return text


def removed(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths of what one value has and the other has not."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            inner = f"{path}.{key}" if path else key
            if key not in after:
                yield inner
            elif before[key] != after[key]:
                yield from removed(before[key], after[key], inner)
    elif before != after:
        yield path


def _node(text: str, begin: int) -> _Node:
    if text[begin : begin + 1] not in ("{", "["):
        value, end = _DECODER.raw_decode(text, begin)
        return _Node(begin, end, value)
    is_object, at, items = text[begin] == "{", _next(text, begin + 1), []
    while text[at] not in "}]":
        start, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _next(text, _next(text, at) + 1)  # beyond the colon
        node = _node(text, at)
        items.append((start, key, node))
        at = _next(text, node.end)
        at = _next(text, at + 1) if text[at] == "," else at
    members = {key: node.value for _, key, node in items}
    return _Node(begin, at + 1, members if is_object else [node.value for _, _, node in items], tuple(items))


def _next(text: str, at: int) -> int:
    """The place of what follows spaces."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


class _Style:
    """The way in which a text is written."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = "\r\n" if "\r\n" in text else "\n"
        indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
        self._indent = indent[1] if indent else "  "
        self._on_one_line = "\n" not in text.strip() and len(text.strip()) > len("{}")

    def edited(self, node: _Node, after: Any, base: str) -> str:
        """The text of a value; `base` is the indentation of the line that it begins in."""
        if node.value == after and type(node.value) is type(after):
            return self._text[node.begin : node.end]
        if isinstance(node.value, dict) and isinstance(after, dict):
            return self._joined(node, [*self._members(node, after, base)], base, "{}")
        if isinstance(node.value, list) and isinstance(after, list):
            return self._joined(node, [*self._elements(node, after, base)], base, "[]")
        return self._new(after, base, on_one_line=self._on_one_line)

    def _members(self, node: _Node, after: Mapping[str, Any], base: str) -> Iterator[_Item]:
        inner = self._inner(node, base)
        last = {key: place for place, (_, key, _) in enumerate(node.items)}  # of keys that come twice
        for place, (start, key, value) in enumerate(node.items):
            if key in after:
                value_after = after[key] if last[key] == place else value.value
                text = self._text[start : value.begin] + self.edited(value, value_after, inner or base)
                yield _Item(text, place)
        for key, value in after.items():
            if key not in last:
                name = json.dumps(key, ensure_ascii=False)
                yield _Item(f"{name}: {self._new(value, inner or '', on_one_line=inner is None)}", None)

    def _elements(self, node: _Node, after: Sequence[Any], base: str) -> Iterator[_Item]:
        inner, olds = self._inner(node, base), [json.dumps(value.value) for _, _, value in node.items]
        matcher = SequenceMatcher(None, olds, [*map(json.dumps, after)], autojunk=False)
        for _, begin, end, first, stop in matcher.get_opcodes():
            pairs = min(end - begin, stop - first)  # the rest of the old ones go, and of the new ones come
            for step in range(pairs):
                value = node.items[begin + step][2]
                yield _Item(self.edited(value, after[first + step], inner or base), begin + step)
            for value in after[first + pairs : stop]:
                yield _Item(self._new(value, inner or "", on_one_line=inner is None), None)

    def _inner(self, node: _Node, base: str) -> str | None:
        """The indentation of the items of a value; None for one that stands on one line."""
        if not node.items:
            return None if self._on_one_line else base + self._indent
        lead = self._text[node.begin + 1 : node.items[0][0]]
        return lead.rpartition("\n")[2] if "\n" in lead else None

    def _joined(self, node: _Node, items: Sequence[_Item], base: str, ends: str) -> str:
        """The text of an object or a list with these items, between those of the old ones where they are neighbours."""
        if not items:
            return ends
        old, inner = node.items, self._inner(node, base)
        starts, stops = [start for start, _, _ in old], [value.end for _, _, value in old]
        lead = self._text[node.begin + 1 : starts[0]] if old else "" if inner is None else self._line + inner
        tail = self._text[stops[-1] : node.end - 1] if old else "" if inner is None else self._line + base
        between = "," + (lead if inner is not None else " ")
        if inner is None and len(old) > 1:
            between = self._text[stops[0] : starts[1]]
        text = items[0].text
        for before, item in pairwise(items):
            are_neighbours = before.was is not None and item.was == before.was + 1
            gap = self._text[stops[before.was] : starts[item.was]] if are_neighbours else between  # type: ignore[index]
            text += gap + item.text
        return ends[0] + lead + text + tail + ends[1]

    def _new(self, value: Any, indent: str, *, on_one_line: bool) -> str:
        if on_one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self._indent, ensure_ascii=False).split("\n")
        return (self._line + indent).join(lines)
