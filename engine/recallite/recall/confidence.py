"""Confidence: the chance that a record answers the query, in [0, 1] and comparable across queries.

It is the logistic function of a weighted sum of the evidence (`recallite_kernels.signals.Evidence`): a record is
weighed by its own signals and beside the best other candidate, since a cosine of 0.5 says little where another record
has 0.6, and much where the next has 0.2. All of it is measured before fusion, so it is the same under every profile.
The weights were fitted on questions
whose answers are known, in stores that hold them and in stores that do not, by `benchmarks.training.confidence`.
There are weights for each set of signals that a query may have, so that a confidence means the same with token codes,
without them, by keyword alone and by vector alone. What the text of a hit tells is added when it is read
(`recallite.recall.text_evidence`).
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


FILE = Path(__file__).with_suffix(".json")
"""The weights, by embedder and set of signals, and how they were made."""
SIGNAL_SETS = ("tokens", "vectors", "meaning", "words")
"""Words with vectors and token codes; words with vectors; vectors alone; words alone."""


# Chosen on 20 notes and 80 questions of our own: with 100 the only note of a folder was not found by its rarest word.
_FITTED_FROM = 30


class TextWeights(NamedTuple):
    """Weights that are added to the logit of a hit whose text has no value of the kind asked for, or only asks.

    A turn of a transcript lacks it less gravely: another turn may have it.
    """

    lacking: float
    turn_lacking: float
    asking: float


class Calibration(NamedTuple):
    """The weight of each kind of evidence and, as the last, the bias: float64 (evidence + 1,), by set of signals.

    `embedders` has those of each embedder; any other has those of the first. `texts` are by embedder and signals.
    """

    embedders: dict[str, dict[str, NDArray[np.float64]]]
    words: NDArray[np.float64]
    texts: dict[tuple[str, str], TextWeights]

    def weights(self, embedder: str | None, signals: str) -> NDArray[np.float64]:
        """The weights of an embedder, by name, and one of `SIGNAL_SETS`."""
        if signals == "words":
            return self.words
        by_signals = self.embedders.get(embedder or "") or next(iter(self.embedders.values()))
        return by_signals.get(signals, by_signals["vectors"])

    def text_weights(self, embedder: str | None, signals: str) -> TextWeights:
        """The weights of what a text tells, for an embedder, by name, and one of `SIGNAL_SETS`."""
        name = embedder if embedder in self.embedders else next(iter(self.embedders))
        return self.texts.get((name, signals)) or self.texts[name, "vectors"]


def least_confidence(least: float, embedder: str | None, signals: str, records: int) -> float:
    """The confidence that says as much in a store with this number of records as `least` in the stores of the fit.

    Ranked without tokens, the only record of a store had .13 whatever was asked: the weights are extrapolated there.
    """
    if records >= _FITTED_FROM or not 0 < least < 1:
        return least
    weight = float(load_calibration().weights(embedder, signals)[kernels.EVIDENCE.records])
    odds = math.log(least / (1 - least)) - weight * math.log(_FITTED_FROM / max(records, 1))
    return 1 / (1 + math.exp(-odds))


def is_fitted_for(embedder: str | None) -> bool:
    """Whether the weights know an embedder's cosines; without one there are none."""
    return embedder is None or embedder in load_calibration().embedders


class _Fitted(msgspec.Struct):
    """The file of weights, by name of the evidence; "bias" has the bias."""

    embedders: dict[str, dict[str, dict[str, float]]]
    words: dict[str, float]


@cache
def load_calibration() -> Calibration:
    """The calibration that ships."""
    fitted = msgspec.json.decode(FILE.read_bytes(), type=_Fitted)

    def in_order(weights: dict[str, float]) -> NDArray[np.float64]:
        return np.array([weights.get(name, 0.0) for name in (*kernels.EVIDENCE._fields, "bias")])

    return Calibration(
        {
            name: {signals: in_order(weights) for signals, weights in by_signals.items()}
            for name, by_signals in fitted.embedders.items()
        },
        in_order(fitted.words),
        {
            (name, signals): TextWeights(*(weights.get(kind, 0.0) for kind in TextWeights._fields))
            for name, by_signals in fitted.embedders.items()
            for signals, weights in {**by_signals, "words": fitted.words}.items()
        },
    )
