"""Confidence: the chance that a record answers the query, in [0, 1] and comparable across queries; and evidence gaps.

It is the logistic function of a weighted sum of the evidence (`recallite_kernels.signals.Evidence`): a record is
weighed by its own signals and beside the best other candidate, since a cosine of 0.5 says little where another record
has 0.6, and much where the next has 0.2. All of it is measured before fusion, so it is the same under every profile.
`benchmarks.training.confidence` fitted the weights on questions with known answers, in stores that hold these and in
stores that do not. Each set of signals that a query may have has its weights, so that a confidence means the same with
token codes, without them, by keyword alone and by vector alone. Texts are read for hits alone: their names and a model
add to confidence here, the kind of value asked for in `recallite.recall.slots`, all together in
`recallite.recall.judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from math import exp, inf, log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from recallite.embedding.protocol import header
from recallite.recall.slots import SLOTS
from recallite.recall.snippets import cut_snippet
from recallite.system.numerics import kernels
from recallite.text.questions import is_time_word, read_question
from recallite.text.reading import ROLES, name_terms
from recallite.text.words import QUESTION_TERMS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.recall.request import Answer, Request
    from recallite.store.sql.record_reading import Found


# The weights, by embedder and by the signals that a query has.

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


# Names that a question has whole: of a hit's tags, and its context. "Is the Worcester 30i all right?" is about a memory
# with this tag, whatever its text says. The more memories have the words of a name, the less does it say of one of
# them: the odds of a hit are raised by what a name counts, shared out among the hits with its rarest word. A question
# that names several things is asked for each: each has all of its odds.

# Chosen on stores of our own (`benchmarks.quality --set named`) among 2 to 5.
NAME_COUNTS = 3.0
"""Logit that the name of one memory alone adds to that of its confidence."""
SUREST_BY_NAME = 0.95
"""Most that a name makes a confidence."""
_MOST_THINGS = 8
_LONGEST = 60  # characters: a longer context is no name


class Name(NamedTuple):
    """The rarest word of a name that a question has, and what it adds to the logit of a hit's confidence."""

    word: str
    added: float


def names_of(question: str, missing: Missing | None, hits: Sequence[Found | None]) -> list[Name | None]:
    """The name of each hit that the question has, the one that counts most; nothing is known of no words."""
    if missing is None:
        return [None] * len(hits)
    one = float(kernels.smoothed_idf(missing.records, 1.0, 0.0))
    words = zip(missing.words, missing.idf, strict=True)
    counts = {word: NAME_COUNTS + idf - one for word, idf in words if word not in ROLES and word not in QUESTION_TERMS}
    terms = set(read_question(question).terms)
    by_bearer: dict[object, Name | None] = {None: None}  # turns of one speaker are many
    names = []
    for hit in hits:
        bearer = None if hit is None else (*hit.tags, hit.context)
        if bearer not in by_bearer:
            whole = [name_terms(name) for name in bearer or () if name is not None and len(name) <= _LONGEST]
            of_hit = [word for name in whole if terms.issuperset(name) for word in name if counts.get(word, 0.0) > 0]
            rarest = max(of_hit, key=counts.__getitem__, default=None)
            by_bearer[bearer] = None if rarest is None else Name(rarest, counts[rarest])
        names.append(by_bearer[bearer])
    things = log(min(max(len({name.word for name in names if name is not None}), 1), _MOST_THINGS))
    return [None if name is None else name._replace(added=name.added + things) for name in names]


def least_before(least: float) -> float:
    """The confidence that a record has at least before its names are read, if it may reach `least` by one."""
    return least / (least + (1.0 - least) * _MOST_THINGS * exp(NAME_COUNTS))


def surest_of_each(answer: Answer, names: Sequence[Name | None]) -> frozenset[int]:
    """The row ids of the surest ranked hit of each name."""
    surest: dict[str, int] = {}
    for rank, name in enumerate(names[: len(answer.row_ids) - answer.brought]):
        if name is not None:
            surest[name.word] = max(surest.get(name.word, rank), rank, key=answer.confidence.__getitem__)
    return frozenset(answer.row_ids[rank] for rank in surest.values())


# Hits read beside their prompt, for the cut of `relevant`. A model that reads prompt and text together
# (`recallite.embedding`) gives a logit for the first hits: whether the text answers the question, or has to be known
# for what a request asks for, as "I can't stand coriander" for "Cook something Thai". The confidence is computed again
# from both. The weights were fitted by `benchmarks.training.reader`, with the vectors of the default embedder; with
# others, and in other languages than English, nothing is read.

READING_FILE = Path(__file__).with_name("hit_reading.json")
"""The weights, and how they were made."""
MOST_READ = 5
"""Hits that are read; of ten, LoCoMo and the stores of `left_out` gain no more."""
SURE_IF_READ = 0.22
"""The least confidence of an answer that was read; benchmarks/training has what others keep."""
LEAST_COUNTED = 1e-4
"""The least confidence whose odds are counted."""
# About as many tokens of English as the model was trained on; of other scripts it reads less.
_PASSAGE_CHARS = 300


class ReadingWeights(msgspec.Struct):
    """The weights of the confidence's logit and of the reader's, fitted with one embedder."""

    embedder: str
    confidence: float
    answers: float
    bias: float


