"""Memories of one scope and month as a Markdown file, and back.

    ---
    recallite: memories
    scope: "/infra"
    ---

    # Memories of /infra, 2026-03

    ## 2026-03-21 14:02
    <!-- recallite {"id":"…","tags":["database"],"created_at":"2026-03-21T14:02:11.031000Z"} -->

    We migrated from PostgreSQL to MySQL last week

- A section is a memory. Its heading, the minute it was stored (UTC), is for readers and diffs; that of a superseded
  memory says so: `## 2026-03-21 14:02 (superseded 2026-06-10)`. The comment has every field that differs from its
  default; the rest is the text. Lines of the text that look like the file's own structure (headings of the first two
  levels, rules, our comments) are escaped with a backslash.
- A section without a comment is a new memory. A heading that is a date or a time says when it was stored; any other is
  its context, or its text if nothing follows. `## ` in a code fence is not a heading.
- What neither belongs to a memory nor would be written by an export (a changed title, a time with nothing below it) is
  a problem: a file with one is not replaced.
- White space around a text is in the comment (`before`, `after`), and so is CRLF as its line ending. A file has no CR,
  so one that a tool has converted to CRLF reads the same. A text with control characters is a JSON string in a code
  fence.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from recallite.errors import InvalidInput
from recallite.model.authority import implied_authority
from recallite.model.checks import check_name, check_time, join_scopes, optional_datetime
from recallite.model.filters import MESSAGE_KIND, Filter
from recallite.model.records import Record
from recallite.store.transaction import Reader
from recallite.store.values import CHUNK_KIND
from recallite.system.messages import shown
from recallite.text.patterns import lazily
from recallite.text.quotes import visible
from recallite.transfer.exporting import link_fields, occurrence_lines, supersession_lines
from recallite.transfer.lines import LinkTo, OccurrenceLine, RecordFields, scope_within, written_time

_HEAD = lazily(r"\A---\nrecallite: memories\nscope: (\"[^\n]*\")[ \t]*\n---[ \t]*(?:\n|\Z)")
_COMMENT_BEGINS, _COMMENT_ENDS = "<!-- recallite ", "-->"
_TITLE_BEGINS = "# Memories of "
_TITLE = lazily(r"#[ \t].*")
_MONTH = lazily(r"\d{4}-\d\d[ \t]*")
_FENCE = lazily(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_STRUCTURE = r"(?:#{1,2}(?=[ \t]|$)|=+[ \t]*$|-+[ \t]*$|<!-- recallite )"
_TO_ESCAPE = lazily(rf"^( {{0,3}})(?=\\*{_STRUCTURE})", re.MULTILINE)
_ESCAPED = lazily(rf"^( {{0,3}})\\(?=\\*{_STRUCTURE})", re.MULTILINE)
_CONTROL = lazily(r"[\x00-\x08\x0b-\x1f\x7f]")
_MOMENT = lazily(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?(?:[ ]?(?:Z|UTC))?")
_SUPERSEDED = lazily(r"[ ]?\(superseded \d{4}-\d\d-\d\d\)\Z")
_BLANK = " \t\n"


class SupersededBy(Struct, frozen=True, forbid_unknown_fields=True):
    """The successor of the memory that lists it; with `known_until` it was undone then.

    Without `holds_from` it is when the new one begins, without `known_from` the time of the import.
    """

    new: str
    holds_from: str | None = None
    known_from: str | None = None
    known_until: str | None = None
    reason: str | None = None
    strength: float = 1.0
    certain: bool = True
    by_rule: bool = False


class Fields(RecordFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comment of a section. `before`, `after`, `eol` and `body` say how the text is written."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    links: tuple[LinkTo, ...] = ()
    superseded_by: tuple[SupersededBy, ...] = ()
    before: str = ""
    after: str = ""
    eol: Literal["lf", "crlf"] = "lf"
    body: Literal["markdown", "json"] = "markdown"


class MemorySection(Struct, frozen=True):
    """One memory of a file: its first line (from 1), its fields and its text."""

    line: int
    fields: Fields
    text: str


class MemoryFile(Struct, frozen=True):
    """The scope of a file, its memories in order, and its problems: line and reason."""

    scope: str
    sections: tuple[MemorySection, ...]
    problems: tuple[tuple[int, str], ...]


_JOINED = ("links", "superseded_by")
_SHARED = tuple(name for name in Fields.__struct_fields__ if name in Record.__struct_fields__ and name not in _JOINED)
_CHANGEABLE = (
    "context", "kind", "tags", "importance", "metadata", "topic", "source", "position", "valid_from", "valid_until",
    "expires_at", "pinned",
)  # fmt: skip
_CHANGEABLE_TIMES = ("valid_from", "valid_until", "expires_at")
_decode_fields = msgspec.json.Decoder(Fields).decode


def render_file(scope: str, month: str, memories: Sequence[tuple[datetime, Fields, str]]) -> str:
    """The file of these memories; each is the time it was stored, its fields and its text."""
    parts = [f"---\nrecallite: memories\nscope: {_json(scope)}\n---\n\n{_TITLE_BEGINS}{visible(scope)}, {month}\n"]
    for stored, memory_fields, text in memories:
        fields, body = _wrap(memory_fields, text)
        minute = stored.replace(tzinfo=None).isoformat(" ", "minutes")
        # The valid time at which what stands in its place began to hold.
        since = min(
            (by.holds_from for by in fields.superseded_by if by.known_until is None and by.holds_from), default=""
        )
        mark = f" (superseded {since[:10]})" if since else ""
        parts.append(f"\n## {minute}{mark}\n<!-- recallite {_json(_as_written(fields))} -->\n\n{body}\n")
    return "".join(parts)


def decoded(data: bytes) -> str:
    """The text of a file; InvalidInput if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput(
            f"the byte {data[fault.start]:#04x} at {fault.start} is not UTF-8: convert the file"
        ) from None


