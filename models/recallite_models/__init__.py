"""Model files that ship with Recallite, and how they were built."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEFAULT", "INSTANT", "NAMES", "ORIGINAL", "READER", "path"]

DEFAULT = "recallite-minilm"
ORIGINAL = "all-MiniLM-L6-v2"
INSTANT = "instant"
READER = "reader"
_MANIFESTS = {
    DEFAULT: "minilm/recallite_minilm.json",
    INSTANT: "instant/manifest.json",
    ORIGINAL: "minilm/all_minilm_l6_v2.json",
    READER: "minilm/reader.json",
}
NAMES = (DEFAULT, INSTANT, ORIGINAL)
"""The models that embed."""


def path(name: str = DEFAULT) -> Path:
    """The manifest of a model, beside its files, LICENSE and NOTICE; `instant` has no tokenizer of its own.

    Raises KeyError for a name that is neither in `NAMES` nor `READER`.
    """
    return Path(__file__).parent / _MANIFESTS[name]
