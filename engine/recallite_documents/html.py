"""HTML: the main text of a page as Markdown, with headings, lists, tables, quotes and code; only what can be seen.

html-to-markdown converts. Before it, the tree is made to say in text what it says by other means: formulas, check boxes
and fields, raised and lowered characters, struck-out text, merged cells, numbers of lists, what a click opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser

from recallite.errors import DocumentError
from recallite_documents.detecting import Loaded, decode, too_long
from recallite_documents.html_links import (
    BLOCKS,
    HEADINGS,
    complete_addresses,
    drop_contents,
    keep_addresses,
    letters,
    parsed,
    place_notes,
    text_of_node,
)
from recallite_documents.written_dates import time_named

_CHARSET = re.compile(rb"<meta[^<>]+?charset\s*+=\s*+[\"']?+\s*+([\w:.-]+)", re.IGNORECASE)
# In HTML an empty <script/> or <title/> takes in all that follows.
_XHTML = re.compile(r"<\?xml|//www\.w3\.org/1999/xhtml")
_SELF_CLOSED = re.compile(r"<(title|script|style|textarea|iframe|noscript|a|span|div|p|td)((?:\s[^<>]*)?)/>")
_METADATA = ("author", "description", "keywords")
_JSON_LD_DATE = re.compile(r'"date(Published|Created|Modified)"\s*:\s*"([^"\\]{4,60})"')


def load_html(data: bytes, max_chars: int, charset: str | None = None) -> Loaded:
    """Return the main text of a page; `charset` is the declared one. Raises DocumentError."""
    declared = _CHARSET.search(data[:4096])
    text, warnings = decode(data, charset or (declared[1].decode("ascii") if declared else None))
    if _XHTML.search(text, 0, 1000):
        text = _SELF_CLOSED.sub(r"<\1\2></\1>", text)
    tree = LexborHTMLParser(text)
    title = tree.css_first("title:not(svg title)") or tree.css_first("h1")
    name = " ".join(title.text().split()) or None if title is not None else None
    metadata = _metadata(tree)
    markdown = ""
    if tree.body is not None:
        warnings += _seen_only(tree)
        place_notes(tree)
        complete_addresses(tree)
        for root, beside in _main_parts(tree):
            markdown, lost = _converted(root, max_chars)
            if markdown.strip():
                warnings += lost + beside
                break
    if not markdown.strip():
        raise DocumentError("it holds no text; a page that a script fills is empty without it")
    return Loaded(
        text=markdown, media_type="text/html", markdown=True, metadata=metadata, warnings=warnings, title=name
    )


def markdown_of(html: str, max_chars: int) -> tuple[str, list[str]]:
    """Return a piece of HTML as Markdown, all of it, and what was not read."""
    tree = LexborHTMLParser(html)
    if tree.body is None:
        return "", []
    warnings = _seen_only(tree)
    place_notes(tree)
    text, lost = _converted(tree.body, max_chars)
    return text, warnings + lost


def _metadata(tree: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    root = tree.css_first("html")
    if root is not None and root.attributes.get("lang"):
        metadata["language"] = root.attributes["lang"]
    for meta in tree.css("meta[content]"):
        attributes = meta.attributes
        name = (attributes.get("name") or attributes.get("property") or attributes.get("itemprop") or "").lower()
        value = (attributes.get("content") or "").strip()
        if value and (key := name if name in _METADATA else time_named(name)):
            metadata.setdefault(key, value)
    for node in tree.css("time[datetime]"):
        names = f"{node.attributes.get('itemprop') or ''} {node.attributes.get('class') or ''}".split()
        for key in map(time_named, [*names, "published"] if "pubdate" in node.attributes else names):
            if key is not None:
                metadata.setdefault(key, node.attributes["datetime"] or "")
    for node in tree.css("script[type='application/ld+json']"):
        for name, value in _JSON_LD_DATE.findall(node.text() or ""):
            metadata.setdefault("modified" if name == "Modified" else "created", value)
    return metadata


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────

_FORMULAS = ".katex, .mwe-math-element, mjx-container, math, script[type^='math/tex']"
_DRAWN_FORMULAS = ".MathJax, .MathJax_Preview, .MathJax_Display, .MathJax_SVG, .MathJax_CHTML"
_UNSEEN = """
script, style, noscript, template, datalist, map, area, .headerlink,
pre .linenos, td.linenos, pre .lineno, td.gutter, .line-numbers-rows
"""
_EMBEDDED = "iframe, object, embed, audio, video, canvas, svg, frame"
_NOTHING = ("0", "0%", "0.0", "0px", "0pt", "0em")
_HIDING_STYLES = {
    "display": ("none",), "visibility": ("hidden", "collapse"), "font-size": _NOTHING, "opacity": _NOTHING,
}  # fmt: skip
_NAME = re.compile(r"[\w-]{1,40}")


def _seen_only(tree: Any) -> list[str]:
    """Take out what is not shown, and write formulas as text, since they hide a copy; return what was not read."""
    warnings = _formulas_as_text(tree)
    _reveal(tree)
    return warnings + _drop_unseen(tree)


def _formulas_as_text(tree: Any) -> list[str]:
    """Write formulas as TeX if the page has it, else in one line; return a warning if some are only drawn."""
    drawn = 0
    if tree.css_first("script[type^='math/tex']") is not None:
        for node in tree.css(_DRAWN_FORMULAS):
            node.decompose()
    for node in tree.css(_FORMULAS):
        tex = node.css_first('annotation[encoding*="tex" i]')
        stated = node.css_first("[alttext], img[alt]")
        if node.tag == "script" or tex is not None:
            formula = (tex or node).text()
        elif stated is not None:
            formula = stated.attributes.get("alttext") or stated.attributes.get("alt") or ""
        else:
            math = node if node.tag == "math" else node.css_first("math")
            formula = "" if math is None else in_one_line(_element(math))
        if formula.strip():
            node.replace_with(f" ${' '.join(formula.split())}$ ")
        else:
            drawn += 1
    return [f"{drawn:,} formulas are drawn without their text and were not read"] if drawn else []


def _element(node: Any) -> Element:
    made = Element(node.tag, {name: value or "" for name, value in node.attributes.items()})
    made.extend([_element(child) for child in node.iter()])
    made.text = None if len(made) else node.text()
    return made


def in_one_line(node: Element) -> str:
    """Return a formula of MathML, or of Word (OMML), in one line: x^2, a_i, (a+b)/c, √(x), [1, 2; 3, 4]."""
    kind = node.tag.rpartition("}")[2]
    parts = [child for child in node if not child.tag.endswith("Pr") and "annotation" not in child.tag]
    pieces = [in_one_line(part) for part in parts]
    if kind in ("f", "mfrac") and len(pieces) == 2:
        return "/".join(map(_grouped, pieces))
    if kind in ("rad", "msqrt", "mroot"):
        if kind != "msqrt" and len(pieces) == 2:
            degree, inner = pieces if kind == "rad" else reversed(pieces)
            return f"{f'root[{degree}]' if degree else '√'}({inner})"
        return f"√({''.join(pieces)})"
    if kind in ("sSup", "msup", "mover", "limUpp") and len(pieces) == 2:
        return _scripted(pieces[0], "^", pieces[1])
    if kind in ("sSub", "msub", "munder", "limLow") and len(pieces) == 2:
        return _scripted(pieces[0], "_", pieces[1])
    if kind in ("sSubSup", "msubsup", "munderover") and len(pieces) == 3:
        return _scripted(_scripted(pieces[0], "_", pieces[1]), "^", pieces[2])
    if kind == "nary":
        by_name = {part.tag.rpartition("}")[2]: piece for part, piece in zip(parts, pieces, strict=True)}
        low, high, inner = (by_name.get(name, "") for name in ("sub", "sup", "e"))
        return _scripted(_scripted(_property(node, "chr") or "∫", "_", low), "^", high) + " " + inner
    if kind in ("d", "mfenced"):
        opened = node.get("open") or _property(node, "begChr") or "("
        closed = node.get("close") or _property(node, "endChr") or ")"
        return opened + ",".join(pieces) + closed
    if kind == "acc":
        return "".join(pieces) + (_property(node, "chr") or "\u0302")
    if kind in ("m", "mtable", "eqArr"):
        return f"[{'; '.join(pieces)}]" if kind != "eqArr" else "; ".join(pieces)
    if kind in ("mr", "mtr"):
        return ", ".join(pieces)
    return "".join(pieces) if parts else node.text or ""


def _property(node: Element, name: str) -> str:
    """Return the value of a property of a formula of Word."""
    part_named = next((part for part in node.iter() if part.tag.endswith("}" + name)), None)
    return "" if part_named is None else next(iter(part_named.attrib.values()), "")


def _grouped(formula: str) -> str:
    return formula if len(formula) == 1 or formula.isdigit() else f"({formula})"


def _scripted(base: str, mark: str, script: str) -> str:
    if not script:
        return base
    # A prime, a degree or an accent is no power.
    if len(script) == 1 and mark == "^" and not script.isalnum() and script not in "+-−*":
        return base + script
    simple = base.isalnum() or len(base) < 2 or base[-1] in ")]}|" or "_" in base
    return f"{base if simple else f'({base})'}{mark}{_grouped(script)}"


def _reveal(tree: Any) -> None:
    """Show what a click opens: panels of tabs, what a visible control names, and what a search in the page finds."""
    opened = {
        name
        for control in tree.css("[aria-controls]")
        if not _is_hidden(control)
        for name in (control.attributes["aria-controls"] or "").split()
    }
    tabs = {tab.attributes["aria-controls"]: tab for tab in tree.css("[role=tab][aria-controls]")}
    for node in tree.css("[role=tabpanel], [hidden=until-found], [id]"):
        panel = node.attributes.get("role") == "tabpanel"
        if panel and (tab := tabs.pop(node.attributes.get("id"), None)) is not None:
            (node.first_child or node).insert_before(parsed(f"<p>{escape(tab.text())}</p>"))
            tab.decompose()
        if panel or node.attributes.get("id") in opened or node.attributes.get("hidden") == "until-found":
            for name in ("hidden", "style", "aria-hidden"):
                if name in node.attributes:
                    del node.attrs[name]


def _drop_unseen(tree: Any) -> list[str]:
    """Take out what is not shown; return what of it may hold text."""
    for node in tree.css(_UNSEEN):
        node.decompose()
    for cell in tree.css("td"):
        # "Yes" and "no" in tables are often drawn.
        of_words = cell.css_first("table, input, img[alt]") is not None
        named = None if of_words else next(filter(_is_shown, cell.css("[aria-label], svg > title")), None)
        label = "" if named is None else named.attributes.get("aria-label") or named.text()
        drawn = letters(label) if named is not None and named.tag == "title" else 0
        if letters(label) and letters(cell.text()) == drawn:
            cell.inner_html = escape(label)
    embedded = [node for node in tree.css(_EMBEDDED) if node.tag not in ("svg", "canvas")]
    for node in tree.css(_EMBEDDED):
        node.decompose()
    hidden = [node for node in tree.css("[hidden], [aria-hidden=true], [style], dialog") if _is_hidden(node)]
    with_text = [node for node in hidden if letters(node.text()) > 1]
    first = "".join(f"<{node.tag}{f'#{node.id}' if _NAME.fullmatch(node.id or '') else ''}>" for node in with_text[:1])
    for node in reversed(hidden):
        node.decompose()
    for button in tree.css("button"):
        # A heading that opens its text is often a button.
        if "aria-controls" in button.attributes:
            button.replace_with(f" {button.text()} ")
        else:
            button.decompose()
    warnings = [f"{len(with_text):,} hidden parts were not read, the first in {first}"] if with_text else []
    if embedded:
        warnings.append(f"{len(embedded):,} embedded parts (frames, films, sounds) were not read")
    return warnings


def _is_shown(node: Any) -> bool:
    """Whether neither an element in a cell nor what is around it there is hidden."""
    while node is not None and node.tag != "td":
        if _is_hidden(node):
            return False
        node = node.parent
    return True


def _is_hidden(node: Any) -> bool:
    attributes = node.attributes
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or (node.tag == "dialog" and "open" not in attributes)
        or any(value in _HIDING_STYLES.get(name, ()) for name, value in _style(node).items())
    )


def _style(node: Any) -> dict[str, str]:
    """Return the declarations of an element's style attribute."""
    stated = (declaration.partition(":") for declaration in (node.attributes.get("style") or "").lower().split(";"))
    return {name.strip(): value.replace("!important", "").strip() for name, _, value in stated}


