"""PDF to text: the first document, which starts the process that reads them, and pages a second after it."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from recallite.documents.loaded import Limits
from recallite.documents.parser import Parser
from recallite.errors import DocumentError

__all__ = ["evaluate"]

_ROUNDS = 5


def evaluate(folder: Path) -> dict[str, Any]:
    """Median milliseconds a file, documents taking turns; files without text are named with the reason."""
    files: list[Path] = []
    refused: dict[str, str] = {}
    read: dict[str, tuple[int, int]] = {}
    with Parser(Limits()) as parser:
        for file in sorted(folder.glob("*.pdf")):
            try:
                loaded, _ = _timed(parser, file)
            except DocumentError as reason:
                refused[file.name] = str(reason)
                continue
            files.append(file)
            read[file.name] = (len(loaded.pages or [0]), len(loaded.text))
    firsts = []
    times: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        with Parser(Limits()) as parser:
            firsts.append(_timed(parser, files[0])[1])
            for file in files:
                times.setdefault(file.name, []).append(_timed(parser, file)[1])
    documents = {
        name: {"pages": pages, "characters": characters, "ms": round(median(times[name]), 2)}
        for name, (pages, characters) in read.items()
    }
    pages, spent = (sum(row[key] for row in documents.values()) for key in ("pages", "ms"))
    return {
        "first_ms": round(median(firsts), 1),
        "pages_per_second": round(pages / spent * 1e3, 1),
        "documents": documents,
        "refused": refused,
    }


def _timed(parser: Parser, file: Path) -> tuple[Any, float]:
    data = file.read_bytes()
    began = perf_counter()
    loaded = parser.load(data, file.name)
    return loaded, (perf_counter() - began) * 1e3
