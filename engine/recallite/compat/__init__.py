"""Names of other memory systems, translated to Recallite's own. The engine knows only its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recallite.compat.dialects import DIALECTS, own_table, with_file_keys
from recallite.errors import InvalidInput
from recallite.model.configuration import check_keys, read_table, with_path
from recallite.model.settings import Settings


def load_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings of a file: Recallite's own, Reeve's `reeve.json` or Hermes' `config.yaml`, told by their sections.

    InvalidInput names the file, the key, the value and what is allowed.
    """
    try:
        return _settings_from(read_table(path))
    except InvalidInput as fault:
        raise with_path(path, fault) from None


def _settings_from(table: Mapping[str, Any]) -> Settings:
    """The settings of a table, as `load_settings`. Another system's section may stand beside Recallite's own keys."""
    dialects = [dialect for name, dialect in DIALECTS.items() if name in table]
    if not dialects:
        return Settings.from_dict(table)
    if len(dialects) > 1:
        raise InvalidInput(f"{' and '.join(sorted(DIALECTS))}: they are sections of different systems; give one")
    (dialect,) = dialects
    known = (*Settings.__struct_fields__, dialect.name)
    mine = dialect.without_others(table)
    translated, origins = own_table(dialect, check_keys({key: mine[key] for key in mine if key in known}, "", known))
    try:
        return Settings.from_dict(translated)
    except InvalidInput as fault:
        raise with_file_keys(fault, origins) from None