# ── the main part ────────────────────────────────────────────────────────────────────────────────────────────────────

_AROUND = "nav, aside, footer:not(blockquote footer), [role=navigation], [role=complementary], [role=contentinfo]"
_COMMENTS = ", ".join(f"{tag}[{name}*=comment i]" for tag in ("div", "section", "ol", "ul") for name in ("id", "class"))
# The main part of a page: letters of its prose, of a sentence; shares of the prose, of links, of comments.
_LEAST_PROSE, _LEAST_SENTENCE = 300, 80
_LINKS_OF_NOTE = 0.25
_PROSE_SHARE = 0.4
_MAIN_SHARE, _LINK_SHARE, _COMMENTS_AT_MOST = 0.9, 0.6, 0.8
_FACTS = frozenset(("td", "dd", "li", "pre"))
_MENUS = frozenset(("div", "section", "ul", "ol", "dl", "table", "header", "form"))
_HOLDERS = frozenset(("div", "section", "article", "main", "center", "form", "table", "tbody", "tr", "td"))
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _main_parts(tree: Any) -> Iterator[tuple[Any, list[str]]]:
    """Yield the main part of a page, and larger ones in case it holds no text; each with what is left out beside it."""
    articles = tree.css("article")
    main = tree.css_first("main, [role=main]") or (articles[0] if len(articles) == 1 else None)
    for root in (main, tree.body):
        if root is not None:
            part: Any = LexborHTMLParser(root.html or "").body
            before = letters(part.text())
            for node in part.css(_AROUND):
                if not (root is main and node.tag == "aside" and _is_note(node)):
                    node.decompose()
            drop_contents(part)
            part = _without_menus(part)
            left = before - letters(part.text())
            lost = f"{left:,} letters of menus, comments and other parts beside the main text were not read"
            yield part, [lost] * (left > 0)
    yield tree.body, []


