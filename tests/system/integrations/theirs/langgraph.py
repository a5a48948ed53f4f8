"""LangGraph's tests of SqliteStore and InMemoryStore with ours in the place of theirs."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio

from recallite.integrations.langgraph import AsyncRecalliteStore, RecalliteStore


class SqliteStore(RecalliteStore):
    """Ours, with the method by which SqliteStore makes its tables."""

    def setup(self):
        assert self.memory.path


class AsyncSqliteStore(AsyncRecalliteStore):
    async def setup(self):
        assert self.store.memory.path


class InMemoryStore(SqliteStore):
    """Ours on a file that nobody closes, as theirs is not closed."""

    def __init__(self, *, index=None):
        folder = tempfile.TemporaryDirectory()
        super().__init__(Path(folder.name) / "store.db", index=index)
        weakref.finalize(self, _end, self.memory, folder)


def _end(memory, folder):
    memory.close()
    folder.cleanup()


langgraph.store.sqlite.SqliteStore = SqliteStore
langgraph.store.sqlite.AsyncSqliteStore = AsyncSqliteStore
langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncSqliteStore
langgraph.store.memory.InMemoryStore = InMemoryStore
