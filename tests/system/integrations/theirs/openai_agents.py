"""Puts RecalliteSession in the place of SQLiteSession, whose name and path the tests use."""

from __future__ import annotations

from typing import Any

import agents
import agents.memory.sqlite_session

from recallite import Memory, Settings
from recallite_connect.openai_agents import RecalliteSession

_SETTINGS = Settings(embedder="none")


class SQLiteSession(RecalliteSession):
    """Sessions of a file share it, as do connections of SQLite."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", session_settings: Any = None) -> None:
        super().__init__(session_id, Memory(db_path, settings=_SETTINGS), session_settings=session_settings)

    def close(self) -> None:
        self.memory.close()


agents.SQLiteSession = SQLiteSession
agents.memory.SQLiteSession = SQLiteSession
