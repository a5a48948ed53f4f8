"""A plugin of pytest: the kit's tests of its in-memory memory service get ours, which finds by words as theirs does."""

from __future__ import annotations

from google.adk.memory import in_memory_memory_service

from recallite_connect.google_adk import RecalliteMemoryService


class _Service(RecalliteMemoryService):
    def __init__(self) -> None:
        super().__init__(":memory:", mode="keyword")


in_memory_memory_service.InMemoryMemoryService = _Service
