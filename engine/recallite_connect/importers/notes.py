"""Folders of Markdown notes: their files, front matter and sections.

Files are read below the folder only: hidden files and folders are passed over, symbolic links are reported.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recallite.embedding.tokens import measure_of
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.reports import FileTrouble
from recallite.system.folders import kind_of, printable, read_steady
from recallite_connect.importers.reading import LeftOut, cleaned, files_below, time_of
from recallite_documents.chunking import ChunkSize, chunk_markdown, with_columns, with_properties
from recallite_documents.front_matter import context_of, decode, front_matter, properties_text, short_name, short_values
from recallite_documents.written_dates import day_first_of, line_of, own_time, values_in

ENDINGS = (".md", ".markdown")
_MAX_BYTES = 10_000_000
# As documents are cut, but nothing is said twice: each part is a memory of its own.
_SIZE = ChunkSize(max_tokens=1000, target_tokens=500, overlap_tokens=0)
_TITLES = re.compile(r"^ {0,3}#{1,6}(?:[ \t].*)?$", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_has_words = re.compile(r"\w").search
# What Obsidian does not show, and blocks that its plug-ins replace with what they find.
_COMMENTS = (("%%", "%%"), ("<!--", "-->"))
_QUERY = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[ \t]*+(?:dataview(?:js)?|tasks|query|base)\b.*?(?:^ {0,3}\1[^\n]*+|\Z)",
    re.MULTILINE | re.DOTALL,
)
# What another file or a program puts in: an embedded file, the fields of a template and the labels before them.
_PUT_IN = re.compile(
    r"!\[\[[^\[\]\n]*+\]\]|!\[\]\([^()\n]*+\)|"
    r"(?:^[ \t>*+-]*+[^:\n]{0,80}:[*_: \t]*+)?(?:\{\{[^{}\n]*+\}\}|<%[^%\n]*+%>)",
    re.MULTILINE,
)
_CODE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")


class Note(NamedTuple):
    """A file: its path below the folder, its text, its front matter and where the body begins.

    `created_at` is the time in the front matter, else the day in the name, else the time of the last change.
    """

    path: str
    text: str
    metadata: dict[str, Any]
    begin: int
    created_at: datetime

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return name_of(self.path)


class Section(NamedTuple):
    """A part of a note. `id` is made of the note's path and the headings, so it stays when the text is edited.

    The first says the properties of the note too; one of a note that has nothing else has them as its text. `times` is
    how often it stands there.
    """

    id: str
    text: str
    headings: tuple[str, ...]
    start: int
    line: int
    properties: str = ""
    times: int = 1


def name_of(path: str) -> str:
    """The name of a file without folders and ending."""
    return path.rpartition("/")[2].rpartition(".")[0]


def same_name(name: str) -> str:
    """A name as others are compared with it: macOS writes the names of files decomposed, and links are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def notes_below(folder: Path, wanted: Callable[[str], bool] = lambda path: True) -> Iterator[Note | FileTrouble]:
    """The notes with wanted paths below a folder, or the one file, and what could not be read.

    InvalidInput if the folder cannot be read, or the file has another ending.
    """
    if not folder.is_dir():
        if not folder.name.lower().endswith(ENDINGS):
            raise InvalidInput(f"{folder} is no Markdown: give a folder of notes, or a file that ends in .md")
        yield from _read(folder.parent, folder.name, lambda: None)
        return

    def is_note(path: str) -> bool:
        return path.lower().endswith(("/", *ENDINGS)) and wanted(path)

    @cache
    def day_first() -> bool | None:
        """Whether the notes write 25/12/2024: all of them are asked, once one has a date that may be two days."""
        return day_first_of(value for path in files_below(folder, is_note) for value in _dates(folder, path))

    for path in files_below(folder, is_note, report_links=True):
        if isinstance(path, FileTrouble):
            yield path
        else:
            yield from _read(folder, path, day_first)


def _dates(folder: Path, path: str | FileTrouble) -> Iterator[Any]:
    """The dates in the front matter of a note."""
    with suppress(OSError, RecalliteError):
        steady = None if isinstance(path, FileTrouble) else read_steady(folder, path, _check)
        if steady is not None:
            yield from values_in(front_matter(decode(steady[0])[0])[0])