def is_memory_file(text: str) -> bool:
    """Whether a file begins as one of memories."""
    return _HEAD.match(text.replace("\r\n", "\n")) is not None


def parse_file(text: str) -> MemoryFile:
    """The memories of a file; InvalidInput if it is not a file of memories."""
    text = text.replace("\r\n", "\n")
    head = _HEAD.match(text)
    if head is None:
        raise InvalidInput('the file does not begin as one of memories does (recallite: memories, scope: "/…")')
    try:
        scope = msgspec.json.decode(head[1], type=str)
    except msgspec.DecodeError:
        raise InvalidInput(f"scope {shown(head[1])} is not a JSON string") from None
    reader = _Reader(text[: head.end()].count("\n"), f"{_TITLE_BEGINS}{visible(scope)}, ")
    reader.read(text[head.end() :].split("\n"))
    return MemoryFile(scope, tuple(reader.sections), tuple(reader.problems))


def searchable_text(part: str) -> str:
    """A part of a file for search, with its comments blanked: a comment halved the cosine of a memory to a question."""
    bare = "\n".join(line if _comment_in(line) is None else "" for line in part.split("\n"))
    return bare if bare.strip() else part


def _wrap(fields: Fields, text: str) -> tuple[Fields, str]:
    """The body that represents a text, and the fields that say how."""
    lines = text.replace("\r\n", "\n")
    crlf = lines != text and text.count("\n") == text.count("\r\n")
    plain = lines if crlf else text
    body = plain.strip(_BLANK)
    if not body or _CONTROL.search(plain):
        return structs.replace(fields, body="json"), f"```json\n{_json(text)}\n```"
    before, after = plain[: len(plain) - len(plain.lstrip(_BLANK))], plain[len(plain.rstrip(_BLANK)) :]
    wrapped = structs.replace(fields, before=before, after=after, eol="crlf" if crlf else "lf")
    return wrapped, _TO_ESCAPE.sub(r"\1\\", body)


