"""An importer: the bookmarks that a browser exports as HTML, each a memory with its address and time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

from recallite.model.records import NewRecord
from recallite.transfer.importers import Entry, Found, Source


def read(path: Path) -> Iterator[Entry]:
    """The bookmarks of a file, in its order."""
    parser = _Bookmarks()
    parser.feed(path.read_text("utf-8", errors="replace"))
    for line, address, added, title in parser.bookmarks:
        created_at = None if added is None else datetime.fromtimestamp(added, UTC)
        record = NewRecord(
            id=address, text=title or address, tags=("bookmark",), metadata={"url": address}, created_at=created_at
        )
        yield Found(record=record, path=path.name, line=line)


SOURCE = Source(read, "the bookmarks that a browser exported as an HTML file", changes=True)


class _Bookmarks(HTMLParser):
    """Collects the links of a bookmark file: line, address, seconds since 1970, title."""

    def __init__(self) -> None:
        super().__init__()
        self.bookmarks: list[tuple[int, str, int | None, str]] = []
        self._open = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "a" and (address := values.get("href")):
            added = values.get("add_date") or ""
            self.bookmarks.append((self.getpos()[0], address, int(added) if added.isdigit() else None, ""))
            self._open = True

    def handle_data(self, data: str) -> None:
        if self._open:
            line, address, added, title = self.bookmarks[-1]
            self.bookmarks[-1] = line, address, added, title + data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = False
