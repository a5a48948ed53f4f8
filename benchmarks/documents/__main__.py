"""python -m benchmarks.documents [index] [small] [search] [pdf] --data DIR [--sizes 1000 8000] [--cache DIR]."""

from __future__ import annotations

import argparse
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.documents import indexing, pdfs, report, searching, small
from benchmarks.environment import describe
from recallite.embedding import load

RESULTS = Path(__file__).resolve().parents[1] / "results" / "documents.json"
PARTS = ("index", "small", "search", "pdf")


def main() -> None:
    """Measure what was asked for, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.documents", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure (all)")
    parser.add_argument("--data", type=Path, help="folder with markdown*.tar.gz and pdf/")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000, 8000], help="of `small`")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved results and run nothing")
    options = parser.parse_args()
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, Console(stderr=True).log)
    print(report.markdown(saved))


def measure(options: argparse.Namespace, saved: dict[str, Any], log: Callable[[str], None]) -> None:
    """The parts, into `saved` and its file."""
    kept = CachedEmbedder(load(), options.cache)
    work = {
        "index": lambda scratch: {
            "first": indexing.first_index(markdown_files(options.data, scratch), scratch, load(), log),
            "later": indexing.later_indexes(markdown_files(options.data, scratch), scratch, kept),
        },
        "small": lambda scratch: {"indexed": small.evaluate(options.sizes, scratch, log)},
        "search": lambda scratch: searching.evaluate(markdown_files(options.data, scratch), scratch, kept),
        "pdf": lambda scratch: pdfs.evaluate(options.data / "pdf"),
    }
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as scratch:
            measured = work[part](Path(scratch))
        saved[part] = {**describe(), "command": saving.command("benchmarks.documents"), **measured}
        saving.write(saved, options.out)
        kept.flush()


def markdown_files(data: Path, scratch: Path) -> list[Path]:
    """The Markdown files of the first archive in a folder, unpacked."""
    archive = next(iter(sorted(data.glob("markdown*.tar.gz"))), None)
    if archive is None:
        raise SystemExit(f"{data} has no markdown*.tar.gz")
    with tarfile.open(archive) as packed:
        # Python before 3.11.4 has no filters, and ignores this.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        packed.extractall(scratch / "given")
    return sorted((scratch / "given").rglob("*.md"))


if __name__ == "__main__":
    main()