def _is_note(aside: Any) -> bool:
    """Return whether an aside is a remark of the text, as manuals have, and not what leads elsewhere."""
    linked = sum(letters(link.text()) for link in aside.css("a"))
    return linked <= _LINKS_OF_NOTE * letters(aside.text()) and aside.css_first("input, form, a > img") is None


def _without_menus(root: Any) -> Any:
    """Return the element that holds nearly all the prose, without comments and lists of links.

    A page with little prose, such as one of bookmarks, is left as it is. On the 130 test pages of Firefox's reader this
    keeps .99 of the words of the article, and .92 of what is kept are words of it. Libraries that extract articles
    (trafilatura 2.3, readability-lxml 0.9) lose 4 to 6 % of those words.
    """
    comments = [node for node in root.css(_COMMENTS) if node.parent is not None]
    weights = _weights(root)
    total = weights[root.mem_id]
    if total.prose < max(_LEAST_PROSE, _PROSE_SHARE * (total.text - total.links)):
        return root
    for node in reversed(comments):
        if node != root and weights[node.mem_id].text < _COMMENTS_AT_MOST * total.text:
            node.decompose()
    weights = _weights(root)
    prose = weights[root.mem_id].prose
    title, inner = root.css_first("h1"), root
    while inner is not None:
        root = inner
        inner = next((child for child in root.iter() if weights[child.mem_id].prose >= _MAIN_SHARE * prose > 0), None)
        inner = inner if inner is not None and inner.tag in _HOLDERS else None
    if title is not None and root.css_first("h1") is None and root.first_child is not None:
        root.first_child.insert_before(title)
    stack = list(root.iter())
    while stack:
        node = stack.pop()
        weight = weights.get(node.mem_id, _Weight())
        menu = weight.text and weight.links >= _LINK_SHARE * weight.text and not weight.prose
        if menu and node.tag in _MENUS and len(node.css("a")) > 1:
            node.decompose()
        else:
            stack += list(node.iter())
    return root


