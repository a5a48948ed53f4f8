"""Memories that people have elsewhere: chat archives, session files, stores and notes of other systems."""

from recallite.transfer.importers.entries import Entries as Entries
from recallite.transfer.importers.entries import Entry as Entry
from recallite.transfer.importers.entries import FoundLink as FoundLink
from recallite.transfer.importers.entries import FoundMemory as FoundMemory
from recallite.transfer.importers.entries import LeftOut as LeftOut
from recallite.transfer.importers.running import ImportReport as ImportReport
from recallite.transfer.importers.running import import_from as import_from
from recallite.transfer.importers.sources import Source as Source
from recallite.transfer.importers.sources import sources as sources
from recallite.transfer.importers.watching import watch_from as watch_from
