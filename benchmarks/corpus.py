"""Lines of text to remember and to ask: from a file, or made from the words of Python's own documentation."""

from __future__ import annotations

import gzip
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BEGAN",
    "SOURCE_LINES",
    "SPEAKERS",
    "items",
    "lines",
    "lines_and_others",
    "mixture",
    "queries",
    "read_lines",
    "sessions",
    "synthetic_lines",
    "varied",
]

SOURCE_LINES = 20
SPEAKERS = ("Ada", "Bob", "Chloe", "Dmitri", "Esra", "Farid", "Greta", "Hiro")
BEGAN, _SPAN = datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=730)
_QUERY_WORDS = 12
_HELD_OUT = 20_000
_VARIED_ROWS = 50_000


def read_lines(path: Path | None, count: int) -> list[str]:
    """The first `count` lines that are not blank of a text file, gzip or plain; synthetic ones without a file."""
    lines = _first_lines(path, count)
    if len(lines) < count:
        raise SystemExit(f"{path} has {len(lines):,} lines of text; {count:,} are needed: use fewer --records")
    return lines


def lines_and_others(path: Path | None, count: int) -> tuple[list[str], list[str]]:
    """The first `count` lines and the 20,000 after them, to make queries from.

    A corpus that ends before those gives lines that are remembered too, evenly spaced over all of them.
    """
    lines = _first_lines(path, count + _HELD_OUT)
    if len(lines) < count + _HELD_OUT:
        lines = read_lines(path, count)
        return lines, lines[:: max(1, count // _HELD_OUT)]
    return lines[:count], lines[count:]


def _first_lines(path: Path | None, count: int) -> list[str]:
    return list(islice(lines(path), count))


def lines(path: Path | None) -> Iterator[str]:
    """Lines that are not blank of a text file, gzip or plain; endless synthetic ones without a file."""
    if path is None:
        yield from synthetic_lines()
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from (line.strip() for line in file if line.strip())


def synthetic_lines(seed: int = 0) -> Iterator[str]:
    """Endless lines of 8 to 60 words: a walk over which word follows which in the documentation that Python ships.

    Words come as often as they do there, so postings have the lengths that text has.
    """
    from pydoc_data.topics import topics

    words = re.findall(r"[A-Za-z][A-Za-z'_-]*[.,]?", " ".join(topics[name] for name in sorted(topics)))
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for word, follower in pairwise(words):
        followers[word].append(follower)
    draw = random.Random(seed)
    while True:
        word = draw.choice(words)
        line = [word]
        for _ in range(draw.randint(7, 59)):
            word = draw.choice(followers[word] or words)
            line.append(word)
        yield " ".join(line)


def queries(lines: Sequence[str], count: int) -> list[str]:
    """Distinct queries of at most 12 words from lines: those that ask come first."""
    asking = (line for line in lines if line.endswith("?"))
    telling = (line for line in lines if not line.endswith("?"))
    short = (" ".join(line.split()[-_QUERY_WORDS:]) for group in (asking, telling) for line in group)
    return list(islice(dict.fromkeys(short), count))


def mixture(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Unit vectors around some hundred centres, float32 (count, dimension): for timing, not for quality."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((max(count // 50, 100), dimension), np.float32)
    vectors = centres[generator.integers(0, len(centres), count)]
    vectors += 0.8 * generator.standard_normal((count, dimension), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def varied(real: NDArray[np.float32], count: int, sigma: float = 0.9, seed: int = 0) -> NDArray[np.float32]:
    """Real embeddings and then variants of them, until there are `count`: unit vectors float32 (count, dimension).

    Row i past the real ones is real[i mod n] + sigma * g / sqrt(dimension), normalised, with g standard normal: its
    cosine to the real one is about 1 / sqrt(1 + sigma^2), 0.74 at 0.9. So a million vectors keep the uneven
    directions and densities of text, which random centres do not have.
    """
    dimension = real.shape[1]
    vectors = np.empty((count, dimension), np.float32)
    real_count = min(count, len(real))
    vectors[:real_count] = real[:real_count]
    generator = np.random.default_rng(seed)
    for begin in range(real_count, count, _VARIED_ROWS):
        rows = np.arange(begin, min(begin + _VARIED_ROWS, count))
        noise = generator.standard_normal((len(rows), dimension), np.float32)
        block = real[rows % len(real)] + np.float32(sigma / np.sqrt(dimension)) * noise
        vectors[rows] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def items(lines: Sequence[str], vectors: NDArray[np.float32] | None = None) -> Iterator[dict[str, Any]]:
    """Lines as `remember_many` takes them: twenty in a row are a session of one of 100 scopes, a tenth are tagged."""
    for place, line in enumerate(lines):
        item: dict[str, Any] = {
            "text": line,
            "source": f"session {place // SOURCE_LINES}",
            "position": place % SOURCE_LINES,
            "tags": ("tenth",) if place % 10 == 0 else (),
            "scope": f"/team/{place // SOURCE_LINES % 100}",
        }
        if vectors is not None:
            item["vector"] = vectors[place]
        yield item


def sessions(lines: Sequence[str], vectors: NDArray[np.float32] | None = None) -> Iterator[dict[str, Any]]:
    """Lines as `items` has them, each by a speaker, the sessions evenly over two years: none is to come."""
    step = _SPAN / (len(lines) // SOURCE_LINES + 1)
    for place, item in enumerate(items(lines, vectors)):
        moment = BEGAN + step * (place // SOURCE_LINES)
        yield {**item, "context": SPEAKERS[place % len(SPEAKERS)], "created_at": moment, "valid_from": moment}
