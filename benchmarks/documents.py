"""python -m benchmarks.documents: how well documents are read, a table for each format, beside other libraries.

    pip install -e '.[documents]' liteparse pdfplumber trafilatura 'markitdown[pdf,docx]' reportlab
    python -m benchmarks.documents --data DIR [--before FOLDER] [--render]

`DIR` holds checkouts of the projects whose test files are read: `readability` (mozilla), `docling` (docling-project),
`markitdown` (microsoft) and `tabula-java` (tabulapdf, which has the data set of the ICDAR 2013 table competition).
Sixty more tables are made up and typeset. `--before` names a checkout whose readers are measured too. A reader runs in
a process of its own, and has read nothing of a file at which it fails. No rule was made for a file, but parameters of
the main part of a page and of tables were chosen on these sets.

Words are runs of letters and digits, without case and without addresses of links. Recall is the share of the
reference's words that were read, precision that of the words read which are the reference's, order the length of their
longest common subsequence over that of the reference; each is the mean of the files. A cell is right if a table of the
text has it under the same heading, in a row with the same first cell. Neighbours are pairs of cells that follow each
other in a row or column, as the competition counts them (Goebel et al. 2012).
"""

from __future__ import annotations

import argparse
import html
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from xml.etree import ElementTree

from benchmarks import environment, saving

__all__ = ["main", "markdown"]

RESULTS = saving.RESULTS / "documents.json"

_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)|\]\(<?[^)\s]*>?\)", re.DOTALL)
_SECONDS = 600
_MADE_UP_TABLES = 60
Table = list[list[str]]


class Sample(NamedTuple):
    """A file to read, the text that it holds (None if only its tables are known), and its tables."""

    file: Path
    text: str | None
    tables: list[Table]


# ── the samples ────────────────────────────────────────────────────────────────────────────────────────────────────


def samples(data: Path, kind: str) -> list[Sample]:
    """Return the files of a set; sets that are made up are written into a folder of the data."""
    return list(SETS[kind](data))


def _pages(data: Path) -> Iterator[Sample]:
    """Real pages of the web; what Firefox's reader keeps of them is the reference."""
    for folder in sorted((data / "readability" / "test" / "test-pages").iterdir()):
        expected = (folder / "expected.html").read_text(encoding="utf-8")
        yield Sample(folder / "source.html", _text_of_html(expected), tables_of_html(expected))


def _word(data: Path) -> Iterator[Sample]:
    """Word documents; the reference is docling's own output, corrected by nobody."""
    base = data / "docling" / "tests" / "data" / "docx"
    for file in sorted((base / "sources").glob("*.docx")):
        expected = base / "groundtruth" / f"{file.name}.md"
        if expected.exists():
            yield _from_markdown(file, expected.read_text(encoding="utf-8"))


def _pdf(data: Path) -> Iterator[Sample]:
    """PDFs with text; the references are docling's output and what markitdown's tests expect."""
    base = data / "docling" / "tests" / "data" / "pdf"
    for file in sorted((base / "sources").glob("*.pdf")):
        expected = base / "groundtruth" / f"{file.stem}.md"
        if expected.exists():
            yield _from_markdown(file, expected.read_text(encoding="utf-8"))
    base = data / "markitdown" / "packages" / "markitdown" / "tests" / "test_files"
    for file in sorted(base.glob("*.pdf")):
        expected = base / "expected_outputs" / f"{file.stem}.md"
        if expected.exists():
            yield _from_markdown(file, expected.read_text(encoding="utf-8"))


def _icdar(data: Path) -> Iterator[Sample]:
    """The tables of the ICDAR 2013 competition: reports of the EU and the US, tables marked by hand."""
    for expected in sorted((data / "tabula-java").rglob("*-str.xml")):
        file = expected.with_name(expected.name.replace("-str.xml", ".pdf"))
        if file.exists():
            tables = [_marked(table) for table in ElementTree.parse(expected).getroot().iter("table")]
            yield Sample(file, None, [table for table in tables if len(table) > 1])


