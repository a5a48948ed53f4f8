"""One set of records and questions as files in a folder, so that every process measures with the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, exact

if TYPE_CHECKING:
    # What asks another commit's Recallite reads data with this module: it must not import this commit's.
    from benchmarks.cached_embedder import CachedEmbedder

__all__ = ["ASKED", "EXACT", "FILTERS", "REAL", "Dataset", "describe", "parts", "prepare", "write"]

ASKED, EXACT = 1000, 500
REAL = 100_000
SIGMA = 0.9
# A filter keeps the records whose part, of a thousand, is below this.
FILTERS = {"10 %": 100, "1 %": 10, "0.1 %": 1}
_PARTS, _STRIDE = 1000, 389


@dataclass(frozen=True)
class Dataset:
    """Records are known by their place in `lines`; row i of `vectors` belongs to line i."""

    folder: Path

    @cached_property
    def lines(self) -> list[str]:
        return (self.folder / "lines.txt").read_text(encoding="utf-8").split("\n")

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Float32 (n, dimension), mapped from the file."""
        mapped: NDArray[np.float32] = np.load(self.folder / "vectors.npy", mmap_mode="r")
        return mapped

    @cached_property
    def questions(self) -> list[str]:
        questions: list[str] = json.loads((self.folder / "questions.json").read_text(encoding="utf-8"))
        return questions

    @cached_property
    def words(self) -> list[str]:
        """The questions without stop words, for contenders that have no list of them."""
        words: list[str] = json.loads((self.folder / "words.json").read_text(encoding="utf-8"))
        return words

    @cached_property
    def asked(self) -> NDArray[np.float32]:
        """The questions' vectors, float32 (questions, dimension)."""
        vectors: NDArray[np.float32] = np.load(self.folder / "asked.npy")
        return vectors

    @cached_property
    def tenth(self) -> dict[str, NDArray[np.float64]]:
        """The exact cosine of the tenth best for the first questions, by filter; "" is without one."""
        with np.load(self.folder / "exact.npz") as file:
            return {name: file[name] for name in file.files}

    def recall(self, question: int, places: Sequence[int], filter: str = "") -> float:
        """recall@10 of the ranking of a question; not a number for one whose exact answer is not known."""
        tenth = self.tenth[filter][question : question + 1]
        if not len(tenth):
            return float("nan")
        count = len(self.vectors) if not filter else int((parts(len(self.vectors)) < FILTERS[filter]).sum())
        vector = self.asked[question : question + 1]
        return float(exact.recall(self.vectors, vector, tenth, [places], min(exact.TOP, count))[0])


def parts(count: int) -> NDArray[np.int16]:
    """The part, 0 to 999, that each record is in: neighbours are in distant ones."""
    return (np.arange(count, dtype=np.int64) * _STRIDE % _PARTS).astype(np.int16)


def describe() -> dict[str, Any]:
    """Describe the data and machine for a result."""
    return {
        "real_embeddings": REAL,
        "vectors_past_those": f"normalised real[i mod {REAL}] + {SIGMA} * gaussian / sqrt(dimension), seed 0",
        "questions": ASKED,
        "questions_with_exact_answer": EXACT,
    }


def prepare(
    folder: Path,
    path: Path | None,
    records: int,
    embedder: CachedEmbedder,
    on_progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """The first lines of a corpus with their embeddings, variants past the first 100,000, and questions of others.

    A folder that holds these already is taken as it is.
    """
    written = folder / "prepared.json"
    wanted = {"corpus": None if path is None else path.name, "records": records, "embedder": embedder.fingerprint}
    if written.exists() and json.loads(written.read_text(encoding="utf-8")) == wanted:
        return Dataset(folder)
    lines, others = corpus.lines_and_others(path, records)
    embedded = lines[:REAL]
    vectors, owners = embedder.embed_documents(embedded, [None] * len(embedded), on_progress)
    real = vectors[np.searchsorted(owners, np.arange(len(embedded)))]
    questions = corpus.queries(others, ASKED)
    query_vectors = embedder.embed(questions)
    embedder.flush()
    data = write(folder, lines, corpus.varied(real, records, SIGMA), questions, query_vectors)
    written.write_text(json.dumps(wanted), encoding="utf-8")
    return data


def write(
    folder: Path,
    lines: Sequence[str],
    vectors: NDArray[np.float32],
    questions: Sequence[str],
    query_vectors: NDArray[np.float32],
) -> Dataset:
    """A set of these records and questions, with the exact answers to the first questions."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(list(questions)), encoding="utf-8")
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "asked.npy", query_vectors)
    belongs = parts(len(vectors))
    few = query_vectors[:EXACT]
    answers = {name: exact.tenth_best(vectors, few, belongs < below) for name, below in FILTERS.items()}
    np.savez(folder / "exact.npz", **{"": exact.tenth_best(vectors, few), **answers})
    return Dataset(folder)
