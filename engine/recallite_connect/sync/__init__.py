"""One memory on several devices: each writes its changes to files of a shared folder, and merges the others' files."""

from recallite_connect.sync.exchange import sync

__all__ = ["sync"]
