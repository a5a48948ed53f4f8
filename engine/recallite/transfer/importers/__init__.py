"""Memories that people have elsewhere: chat archives, session files, stores and notes of other systems."""

from __future__ import annotations

from recallite.transfer.importers.entries import Entries, Entry, FoundLink, FoundMemory, LeftOut
from recallite.transfer.importers.running import ImportReport, import_from
from recallite.transfer.importers.sources import Source, sources
from recallite.transfer.importers.watching import watch_from

__all__ = [
    "Entries",
    "Entry",
    "FoundLink",
    "FoundMemory",
    "ImportReport",
    "LeftOut",
    "Source",
    "import_from",
    "sources",
    "watch_from",
]
