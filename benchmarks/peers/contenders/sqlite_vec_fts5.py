"""sqlite-vec and FTS5 in one SQLite file, fused by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import DEPTH, THREADS, TOP, Contender, Vector, reciprocal_rank_fusion

_SCHEMA = """
CREATE VIRTUAL TABLE vectors USING
    vec0(place INTEGER PRIMARY KEY, embedding float[{dimension}] distance_metric=cosine, part INTEGER);
CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61');
CREATE TABLE records(place INTEGER PRIMARY KEY, part INTEGER);
CREATE INDEX parts ON records(part);
"""
_NEAREST = "SELECT place FROM vectors WHERE embedding MATCH ? AND k = ?"
_MATCHING = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
_MATCHING_FILTERED = (
    "SELECT texts.rowid FROM texts JOIN records ON place = texts.rowid WHERE texts MATCH ? AND part < ? "
    "ORDER BY rank LIMIT ?"
)


class SqliteVecFts5(Contender):
    """vec0 with float32 vectors, scanned whole, and the part as metadata column; FTS5 with Porter stems; WAL, fsync.

    Bits first and float32 after was slower up to 100,000 records: a read by key of vec0 takes 25 us.
    """

    def build(self, data: Dataset, folder: Path) -> None:
        connection = _connected(folder)
        connection.execute(_SCHEMA.format(dimension=data.vectors.shape[1]))
        vectors = np.asarray(data.vectors)
        rows = list(zip(range(len(vectors)), data.lines, parts(len(vectors)).tolist(), strict=True))
        with connection:
            for place, text, part in rows:
                _insert(connection, place, text, vectors[place], part)
        connection.execute("INSERT INTO texts(texts) VALUES ('optimize')")
        connection.close()

    def open(self, folder: Path) -> None:
        self._folder, self._connection = folder, _connected(folder)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        return self._with_texts(self._near(vector, TOP, below))

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        near = self._near(vector, DEPTH, below)
        return self._with_texts(reciprocal_rank_fusion(near, self._matching(text, below)))

    def hybrid_many(self, texts: Sequence[str], vectors: Vector) -> object:
        from concurrent.futures import ThreadPoolExecutor

        if not hasattr(self, "_others"):
            # A connection is used by one thread at a time.
            self._others = [SqliteVecFts5() for _ in range(THREADS)]
            for other in self._others:
                other.open(self._folder)
        shares = [slice(number, None, THREADS) for number in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(
                pool.map(
                    lambda other, share: list(map(other.hybrid, texts[share], vectors[share])), self._others, shares
                )
            )

    def insert(self, place: int, text: str, vector: Vector) -> None:
        with self._connection:
            _insert(self._connection, place, text, vector, 999)

    def _near(self, vector: Vector, count: int, below: int | None) -> list[int]:
        if below is None:
            rows = self._connection.execute(_NEAREST, (vector.tobytes(), count))
        else:
            rows = self._connection.execute(f"{_NEAREST} AND part < ?", (vector.tobytes(), count, below))
        return [place for (place,) in rows]

    def _matching(self, text: str, below: int | None) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in text.split())
        if below is None:
            rows = self._connection.execute(_MATCHING, (query, DEPTH))
        else:
            rows = self._connection.execute(_MATCHING_FILTERED, (query, below, DEPTH))
        return [place for (place,) in rows]

    def _with_texts(self, places: Sequence[int]) -> list[tuple[int, str]]:
        select = "SELECT text FROM texts WHERE rowid = ?"
        return [(place, self._connection.execute(select, (place,)).get) for place in places]


def _insert(connection: apsw.Connection, place: int, text: str, vector: Vector, part: int) -> None:
    connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", (place, vector.tobytes(), part))
    connection.execute("INSERT INTO texts(rowid, text) VALUES (?, ?)", (place, text))
    connection.execute("INSERT INTO records VALUES (?, ?)", (place, part))


def _connected(folder: Path) -> apsw.Connection:
    connection = apsw.Connection(str(folder / "memory.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "mmap_size=4000000000", "cache_size=-200000"):
        connection.execute(f"PRAGMA {pragma}")
    return connection
