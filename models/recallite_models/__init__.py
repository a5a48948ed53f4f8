"""Model files that ship with Recallite, and how they were built."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEFAULT", "INSTANT", "MULTILINGUAL", "NAMES", "ORIGINAL", "READER", "path"]

DEFAULT = "recallite-minilm"
ORIGINAL = "all-MiniLM-L6-v2"
INSTANT = "instant"
READER = "reader"
MULTILINGUAL = "multilingual"
_MANIFESTS = {
    DEFAULT: "minilm/recallite_minilm.json",
    INSTANT: "instant/manifest.json",
    ORIGINAL: "minilm/all_minilm_l6_v2.json",
    READER: "minilm/reader.json",
}
NAMES = (DEFAULT, INSTANT, ORIGINAL, MULTILINGUAL)
"""The models that embed. `multilingual` is in a package of its own, which the extra of that name installs."""


def path(name: str = DEFAULT) -> Path:
    """The manifest of a model, beside its files, LICENSE and NOTICE; `instant` has no tokenizer of its own.

    Raises KeyError for a name that is neither in `NAMES` nor `READER`, and ImportError for `multilingual` if it is not
    installed.
    """
    if name == MULTILINGUAL:
        import recallite_multilingual

        return Path(recallite_multilingual.__file__).with_name("multilingual.json")
    return Path(__file__).parent / _MANIFESTS[name]
