"""Memories in the forms of other systems: what `recallite export --to` writes."""

from __future__ import annotations

from recallite_connect.exporters.running import ExportToReport, export_to
from recallite_connect.exporters.targets import Target, targets

__all__ = ["ExportToReport", "Target", "export_to", "targets"]
