"""DOCX: mammoth converts it to HTML, which is converted to Markdown like a page.

What mammoth leaves out is written into the document before: formulas, headers and footers, the numbers of lists and
headings, text struck out twice, readings of characters (ruby), fields, text boxes that have one form only, and the
levels of styles. Its maintainers have declined formulas and numbers.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mammoth

from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite_documents.detecting import Loaded
from recallite_documents.html import formatted, in_one_line, markdown_of

_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_STYLES = """p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='HTML Preformatted'] => pre:separator('\\n')
comment-reference => """
_PROPERTIES = {
    "creator": "author", "subject": "subject", "description": "description", "created": "created",
    "modified": "modified", "keywords": "keywords",
}  # fmt: skip
_CORE = "docProps/core.xml"
_MOST_MEMBERS = 10_000
_FLAG_ENCRYPTED = 1
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_BOX, _DRAWN = f"{_W}txbxContent", (f"{_W}drawing", f"{_MC}AlternateContent")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# What mammoth passes over, and what it reads in the same way.
_SAME = {
    f"{_W}{name}": f"{_W}{known}"
    for name, known in (("fldSimple", "smartTag"), ("bdo", "smartTag"), ("dir", "smartTag"), ("dstrike", "strike"),
                        ("cr", "br"), ("ptab", "tab"))
}  # fmt: skip
_UNREAD = {
    "chart": "charts", "relIds": "diagrams", "OLEObject": "embedded objects", "altChunk": "embedded documents",
}  # fmt: skip
# A number of a list stands between these until it is one of HTML.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARKED = re.compile(f"<li>{_OPEN}([0-9]+){_CLOSE}")
_CONTENTS = re.compile(r"\s*(?:TOC|TOA|INDEX)\b")
_CONTENTS_STYLE = re.compile(r"toc (?:\d|heading)|table of figures", re.IGNORECASE)
_GALLERY = "Table of Contents"
_OUTLINED = ("0", "1", "2", "3", "4", "5")  # levels of the outline, which are headings 1 to 6
# The letters that the line of a header or footer with a page number has at least besides.
_LEAST_LETTERS = 12
_PAGE = re.compile(r"\b(?:NUM)?PAGES?\b")


def load_docx(data: bytes, limits: Limits) -> Loaded:
    """Return a Word document as Markdown; raises DocumentError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, limits)
            stated = {item.tag.rpartition("}")[2]: (item.text or "").strip() for item in _part(archive, _CORE)}
            styles = _Styles(_part(archive, "word/styles.xml"))
            completed, warnings = _completed(archive, styles)
        html = mammoth.convert_to_html(
            completed, style_map="\n".join([_STYLES, *styles.headings()]),
            convert_image=mammoth.images.img_element(lambda image: {}),
        )  # fmt: skip
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError, ValueError, NotImplementedError) as reason:
        raise DocumentError(f"it is damaged: {type(reason).__name__}: {str(reason)[:200]}") from reason
    numbered = _MARKED.sub(r'<li value="\1">', html.value).replace(_OPEN, "").replace(_CLOSE, ". ")
    text, lost = markdown_of(numbered, limits.max_chars)
    if not text.strip():
        raise DocumentError("it holds no text")
    metadata: dict[str, Any] = {ours: stated[name] for name, ours in _PROPERTIES.items() if stated.get(name)}
    return Loaded(
        text=text, media_type=_MEDIA_TYPE, markdown=True, title=stated.get("title") or None, metadata=metadata,
        warnings=warnings + lost,
    )  # fmt: skip


def _check_members(archive: zipfile.ZipFile, limits: Limits) -> None:
    """Refuse an archive that is too large expanded; zipfile reads no more of a member than its declared size."""
    members = archive.infolist()
    expanded = sum(member.file_size for member in members if not member.filename.startswith("word/media/"))
    if len(members) > _MOST_MEMBERS or expanded > limits.max_bytes:
        raise DocumentError(
            f"it expands to {expanded:,} bytes in {len(members):,} parts; the limit is {limits.max_bytes:,} bytes",
            "too_large",
        )
    if any(member.flag_bits & _FLAG_ENCRYPTED for member in members):
        raise DocumentError("it is encrypted: save it without a password", "encrypted")


def _part(archive: zipfile.ZipFile, name: str) -> Element:
    """Return the root of a part of the document; an empty element if there is none."""
    return ElementTree.fromstring(archive.read(name)) if name in archive.namelist() else Element("none")


