"""The weights of confidence, as `confidence.json` has them: by embedder and by the signals that a query has."""

from __future__ import annotations

from functools import cache, lru_cache
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


FILE = Path(__file__).with_name("confidence.json")
"""The weights, by embedder and set of signals, and how they were made."""
BY_COHORT = ""
"""In place of the name of an embedder that no weights were fitted for, and that is compared with its cohort."""
SIGNAL_SETS = ("tokens", "vectors", "meaning", "words")
"""Words with vectors and token codes; words with vectors; vectors alone; words alone."""
# Chosen on 20 notes and 80 questions of our own: with 100 the only note of a folder was not found by its rarest word.
_FITTED_FROM = 30
_LEAST = 1e-9


class TextWeights(NamedTuple):
    """Weights added to the logit of a hit if its text has no value of the kind asked for, or only asks.

    For a turn of a transcript less is taken: another turn may have the value.
    """

    lacking: float
    turn_lacking: float
    asking: float


class PassageWeights(msgspec.Struct, frozen=True):
    """Weights of the logit of a passage's confidence: of the logit as of any record, of the logarithm of the number of
    records, and the bias.
    """

    logit: float
    records: float
    bias: float

    def confidence(self, confidence: float, records: float) -> float:
        """The confidence of a passage that would have `confidence` as a turn or a statement."""
        sure = min(max(confidence, _LEAST), 1 - _LEAST)
        return 1 / (1 + exp(-self.logit * log(sure / (1 - sure)) - self.records * log(max(records, 1.0)) - self.bias))


class Calibration(msgspec.Struct):
    """The file of weights: what each kind of evidence and each kind of text adds, and the bias, by name.

    `embedders` are by embedder, where the first serves any other one, and by set of signals. `cohort` serves one whose
    cosines are compared with its cohort's: `normalised` is the weight of what `Cohort.normalised` gives.
    Its weights of evidence are a logistic regression on `languages_dev` of `benchmarks.quality` with
    multilingual-e5-small, those of texts the default model's; the bias is the one with which 5 % of the unrelated
    questions there and in `scripts` have a hit with `multilingual`. `passages` are those of
    `benchmarks.training.passages`.
    """

    embedders: dict[str, dict[str, dict[str, float]]]
    words: dict[str, float]
    cohort: dict[str, dict[str, float]]
    passages: dict[str, PassageWeights]

    def weights(self, embedder: str | None, signals: str) -> dict[str, float]:
        """The weights by name, for an embedder, by name, and one of `SIGNAL_SETS`."""
        if signals == "words":
            return self.words
        by_signals = self.cohort if embedder == BY_COHORT else self.embedders.get(embedder or "")
        by_signals = by_signals or next(iter(self.embedders.values()))
        return by_signals.get(signals, by_signals["vectors"])


@cache
def load_calibration() -> Calibration:
    """The calibration that ships."""
    return msgspec.json.decode(FILE.read_bytes(), type=Calibration)


@lru_cache(maxsize=16)
def evidence_weights(embedder: str | None) -> NDArray[np.float64]:
    """The weight of each kind of evidence and, as the last, the bias, for each of `SIGNAL_SETS`."""
    names = (*kernels.EVIDENCE._fields, "bias")
    by_set = [load_calibration().weights(embedder, signals) for signals in SIGNAL_SETS]
    return np.array([[weights.get(name, 0.0) for name in names] for weights in by_set])


@lru_cache(maxsize=16)
def text_weights(embedder: str | None, signals: str) -> TextWeights:
    """The weights of what a text tells, for an embedder, by name, and one of `SIGNAL_SETS`."""
    weights = load_calibration().weights(embedder, signals)
    return TextWeights(*(weights.get(kind, 0.0) for kind in TextWeights._fields))


@lru_cache(maxsize=16)
def passage_weights(embedder: str | None, signals: str) -> PassageWeights | None:
    """The weights of passages for an embedder, by name, and one of `SIGNAL_SETS`; None where none were fitted."""
    return load_calibration().passages.get(signals if signals == "words" else f"{embedder}, {signals}")


def least_confidence(least: float, embedder: str | None, signals: str, records: int) -> float:
    """The confidence that says as much in a store with this number of records as `least` in the stores of the fit.

    Ranked without tokens, the only record of a store had .13 whatever was asked: the weights are extrapolated there.
    Those of passages count records by themselves.
    """
    if records >= _FITTED_FROM or not 0 < least < 1:
        return least
    weight = load_calibration().weights(embedder, signals).get("records", 0.0)
    odds = log(least / (1 - least)) - weight * log(_FITTED_FROM / max(records, 1))
    return 1 / (1 + exp(-odds))


def is_fitted_for(embedder: str | None) -> bool:
    """Whether the weights know an embedder's cosines; without one there are none."""
    return embedder in (None, BY_COHORT) or embedder in load_calibration().embedders