def _typeset(data: Path) -> Iterator[Sample]:
    """Tables that are made up: three to seven columns, empty cells, cells of several lines, with and without lines."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    style = getSampleStyleSheet()["BodyText"]
    style.fontSize, style.leading = 9, 11
    folder = data / "typeset"
    folder.mkdir(exist_ok=True)
    for number in range(_MADE_UP_TABLES):
        draw = random.Random(number)
        kinds = ["name", *draw.choices(list(_WIDTHS), k=draw.randint(2, 6))]
        names = draw.sample([f"{one} {other}" for one in _NAMES for other in _NAMES], len(kinds))
        empty = draw.choice((0, 0, 0.1, 0.25, 0.4))
        rows = [
            ["" if place and draw.random() < empty else _made_up(draw, kind) for place, kind in enumerate(kinds)]
            for _ in range(draw.randint(4, 18))
        ]
        padding = draw.choice((1, 3, 6))
        look: list[tuple[Any, ...]] = [
            ("FONTSIZE", (0, 0), (-1, -1), 9), ("VALIGN", (0, 0), (-1, -1), draw.choice(("TOP", "MIDDLE", "BOTTOM"))),
            ("TOPPADDING", (0, 0), (-1, -1), padding), ("BOTTOMPADDING", (0, 0), (-1, -1), padding),
            ("GRID", (0, 0), (-1, -1), 0.5, "black" if draw.random() < 0.5 else "white"),
        ]  # fmt: skip
        look += [
            ("ALIGN", (place, 0), (place, -1), draw.choice(("LEFT", "RIGHT", "CENTER")))
            for place, kind in enumerate(kinds) if kind in ("count", "price")
        ]  # fmt: skip
        cells = [
            [Paragraph(cell, style) if kind == "text" and cell else cell for cell, kind in zip(row, kinds, strict=True)]
            for row in rows
        ]
        widths = [max(_WIDTHS[kind], 12 + 4.9 * len(name)) for kind, name in zip(kinds, names, strict=True)]
        file = folder / f"table-{number}.pdf"
        prose = Paragraph(
            "The counts of the year follow in a table, as the keeper of the store wrote them down.", style
        )
        page = (max(595.0, sum(widths) + 160), 842.0)
        table = Table([names, *cells], colWidths=widths, style=look, hAlign="LEFT")
        SimpleDocTemplate(str(file), pagesize=page).build([prose, table, prose])
        yield Sample(file, None, [[names, *rows]])


_NAMES = ("River", "Stone", "Winter", "Market", "Ledger", "Copper", "Signal", "Harbor", "Meadow", "Engine", "Violet")
_WIDTHS = {"name": 66, "count": 48, "price": 66, "day": 60, "text": 110}


def _made_up(draw: random.Random, kind: str) -> str:
    if kind == "count":
        return str(draw.randint(0, 9999))
    if kind == "price":
        return f"{draw.randint(1, 99999):,}.{draw.randint(0, 99):02}"
    if kind == "day":
        return f"20{draw.randint(10, 26)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    if kind == "text":
        return " ".join(draw.choices(_NAMES, k=draw.randint(2, 9))).lower()
    return f"{draw.choice(_NAMES)} {draw.randint(1, 99)}"


SETS: dict[str, Callable[[Path], Iterator[Sample]]] = {
    "html": _pages, "docx": _word, "pdf": _pdf, "pdf, tables of ICDAR 2013": _icdar, "pdf, tables made up": _typeset,
}  # fmt: skip


def _marked(table: ElementTree.Element) -> Table:
    cells: dict[tuple[int, int], str] = {}
    for region in table.iter("region"):
        down, across = int(region.get("row-increment") or 0), int(region.get("col-increment") or 0)
        for cell in region.iter("cell"):
            place = int(cell.get("start-row") or 0) + down, int(cell.get("start-col") or 0) + across
            cells[place] = cell.findtext("content") or ""
    height, width = (1 + max((place[axis] for place in cells), default=-1) for axis in (0, 1))
    return [[cells.get((row, column), "") for column in range(width)] for row in range(height)]


def _from_markdown(file: Path, text: str) -> Sample:
    tables = tables_of_markdown(text)
    return Sample(file, html.unescape(text), tables)


def _text_of_html(text: str) -> str:
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(text).body
    return "" if body is None else body.text(separator=" ")


def tables_of_html(text: str) -> list[Table]:
    """Return the tables of data as grids, by the table model of HTML: a merged cell is only where it begins."""
    from selectolax.lexbor import LexborHTMLParser

    tables = []
    for node in LexborHTMLParser(text).css("table"):
        if any(inner != node for inner in node.css("table, h1, h2, h3, ul, ol, pre, blockquote")):
            continue
        taken: dict[tuple[int, int], str] = {}
        for row, line in enumerate(node.css("tr")):
            column = 0
            for cell in line.css("td, th"):
                while (row, column) in taken:
                    column += 1
                spans = [min(int(cell.attributes.get(name) or 1), 50) for name in ("rowspan", "colspan")]
                for place in ((row + down, column + across) for down in range(spans[0]) for across in range(spans[1])):
                    taken[place] = ""
                taken[row, column] = cell.text(separator=" ")
                column += spans[1]
        if taken:
            height, width = (1 + max(place[axis] for place in taken) for axis in (0, 1))
            grid = [[taken.get((row, column), "") for column in range(width)] for row in range(height)]
            # A first row of one cell is a title.
            tables.append(grid[1:] if sum(bool(cell.strip()) for cell in grid[0]) == 1 else grid)
    return [table for table in tables if len(table) > 1 and len(table[0]) > 1]


# ── the measures ───────────────────────────────────────────────────────────────────────────────────────────────────


def tables_of_markdown(text: str) -> list[Table]:
    """Return the tables of a Markdown text; rows with | and without a line of dashes count too."""
    tables: list[Table] = [[]]
    for line in text.splitlines():
        line = line.lstrip("> ")
        if " | " not in line and not line.startswith("|"):
            tables.append([])
        elif not re.fullmatch(r"[|\s:-]+", line) or not re.search("-", line):
            inner = re.sub(r"^\s*\|(.*)\|\s*$", r"\1", line)
            tables[-1].append([cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)])
    # Some write blank headings above a table without any.
    tables = [table[1:] if table and not any(cell.strip() for cell in table[0]) else table for table in tables]
    return [table for table in tables if len(table) > 1]


def words(text: str) -> list[str]:
    """Return the words of a Markdown text, without addresses of links and images."""
    return _WORD.findall(_ADDRESS.sub(" ", text).casefold().replace("_", " "))


def longest_common_subsequence(first: list[str], second: list[str]) -> int:
    """Return its length, by the bits of one number (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(first)) - 1
    row = every
    for word in second:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(first) - row.bit_count()