def _completed(archive: zipfile.ZipFile, styles: _Styles) -> tuple[io.BytesIO, list[str]]:
    """Return the document with what mammoth leaves out as text of it, and warnings of what is not read."""
    root = _part(archive, "word/document.xml")
    body = root.find(f"{_W}body")
    warnings: list[str] = []
    changed = {}
    if body is not None:
        warnings += _drop_contents(body, styles)
        for name in ("footnotes", "endnotes", "comments"):
            if len(notes := _part(archive, f"word/{name}.xml")):
                warnings += _write_out(notes, styles)
                changed[f"word/{name}.xml"] = notes
        warnings += _write_out(root, styles)
        _number(body, _part(archive, "word/numbering.xml"), styles)
        headers, footers = _page_lines(archive, "header"), _page_lines(archive, "footer")
        body[:0] = [_paragraph(_run(line)) for line in headers]
        end = len(body) - (body[-1].tag == f"{_W}sectPr") if len(body) else 0
        body[end:end] = [_paragraph(_run(line)) for line in footers if line not in headers]
        changed["word/document.xml"] = root
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
        for member in archive.infolist():
            if member.filename in changed:
                copy.writestr(member.filename, ElementTree.tostring(changed.pop(member.filename), encoding="utf-8"))
            elif not member.filename.startswith("word/media/"):
                copy.writestr(member.filename, archive.read(member))
    return out, warnings


def _drop_contents(body: Element, styles: _Styles) -> list[str]:
    """Take out tables of contents, of figures and of authorities, and indexes; return a warning if there are some.

    Each is a field, whose paragraphs have styles of their own, and often a part of the document made for it. What
    follows a field without an end stays: it is the rest of the document.
    """
    texts: list[Element] = []
    within: list[Element] = []  # texts of a table of contents that has not ended
    fields: list[str] = []  # the instructions of those that are open
    for node in body.iter():
        if node.tag == f"{_W}fldChar" and node.get(f"{_W}fldCharType") == "begin":
            fields.append("")
        elif node.tag == f"{_W}fldChar" and node.get(f"{_W}fldCharType") == "end":
            del fields[-1:]
            if not any(map(_CONTENTS.match, fields)):
                texts += within
                within = []
        elif node.tag == f"{_W}instrText" and fields:
            fields[-1] += node.text or ""
        elif node.tag == f"{_W}t" and any(map(_CONTENTS.match, fields)):
            within.append(node)
        elif (
            (node.tag == f"{_W}fldSimple" and _CONTENTS.match(node.get(f"{_W}instr", "")))
            or (node.tag == f"{_W}p" and _CONTENTS_STYLE.fullmatch(styles.name_of(node)))
            or (node.tag == f"{_W}sdt" and _value(node.find(f"{_W}sdtPr/{_W}docPartObj"), "docPartGallery") == _GALLERY)
        ):
            texts += node.iter(f"{_W}t")
    said = any(text.text for text in texts)
    for text in texts:
        text.text = ""
    return ["a table of contents was not read"] if said else []


def _page_lines(archive: zipfile.ZipFile, kind: str) -> list[str]:
    """Return the different lines of the headers or footers, without page numbers."""
    lines: dict[str, None] = {}
    for name in sorted(archive.namelist()):
        if name.startswith(f"word/{kind}") and name.endswith(".xml"):
            for paragraph in _part(archive, name).iter(f"{_W}p"):
                fields = " ".join((item.text or "") + (item.get(f"{_W}instr") or "") for item in paragraph.iter())
                text = _text(paragraph).strip()
                if sum(map(str.isalpha, text)) > (_LEAST_LETTERS if _PAGE.search(fields) else 0):
                    lines[text] = None
    return list(lines)


