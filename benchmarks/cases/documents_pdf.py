"""PDF to text: each file of a folder, and the first file of a process that has to start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness.case import Case, Context, Figures
from benchmarks.harness.measure import timed
from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite_documents.parser import Parser

__all__ = ["CASE"]


@contextmanager
def _setup(context: Context) -> Iterator[list[Path]]:
    yield sorted((context.need("data") / "pdf").glob("*.pdf"))[: context.records]


def _tables(files: list[Path], context: Context) -> Iterator[Figures]:
    rows: dict[str, dict[str, Any]] = {}
    with Parser(Limits()) as parser:
        for file in files:
            try:
                loaded = parser.load(file.read_bytes(), file.name)
            except DocumentError as reason:
                rows[file.name] = {"refused": str(reason)}
                continue
            rows[file.name] = {"pages": len(loaded.pages or [0]), "characters": len(loaded.text)}
    read = [file for file in files if "pages" in rows[file.name]]
    firsts: list[float] = []
    times: dict[str, list[float]] = {file.name: [] for file in read}
    for _ in range(context.rounds):
        with Parser(Limits()) as parser:

            def load(file: Path, parser: Parser = parser) -> object:
                return parser.load(file.read_bytes(), file.name)

            firsts += timed(load, read[:1])
            for file in read:
                times[file.name] += timed(load, [file])
    for name, milliseconds in times.items():
        rows[name]["p50 ms"] = median(milliseconds)
    spent = sum(rows[file.name]["p50 ms"] for file in read)
    rows["all of them"] = {"pages a second": sum(rows[file.name]["pages"] for file in read) / spent * 1e3}
    rows["the first, with the start of its process"] = {"p50 ms": median(firsts)}
    yield Figures("PDF", rows)


CASE = Case("documents_pdf", "how fast PDF is read", _setup, _tables, records=(100,), rounds=5, unit="files")