class _Weight(Struct):
    """The number of letters in an element: in all, in links, and in prose, which is neither link nor label."""

    text: int = 0
    links: int = 0
    prose: int = 0


def _weights(root: Any) -> dict[int, _Weight]:
    """Return the weight of each element, by its id in memory, without recursion."""
    order: list[Any] = []
    stack = [root]
    while stack:
        order.append(node := stack.pop())
        stack += list(node.iter(include_text=True))
    weights: dict[int, _Weight] = {}
    for node in reversed(order):
        if node.tag == "-text":
            text = node.text_content or ""
            # An ideograph says about as much as five letters.
            weights[node.mem_id] = _Weight(letters(text) + 4 * len(_IDEOGRAPH.findall(text)))
            continue
        whole, direct = _Weight(), _Weight()
        for child in node.iter(include_text=True):
            inner = weights[child.mem_id]
            for weight in (whole, direct) if child.tag not in BLOCKS else (whole,):
                weight.text += inner.text
                weight.links += inner.links
                weight.prose += inner.prose
        if node.tag == "a":
            whole.links = whole.text
        elif (
            node.tag in BLOCKS
            and direct.links < 0.5 * direct.text
            and (node.tag in _FACTS or direct.text - direct.links >= _LEAST_SENTENCE)
        ):
            whole.prose += direct.text
        weights[node.mem_id] = whole
    return weights


