"""LangGraph's tests of SqliteStore and InMemoryStore with ours in the place of theirs."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio

from recallite_connect.langgraph import AsyncRecalliteStore, RecalliteStore


class InMemoryStore(RecalliteStore):
    """Ours on a file that nobody closes, as theirs is not closed."""

    def __init__(self, *, index=None):
        folder = tempfile.TemporaryDirectory()
        super().__init__(Path(folder.name) / "store.db", index=index)
        weakref.finalize(self, _end, self.memory, folder)


def _end(memory, folder):
    memory.close()
    folder.cleanup()


langgraph.store.sqlite.SqliteStore = RecalliteStore
langgraph.store.sqlite.AsyncSqliteStore = AsyncRecalliteStore
langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncRecalliteStore
langgraph.store.memory.InMemoryStore = InMemoryStore
