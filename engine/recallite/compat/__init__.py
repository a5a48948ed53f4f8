"""Names of other memory systems, translated to Recallite's own. The engine knows only its own."""

from __future__ import annotations

import os

from recallite.compat.dialects import DIALECTS, own_table, with_file_keys
from recallite.errors import InvalidInput
from recallite.model.configuration import read_table, with_path
from recallite.model.settings import Settings


def load_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings of a file: Recallite's own, Reeve's `reeve.json` or Hermes' `config.yaml`, told by their sections.

    Another system's section may stand beside Recallite's own keys.
    InvalidInput names the file, the key, the value and what is allowed.
    """
    try:
        table = read_table(path)
        dialects = [dialect for name, dialect in DIALECTS.items() if name in table]
        if not dialects:
            return Settings.from_dict(table)
        if len(dialects) > 1:
            raise InvalidInput(f"{' and '.join(sorted(DIALECTS))}: they are sections of different systems; give one")
        known = (*Settings.__struct_fields__, dialects[0].name)
        mine = {key: value for key, value in dialects[0].without_others(table).items() if key in known}
        translated, origins = own_table(dialects[0], mine)
        try:
            return Settings.from_dict(translated)
        except InvalidInput as fault:
            raise with_file_keys(fault, origins) from None
    except InvalidInput as fault:
        raise with_path(path, fault) from None
