"""Model files that ship with Recallite, and how they were built."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEFAULT", "INSTANT", "NAMES", "ORIGINAL", "path"]

DEFAULT = "recallite-minilm"
ORIGINAL = "all-MiniLM-L6-v2"
INSTANT = "instant"
_FOLDERS = {DEFAULT: "recallite_minilm", INSTANT: "instant", ORIGINAL: "all_minilm_l6_v2"}
NAMES = tuple(_FOLDERS)


def path(name: str = DEFAULT) -> Path:
    """The folder of a model: its files, manifest.json, LICENSE and NOTICE; `instant` has no tokenizer of its own.

    Raises KeyError for a name that is not in `NAMES`.
    """
    return Path(__file__).parent / _FOLDERS[name]