class _Styles:
    """The styles of a document, by their ids."""

    def __init__(self, styles: Element) -> None:
        self.by_id = {style.get(f"{_W}styleId", ""): style for style in styles.iter(f"{_W}style")}

    def stated(self, style_id: str, path: str) -> Element | None:
        """Return what a style, or the nearest one that it is based on, states at this path."""
        seen: set[str] = set()
        while (style := self.by_id.get(style_id)) is not None and style_id not in seen:
            if (found := style.find(path)) is not None:
                return found
            seen.add(style_id)
            style_id = _value(style, "basedOn")
        return None

    def name_of(self, paragraph: Element) -> str:
        """Return the name of the style of a paragraph; "" if it states none."""
        return _value(self.by_id.get(_value(paragraph.find(f"{_W}pPr"), "pStyle")), "name")

    def headings(self) -> Iterator[str]:
        """Yield the rules for headings in styles of a person's own, which have or inherit a level of the outline."""
        for style_id, style in self.by_id.items():
            level = self.stated(style_id, f"{_W}pPr/{_W}outlineLvl")
            depth = "" if level is None else level.get(f"{_W}val", "")
            name = _value(style, "name")
            if depth in _OUTLINED:
                name = name.replace("\\", "\\\\").replace("'", "\\'")
                yield f"p[style-name='{name}'] => h{int(depth) + 1}:fresh"

    def hides(self, run: Element) -> bool:
        """Return whether a run is hidden text, by itself or by its style."""
        direct = run.find(f"{_W}rPr/{_W}vanish")
        if direct is None:
            direct = self.stated(_value(run.find(f"{_W}rPr"), "rStyle"), f"{_W}rPr/{_W}vanish")
        return _is_on(direct)


def _is_on(setting: Element | None) -> bool:
    """Return whether a setting that needs no value is there and not turned off."""
    return setting is not None and setting.get(f"{_W}val") not in ("0", "false", "off")


def _write_out(root: Element, styles: _Styles) -> list[str]:
    """Write formulas, readings and fields as runs, and take out hidden runs; return warnings of what is not read."""
    unread: Counter[str] = Counter()
    for parent in list(root.iter()):
        for i, child in reversed(list(enumerate(parent))):
            kind = child.tag.rpartition("}")[2]
            if child.tag in (f"{_M}oMath", f"{_M}oMathPara"):
                run = _run(f" ${in_one_line(child)}$ ")
                inline = parent.tag in (f"{_W}p", f"{_W}hyperlink", f"{_W}ins", f"{_M}oMathPara")
                parent[i] = run if inline else _paragraph(run)
            elif child.tag == f"{_W}ruby":
                base, reading = (_text(child.find(f"{_W}{name}")) for name in ("rubyBase", "rt"))
                parent[i] = _run(f"{base}({reading})")[0]
            elif child.tag in _SAME:
                child.tag = _SAME[child.tag]
            elif child.tag == f"{_W}br":
                child.attrib.clear()  # that of a page ends a line as well
            elif child.tag == f"{_W}sdt" and _is_on(child.find(f"{_W}sdtPr/{_W}showingPlcHdr")):
                parent.remove(child)  # a field that nobody filled in
            elif child.tag == f"{_W}outlineLvl" and parent.tag == f"{_W}pPr" and child.get(f"{_W}val") in _OUTLINED:
                style = parent.find(f"{_W}pStyle")
                style = ElementTree.SubElement(parent, f"{_W}pStyle") if style is None else style
                style.set(f"{_W}val", f"Heading{int(child.get(f'{_W}val', '')) + 1}")
            elif child.tag == f"{_W}fldChar" and (choice := child.find(f"{_W}ffData/{_W}ddList")) is not None:
                chosen = _value(choice, "result") or _value(choice, "default") or "0"
                entries = choice.findall(f"{_W}listEntry")[int(chosen) :] if chosen.isdecimal() else []
                parent[i:i] = _run("".join(entry.get(f"{_W}val", "") for entry in entries[:1]))
            elif (
                child.tag in (f"{_W}drawing", f"{_MC}AlternateContent") and child.find(f"{_MC}Fallback//{_BOX}") is None
            ):
                boxes = Element(f"{_W}pict")
                boxes.extend(child.iter(_BOX))
                parent[i + 1 : i + 1] = [boxes] * (len(boxes) > 0)
            elif child.tag == f"{_W}r" and styles.hides(child):
                unread["hidden texts"] += bool(_text(child).strip())
                parent.remove(child)
            elif kind in _UNREAD:
                unread[_UNREAD[kind]] += 1
    return [f"{number:,} {what} were not read" for what, number in unread.items() if number]


def _text(node: Element | None) -> str:
    return "" if node is None else "".join(item.text or "" for item in node.iter(f"{_W}t"))


def _run(text: str) -> Element:
    run = Element(f"{_W}r")
    ElementTree.SubElement(run, f"{_W}t", {_SPACE: "preserve"}).text = text
    return run


def _paragraph(run: Element) -> Element:
    paragraph = Element(f"{_W}p")
    paragraph.append(run)
    return paragraph


# ── the numbers of lists and headings ────────────────────────────────────────────────────────────────────────────────


