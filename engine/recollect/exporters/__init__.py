"""Memories in the forms of other systems: what `recollect export --to` writes."""

from __future__ import annotations

from recollect.exporters.running import ExportToReport, export_to
from recollect.exporters.targets import TARGETS, Target

__all__ = ["TARGETS", "ExportToReport", "Target", "export_to"]