def cells_right(expected: list[Table], read: list[Table]) -> tuple[int, int]:
    """Return how many cells below the first row were found under their heading and in their row, and how many are."""
    there = Counter(triple for table in read for triple in set(_triples(table)))
    right = total = 0
    for table in expected:
        for triple in _triples(table):
            total += 1
            if there[triple] > 0:
                right += 1
    return right, total


def _triples(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield each cell below the headings with its heading and the first cell of its row."""
    plain = [["".join(words(cell)) for cell in row] for row in table]
    headings = plain[0]
    for row in plain[1:]:
        lead = next(filter(None, row), "")
        for column, cell in enumerate(row):
            if cell and column < len(headings):
                yield headings[column], lead, cell


def neighbours_found(expected: list[Table], read: list[Table]) -> tuple[int, int, int]:
    """Return how many pairs of neighbouring cells were found, are expected, and were written (Goebel et al. 2012)."""
    wanted, written = (Counter(chain.from_iterable(map(_neighbours, tables))) for tables in (expected, read))
    return sum((wanted & written).values()), sum(wanted.values()), sum(written.values())


def _neighbours(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield each cell with the next one that is not blank to its right, and below it."""
    plain = [["".join(words(cell)) for cell in row] for row in table]
    width = max(map(len, plain))
    columns = [[row[place] if place < len(row) else "" for row in plain] for place in range(width)]
    for direction, lines in (("right", plain), ("below", columns)):
        for line in lines:
            yield from ((direction, *pair) for pair in pairwise(filter(None, line)))


def measured(sample: Sample, text: str) -> dict[str, float]:
    """Return the figures of one file."""
    figures: dict[str, float] = {}
    if sample.text is not None:
        expected, read = words(sample.text), words(text)
        common = sum((Counter(expected) & Counter(read)).values())
        figures["recall"] = common / len(expected) if expected else 1.0
        figures["precision"] = common / len(read) if read else 0.0
        figures["order"] = longest_common_subsequence(expected, read) / len(expected) if expected else 1.0
    tables = tables_of_markdown(text)
    figures["right"], figures["cells"] = cells_right(sample.tables, tables)
    figures["found"], figures["wanted"], figures["written"] = neighbours_found(sample.tables, tables)
    return figures


# ── the readers ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ours() -> Callable[[Path], str]:
    from recallite.documents.document import Limits
    from recallite_documents.parser import Parser

    parser = Parser(Limits())
    return lambda file: parser.load(file.read_bytes(), file.name).text


def _html_to_markdown() -> Callable[[Path], str]:
    from html_to_markdown import convert

    return lambda file: convert(file.read_text(encoding="utf-8", errors="replace")).content


def _trafilatura() -> Callable[[Path], str]:
    from trafilatura import extract

    def read(file: Path) -> str:
        text = file.read_text(encoding="utf-8", errors="replace")
        return extract(text, output_format="markdown", include_tables=True, favor_recall=True) or ""

    return read


def _liteparse() -> Callable[[Path], str]:
    from liteparse import LiteParse

    reader = LiteParse(
        ocr_enabled=False, output_format="markdown", image_mode="off", keep_headers_footers=True, quiet=True
    )
    return lambda file: "\n\n".join(page.markdown for page in reader.parse(file.read_bytes()).pages)


def _pdfplumber() -> Callable[[Path], str]:
    import pdfplumber

    def read(file: Path) -> str:
        pieces = []
        with pdfplumber.open(file) as document:
            for page in document.pages:
                pieces.append(page.extract_text() or "")
                for table in page.extract_tables():
                    rows = [[(cell or "").replace("\n", " ") for cell in row] for row in table]
                    pieces.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        return "\n\n".join(pieces)

    return read


def _markitdown() -> Callable[[Path], str]:
    from markitdown import MarkItDown

    reader = MarkItDown()
    return lambda file: str(reader.convert(file).text_content)


READERS: dict[str, dict[str, Callable[[], Callable[[Path], str]]]] = {
    "html": {"html-to-markdown": _html_to_markdown, "trafilatura": _trafilatura, "markitdown": _markitdown},
    "docx": {"markitdown": _markitdown},
    "pdf": {"liteparse": _liteparse, "pdfplumber": _pdfplumber, "markitdown": _markitdown},
}


def _read_all(kind: str, reader: str) -> None:
    """Read the files named on standard input; print a JSON line for each."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    read = (_ours if reader == "ours" else READERS[kind][reader])()
    for line in sys.stdin:
        began = time.perf_counter()
        try:
            text, fault = read(Path(line.strip())), ""
        except Exception as reason:
            text, fault = "", f"{type(reason).__name__}: {str(reason)[:200]}"
        seconds = time.perf_counter() - began
        print(json.dumps({"text": text, "fault": fault, "seconds": seconds}), file=out, flush=True)


def _texts(kind: str, reader: str, files: list[Path], engine: Path | None = None) -> list[dict[str, Any]]:
    """Return what a reader makes of the files; a file at which its process ends or stalls has an empty text."""
    done: list[dict[str, Any]] = []
    paths = [str(engine / "engine"), str(engine / "kernels")] if engine is not None else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(Path(__file__).resolve().parents[1])])}
    while len(done) < len(files):
        rest = files[len(done) :]
        command = [sys.executable, "-m", "benchmarks.documents", "--read", kind, reader]
        try:
            ran = subprocess.run(command, input="\n".join(map(str, rest)), env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS)  # fmt: skip
            lines = ran.stdout.splitlines()
        except subprocess.TimeoutExpired as reason:
            lines = (reason.stdout or b"").decode().splitlines() if isinstance(reason.stdout, bytes) else []
        done += [json.loads(line) for line in lines[: len(rest)]]
        if len(lines) < len(rest):
            done.append({"text": "", "fault": "its process ended", "seconds": 0.0})
    return done


def _row(scored: list[dict[str, float]], texts: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"files": len(scored), "errors": sum(bool(text["fault"]) for text in texts)}
    for name in ("recall", "precision", "order"):
        if values := [figures[name] for figures in scored if name in figures]:
            row[name] = fmean(values)
    total = sum(figures["cells"] for figures in scored)
    if total:
        pairs, wanted, written = (sum(figures[name] for figures in scored) for name in ("found", "wanted", "written"))
        row |= {"cells": int(total), "cells right": sum(figures["right"] for figures in scored) / total}
        row |= {"neighbours found": pairs / wanted, "of those written": pairs / max(written, 1)}
    row["seconds"] = round(sum(text["seconds"] for text in texts), 1)
    return row


def _measure(data: Path, before: Path | None) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for kind in SETS:
        files = samples(data, kind)
        ways: list[tuple[str, Path | None]] = [("ours", None)]
        if before is not None:
            ways.append(("before", before))
        reads = kind.partition(",")[0]
        ways += [(name, None) for name in READERS[reads] if find_spec(name.replace("-", "_")) is not None]
        results[kind] = {}
        for name, engine in ways:
            texts = _texts(reads, "ours" if name == "before" else name, [sample.file for sample in files], engine)
            scored = [measured(sample, text["text"]) for sample, text in zip(files, texts, strict=True)]
            results[kind][name] = _row(scored, texts)
            print(kind, name, json.dumps(results[kind][name]), file=sys.stderr)
    return results


def markdown(run: dict[str, Any]) -> str:
    """Return the tables of a saved run."""
    tables = []
    for kind, readers in run["results"].items():
        columns = list(
            dict.fromkeys(name for row in readers.values() for name in row if name not in ("files", "cells"))
        )
        first = next(iter(readers.values()))
        cells = f", {first['cells']:,} cells" if "cells" in first else ""
        lines = [f"| {kind}: {first['files']} files{cells} | {' | '.join(columns)} |"]
        lines.append("| --- |" + " ---: |" * len(columns))
        for name, row in readers.items():
            figures = (row.get(column, "") for column in columns)
            counts = ("errors", "seconds")
            shown = [
                str(figure) if column in counts or figure == "" else f"{figure:.3f}".removeprefix("0")
                for column, figure in zip(columns, figures, strict=True)
            ]
            lines.append(f"| {name} | {' | '.join(shown)} |")
        tables.append("\n".join(lines))
    machine = run["machine"]
    foot = f"{machine['processor']}, {machine['cores']} cores, commit {machine['commit']}, {machine['date']}."
    return "\n\n".join([*tables, foot])


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.documents")
    parser.add_argument("--data", type=Path, help="folder with the checkouts")
    parser.add_argument("--before", type=Path, help="checkout whose readers are measured too")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--render", action="store_true", help="print what is saved and run nothing")
    options = parser.parse_args()
    if options.read:
        _read_all(*options.read)
        return
    if not options.render:
        if options.data is None:
            parser.error("this needs --data")
        results = _measure(options.data.resolve(), options.before)
        command = saving.command("benchmarks.documents")
        saving.write({"command": command, "machine": environment.describe(), "results": results}, RESULTS)
    print(markdown(saving.read(RESULTS)))


if __name__ == "__main__":
    main()
