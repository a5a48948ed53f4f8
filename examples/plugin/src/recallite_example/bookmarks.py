"""An importer: the bookmarks that a browser exports as HTML, each a memory with its address and time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite_connect.importers import Entry, FoundMemory, LeftOut, Source


def read(path: Path) -> Iterator[Entry]:
    """The bookmarks of a file, in its order; of one address the first, as an id stands for one memory."""
    parser = _Bookmarks()
    try:
        parser.feed(path.read_text("utf-8", errors="replace"))
    except OSError as fault:
        yield FileTrouble(path=path.name, reason=f"cannot be read: {fault.strerror}")
        return
    parser.close()  # else text at the end that no tag follows is not seen
    seen = set()
    for line, address, added, title in parser.bookmarks:
        if address in seen:
            yield LeftOut("bookmarks of an address that the file has before")
            continue
        try:
            created_at = datetime.fromtimestamp(int(added), UTC) if added else None
        except (ValueError, OverflowError, OSError):
            yield FileTrouble(path=path.name, line=line, reason=f"ADD_DATE is {added[:20]!r}: no time in seconds")
            continue
        seen.add(address)
        text = " ".join(title.split()) or address
        record = NewRecord(id=address, text=text, tags=("bookmark",), metadata={"url": address}, created_at=created_at)
        yield FoundMemory(record=record, path=path.name, line=line)


SOURCE = Source(read, "the bookmarks that a browser exported as an HTML file", authority="web", changes=True)


class _Bookmarks(HTMLParser):
    """Collects the links of a bookmark file: line, address, ADD_DATE (seconds since 1970, or nothing), title."""

    def __init__(self) -> None:
        super().__init__()
        self.bookmarks: list[tuple[int, str, str, str]] = []
        self._open = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "a" and (address := values.get("href")):
            self.bookmarks.append((self.getpos()[0], address, values.get("add_date") or "", ""))
            self._open = True

    def handle_data(self, data: str) -> None:
        if self._open:
            line, address, added, title = self.bookmarks[-1]
            self.bookmarks[-1] = line, address, added, title + data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = False