# ── the conversion ───────────────────────────────────────────────────────────────────────────────────────────────────

# Deeper trees are read without their structure: the converter returns nothing of what is nested deeper.
_DEEPEST = 1024
_OPTIONS = ConversionOptions(
    bullets="-", compact_tables=True, highlight_style="none", extract_metadata=False, max_depth=_DEEPEST,
    include_blockquote_citations=False,
    preprocessing=PreprocessingOptions(enabled=False, remove_navigation=False, remove_forms=False),
    strip_tags=["b", "strong", "i", "em", "u", "ins", "font", "small", "big", "cite", "var", "dfn"],
)  # fmt: skip
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_SECOND_MARK = re.compile(r"^((?:> |\s)*\d+)\) ")


def _converted(root: Any, max_chars: int) -> tuple[str, list[str]]:
    """Return an element as Markdown, and what was lost."""
    tree: Any = LexborHTMLParser(root.html or "")
    _say_in_text(tree)
    before = letters(tree.body.text(separator=" "))
    done = convert(tree.body.html, _OPTIONS)
    text, warnings = done.content or "", [warning.message for warning in done.warnings]
    if any(str(warning.kind) == "depth_limit_exceeded" for warning in done.warnings):
        lines = (" ".join(line.split()) for line in tree.body.text(separator="\n").split("\n"))
        text = "\n".join(filter(None, lines))
        warnings = [f"it is nested deeper than {_DEEPEST:,} levels: it was read without headings, lists and tables"]
    text = _plain_marks(text).replace("\x00", "").replace("\xad", "").strip("\n")  # the store refuses NUL
    if len(text) > max_chars:
        raise too_long(max_chars)
    # Some releases of the converter lost text: report what goes missing.
    if (after := letters(text)) < 0.9 * before:
        warnings.append(f"{before - after:,} of {before:,} letters were lost in its conversion")
    return text, warnings


def _plain_marks(text: str) -> str:
    """Return Markdown without blanks at line ends, all numbers of lists with a point: the converter alternates them."""
    fence, closed, before = "", False, ""
    lines: list[str] = []
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if closed and line.strip():
            lines.append("")
        if not fence and lines and _IDEOGRAPH.match(line) and _IDEOGRAPH.match(before[-1:]):
            # The end of a line in the source; one of the page has two blanks before it.
            before = line
            lines[-1] += line.rstrip()
            continue
        before = line
        closed = bool(fence and mark and mark[1].startswith(fence))
        if mark and (closed or not fence):
            fence = "" if closed else mark[1]
        lines.append(line.rstrip() if fence else _SECOND_MARK.sub(r"\1. ", line).rstrip())
    return "\n".join(lines)


