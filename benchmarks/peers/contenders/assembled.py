"""A vector index with tantivy for the words and texts in a list: what people assemble for speed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from benchmarks.dataset import FILTERS, Dataset, parts
from benchmarks.peers.contender import DEPTH, EFFORTS, THREADS, TOP, Contender, Vector, best, reciprocal_rank_fusion

__all__ = ["Assembled", "sync"]

_HEAP_BYTES = 256_000_000


class Assembled(Contender):
    """The base of faiss, usearch and turbovec with tantivy. A filter scores a list of places, or is the library's.

    Texts are read into a list; an insert appends to their file, commits to tantivy and makes the vectors durable.
    """

    efforts: Sequence[Any] = EFFORTS
    floats: Vector

    def build(self, data: Dataset, folder: Path) -> None:
        self.build_vectors(np.asarray(data.vectors), folder)
        (folder / "words").mkdir()
        index = tantivy.Index(_schema(), path=str(folder / "words"))
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=THREADS)
        for place, (line, part) in enumerate(zip(data.lines, parts(len(data.lines)).tolist(), strict=True)):
            writer.add_document(tantivy.Document.from_dict({"place": place, "text": line, "part": part}, _schema()))
        writer.commit()
        writer.wait_merging_threads()
        (folder / "lines.txt").write_text("\n".join(data.lines), encoding="utf-8")
        for file in folder.iterdir():
            sync(file)

    def open(self, folder: Path) -> None:
        self.folder = folder
        self.lines = (folder / "lines.txt").read_text(encoding="utf-8").split("\n")
        belongs = parts(len(self.lines))
        self.allowed = {below: np.flatnonzero(belongs < below) for below in FILTERS.values()}
        self._words = tantivy.Index.open(str(folder / "words"))
        self._searcher = self._words.searcher()
        self._writer: Any = None
        self.open_vectors(folder)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        return self._with_texts(self.near(vector, TOP, below).tolist())

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        near = self.near(vector, DEPTH, below).tolist()
        return self._with_texts(reciprocal_rank_fusion(near, self._matching(text, below)))

    def insert(self, place: int, text: str, vector: Vector) -> None:
        self.lines.append(text)
        with (self.folder / "lines.txt").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")
            file.flush()
            os.fsync(file.fileno())
        if self._writer is None:
            self._writer = self._words.writer(heap_size=_HEAP_BYTES, num_threads=1)
        self._writer.add_document(tantivy.Document.from_dict({"place": place, "text": text, "part": 999}, _schema()))
        self._writer.commit()
        self._words.reload()
        self._searcher = self._words.searcher()
        self.add_vector(place, vector)

    def build_vectors(self, vectors: Vector, folder: Path) -> None:
        """Write the index of the vectors."""
        raise NotImplementedError

    def open_vectors(self, folder: Path) -> None:
        """Read it; sets `floats` to the vectors in float32."""
        raise NotImplementedError

    def near(self, vector: Vector, count: int, below: int | None) -> Any:
        """The places of the nearest vectors."""
        raise NotImplementedError

    def add_vector(self, place: int, vector: Vector) -> None:
        """Add one and make it durable."""
        raise NotImplementedError

    def rescored(self, places: Any, vector: Vector, count: int) -> Any:
        """The best of the places by their float32 vectors."""
        return places[best(self.floats[places] @ vector, count)]

    def _matching(self, text: str, below: int | None) -> list[int]:
        query = self._words.parse_query(text, ["text"])
        if below is not None:
            part = tantivy.Query.range_query(
                self._words.schema, "part", tantivy.FieldType.Unsigned, 0, below, include_upper=False
            )
            only = tantivy.Query.const_score_query(part, 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, only)])
        hits = self._searcher.search(query, DEPTH, count=False).hits
        return self._searcher.fast_field_values("place", [address for _, address in hits]) if hits else []

    def _with_texts(self, places: Sequence[int]) -> list[tuple[int, str]]:
        return [(place, self.lines[place]) for place in places]


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("place", fast=True)
    builder.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    builder.add_unsigned_field("part", indexed=True, fast=True)
    return builder.build()


def sync(path: Path) -> None:
    """Make a file durable."""
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())