def _unwrap(fields: Fields, body: str) -> str:
    """The text that a body, without blank lines around it, represents."""
    if fields.body == "json":
        lines = body.split("\n")
        if len(lines) >= 3 and lines[0].rstrip() == "```json" and lines[-1].rstrip() == "```":
            try:
                return msgspec.json.decode("\n".join(lines[1:-1]), type=str)
            except msgspec.DecodeError as fault:
                raise InvalidInput(f"the text in the code fence is not a JSON string any more ({fault})") from None
        raise InvalidInput('the text is not a JSON string in a code fence any more: remove "body" to write freely')
    if not body:
        raise InvalidInput("the text is empty: remove the section to forget the memory")
    text = fields.before + _ESCAPED.sub(r"\1", body) + fields.after
    return text.replace("\n", "\r\n") if fields.eol == "crlf" else text


class _Reader:
    """Splits a file's lines into sections."""

    def __init__(self, line: int, title: str) -> None:
        self._line = line
        self._title = title  # up to the month
        self._begun = line + 1
        self._heading: str | None = None
        self._comment: str | None = None
        self._body: list[str] = []
        self._has_text = False  # whether a line of the body is not blank
        self._fence: str | None = None
        self.sections: list[MemorySection] = []
        self.problems: list[tuple[int, str]] = []

    def read(self, lines: list[str]) -> None:
        titled = False
        for i, line in enumerate(lines):
            self._line += 1
            if (comment := _comment_in(line)) is not None:
                if self._comment is not None or self._has_text:
                    self._end()
                self._comment, self._body, self._fence = comment, [], None
            elif (heading := _heading_in(line)) is not None and (self._fence is None or _is_commented(lines, i)):
                self._end()
                self._heading = heading
            elif not titled and not self.sections and self._blank() and _TITLE.fullmatch(line):
                titled = True
                if not line.startswith(self._title) or not _MONTH.fullmatch(line, len(self._title)):
                    title = f"{self._title}and its month"
                    self.problems.append((self._line, f"the file's title is made by the export: restore {title!r}"))
            else:
                fence = _FENCE.fullmatch(line)
                if fence is not None and self._fence is None:
                    self._fence = fence[1] if fence[1][0] == "~" or "`" not in fence[2] else None
                elif fence is not None and fence[1].startswith(self._fence or "") and not fence[2].strip():
                    self._fence = None
                self._body.append(line)
                self._has_text = self._has_text or not (not line or line.isspace())
        self._end()

    def _blank(self) -> bool:
        return not self._heading and self._comment is None and not self._has_text

    def _end(self) -> None:
        """Add the section that was read since the last boundary."""
        begun, blank = self._begun, self._blank()
        heading, comment, body = self._heading, self._comment, "\n".join(self._body).strip(_BLANK)
        self._heading = self._comment = self._fence = None
        self._body, self._has_text, self._begun = [], False, self._line
        if blank:
            return
        try:
            if comment is None:
                self.sections.append(_new_section(begun, heading, body))
                return
            fields = _fields(comment)
            heading = heading and _SUPERSEDED.sub("", heading)
            if heading and fields.id is None and fields.created_at is None:
                fields = structs.replace(fields, created_at=_time_of(heading))
            if heading and not _is_time_of(heading, fields):
                # An export would replace the heading by the time.
                self.problems.append((begun, "a stored memory's heading is its time: write into its text instead"))
            self.sections.append(MemorySection(begun, fields, _unwrap(fields, body)))
        except InvalidInput as reason:
            self.problems.append((begun, str(reason)))


def _is_commented(lines: list[str], i: int) -> bool:
    """Whether the next line that is not blank is one of our comments."""
    following = next((lines[j] for j in range(i + 1, len(lines)) if lines[j].strip()), "")
    return _comment_in(following) is not None


