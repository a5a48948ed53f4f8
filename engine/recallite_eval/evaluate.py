"""Evaluation: questions to hits, hits to ranks, and each lost memory followed through the stages of recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import MAX_QUERY_CHARS, check_count, now_us
from recallite.model.configuration import Section
from recallite.model.evaluations import (
    AnsweredQuestion,
    ConfidenceReport,
    Evaluation,
    ExpectedMemory,
    NotStored,
    ThresholdCount,
)
from recallite.model.records import Explanation, Hits
from recallite.recall.explain import explain
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import MAX_LIMIT, Request, build_request
from recallite.store.store import Progress
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors
from recallite_eval.comparison import compare
from recallite_eval.matching import Match, match_expected
from recallite_eval.metrics import mean_figures, measure
from recallite_eval.questions import Question, Source, read_questions, request_of

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
    hit_count, now = check_count(k, "k", maximum=MAX_LIMIT), now_us()
    earlier, changes = _checked_against(against, hit_count)
    checked = read_questions(questions, engine.store.path)
    variants = [options] if changes is None else [options, {**options, **changes}]
    runs = [_Run(engine, checked, base, hit_count, variant, now) for variant in variants]
    done, total = count(1), len(runs) * len(checked)
    after_each = (lambda: None) if on_progress is None else (lambda: on_progress(next(done), total))
    with kernel_errors():
        reports = [run.report(after_each) for run in runs]
    if earlier is not None:
        reports.append(structs.replace(earlier, against=None, comparisons=()))
    first, *others = reports
    return structs.replace(first, against=others[0], comparisons=compare(first, others[0])) if others else first


def _checked_against(against: object, k: int) -> tuple[Evaluation | None, Mapping[str, Any] | None]:
    """Return the earlier evaluation to compare with, or the options that differ in a second run."""
    if isinstance(against, Evaluation):
        if against.k != k:
            raise InvalidInput(f"the earlier evaluation counts the first {against.k} hits: give k={against.k}")
        return against, None
    if against is None or isinstance(against, Mapping):
        return None, against
    raise InvalidInput(
        f"against is {shown(against)}: give options of recall that differ, e.g. {{'mode': 'vector'}}, or an Evaluation"
    )


class _Run:
    """All questions with one set of options."""

    def __init__(
        self, engine: Engine, questions: Sequence[Question], base: str, k: int, options: Mapping[str, Any], now: int
    ) -> None:
        self._engine, self._base, self._k, self._options = engine, base, k, options
        self._questions = questions
        profile = engine.settings.profile
        self._requests = [request_of(question, base, profile, k, options, now) for question in questions]
        self._matches = self._matched(now)

    def _matched(self, now: int) -> list[list[Match]]:
        """Return the memories that each question expects; two names of one memory are one."""
        wanted: dict[int | None, dict[str, None]] = {}
        for question, request in zip(self._questions, self._requests, strict=True):
            wanted.setdefault(request.filter.as_of, {}).update(dict.fromkeys(question.expected))
        with self._engine.store.read() as reader:
            by_time = {
                as_of: match_expected(reader, self._base, [*texts], as_of, now) for as_of, texts in wanted.items()
            }
        matched: list[list[Match]] = []
        for question, request in zip(self._questions, self._requests, strict=True):
            distinct: list[Match] = []
            for name in question.expected:
                match = by_time[request.filter.as_of][name]
                if not any({*match.ids} & {*other.ids} for other in distinct):
                    distinct.append(match)
            matched.append(distinct)
        return matched

    def report(self, after_each: Callable[[], object]) -> Evaluation:
        """Ask the questions, call `after_each` after each of them, and report the whole run."""
        answers: dict[int, AnsweredQuestion] = {}
        for place, answer in self._answers():
            answers[place] = answer
            after_each()
        results = [answers[place] for place in range(len(self._questions))]
        counted = [result.figures for result in results if result.figures is not None]
        stages = Counter(memory.stage for result in results for memory in result.expected if memory.rank is None)
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

    def _answers(self) -> Iterator[tuple[int, AnsweredQuestion]]:
        """Yield the place and answer of each question; questions with the same request are asked together."""
        places_of: dict[Request, list[int]] = {}
        for place, request in enumerate(self._requests):
            places_of.setdefault(request, []).append(place)
        for request, places in places_of.items():
            for start in range(0, len(places), _BATCH):
                batch = places[start : start + _BATCH]
                texts = [self._questions[place].text for place in batch]
                for place, hits in zip(batch, recall_queries(self._engine, texts, None, request), strict=True):
                    yield place, self._answer(place, hits)

    def _answer(self, place: int, hits: Hits) -> AnsweredQuestion:
        question = self._questions[place]
        expected = tuple(self._follow(place, match, hits) for match in self._matches[place] if match.ids)
        return AnsweredQuestion(
            id=question.id,
            question=question.text,
            answerable=bool(question.expected),
            expected=expected,
            hits=tuple(hit.id for hit in hits),
            figures=measure([memory.rank for memory in expected], self._k) if expected else None,
            confidence=max((hit.confidence for hit in hits), default=0.0),
            best_text=hits[0].text if hits else None,
        )

    def _follow(self, place: int, match: Match, hits: Hits) -> ExpectedMemory:
        """Find an expected memory among the hits, or the stage that lost it."""
        for rank, hit in enumerate(hits, 1):
            if hit.id in match.ids:
                return ExpectedMemory(
                    expected=match.name, id=hit.id, text=hit.text, rank=rank, stage=_RETURNED,
                    confidence=hit.confidence,
                )  # fmt: skip
        lost = self._explain(place, match.ids)
        return ExpectedMemory(
            expected=match.name, id=lost.id, text=match.text, candidate_rank=lost.rank, stage=lost.stage,
            reason=lost.reason, confidence=lost.confidence,
        )  # fmt: skip

    def _explain(self, place: int, ids: Sequence[str]) -> Explanation:
        """Explain why none of some memories is a hit, by the one that came farthest."""
        with self._engine.store.read() as reader:
            rows = reader.records.find_ids(ids, self._base)
        text, request = self._questions[place].text, self._requests[place]
        explanations = [explain(self._engine, text, None, id, rows[id], request) for id in ids if id in rows]
        gone = Explanation(id=ids[0], query="", returned=False, stage="filter", reason="it was forgotten meanwhile")
        return min(explanations, key=_distance, default=gone)

    def _not_stored(self) -> tuple[NotStored, ...]:
        missing = [
            (question.id, match)
            for question, matches in zip(self._questions, self._matches, strict=True)
            for match in matches
            if not match.ids
        ]
        if not missing:
            return ()
        request = build_request(self._base, self._engine.settings.profile, limit=1)
        texts = [match.name[:MAX_QUERY_CHARS] for _, match in missing]
        nearest = recall_queries(self._engine, texts, None, structs.replace(request, counted=False))
        return tuple(
            NotStored(
                question=id, expected=match.name, reason=match.reason,
                nearest=hits[0].id if hits else None, nearest_text=hits[0].text if hits else None,
            )
            for (id, match), hits in zip(missing, nearest, strict=True)
        )  # fmt: skip


def _distance(explanation: Explanation) -> tuple[bool, int, bool]:
    """Order explanations: ranked ones by rank, then those with signals, then those that a filter hides."""
    return explanation.rank is None, explanation.rank or 0, not explanation.signals


def _confidence(results: Sequence[AnsweredQuestion], k: int) -> ConfidenceReport:
    right = sorted(
        memory.confidence
        for result in results
        for memory in result.expected
        if memory.confidence is not None
        and (memory.rank or (memory.stage == _THRESHOLD and (memory.candidate_rank or k + 1) <= k))
    )
    unanswerable = [result.confidence for result in results if not result.answerable]
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
    if isinstance(value, Section):
        return value.to_dict()
    return value if isinstance(value, bool | int | float | str | list | tuple | dict | None) else str(value)
