"""Links of a page: notes go to the text that refers to them, a table of contents goes out, addresses stay."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from contextlib import suppress
from html import escape
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from selectolax.lexbor import LexborHTMLParser

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_HEADING = ", ".join(HEADINGS)
_BLOCK_TAGS = """
address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul
"""
BLOCKS = frozenset(_BLOCK_TAGS.split())
_ABSOLUTE = re.compile(r"(?:https?|ftp|mailto|tel):", re.IGNORECASE)
# The way back from a note.
_BACK = re.compile("[\\s\u2190-\u21ff\ufe0e\ufe0f^]+")
# What is part of a block that holds text: a note goes behind the whole.
_PARTS = frozenset(("li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot", "caption", "figcaption", "summary"))
_NOTE_HOLDERS = frozenset(("li", "aside", "dd", "div"))
# What may say something without a letter of text.
_SPEAKING = "img[alt], input, select, textarea"
_LEAST_ENTRIES = 2


def letters(text: str) -> int:
    """Return the number of letters and digits in a text."""
    return sum(map(str.isalnum, text))


def parsed(html: str) -> Any:
    """Return the element that this is, to be inserted into a tree."""
    body: Any = LexborHTMLParser(html).body
    return body.first_child


def text_of_node(node: Any) -> str:
    """Return the text of an element or of a piece of text; empty for None."""
    if node is None:
        return ""
    return (node.text_content if node.tag == "-text" else node.text()) or ""


def complete_addresses(tree: Any) -> None:
    """Complete the addresses of links by the base or the address that the page states."""
    base = tree.css_first("base[href]") or tree.css_first("link[rel=canonical][href]")
    for link in [] if base is None else tree.css("a[href]"):
        address = (link.attributes["href"] or "").strip()
        if base.tag == "base" or not address.startswith("#"):
            with suppress(ValueError):
                link.attrs["href"] = urljoin(base.attributes["href"] or "", address)


def keep_addresses(tree: Any) -> None:
    """Keep the addresses of links that are whole; of the others their words, but for marks of links to themselves."""
    for link in tree.css("a"):
        address = (link.attributes.get("href") or "").strip()
        if address.startswith("//"):
            address = f"https:{address}"
        in_heading = link.parent is not None and link.parent.tag in HEADINGS
        if not link.text().strip() or _BACK.fullmatch(link.text()) or (in_heading and not letters(link.text())):
            link.decompose()
        elif _ABSOLUTE.match(address):
            link.attrs["href"] = address
            if "title" in link.attributes:
                del link.attrs["title"]
        else:
            link.unwrap()


# ── notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Link(NamedTuple):
    """A link within the page: its element, those around it by their ids in memory, and the element that it leads to."""

    element: Any
    around: dict[int, Any]
    target: Any


class _Note(NamedTuple):
    """A note: the first link to it, the block behind which it belongs, its element, and that of its title if any."""

    link: _Link
    block: Any
    element: Any
    title: Any


def place_notes(tree: Any) -> None:
    """Put each note behind the block that first refers to it, so that it is under the same heading.

    A note is what a link leads to and a link leads back from. Notes under a heading of their own stay there, unless the
    page says that the heading is only theirs.
    """
    notes = _notes(tree)
    elements = {part.mem_id for note in notes for part in (note.element, note.title) if part is not None}
    known: dict[int, bool] = {}
    placed = [
        note
        for note in notes
        if any(map(_only_notes, _around(note.element).values())) or not _has_own_heading(note.element, elements, known)
    ]
    holders: dict[int, Any] = {}
    for note in placed:
        holders |= dict(reversed(_around(note.element.parent).items()))
    for note in reversed(placed):
        said = mark = " ".join(note.link.element.text().split())
        for link in note.element.css("a[href*='#']"):
            if link.text().strip() == said:
                link.decompose()
        if mark and letters(mark) in (0, len(mark)):
            mark = f"[{mark}]"
            note.link.element.inner_html = escape(mark)
        if note.title is not None:
            title = " ".join(note.title.text().split())
            mark = mark if title == said else title
            note.title.decompose()
        elif re.match(rf"\W*{re.escape(mark.strip('[]'))}\b", note.element.text()):
            mark = ""
        first = note.element.css_first("p") or note.element
        first.inner_html = f"{escape(mark)} {first.inner_html}"
        note.block.insert_after(parsed(f"<div>{note.element.inner_html}</div>"))
        note.element.decompose()
    for key, holder in [*holders.items()]:
        if key in holders and holder.tag != "body" and _is_empty(holder):
            for gone in holder.css("*"):
                holders.pop(gone.mem_id, None)
            holder.decompose()


def _notes(tree: Any) -> list[_Note]:
    """Return the notes of a page in the order of the first links to them, without notes to notes."""
    links = _inner_links(tree)
    targets: Counter[int] = Counter()  # in each element
    for target in {link.target.mem_id: link.target for link in links}.values():
        targets.update(_around(target).keys())
    back: defaultdict[int, list[int]] = defaultdict(list)  # the positions of links to each block
    for position, link in enumerate(links):
        back[_block(link.target).mem_id].append(position)
    notes: dict[int, _Note] = {}
    elements: set[int] = set()
    for position, link in enumerate(links):
        block, element, title = _block(link.element), _block(link.target), None
        if element.tag not in BLOCKS or element.tag == "body":
            continue
        if element.tag == "dt" and (beside := _beside(element, "next")) is not None and beside.tag == "dd":
            element, title = beside, element
        while (
            element.tag not in _NOTE_HOLDERS and element.parent.tag in _NOTE_HOLDERS
            and targets[element.parent.mem_id] == targets[element.mem_id]
        ):  # fmt: skip
            element = element.parent
        parts = {element.mem_id} if title is None else {element.mem_id, title.mem_id}
        leads_back = any(other > position and not parts.isdisjoint(links[other].around) for other in back[block.mem_id])
        if leads_back and element.mem_id not in link.around and element.css_first(_HEADING) is None:
            elements.add(element.mem_id)
            notes.setdefault(element.mem_id, _Note(link, _whole(block), element, title))
    # A list of notes that a link leads to is none itself.
    elements -= {key for note in notes.values() for key in _around(note.element.parent)}
    return [
        note
        for key, note in notes.items()
        if key in elements and note.block.tag != "body" and elements.isdisjoint(note.link.around)
    ]


def _beside(node: Any, side: str) -> Any:
    """Return the nearest sibling with letters or digits on a side, "prev" or "next"; None if there is none."""
    while (node := getattr(node, side)) is not None and not letters(text_of_node(node)):
        pass
    return node


def _inner_links(tree: Any) -> list[_Link]:
    """Return the links to elements of the page, in their order."""
    targets: dict[str, Any] = {}
    for node in tree.css("[id], a[name]"):
        for name in ("id", "name"):
            targets.setdefault(node.attributes.get(name) or "", node)
    links = []
    for node in tree.css("a[href*='#']"):
        name = unquote((node.attributes["href"] or "").rpartition("#")[2])
        if name and (target := targets.get(name)) is not None:
            links.append(_Link(node, _around(node), target))
    return links


def _block(node: Any) -> Any:
    """Return the block that an element stands in, or is."""
    while node.tag not in BLOCKS and node.parent is not None:
        node = node.parent
    return node


def _whole(block: Any) -> Any:
    """Return the list, table or quote that a block is part of, or itself; a table with headings lays out a page."""
    while block.tag != "body":
        around = block.parent
        if around.tag == "td" and block.tag not in _PARTS:
            table = next((node for node in _around(around).values() if node.tag == "table"), None)
            if table is not None and table.css_first(_HEADING) is not None:
                break
        if block.tag not in _PARTS and around.tag not in _PARTS and around.tag != "blockquote":
            break
        block = around
    return block


def _has_own_heading(element: Any, notes: set[int], known: dict[int, bool]) -> bool:
    """Return whether what stands before a note and its neighbours is a heading, and not one that only notes have.

    `known` has the answers for what was passed on the way, by its ids in memory: notes and elements around them.
    """
    passed: list[int] = []
    answer = False
    while element.tag != "body":
        if element.mem_id in known:
            answer = known[element.mem_id]
            break
        passed.append(element.mem_id)
        before = element.prev
        while before is not None and before.mem_id not in notes and not letters(text_of_node(before)):
            before = before.prev
        if before is None or before.mem_id in notes:
            element = element.parent if before is None else before
            continue
        heading = None if before.tag == "-text" else before.css_first(_HEADING)
        answer = heading is not None and letters(heading.text()) == letters(text_of_node(before))
        break
    known |= dict.fromkeys(passed, answer)
    return answer


def _only_notes(node: Any) -> bool:
    """Return whether an element says that it holds notes: DPUB-ARIA, or as GitHub does."""
    return node.attributes.get("role") in ("doc-endnotes", "doc-footnote") or "data-footnotes" in node.attributes


def _is_empty(node: Any) -> bool:
    """Return whether an element says nothing, or has only the heading of notes that it held."""
    heading = node.css_first(_HEADING) if _only_notes(node) else None
    left = letters(node.text()) - (0 if heading is None else letters(heading.text()))
    return left == 0 and node.css_first(_SPEAKING) is None


def _around(node: Any) -> dict[int, Any]:
    """Return an element and those around it, by their ids in memory, without the body."""
    nodes = {}
    while node is not None and node.tag != "body":
        nodes[node.mem_id] = node
        node = node.parent
    return nodes


# ── tables of contents ───────────────────────────────────────────────────────────────────────────────────────────────


def drop_contents(root: Any) -> None:
    """Take out tables of contents: what consists of links to headings, which say the same.

    One such link alone, as in a cell beside its explanation, is no table of contents, and neither is one item of a list
    or one row of a table: the others would stand there without it. Nor are links with numbers beside them.
    """
    headings = {_words(heading.text()) for heading in root.css(_HEADING)} - {""}
    entries = [
        link
        for link in _inner_links(root)
        if _words(link.element.text()) in headings and _block(link.element).tag not in HEADINGS
    ]
    if len(entries) < _LEAST_ENTRIES:
        return
    said: Counter[int] = Counter()  # letters and digits of entries in each element
    count: Counter[int] = Counter()  # entries in each element
    around: dict[int, Any] = {}
    for link in entries:
        around |= reversed(link.around.items())
        count.update(link.around.keys())
        for key in link.around:
            said[key] += letters(link.element.text())
    whole = {key for key, node in around.items() if key != root.mem_id and letters(node.text()) == said[key]}
    blocks = BLOCKS - _PARTS
    outermost = {
        key: around[key] for key in whole if around[key].tag in blocks and whole.isdisjoint(_around(around[key].parent))
    }
    contents = []
    for key, node in outermost.items():
        neighbours = (_beside(node, side) for side in ("prev", "next"))
        if count[key] >= _LEAST_ENTRIES or any(other is not None and other.mem_id in outermost for other in neighbours):
            contents.append(node)
    for node in contents:
        node.decompose()


def _words(text: str) -> str:
    """Return the letters of a text in lower case, without the numbers of pages and sections."""
    return "".join(filter(str.isalpha, text)).casefold()
