"""python -m benchmarks.recall_cost --corpus FILE [--cache DIR]: what each part of the ranking adds to a recall.

One store in memory of 100,000 lines from a corpus: a context (a speaker) each, twenty in a row a session, the sessions
six hours apart. Every line has the vector and the token codes of a real one: the first 5,000 are embedded, further
ones get variants of their vectors and their codes. A question is up to twelve words of a line that is not stored; every
third names a speaker, every third a month. Its vector and tokens are ready, so no time of the model is in the figures.

Each question is recalled with every set of options of `VARIANTS` in turn, in an order that rotates, in one process.
Elapsed and processor time of the single recalls are given, and the median difference to the same question with
everything turned off.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus
from benchmarks.cached_embedder import CachedTokens
from benchmarks.compare.ways import OFF
from benchmarks.environment import describe
from benchmarks.tables import table
from recallite import Memory, Settings
from recallite.embedding import Embedded, QueryTokens, TokenEmbedder, load

__all__ = ["VARIANTS", "Prepared", "main", "markdown", "measure", "sessions"]

RESULTS = Path(__file__).resolve().parent / "results" / "recall_cost.json"
VARIANTS: dict[str, dict[str, Any]] = {
    "all turned off": OFF,
    "default": {},
    "without looking for changes": {"superseded": "ignore"},
    "without learned ranking": {"learned_ranking": False},
    "without it and reranking": {"learned_ranking": False, "rerank_weight": 0.0},
    "without it, speakers and dates": {"learned_ranking": False, "speaker_weight": 0.0, "date_weight": 0.0},
}
_SPEAKERS = ("Ada", "Bob", "Chloe", "Dmitri", "Esra", "Farid", "Greta", "Hiro")
_BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
_WARM_UP = 30


class Prepared:
    """An embedder that has every text's vector and token codes at hand."""

    def __init__(self, embedder: TokenEmbedder, lines: Sequence[str], questions: Sequence[str], real: int) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension  # type: ignore[attr-defined]
        self.fingerprint = embedder.fingerprint  # type: ignore[attr-defined]
        embedded, codes = embedder.embed_document_tokens(lines[:real], [None] * min(real, len(lines)))
        firsts = np.searchsorted(embedded.owners, np.arange(min(real, len(lines))))
        self._codes = [codes[place] for place in firsts.tolist()]
        self._vectors = corpus.varied(embedded.vectors[firsts], len(lines))
        self._place = {line: place for place, line in enumerate(lines)}
        vectors, tokens = embedder.embed_query_tokens(questions)
        self._asked = dict(zip(questions, zip(vectors, tokens, strict=True), strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of questions, float32 (n, dimension)."""
        return np.array([self._asked[text][0] for text in texts], np.float32).reshape(-1, self.dimension)

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """The vectors and the tokens of questions."""
        return self.embed(texts), [self._asked[text][1] for text in texts]

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: object = None
    ) -> tuple[Embedded, list[bytes]]:
        """The vectors of lines, and the codes of those they are variants of."""
        places = [self._place[text] for text in texts]
        codes = [self._codes[place % len(self._codes)] for place in places]
        return Embedded(self._vectors[places], np.arange(len(places), dtype=np.int64)), codes


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if not options.render:
        run = measure(options.corpus, options.records, options.real, options.questions, options.cache)
        options.out.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))


def measure(path: Path | None, records: int, real: int, count: int, cache: Path | None) -> dict[str, Any]:
    """Elapsed and processor milliseconds of single recalls, by variant."""
    lines, others = corpus.lines_and_others(path, records)
    questions = _questions(others, count + _WARM_UP)
    inner = load()
    if not isinstance(inner, TokenEmbedder):
        raise SystemExit(f"{inner.name} gives no codes of tokens")
    embedder = CachedTokens(inner, cache)
    prepared = Prepared(embedder, lines, questions, real)
    embedder.flush()
    with Memory(":memory:", embedder=prepared, settings=Settings(token_codes=True)) as memory:
        memory.remember_many(sessions(lines))
        memory.warmup()
        times = _times(memory, questions)
    return {**describe(), "records": records, "real_embeddings": real, "questions": count, "variants": times}


def sessions(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Lines as `remember_many` takes them, with speakers and dated sessions."""
    moments = [_BEGAN + timedelta(hours=6) * (place // corpus.SOURCE_LINES) for place in range(len(lines))]
    return [
        {**item, "context": _SPEAKERS[place % len(_SPEAKERS)], "created_at": moment, "event_at": moment}
        for place, (item, moment) in enumerate(zip(corpus.items(lines), moments, strict=True))
    ]


def markdown(run: dict[str, Any]) -> str:
    """The table of a run."""
    header = ("single recall, vector ready", "p50 ms", "p95 ms", "processor p50 ms", "more than turned off, ms")
    rows = [
        (name, *(f"{found[key]:.3f}" for key in ("p50_ms", "p95_ms", "processor_p50_ms", "extra_p50_ms")))
        for name, found in run["variants"].items()
    ]
    caption = f"{run['records']:,} records, {run['questions']:,} questions, commit {run['commit']}, {run['date']}"
    return f"{table(header, rows, left=header[:1])}\n\n{caption}, {run['cores']} cores."


def _questions(others: Sequence[str], count: int) -> list[str]:
    found = corpus.queries(others, count)
    for place, question in enumerate(found):
        if place % 3 == 1:
            found[place] = f"What did {_SPEAKERS[place % len(_SPEAKERS)]} say about {question}"
        elif place % 3 == 2:
            found[place] = f"In {_BEGAN.replace(month=place % 12 + 1):%B}: {question}"
    return found


def _times(memory: Memory, questions: Sequence[str]) -> dict[str, dict[str, float]]:
    elapsed = np.zeros((len(questions), len(VARIANTS)))
    processor = np.zeros_like(elapsed)
    variants = list(VARIANTS.values())
    for place, question in enumerate(questions):
        for step in range(len(variants)):
            variant = (place + step) % len(variants)
            began, spent = time.perf_counter(), time.process_time()
            memory.recall(question, **variants[variant])
            processor[place, variant] = time.process_time() - spent
            elapsed[place, variant] = time.perf_counter() - began
    elapsed, processor = elapsed[_WARM_UP:] * 1e3, processor[_WARM_UP:] * 1e3
    return {
        name: {
            "p50_ms": round(median(elapsed[:, place]), 4),
            "p95_ms": round(float(np.quantile(elapsed[:, place], 0.95)), 4),
            "processor_p50_ms": round(median(processor[:, place]), 4),
            "extra_p50_ms": round(median(elapsed[:, place] - elapsed[:, 0]), 4),
            "processor_extra_p50_ms": round(median(processor[:, place] - processor[:, 0]), 4),
        }
        for place, name in enumerate(VARIANTS)
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_cost", description="What ranking costs.")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a line a record; synthetic ones without it")
    parser.add_argument("--records", type=int, default=100_000, help="how many lines are stored")
    parser.add_argument("--real", type=int, default=5_000, help="how many of them are embedded")
    parser.add_argument("--questions", type=int, default=600, help="how many questions are asked")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved result and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
