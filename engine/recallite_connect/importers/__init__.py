"""Memories that people have elsewhere: chat archives, session files, stores and notes of other systems."""

from recallite_connect.importers.reading import Entries as Entries
from recallite_connect.importers.reading import Entry as Entry
from recallite_connect.importers.reading import FoundLink as FoundLink
from recallite_connect.importers.reading import FoundMemory as FoundMemory
from recallite_connect.importers.reading import LeftOut as LeftOut
from recallite_connect.importers.running import ImportReport as ImportReport
from recallite_connect.importers.running import import_from as import_from
from recallite_connect.importers.running import watch_from as watch_from
from recallite_connect.importers.sources import Source as Source
from recallite_connect.importers.sources import sources as sources
