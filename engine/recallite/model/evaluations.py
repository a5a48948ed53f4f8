"""Reports on how well recall finds what questions expect."""

from __future__ import annotations

from typing import Any

from recallite.model.records import Plain


class Figures(Plain, frozen=True, kw_only=True):
    """Quality of the first k hits, as means over the questions with expected memories.

    - recall: the share of the expected memories that is found
    - hit: 1 if any expected memory is found, else 0
    - hit_at_1: 1 if the first hit is expected, else 0
    - mrr: 1 / the rank of the first expected hit, 0 without one
    - ndcg: normalised discounted cumulative gain with binary relevance
    """

    recall: float
    hit: float
    hit_at_1: float
    mrr: float
    ndcg: float


class ExpectedMemory(Plain, frozen=True, kw_only=True):
    """A memory that a question should find.

    - expected: how the question names it; id, text: the memory
    - rank: its place among the first k hits, from 1; None if it is lost; candidate_rank: its place by score among all
      candidates, where a lost one is a candidate
    - stage, reason: the stage of recall that dropped it and why, as `memory.review.explain` says; "returned" if it
      is found
    - confidence: its confidence, whether found or lost; None if a filter hides it
    """

    expected: str
    id: str
    text: str
    rank: int | None = None
    candidate_rank: int | None = None
    stage: str
    reason: str = ""
    confidence: float | None = None


class NotStored(Plain, frozen=True, kw_only=True):
    """An expected memory that cannot be told, and counts nowhere.

    `reason` says whether no memory or several have the text; `nearest` is the id and `nearest_text` the text of the
    most similar memory.
    """

    question: str
    expected: str
    reason: str
    nearest: str | None = None
    nearest_text: str | None = None


class AnsweredQuestion(Plain, frozen=True, kw_only=True):
    """A question of an evaluation.

    - id: the one given, else its number: the line of the file, or the place in the list from 1
    - expected: the memories to be found; hits: the ids of those that were, best first
    - figures: None for a question without expected memories, or with none that is stored
    - answerable: False if the question says that the store has no answer
    - confidence: the highest of the hits, 0 without one; best_text: the first hit
    """

    id: str
    question: str
    answerable: bool
    expected: tuple[ExpectedMemory, ...] = ()
    hits: tuple[str, ...] = ()
    figures: Figures | None = None
    confidence: float = 0.0
    best_text: str | None = None


class ThresholdCount(Plain, frozen=True, kw_only=True):
    """Effect of a `min_confidence`: right hits that stay, and questions without an answer that still get hits."""

    min_confidence: float
    right: int
    unanswerable: int


class ConfidenceReport(Plain, frozen=True, kw_only=True):
    """The confidence of expected memories that are hits, or that only a minimum drops.

    - right: how many there are; unanswerable: how many questions say that the store has no answer
    - thresholds: what is left of both at some values of `min_confidence`
    - keeps_95: the highest `min_confidence` that keeps at least 95 % of the right hits; None if there are none
    """

    right: int
    unanswerable: int
    thresholds: tuple[ThresholdCount, ...]
    keeps_95: float | None = None


class Comparison(Plain, frozen=True, kw_only=True):
    """Two runs over the same questions, by one of the `Figures`.

    - difference: the mean of the second run minus that of the first; low, high: its 95 % interval by the percentile
      bootstrap over questions (Efron 1979)
    - better, worse: the ids of the questions at which the second run is better and worse; equal: how many others
    - p: the probability of so uneven a split or a more uneven one if both were equally good (two-sided sign test)
    """

    figure: str
    difference: float
    low: float
    high: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    equal: int
    p: float

    @property
    def clear(self) -> bool:
        """Whether both the sign test (p < 0.05) and the interval (without 0) say that the runs differ."""
        return self.p < 0.05 and not self.low <= 0.0 <= self.high


class Evaluation(Plain, frozen=True, kw_only=True):
    """The result of `memory.review.evaluate`.

    - k: how many hits of a question count; options: the options of recall that were given
    - figures: means over the `counted` questions, which have an expected memory that is stored; None if there are none
    - lost: how many expected memories each stage dropped
    - results: each question, in the order given; not_stored: expected memories that the store does not have
    - against, comparisons: the second run, or the earlier report, and how it compares with this one, if requested

    `msgspec.json.decode(text, type=Evaluation)` reads back what `to_json` gives.
    """

    k: int
    options: dict[str, Any]
    counted: int
    figures: Figures | None
    lost: dict[str, int]
    confidence: ConfidenceReport
    results: tuple[AnsweredQuestion, ...]
    not_stored: tuple[NotStored, ...]
    against: Evaluation | None = None
    comparisons: tuple[Comparison, ...] = ()

    @property
    def missed(self) -> tuple[AnsweredQuestion, ...]:
        """The questions that lost an expected memory."""
        return tuple(result for result in self.results if any(one.rank is None for one in result.expected))
