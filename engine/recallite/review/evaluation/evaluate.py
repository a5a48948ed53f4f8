"""Evaluation: questions to hits, hits to ranks, and each lost memory followed through the stages of recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import MAX_QUERY_CHARS, check_count, now_us
from recallite.model.configuration import Section
from recallite.model.records import Explanation, Hits
from recallite.model.reports import (
    AnsweredQuestion,
    ConfidenceReport,
    Evaluation,
    ExpectedMemory,
    NotStored,
    ThresholdCount,
)
from recallite.recall.explain import explain
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import MAX_LIMIT, Request, build_request
from recallite.review.evaluation.comparison import compare
from recallite.review.evaluation.matching import Match, match_expected
from recallite.review.evaluation.metrics import mean_figures, measure
from recallite.review.evaluation.questions import Question, Source, read_questions, request_of
from recallite.store.protocol import Progress
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors

# Less than the queries whose embeddings are kept: what a batch lost is explained without embedding it again.
_BATCH = 256
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MAY_DROP = 0.05
_RETURNED, _THRESHOLD = "returned", "threshold"


def evaluate(
    engine: Engine,
    questions: Source,
    *,
    base: str,
    k: int,
    options: Mapping[str, Any],
    against: Mapping[str, Any] | Evaluation | None,
    on_progress: Progress | None,
) -> Evaluation:
    """Ask every question with the options, and again with those that `against` changes; compare the answers.

    An earlier evaluation is compared as it is. Everything is checked before the first question is asked.
    """
    most, now = check_count(k, "k", maximum=MAX_LIMIT), now_us()
    earlier, changes = _checked_against(against, most)
    asked = read_questions(questions, engine.store.path)
    runs = []
    for chosen in (options,) if changes is None else (options, {**options, **changes}):
        requests = [request_of(each, base, engine.settings.profile, most, chosen, now) for each in asked]
        runs.append(_Run(engine, asked, requests, base, most, chosen))
    total, done = len(runs) * len(asked), count(1)
    made = []
    with kernel_errors():
        for run in runs:
            results: dict[int, AnsweredQuestion] = {}
            for place, result in run.answers():
                results[place] = result
                if on_progress is not None:
                    on_progress(next(done), total)
            made.append(run.report([results[place] for place in range(len(asked))]))
    first, *others = made if earlier is None else [*made, structs.replace(earlier, against=None, comparisons=())]
    return structs.replace(first, against=others[0], comparisons=compare(first, others[0])) if others else first


def _checked_against(against: object, k: int) -> tuple[Evaluation | None, Mapping[str, Any] | None]:
    """The earlier evaluation to compare with, or the options that differ in a second run."""
    if isinstance(against, Evaluation):
        if against.k != k:
            raise InvalidInput(f"the earlier evaluation counts the first {against.k} hits: give k={against.k}")
        return against, None
    if against is None or isinstance(against, Mapping):
        return None, against
    raise InvalidInput(
        f"against is {shown(against)}: give options of recall that differ, e.g. {{'mode': 'vector'}}, or an Evaluation"
    )


class _Expected(NamedTuple):
    """What a question expects, in its own words, and the memories of which any will do."""

    expected: str
    match: Match


class _Run:
    """All questions with one set of options."""

    def __init__(
        self,
        engine: Engine,
        asked: Sequence[Question],
        requests: Sequence[Request],
        base: str,
        k: int,
        options: Mapping[str, Any],
    ) -> None:
        self._engine, self._asked, self._requests = engine, asked, requests
        self._base, self._k, self._options = base, k, options
        self._expected = self._matched()

    def _matched(self) -> list[list[_Expected]]:
        """What each question expects; two names of one memory are one."""
        wanted: dict[int | None, dict[str, None]] = {}
        for question, request in zip(self._asked, self._requests, strict=True):
            wanted.setdefault(request.filter.as_of, {}).update(dict.fromkeys(question.expected))
        with self._engine.store.read() as reader:
            matches = {
                as_of: match_expected(reader, self._base, [*texts], as_of, self._requests[0].now)
                for as_of, texts in wanted.items()
            }
        found = []
        for question, request in zip(self._asked, self._requests, strict=True):
            own: list[_Expected] = []
            for each in question.expected:
                match = matches[request.filter.as_of][each]
                if not any(set(match.ids) & set(other.match.ids) for other in own):
                    own.append(_Expected(each, match))
            found.append(own)
        return found

    def answers(self) -> Iterator[tuple[int, AnsweredQuestion]]:
        """Each question's place and answer; those of one request are asked together."""
        alike: dict[Request, list[int]] = {}
        for place, request in enumerate(self._requests):
            alike.setdefault(request, []).append(place)
        for request, places in alike.items():
            for start in range(0, len(places), _BATCH):
                batch = places[start : start + _BATCH]
                found = recall_queries(self._engine, [self._asked[place].text for place in batch], None, request)
                for place, hits in zip(batch, found, strict=True):
                    yield place, self._answer(place, hits)

    def _answer(self, place: int, hits: Hits) -> AnsweredQuestion:
        question = self._asked[place]
        expected = tuple(self._follow(place, each, hits) for each in self._expected[place] if each.match.ids)
        return AnsweredQuestion(
            id=question.id,
            question=question.text,
            answerable=bool(question.expected),
            expected=expected,
            hits=tuple(hit.id for hit in hits),
            figures=measure([each.rank for each in expected], self._k) if expected else None,
            confidence=max((hit.confidence for hit in hits), default=0.0),
            best_text=hits[0].text if hits else None,
        )

    def _follow(self, place: int, expected: _Expected, hits: Hits) -> ExpectedMemory:
        """Where an expected memory went."""
        ids = expected.match.ids
        for rank, hit in enumerate(hits, 1):
            if hit.id in ids:
                return ExpectedMemory(
                    expected=expected.expected, id=hit.id, text=hit.text, rank=rank, stage=_RETURNED,
                    confidence=hit.confidence,
                )  # fmt: skip
        lost = self._explain(place, ids)
        return ExpectedMemory(
            expected=expected.expected, id=lost.id, text=expected.match.text, candidate_rank=lost.rank,
            stage=lost.stage, reason=lost.reason, confidence=lost.confidence,
        )  # fmt: skip

    def _explain(self, place: int, ids: Sequence[str]) -> Explanation:
        """Why none of some memories is a hit: of the one that came farthest."""
        with self._engine.store.read() as reader:
            rows = reader.records.find_ids(ids, self._base)
        said = [
            explain(self._engine, self._asked[place].text, None, id, rows[id], self._requests[place])
            for id in ids
            if id in rows
        ]
        gone = Explanation(id=ids[0], query="", returned=False, stage="filter", reason="it was forgotten meanwhile")
        return min(said, key=_farthest, default=gone)

    def report(self, results: Sequence[AnsweredQuestion]) -> Evaluation:
        """The whole run."""
        counted = [each.figures for each in results if each.figures is not None]
        stages = Counter(one.stage for each in results for one in each.expected if one.rank is None)
        return Evaluation(
            k=self._k,
            options={name: _plain(value) for name, value in self._options.items()},
            counted=len(counted),
            figures=mean_figures(counted),
            lost=dict(sorted(stages.items(), key=lambda item: (-item[1], item[0]))),
            confidence=_confidence(results, self._k),
            results=tuple(results),
            not_stored=self._not_stored(),
        )

    def _not_stored(self) -> tuple[NotStored, ...]:
        missing = [
            (question.id, each)
            for question, own in zip(self._asked, self._expected, strict=True)
            for each in own
            if not each.match.ids
        ]
        if not missing:
            return ()
        request = build_request(self._base, self._engine.settings.profile, limit=1)
        texts = [each.expected[:MAX_QUERY_CHARS] for _, each in missing]
        nearest = recall_queries(self._engine, texts, None, structs.replace(request, counted=False))
        return tuple(
            NotStored(
                question=name, expected=each.expected, reason=each.match.reason,
                nearest=hits[0].id if hits else None, nearest_text=hits[0].text if hits else None,
            )
            for (name, each), hits in zip(missing, nearest, strict=True)
        )  # fmt: skip


def _farthest(said: Explanation) -> tuple[bool, int, bool]:
    """The order of explanations: ranked ones by rank, then what was measured, then what a filter hides."""
    return said.rank is None, said.rank or 0, not said.signals


def _confidence(results: Sequence[AnsweredQuestion], k: int) -> ConfidenceReport:
    right = sorted(
        one.confidence
        for each in results
        for one in each.expected
        if one.confidence is not None and (one.rank or (one.stage == _THRESHOLD and (one.candidate_rank or k + 1) <= k))
    )
    unanswerable = [each.confidence for each in results if not each.answerable]
    return ConfidenceReport(
        right=len(right),
        unanswerable=len(unanswerable),
        thresholds=tuple(
            ThresholdCount(
                min_confidence=least,
                right=sum(value >= least for value in right),
                unanswerable=sum(value >= least for value in unanswerable),
            )
            for least in _THRESHOLDS
        ),
        keeps_95=right[int(_MAY_DROP * len(right))] if right else None,
    )


def _plain(value: object) -> object:
    """An option as JSON."""
    if isinstance(value, Section):
        return value.to_dict()
    return value if isinstance(value, bool | int | float | str | list | tuple | dict | None) else str(value)
