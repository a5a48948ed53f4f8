"""Model files that ship with Recollect, and how they were built."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEFAULT", "NAMES", "path"]

DEFAULT = "all-MiniLM-L6-v2"
_FOLDERS = {DEFAULT: "all_minilm_l6_v2"}
NAMES = tuple(_FOLDERS)


def path(name: str = DEFAULT) -> Path:
    """The folder of a model: model.onnx, tokenizer.json, manifest.json, LICENSE and NOTICE.

    Raises KeyError for a name that is not in `NAMES`.
    """
    return Path(__file__).parent / _FOLDERS[name]