# ── what the tree says by other means than text ──────────────────────────────────────────────────────────────────────

_TYPED = ("text", "number", "email", "tel", "url", "date", "time", "month", "week", "datetime-local")
# Longer raised text is small print.
_LONGEST_RAISED = 40


def _say_in_text(tree: Any) -> None:
    """Write into the text what elements and attributes say."""
    _fields_as_text(tree)
    for image in tree.css("img"):
        image.replace_with(f" {image.attributes.get('alt') or ''} ")
    keep_addresses(tree)
    # From the inside: a new inner HTML replaces the elements in it.
    for node in reversed(tree.css("[style*=line-through]")):
        if any("line-through" in _style(node).get(name, "") for name in ("text-decoration", "text-decoration-line")):
            node.inner_html = f"<del>{node.inner_html}</del>"
    _raised_and_lowered(tree)
    for reading in tree.css("ruby rt"):
        reading.replace_with(f"({reading.text()})" if reading.text().strip() else "")
    for node in tree.css("ruby rp, ruby, ruby rb"):
        if node.tag == "rp":
            node.decompose()
        else:
            node.unwrap()
    for node in reversed(tree.css("figcaption, summary")):
        node.inner_html = f"<p>{node.inner_html}</p>"
        node.unwrap()
    for table in reversed(tree.css("table")):
        _simplify_table(table)
    for numbered in reversed(tree.css("ol")):
        form = _FORMS.get(numbered.attributes.get("type") or _style(numbered).get("list-style-type", ""))
        if form is not None and "reversed" not in numbered.attributes:
            _letter(numbered, form)
        elif "reversed" in numbered.attributes or numbered.css_first("li[value]") is not None:
            _split_by_numbers(numbered)


def _fields_as_text(tree: Any) -> None:
    """Write what a form holds: the state of boxes, the chosen options, what was typed."""
    for field in tree.css("input"):
        kind = (field.attributes.get("type") or "text").lower()
        if kind in ("checkbox", "radio"):
            # The converter writes a box that begins an item of a list.
            holder = field.parent
            while holder is not None and holder.tag in ("label", "p", "span"):
                holder = holder.parent
            if kind == "radio" or holder is None or holder.tag != "li":
                field.replace_with("[x] " if "checked" in field.attributes else "[ ] ")
        elif kind in _TYPED:
            field.replace_with(f" {field.attributes.get('value') or ''} ")
        else:
            field.decompose()
    for box in tree.css("[role=checkbox][aria-checked], .checkbox-on, .checkbox-off"):  # the classes are Notion's
        on = box.attributes.get("aria-checked") == "true" or "checkbox-on" in (box.attributes.get("class") or "")
        box.replace_with(" [x] " if on else " [ ] ")
    for choice in tree.css("select"):
        options = choice.css("option")
        selected = [option for option in options if "selected" in option.attributes]
        # Without a choice a browser shows the first one of a single choice.
        chosen = selected or ([] if "multiple" in choice.attributes else options[:1])
        choice.replace_with(f" {', '.join(' '.join(option.text().split()) for option in chosen)} ")
    for field in tree.css("textarea"):
        field.replace_with(f" {field.text()} ")


def _raised_and_lowered(tree: Any) -> None:
    """Write superscripts as ^n and subscripts as _n: 10^6 is not 106, and the mark of a note no digit of a number."""
    for node in reversed(tree.css("sup, sub, span[style*=vertical-align]")):
        how = node.tag if node.tag != "span" else _style(node).get("vertical-align", "")
        script = " ".join(node.text().split())
        if how in ("sup", "sub", "super") and script and len(script) <= _LONGEST_RAISED:
            before, after = text_of_node(node.prev)[-1:], text_of_node(node.next)[:1]
            node.replace_with(scripted_text(before, script, after, raised=how.startswith("sup")))