def _comment_in(line: str) -> str | None:
    """The content of a line that is one of our comments; None for any other line."""
    line = line.rstrip(" \t")
    if not line.startswith(_COMMENT_BEGINS) or not line.endswith(_COMMENT_ENDS, len(_COMMENT_BEGINS)):
        return None
    return line[len(_COMMENT_BEGINS) : -len(_COMMENT_ENDS)].rstrip(" \t")


def _heading_in(line: str) -> str | None:
    """The text of a second-level heading without closing #s; None for any other line."""
    if not line.startswith(("## ", "##\t")):
        return None
    words = line[2:].strip(" \t")
    open_ended = words.rstrip("#")
    return open_ended.rstrip(" \t") if open_ended.endswith((" ", "\t")) else words


def _fields(comment: str) -> Fields:
    try:
        fields = _decode_fields(comment)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise InvalidInput(
            f"the comment of the memory cannot be read ({fault}): undo the change, or remove it"
        ) from None
    if fields.id is not None:
        check_name(fields.id, "id")
    for link in fields.links:
        check_name(link.target, "a link's target")
    for entry in fields.superseded_by:
        check_name(entry.new, "superseded_by")
    if fields.kind in (CHUNK_KIND, MESSAGE_KIND):
        # An export writes no chunks, and would remove the file that holds one.
        raise InvalidInput(f"kind is {fields.kind!r}, of a document or session, not a memory: give another kind")
    return fields


def _is_time_of(heading: str, fields: Fields) -> bool:
    """Whether a heading is the minute, or the day, at which its memory was stored."""
    moment = _MOMENT.fullmatch(heading)
    created = optional_datetime(check_time(fields.created_at, "created_at"))
    if moment is None or created is None:
        return moment is not None
    day, minute = created.replace(tzinfo=None).isoformat(" ", "minutes").split(" ")
    return moment[1] == day and moment[2] in (None, minute)


def _time_of(heading: str) -> str | None:
    moment = _MOMENT.fullmatch(heading)
    return None if moment is None else f"{moment[1]}T{moment[2] or '00:00'}:00Z"


def _new_section(line: int, heading: str | None, body: str) -> MemorySection:
    """A memory that was written by hand."""
    created = _time_of(heading or "")
    if heading and not body:
        if created is not None:
            raise InvalidInput("nothing is below this time: write the memory there, or remove the heading")
        return MemorySection(line, Fields(), heading)
    fields = Fields(created_at=created, context=None if created is not None else heading or None)
    return MemorySection(line, fields, _unwrap(fields, body))


def _as_written(fields: Fields) -> dict[str, Any]:
    """The fields that differ from their defaults (msgspec's omit_defaults compares by identity, and keeps some)."""
    lists = {
        "links": [_without_defaults(link, LinkTo("")) for link in fields.links],
        "superseded_by": [_without_defaults(entry, SupersededBy("")) for entry in fields.superseded_by],
        "repeated": [_without_defaults(entry, OccurrenceLine("")) for entry in fields.repeated],
    }
    return {**_without_defaults(fields, Fields()), **{name: listed for name, listed in lists.items() if listed}}


def _without_defaults(value: Struct, default: Struct) -> dict[str, Any]:
    return {name: stored for name, stored in structs.asdict(value).items() if stored != getattr(default, name)}


def _json(value: object) -> str:
    """JSON on one line that cannot end the comment."""
    return visible(msgspec.json.encode(value).decode()).replace(">", "\\u003e")


class Joined(NamedTuple):
    """The links, successors and further times of memories, by the id of a memory."""

    links: Mapping[str, Sequence[LinkTo]]
    superseded_by: Mapping[str, Sequence[SupersededBy]]
    repeated: Mapping[str, Sequence[OccurrenceLine]]

    @classmethod
    def of(cls, reader: Reader, filter: Filter) -> Joined:
        """The links and successors among the memories that a filter admits."""
        links: defaultdict[str, list[LinkTo]] = defaultdict(list)
        for link in reader.links.between(filter, chunks=False):
            links[link.source].append(LinkTo(**link_fields(link)))
        superseded_by: defaultdict[str, list[SupersededBy]] = defaultdict(list)
        for pair in supersession_lines(reader, filter):
            superseded_by[pair.old].append(SupersededBy(*structs.astuple(pair)[1:]))
        return cls(links, superseded_by, {})

    def with_repeated(self, reader: Reader, records: Sequence[Record]) -> Joined:
        """With the further times of these memories."""
        ids = reader.records.find_ids([record.id for record in records if record.occurrences > 1], "/")
        times = reader.occurrences.of(list(ids.values()))
        repeated = {id: occurrence_lines(times[row_id]) for id, row_id in ids.items() if row_id in times}
        return self._replace(repeated=repeated)


