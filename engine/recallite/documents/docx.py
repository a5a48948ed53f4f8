"""DOCX: mammoth converts it to HTML (headings, lists, tables, notes), which is converted to Markdown."""

from __future__ import annotations

import io
import zipfile
from typing import Any
from xml.etree import ElementTree

import mammoth

from recallite.documents.html import markdown_of
from recallite.documents.loaded import Limits, Loaded
from recallite.errors import DocumentError

_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh\ncomment-reference => "
_PROPERTIES = {
    "{http://purl.org/dc/elements/1.1/}title": "title",
    "{http://purl.org/dc/elements/1.1/}creator": "author",
    "{http://purl.org/dc/elements/1.1/}subject": "subject",
    "{http://purl.org/dc/elements/1.1/}description": "description",
    "{http://purl.org/dc/terms/}created": "created",
    "{http://purl.org/dc/terms/}modified": "modified",
    "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}keywords": "keywords",
}
_MOST_MEMBERS = 10_000
_FLAG_ENCRYPTED = 1


def load_docx(data: bytes, limits: Limits) -> Loaded:
    """Return a Word document as Markdown; raises DocumentError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, limits)
            properties = _properties(archive)
        html = mammoth.convert_to_html(
            io.BytesIO(data), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda image: {})
        )
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError, ValueError, NotImplementedError) as reason:
        raise DocumentError(f"it is damaged: {type(reason).__name__}: {str(reason)[:200]}") from reason
    text = markdown_of(html.value, limits.max_chars)
    if not text.strip():
        raise DocumentError("it holds no text")
    title = properties.pop("title", None)
    return Loaded(text=text, media_type=_MEDIA_TYPE, markdown=True, title=title, metadata=properties)


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


def _properties(archive: zipfile.ZipFile) -> dict[str, Any]:
    if "docProps/core.xml" not in archive.namelist():
        return {}
    root = ElementTree.fromstring(archive.read("docProps/core.xml"))
    stated = {_PROPERTIES[item.tag]: (item.text or "").strip() for item in root if item.tag in _PROPERTIES}
    return {name: value for name, value in stated.items() if value}
