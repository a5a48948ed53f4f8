"""Memories as a folder of Markdown files for people to read and edit, one file per scope and month: see `markdown`."""

from recallite_notes.editable.from_folder import import_folder
from recallite_notes.editable.to_folder import export_folder

__all__ = ["export_folder", "import_folder"]