def scripted_text(before: str, script: str, after: str, *, raised: bool) -> str:
    """Return raised or lowered text as it stands in a line between two characters."""
    ordinal = raised and before.isdigit() and len(script) > 1 and script.isalpha()  # 2nd
    element = not raised and before.isalpha() and script.isdigit() and not after.isdigit()  # CO2
    if ordinal or element or not (script[0].isalnum() or script[0] in "+-−"):  # [1]
        return script
    return ("^" if raised else "_") + (script if script.isalnum() and not after.isalnum() else f"({script})")


# ── tables and lists ─────────────────────────────────────────────────────────────────────────────────────────────────

# A table with one of these, and no heading cell, lays out a page; so does one row with lists.
_NO_CELL = ", ".join(("table", "pre", *HEADINGS))
_WIDEST_SPAN, _LARGEST_GRID = 100, 1_000_000
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_Grid = dict[tuple[int, int], tuple[Any, tuple[int, int]]]
"""The cell at each row and column of a table, and where it begins."""


def _simplify_table(table: Any) -> None:
    """Make a table one of plain rows below one row of headings; a table that lays out a page becomes its blocks."""
    inner_rows = {row.mem_id for inner in table.css("table") if inner != table for row in inner.css("tr")}
    rows = [row for row in table.css("tr") if row.mem_id not in inner_rows]
    for caption in table.css("caption"):
        table.insert_before(parsed(f"<div>{caption.inner_html}</div>"))
        caption.decompose()
    grid = _grid(rows)
    height, width = (1 + max((position[axis] for position in grid), default=-1) for axis in (0, 1))
    headed = table.css_first("th, thead") is not None
    inner = [node.tag for node in table.css(_NO_CELL) if node != table]
    lays_out = (
        table.attributes.get("role") in ("presentation", "none")
        or width < 2
        or (bool(inner) and (not headed or "table" in inner))
        or (height < 2 and table.css_first("ul, ol, blockquote") is not None)
    )
    if lays_out:
        for cell in {cell.mem_id: cell for cell, _ in grid.values()}.values():
            table.insert_before(parsed(f"<div>{cell.inner_html}</div>"))
        table.decompose()
        return
    heads = _heading_rows(rows, grid, height)
    if heads == 1 and table.css_first("[colspan], [rowspan]") is None:
        return
    texts = {cell.mem_id: " ".join(cell.text(separator=" ").split()) for cell, _ in grid.values()}
    first = 0
    while first < height - 2 and len({cell.mem_id for (row, _), (cell, _) in grid.items() if row == first}) == 1:
        # A first row of one cell is the title of the table.
        table.insert_before(parsed(f"<div>{grid[first, 0][0].inner_html}</div>"))
        first += 1
    heads = max(heads, first + 1)
    names = []
    for column in range(width):
        cells = [grid[row, column][0] for row in range(first, heads) if (row, column) in grid]
        names.append(" ".join(dict.fromkeys(filter(None, (texts[cell.mem_id] for cell in cells)))) or " ")
    html = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in names)
    for row in range(heads, height):
        html += "<tr>" + "".join(f"<td>{_cell(grid, texts, row, column)}</td>" for column in range(width))
    table.inner_html = html


def _cell(grid: _Grid, texts: dict[int, str], row: int, column: int) -> str:
    """Return the HTML of a cell of a table without merged ones: what holds for several rows is said in each."""
    cell, begin = grid.get((row, column), (None, (row, column)))
    if cell is not None and begin == (row, column):
        return str(cell.inner_html)
    # A number in several rows may be their sum.
    repeats = cell is not None and begin[1] == column and any(map(str.isalpha, texts[cell.mem_id]))
    return escape(texts[cell.mem_id]) if repeats else ""


