"""Memories as a folder of Markdown files for people to read and edit, one file per scope and month: see `markdown`."""

from recallite.notes.editable.from_folder import import_folder
from recallite.notes.editable.safe_folder import Folder
from recallite.notes.editable.to_folder import export_folder

__all__ = ["Folder", "export_folder", "import_folder"]
