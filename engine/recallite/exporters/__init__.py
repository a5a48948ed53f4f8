"""Memories in the forms of other systems: what `recallite export --to` writes."""

from __future__ import annotations

from recallite.exporters.running import ExportToReport, export_to
from recallite.exporters.targets import TARGETS, Target

__all__ = ["TARGETS", "ExportToReport", "Target", "export_to"]