def read_hits(
    question: str,
    row_ids: Sequence[int],
    confidence: Sequence[float],
    records: Mapping[int, Found],
    embedder: str | None,
) -> list[float]:
    """The confidences of hits, computed again for those in `records` by reading their texts."""
    completed, weights = [*confidence], load_reading_weights()
    if embedder != weights.embedder:
        return completed
    from recallite.embedding.onnx import load_reader

    if (reader := load_reader()) is None:
        return completed
    ranks = [rank for rank, row_id in enumerate(row_ids) if row_id in records]
    read = [records[row_ids[rank]] for rank in ranks]
    # As they are embedded, but of one longer than is read the passage with most of the question's words.
    texts = []
    for record in read:
        head, passage, chars = header(record.context), record.text, _PASSAGE_CHARS
        if len(passage) > chars:
            passage = cut_snippet(record.text, question, chars).text
        while (share := reader.share_read(head + passage)) < 1 and (chars := int(share * len(passage))):
            passage = cut_snippet(record.text, question, chars).text
        texts.append(head + passage)
    for rank, logit in zip(ranks, reader.answers(question, texts), strict=True):
        if logit is not None:
            sure = min(max(confidence[rank], LEAST_COUNTED), 1 - LEAST_COUNTED)
            odds = weights.confidence * log(sure / (1 - sure)) + weights.answers * logit + weights.bias
            completed[rank] = 1 / (1 + exp(-odds))
    return completed


@cache
def load_reading_weights() -> ReadingWeights:
    """The weights that ship."""
    return msgspec.json.decode(READING_FILE.read_bytes(), type=ReadingWeights)


# Evidence gaps: what the hits of a query do not cover, in words that fit into a prompt.

# Gaps go into prompts: limits on the words named and on their length.
_MOST_NAMED, _LONGEST_NAMED = 20, 60
# More than the mean of equal numbers differs from these by rounding.
_ROUNDING = 1e-6


class Missing(NamedTuple):
    """The words of a question: each word's IDF, and whether any record has it (1) and a hit too (2).

    - confidence, score: the best of a hit
    - dated: a hit is of a time that the question names
    - closing: the confidence from which there is no gap
    - records: the number of records in the store
    """

    words: Sequence[str]
    idf: Sequence[float]
    state: Sequence[int]
    confidence: float
    score: float
    dated: bool
    any_hit: bool
    candidates: bool
    closing: float
    records: float


def find_gaps(text: str, missing: Missing, lacking: str | None, request: Request) -> tuple[str, ...]:
    """The evidence gaps of a question, if its best confidence is below the profile's.

    `lacking` is a kind of value that the question asks for and no hit has. If a hit is of the time that the question
    names, words of times are left out.
    """
    profile = request.profile
    closed = inf if profile.formula.gap_score is None else profile.formula.gap_score
    if missing.any_hit and missing.score >= closed:
        return ()
    if not missing.any_hit:
        minima = (("score", profile.min_score), ("confidence", profile.min_confidence))
        minimum = " and ".join(f"the minimum {name} of {least:g}" for name, least in minima if least > 0)
        few = minimum and missing.candidates
        nothing = f"no match reaches {minimum}" if few else "nothing in this scope matches the query"
        if profile.gap_confidence <= 0:
            return ()
        unheard = _named(text, [word for word, state in zip(missing.words, missing.state, strict=True) if state == 0])
        time_range = request.time_range
        return (*(unheard if few else ()), nothing if time_range is None else f"no hit is {time_range}")
    # Words at least as rare as the query's average word are named, and none that only asks.
    known = [idf for idf, state in zip(missing.idf, missing.state, strict=True) if state]
    average = sum(known) / max(len(known), 1) - _ROUNDING
    words = [*zip(missing.words, missing.idf, missing.state, strict=True)]
    terms = [word for word, _, state in words if state == 0]
    terms += [word for word, idf, state in words if state == 1 and idf >= average]
    gaps = _named(text, [term for term in terms if not (missing.dated and is_time_word(term))])
    if lacking is not None:
        gaps.append(f"no hit has {SLOTS[lacking]}")
    return (*gaps, lack_of_confidence(missing.confidence))


def lack_of_confidence(best: float) -> str:
    """The gap of a question whose best hit has this confidence."""
    return f"the best hit's confidence is {best:.2f}"


def _named(text: str, terms: Sequence[str]) -> list[str]:
    """A gap for each missing word, as the question writes it; none for words that only ask."""
    terms = [term for term in terms if term not in QUESTION_TERMS]
    written, sought = dict[str, str](), set(terms)
    for chunk in reversed(text.split()):
        if written.keys() >= sought:  # to read all words took a sixth of the time of a batch
            break
        for term in tokenize(chunk):
            written.setdefault(term, chunk.strip(".,;:!?\"'()[]"))
    # "Wi-Fi" has three terms.
    named = list(dict.fromkeys(written.get(term, term) for term in terms))
    gaps = [
        f"no hit mentions {word if len(word) <= _LONGEST_NAMED else word[:_LONGEST_NAMED] + '...'!r}"
        for word in named[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        gaps.append(f"nor {len(named) - _MOST_NAMED:,} other words of the query")
    return gaps


def join_gaps(texts: Sequence[str], gaps: Sequence[tuple[str, ...]], any_hit: bool) -> tuple[str, ...]:
    """The gaps of a decomposed question: its sub-questions' gaps, each with its sub-question."""
    named = (
        f"{gap}, for {text!r}" if any_hit else gap
        for text, text_gaps in zip(texts[1:], gaps[1:], strict=True)
        for gap in text_gaps
    )
    return tuple(dict.fromkeys(named))