def _grid(rows: list[Any]) -> _Grid:
    """Return the cell at each row and column of a table, and where it begins."""
    grid: _Grid = {}
    for row, line in enumerate(rows):
        column = 0
        for cell in line.iter():
            if cell.tag not in ("td", "th"):
                continue
            while (row, column) in grid:
                column += 1
            down, across = (_number(cell, name, 1) for name in ("rowspan", "colspan"))
            down = min(down or len(rows), len(rows) - row)
            across = max(1, min(across, _WIDEST_SPAN))
            if len(grid) + down * across > _LARGEST_GRID:
                down = across = 1
            for position in product(range(row, row + down), range(column, column + across)):
                grid.setdefault(position, (cell, (row, column)))
            column += across
    return grid


def _heading_rows(rows: list[Any], grid: _Grid, height: int) -> int:
    """Return how many rows at the top are headings, at least one."""
    heads = 0
    for row in rows:
        cells = [cell.tag for cell in row.iter() if cell.tag in ("td", "th")]
        if not cells or ("td" in cells and row.parent.tag != "thead"):
            break
        heads += 1
    first = [cell for cell, begin in grid.values() if begin[0] == 0]
    if any(_number(cell, "colspan", 1) > 1 for cell in first):
        heads = max([heads, *(_number(cell, "rowspan", 1) for cell in first)])
    return heads if 0 < heads < height else 1


def _number(node: Any, name: str, otherwise: int) -> int:
    stated = (node.attributes.get(name) or "").strip()
    return int(stated) if _INTEGER.fullmatch(stated) else otherwise


def _items(numbered: Any) -> list[Any]:
    """Return the items of a list; what stands between them goes into the item before it, or before the list."""
    items: list[Any] = []
    for child in numbered.iter(include_text=True):
        text = text_of_node(child)
        if child.tag == "li":
            items.append(child)
        elif text.strip():
            html = escape(text) if child.tag == "-text" else child.html
            if items:
                items[-1].inner_html += html
            else:
                numbered.insert_before(parsed(f"<div>{html}</div>"))
    return items


def _split_by_numbers(numbered: Any) -> None:
    """Split a list where its numbers do not follow each other: Markdown states only the first number of a list."""
    items = _items(numbered)
    step = -1 if "reversed" in numbered.attributes else 1
    number = _number(numbered, "start", len(items) if step < 0 else 1)
    runs: list[tuple[int, list[Any]]] = []
    for item in items:
        number = _number(item, "value", number)
        if not runs or number != runs[-1][0] + len(runs[-1][1]):
            runs.append((number, []))
        runs[-1][1].append(item)
        number += step
    for first, run in runs:
        numbered.insert_before(parsed(f'<ol start="{first}">{"".join(item.html for item in run)}</ol>'))
    numbered.decompose()


_FORMS = {
    "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "lower-alpha": "lowerLetter",
    "lower-latin": "lowerLetter", "upper-alpha": "upperLetter", "upper-latin": "upperLetter",
    "lower-roman": "lowerRoman", "upper-roman": "upperRoman",
}  # fmt: skip
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


_MOST_LETTERED = 30 * 26  # as Word, which then begins anew: a page may state any number, and each 26 are a letter


def _letter(numbered: Any, form: str) -> None:
    """Make a list with letters or Roman numerals paragraphs that begin with these, which Markdown does not have."""
    number = _number(numbered, "start", 1)
    for item in _items(numbered):
        number = _number(item, "value", number)
        first = next(item.iter(include_text=True, skip_empty=True), item)
        first = first if first.tag == "p" else item
        first.inner_html = f"{formatted(number, form)}. {first.inner_html}"
        numbered.insert_before(parsed(f"<div>{item.inner_html}</div>"))
        number += 1
    numbered.decompose()


def formatted(number: int, form: str) -> str:
    """Return a number in a form of Word; as a decimal number in forms that are not known, or do not reach so far."""
    if form in ("lowerLetter", "upperLetter") and 0 < number <= _MOST_LETTERED:
        said = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        said, left = "", number
        for value, sign in _ROMAN:
            said += sign * (left // value)
            left %= value
    else:
        return f"{number:02}" if form == "decimalZero" else str(number)
    return said.upper() if form.startswith("upper") else said