def _read(folder: Path, path: str, day_first: Callable[[], bool | None]) -> Iterator[Note | FileTrouble]:
    """The note at a path, and why it cannot be read, or not in full."""
    try:
        steady = read_steady(folder, path, _check)
        if steady is None:
            raise InvalidInput("it changed while it was read")
    except (OSError, RecalliteError) as fault:
        reason = f"it cannot be read: {fault.strerror or fault}" if isinstance(fault, OSError) else str(fault)
        yield FileTrouble(path=printable(path), reason=reason)
        return
    data, stamp = steady
    text, problem = decode(data)
    text = cleaned(text)
    metadata, begin = front_matter(text)
    if problem is not None:
        yield FileTrouble(path=printable(path), reason=problem)
    written_at, unread = own_time(metadata, path.rpartition(".")[0], day_first)
    for date in unread:
        yield FileTrouble(path=printable(path), line=line_of(text[:begin], date.name), reason=str(date))
    changed_at = time_of(stamp.mtime_ns // 1_000_000_000) or datetime.fromtimestamp(0, UTC)
    yield Note(printable(path), text, metadata, begin, written_at or changed_at)


def without_hidden(note: Note) -> tuple[Note, list[LeftOut]]:
    """A note with spaces in place of its comments and queries, and how many they were."""
    spans = {
        "comments": _comments(without_code(note.text), note.begin),
        "queries": [match.span() for match in _QUERY.finditer(note.text, note.begin)],
    }
    text = blanked(note.text, [span for of_kind in spans.values() for span in of_kind])
    return note._replace(text=text), [LeftOut(kind, len(of_kind)) for kind, of_kind in spans.items() if of_kind]


def _comments(text: str, begin: int) -> list[tuple[int, int]]:
    """The spans of comments that are closed."""
    spans = []
    for opening, closing in _COMMENTS:
        i = text.find(opening, begin)
        while i >= 0 and (end := text.find(closing, i + len(opening))) >= 0:
            spans.append((i, end + len(closing)))
            i = text.find(opening, end + len(closing))
    return spans


def sections_of(note: Note, *, without: Collection[str] = ()) -> list[Section]:
    """The sections of a note, each cut if it has more than 1,000 tokens, and its properties except the named ones.

    A section without words of its own is left out, and one that is repeated word for word below the same headings is
    there once.
    """
    sections: dict[tuple[tuple[str, ...], str], Section] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    properties = properties_text(note.metadata, without=without)
    # Without the sections that say nothing: the first of the others says the properties.
    chunks = chunk_markdown(note.text, lambda: measure_of("none")([note.text])[0], _SIZE, begin=note.begin)
    chunks = [chunk for chunk in chunks if _has_words(_PUT_IN.sub("", _TITLES.sub("", chunk.text)))]
    for chunk in with_columns(with_properties(chunks, note.text, properties, _SIZE), note.text, "markdown"):
        headings, text = tuple(short_name(heading) for heading in chunk.headings), (chunk.columns + chunk.text).strip()
        words = _TITLES.sub("", text).strip()  # only the first below a heading has that of the section around it
        if same := sections.get((headings, words)):
            sections[headings, words] = same._replace(times=same.times + 1)
            continue
        if chunk.start < note.begin:
            nth = "~properties"
        else:
            seen[headings] += 1
            nth = f"~{seen[headings]}" if seen[headings] > 1 else ""
        id = _CONTROL.sub(" ", "#".join((note.path, *headings)) + nth)
        sections[headings, words] = Section(id, text, headings, chunk.start, chunk.lines[0], chunk.properties)
    return list(sections.values())


def context_in(title: str | None, section: Section) -> str | None:
    """Title and headings, as a header of the text, and the properties that its first section says."""
    return context_of(None if title is None else short_name(title), section.headings, section.properties)


def kept_metadata(metadata: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Short values of the front matter, without those of these names."""
    return short_values({name: value for name, value in metadata.items() if name.lower() not in names})


def tags_in(text: str) -> list[str]:
    """The #tags of a text, which have a letter and are not in code."""
    return _TAG.findall(without_code(text))


def without_code(text: str) -> str:
    """A text with spaces in place of code."""
    return blanked(text, [match.span() for match in _CODE.finditer(text)])


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with spaces in place of some of its parts; its lines stay."""
    parts, done = [], 0
    for begin, end in sorted(spans):
        parts += [text[done:begin], re.sub(r"[^\n]", " ", text[max(begin, done) : end])]
        done = max(done, end)
    return "".join([*parts, text[done:]])


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"it is {kind_of(status.st_mode)}, no file")
    if status.st_size > _MAX_BYTES:
        raise InvalidInput(f"it has {status.st_size:,} bytes: a note has at most {_MAX_BYTES:,}")
