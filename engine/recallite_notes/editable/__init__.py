"""Memories as a folder of Markdown files for people to read and edit, one file for each: see `markdown`."""

from recallite_notes.editable.exchange import export_folder, import_folder

__all__ = ["export_folder", "import_folder"]
