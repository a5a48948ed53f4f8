"""HTML: the main text of a page as Markdown."""

from __future__ import annotations

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from recollect.errors import DocumentTooLarge, DocumentUnreadable
from recollect.knowledge.html_markdown import to_markdown
from recollect.knowledge.loaded import Loaded
from recollect.knowledge.plain import decode

__all__ = ["load_html", "markdown_of"]

_CHARSET = re.compile(rb"<meta[^<>]+?charset\s*+=\s*+[\"']?+\s*+([\w:.-]+)", re.IGNORECASE)
_AROUND = frozenset(("nav", "aside", "footer"))
_METADATA = {
    "author": "author",
    "description": "description",
    "keywords": "keywords",
    "article:published_time": "created",
    "article:modified_time": "modified",
}


def load_html(data: bytes, max_chars: int, charset: str | None = None) -> Loaded:
    """The main text of an HTML page; `charset` is the declared one. Raises DocumentUnreadable and DocumentTooLarge."""
    declared = _CHARSET.search(data[:4096])
    text, warnings = decode(data, charset or (declared[1].decode("ascii") if declared else None))
    tree = LexborHTMLParser(text)
    markdown = _main_text(tree, max_chars)
    if not markdown.strip():
        raise DocumentUnreadable("it holds no text; a page that a script fills is empty without it")
    title = tree.css_first("title") or tree.css_first("h1")
    return Loaded(
        text=markdown, media_type="text/html", markdown=True, metadata=_metadata(tree), warnings=warnings,
        title=" ".join(title.text().split()) or None if title is not None else None,
    )  # fmt: skip


def markdown_of(html: str, max_chars: int) -> str:
    """A piece of HTML as Markdown, all of it."""
    body = LexborHTMLParser(html).body
    return "" if body is None else _converted(body, frozenset(), max_chars)


def _main_text(tree: Any, max_chars: int) -> str:
    """The contents of <main> or of the only <article>, else of the body without navigation and the like."""
    body = tree.body
    if body is None:
        return ""
    articles = tree.css("article")
    main = tree.css_first("main, [role=main]") or (articles[0] if len(articles) == 1 else None)
    found = _converted(main, _AROUND, max_chars) if main is not None else ""
    return found or _converted(body, _AROUND, max_chars) or _converted(body, frozenset(), max_chars)


def _converted(root: Any, drop: frozenset[str], max_chars: int) -> str:
    try:
        # NUL has no meaning, and the store refuses it.
        return to_markdown(root, drop=drop, max_chars=max_chars).replace("\x00", "")
    except OverflowError:
        raise DocumentTooLarge(f"its text is longer than {max_chars:,} characters") from None


def _metadata(tree: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    root = tree.css_first("html")
    if root is not None and root.attributes.get("lang"):
        metadata["language"] = root.attributes["lang"]
    for meta in tree.css("meta[content]"):
        name = (meta.attributes.get("name") or meta.attributes.get("property") or "").lower()
        value = (meta.attributes.get("content") or "").strip()
        if name in _METADATA and value:
            metadata.setdefault(_METADATA[name], value)
    return metadata
