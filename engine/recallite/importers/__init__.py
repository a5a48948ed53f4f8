"""Memories that people have elsewhere: chat archives, session files, stores and notes of other systems."""

from __future__ import annotations

from recallite.importers.running import ImportReport, import_from
from recallite.importers.sources import SOURCES, Source
from recallite.importers.watching import watch_from

__all__ = ["SOURCES", "ImportReport", "Source", "import_from", "watch_from"]
