"""Memories that people have elsewhere: chat archives, session files, stores and notes of other systems."""

from __future__ import annotations

from recollect.importers.running import ImportReport, import_from
from recollect.importers.sources import SOURCES, Source
from recollect.importers.watching import watch_from

__all__ = ["SOURCES", "ImportReport", "Source", "import_from", "watch_from"]