class _List:
    """A list: its levels, the kind, for which all lists count together, and the levels at which it begins anew."""

    def __init__(self, item: Element, kinds: dict[str, Element]) -> None:
        self.kind = _value(item, "abstractNumId")
        self.levels = {_level(node): node for node in kinds.get(self.kind, item).iter(f"{_W}lvl")}
        self.anew: dict[int, int] = {}
        for override in item.iter(f"{_W}lvlOverride"):
            self.levels.update({_level(node): node for node in override.iter(f"{_W}lvl")})
            if override.find(f"{_W}startOverride") is not None:
                self.anew[_level(override)] = int(_value(override, "startOverride") or 1)

    def start(self, level: int) -> int:
        return int(_value(self.levels.get(level), "start") or 1)

    def form(self, level: int) -> str:
        return _value(self.levels[level], "numFmt") if level in self.levels else "decimal"


def _value(node: Element | None, name: str) -> str:
    """Return the value of a setting in a node; "" if it has none."""
    setting = None if node is None else node.find(_W + name)
    return "" if setting is None else setting.get(f"{_W}val", "")


def _level(node: Element) -> int:
    return int(node.get(f"{_W}ilvl", "0"))


def _number(body: Element, numbering: Element, styles: _Styles) -> None:
    """Write the number of each numbered paragraph before it, as Word counts: a list goes on after other text."""
    kinds = {item.get(f"{_W}abstractNumId", ""): item for item in numbering.iter(f"{_W}abstractNum")}
    lists = {item.get(f"{_W}numId", ""): _List(item, kinds) for item in numbering.iter(f"{_W}num")}
    by_id = styles.by_id
    counts: dict[str, dict[int, int]] = {}
    for paragraph in body.iter(f"{_W}p"):
        properties = paragraph.find(f"{_W}pPr")
        if properties is None or not _text(paragraph).strip():
            continue
        style = by_id.get(_value(properties, "pStyle"))
        name, level = _list_of(properties, style, by_id, lists)
        if name not in lists or level not in lists[name].levels:
            continue
        numbers = lists[name]
        counted = counts.setdefault(numbers.kind, {})
        if level in numbers.anew:
            counted[level] = numbers.anew.pop(level) - 1
        counted[level] = counted.get(level, numbers.start(level) - 1) + 1
        for deeper in [other for other in counted if other > level]:
            del counted[deeper]
        label = _label(numbers, counted, level)
        if not label:
            continue
        if label.strip(".) ").isdigit() and not _value(style, "name").casefold().startswith("heading"):
            mark = f"{_OPEN}{counted[level]}{_CLOSE}"  # an item of a list, whose number is set below
        else:
            mark = f"{label} "
            for stated in properties.findall(f"{_W}numPr"):
                properties.remove(stated)
            none = ElementTree.SubElement(properties, f"{_W}numPr")
            ElementTree.SubElement(none, f"{_W}ilvl", {f"{_W}val": "0"})
            ElementTree.SubElement(none, f"{_W}numId", {f"{_W}val": "0"})
        paragraph.insert(list(paragraph).index(properties) + 1, _run(mark))


def _list_of(
    properties: Element, style: Element | None, by_id: dict[str, Element], lists: dict[str, _List]
) -> tuple[str, int]:
    """Return the list of a paragraph, stated by itself or by its style, and its level in it."""
    numbering = properties.find(f"{_W}numPr")
    seen: set[str] = set()
    level = None
    while True:
        name, stated = _value(numbering, "numId"), _value(numbering, "ilvl")
        if stated and level is None:
            level = int(stated)
        if name or style is None or (style_id := style.get(f"{_W}styleId", "")) in seen:
            return name, level or 0
        seen.add(style_id)
        numbering = style.find(f"{_W}pPr/{_W}numPr")
        if level is None and (inner := lists.get(_value(numbering, "numId"))) is not None:
            level = next((i for i, node in inner.levels.items() if _value(node, "pStyle") == style_id), None)
        style = by_id.get(_value(style, "basedOn"))


def _label(numbers: _List, counted: dict[int, int], level: int) -> str:
    """Return the label of a paragraph, as 3. or 2.1 or (b); nothing for a bullet."""
    if numbers.form(level) in ("bullet", "none"):
        return ""

    def number_of(match: re.Match[str]) -> str:
        other = int(match[1]) - 1
        return formatted(counted.get(other, numbers.start(other)), numbers.form(other))

    return re.sub(r"%([1-9])", number_of, _value(numbers.levels[level], "lvlText")).strip()
