"""sqlite-vec and FTS5 in one SQLite file, fused by reciprocal rank: what people assemble today."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import DEPTH, TOP, Mode, Vector, content_words, reciprocal_rank_fusion

_ROWS = 10_000
_NEAREST = "SELECT place FROM vectors WHERE embedding MATCH ? AND k = ?"
_MATCHING = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
_MATCHING_FILTERED = (
    "SELECT texts.rowid FROM texts JOIN records ON place = texts.rowid WHERE texts MATCH ? AND part < ? "
    "ORDER BY rank LIMIT ?"
)


class SqliteVecFts5:
    """vec0 with float32 vectors and the part as metadata column, FTS5 with Porter stems; WAL, full durability."""

    def build(self, data: Dataset, folder: Path) -> None:
        connection = _connected(folder)
        dimension = data.vectors.shape[1]
        connection.execute("PRAGMA journal_mode=WAL")
        for statement in (
            f"CREATE VIRTUAL TABLE vectors USING vec0(place INTEGER PRIMARY KEY, "
            f"embedding float[{dimension}] distance_metric=cosine, part INTEGER)",
            "CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61')",
            "CREATE TABLE records(place INTEGER PRIMARY KEY, part INTEGER)",
        ):
            connection.execute(statement)
        belongs = parts(len(data.vectors)).tolist()
        for begin in range(0, len(belongs), _ROWS):
            places = range(begin, min(begin + _ROWS, len(belongs)))
            block = np.asarray(data.vectors[places.start : places.stop])
            with connection:
                connection.executemany(
                    "INSERT INTO vectors VALUES (?, ?, ?)",
                    ((place, block[place - begin].tobytes(), belongs[place]) for place in places),
                )
                connection.executemany(
                    "INSERT INTO texts(rowid, text) VALUES (?, ?)", ((place, data.lines[place]) for place in places)
                )
                connection.executemany(
                    "INSERT INTO records VALUES (?, ?)", ((place, belongs[place]) for place in places)
                )
        connection.close()

    def open(self, folder: Path) -> dict[str, Mode]:
        self._connection = _connected(folder)
        return {
            "hybrid": Mode(self._hybrid, filtered=self._hybrid_filtered, places=_places),
            "vector": Mode(
                lambda _, vector: self._nearest(vector, TOP),
                filtered=lambda _, vector, below: self._nearest(vector, TOP, below),
                exact=True,
            ),
        }

    def warm(self) -> None:
        pass

    def _nearest(self, vector: Vector, count: int, below: int | None = None) -> list[int]:
        if below is None:
            rows = self._connection.execute(_NEAREST, (vector.tobytes(), count))
        else:
            rows = self._connection.execute(f"{_NEAREST} AND part < ?", (vector.tobytes(), count, below))
        return [place for (place,) in rows]

    def _matching(self, text: str, below: int | None = None) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in content_words(text))
        if below is None:
            rows = self._connection.execute(_MATCHING, (query, DEPTH))
        else:
            rows = self._connection.execute(_MATCHING_FILTERED, (query, below, DEPTH))
        return [place for (place,) in rows]

    def _hybrid(self, text: str, vector: Vector) -> list[tuple[int, str]]:
        return self._with_texts(reciprocal_rank_fusion(self._nearest(vector, DEPTH), self._matching(text)))

    def _hybrid_filtered(self, text: str, vector: Vector, below: int) -> list[tuple[int, str]]:
        nearest, matching = self._nearest(vector, DEPTH, below), self._matching(text, below)
        return self._with_texts(reciprocal_rank_fusion(nearest, matching))

    def _with_texts(self, places: list[int]) -> list[tuple[int, str]]:
        select = "SELECT text FROM texts WHERE rowid = ?"
        return [(place, self._connection.execute(select, (place,)).get) for place in places]


def _places(rows: list[tuple[int, str]]) -> list[int]:
    return [place for place, _ in rows]


def _connected(folder: Path) -> apsw.Connection:
    connection = apsw.Connection(str(folder / "memory.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    return connection
