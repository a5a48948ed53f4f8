"""LangGraph's SqliteStore."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

from benchmarks.memory_systems.system import Embed, Said, System

_NAMESPACE = ("talk",)


class LangGraphStore(System):
    """An item a turn, with an index on its text. Without an index it ignores the question: there are no defaults."""

    def __init__(self, folder: Path, embed: Embed) -> None:
        connection = sqlite3.connect(folder / "store.db", check_same_thread=False, isolation_level=None)
        index: Any = {"dims": embed.dimension, "embed": embed.lists, "fields": ["text"]}
        self._store = SqliteStore(connection, index=index)
        self._store.setup()

    def write(self, records: Sequence[Said]) -> None:
        self._store.batch(
            [PutOp(_NAMESPACE, str(place), {"text": record.line}) for place, record in enumerate(records)]
        )

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        return [int(item.key) for item in self._store.search(_NAMESPACE, query=question, limit=limit)]

    def close(self) -> None:
        self._store.conn.close()