_NOTHING = Joined({}, {}, {})


def fields_of(record: Record, joined: Joined = _NOTHING) -> Fields:
    """The comment of a memory's section. It names the author only where the other fields do not."""
    values = {name: getattr(record, name) for name in _SHARED}
    times = {name: written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    same: dict[str, None] = {
        name: None for name in ("updated_at", "recorded_from") if values[name] == record.created_at
    }
    implied = implied_authority(record.kind, record.source, record.context)
    same |= {"authority": None} if values["authority"] == implied else {}
    links = tuple(sorted(joined.links.get(record.id, ()), key=lambda link: (link.target, link.type)))
    return Fields(
        **{**values, **times, **same}, links=links, superseded_by=tuple(joined.superseded_by.get(record.id, ())),
        repeated=tuple(joined.repeated.get(record.id, ())),
    )  # fmt: skip


def changeable_fields(scope: str, fields: Fields, text: str) -> dict[str, Any]:
    """The fields of a section that `update` can change, by `update`'s names. InvalidInput for a wrong time."""
    values = {name: getattr(fields, name) for name in _CHANGEABLE}
    times = {name: optional_datetime(check_time(values[name], name)) for name in _CHANGEABLE_TIMES}
    return {**values, **times, "text": text, "scope": scope, "tags": tuple(dict.fromkeys(fields.tags or ()))}


def stored_fields(record: Record, base: str) -> dict[str, Any]:
    """`changeable_fields` of a memory in the store."""
    return changeable_fields(scope_within(record.scope, base), fields_of(record), record.text)


def content_digest(fields: dict[str, Any]) -> str:
    """16 hexadecimal digits of the changeable fields of a section."""
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()[:16]


def unstored_changes(
    record: Record, scope: str, section: MemorySection, before: str | None, base: str
) -> dict[str, Any]:
    """The fields of a section that differ from the store's; none if the section is as it was: `before` is its digest
    at the last export or import.
    """
    fields = changeable_fields(scope, section.fields, section.text)
    if before == content_digest(fields):
        return {}
    stored = stored_fields(record, base)
    return {name: value for name, value in fields.items() if value != stored[name]}


def moves_creation(record: Record, fields: Fields) -> bool:
    """Whether a section says that its memory was stored at another time."""
    created_at = optional_datetime(check_time(fields.created_at, "created_at"))
    return created_at is not None and created_at != record.created_at


def known_supersessions(reader: Reader, base: str) -> set[tuple[str, str, int | None]]:
    """Supersessions, undone or not: the ids of the old and the new memory, and since when it is known.

    Each pair is in it without a time, too.
    """
    pairs = reader.supersessions.between(Filter().within(base))
    return {(pair.old, pair.new, time) for pair in pairs for time in (pair.known_from, None)}


def ids_of(file: MemoryFile, base: str) -> list[str]:
    """The id of each memory of a file; one that was written by hand gets the same at each import, while its text is
    unchanged.

    Such an id depends on the scope `base` of the handle, so that it reveals nothing about other scopes.
    """
    scope = join_scopes(base, file.scope) or "/"
    ids = []
    for section in file.sections:
        key = "\x00".join((scope, section.fields.context or "", section.text))
        ids.append(section.fields.id or f"md-{hashlib.sha256(key.encode()).hexdigest()[:32]}")
    return ids
