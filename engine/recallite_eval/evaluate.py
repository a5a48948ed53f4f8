"""Evaluation: questions to hits, hits to ranks, and each lost memory followed through the stages of recall."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType, structs

from recallite.engine import Engine
from recallite.errors import InvalidInput, RecalliteError
from recallite.model import checks
from recallite.model.checks import MAX_QUERY_CHARS, check_count, now_us
from recallite.model.configuration import Section
from recallite.model.filters import Filter, FilterFields
from recallite.model.records import Explanation, Hits, Record
from recallite.model.reports import (
    AnsweredQuestion,
    Comparison,
    ConfidenceReport,
    Evaluation,
    ExpectedMemory,
    Figures,
    NotStored,
    ThresholdCount,
)
from recallite.recall.explain import explain
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import MAX_LIMIT, Request, build_request, recall_arguments
from recallite.remember.relations import find_row_ids
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.system.messages import shown
from recallite.system.numerics import kernel_errors
from recallite.text.words import bare_text, text_key
from recallite.transfer.lines import Lines, reading

# Less than the queries whose embeddings are kept: what a batch lost is explained without embedding it again.
_BATCH = 256
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MAY_DROP = 0.05
_RETURNED, _THRESHOLD = "returned", "threshold"
# The options of a report that are as they were given; others are texts.
_PLAIN = (bool, int, float, str, list, tuple, dict, type(None))


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
    """Ask every question with the options, and again with `against` changed; compare the answers.

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
        names: dict[int | None, dict[str, None]] = {}
        for question, request in zip(self._questions, self._requests, strict=True):
            names.setdefault(request.filter.as_of, {}).update(dict.fromkeys(question.expected))
        with self._engine.store.read() as reader:
            by_time = {
                as_of: match_expected(reader, self._base, [*texts], as_of, now) for as_of, texts in names.items()
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
        for i, answer in self._answers():
            answers[i] = answer
            after_each()
        results = [answers[i] for i in range(len(self._questions))]
        counted = [result.figures for result in results if result.figures is not None]
        stages = Counter(memory.stage for result in results for memory in result.expected if memory.rank is None)
        options = {
            name: value.to_dict() if isinstance(value, Section) else value if isinstance(value, _PLAIN) else str(value)
            for name, value in self._options.items()
        }
        return Evaluation(
            k=self._k, options=options, counted=len(counted), figures=mean_figures(counted),
            lost=dict(sorted(stages.items(), key=lambda item: (-item[1], item[0]))),
            confidence=_confidence(results, self._k), results=tuple(results), not_stored=self._not_stored(),
        )  # fmt: skip

    def _answers(self) -> Iterator[tuple[int, AnsweredQuestion]]:
        """Yield the index and answer of each question; questions with the same request are asked together."""
        by_request: dict[Request, list[int]] = {}
        for i, request in enumerate(self._requests):
            by_request.setdefault(request, []).append(i)
        for request, indices in by_request.items():
            for start in range(0, len(indices), _BATCH):
                batch = indices[start : start + _BATCH]
                texts = [self._questions[i].text for i in batch]
                for i, hits in zip(batch, recall_queries(self._engine, texts, None, request), strict=True):
                    yield i, self._answer(i, hits)

    def _answer(self, i: int, hits: Hits) -> AnsweredQuestion:
        question = self._questions[i]
        expected = tuple(self._follow(i, match, hits) for match in self._matches[i] if match.ids)
        return AnsweredQuestion(
            id=question.id, question=question.text, answerable=bool(question.expected), expected=expected,
            hits=tuple(hit.id for hit in hits),
            figures=measure([memory.rank for memory in expected], self._k) if expected else None,
            confidence=max((hit.confidence for hit in hits), default=0.0), best_text=hits[0].text if hits else None,
        )  # fmt: skip

    def _follow(self, i: int, match: Match, hits: Hits) -> ExpectedMemory:
        """Find an expected memory among the hits, or the stage that lost it."""
        for rank, hit in enumerate(hits, 1):
            if hit.id in match.ids:
                return ExpectedMemory(
                    expected=match.name, id=hit.id, text=hit.text, rank=rank, stage=_RETURNED,
                    confidence=hit.confidence,
                )  # fmt: skip
        lost = self._explain(i, match.ids)
        return ExpectedMemory(
            expected=match.name, id=lost.id, text=match.text, candidate_rank=lost.rank, stage=lost.stage,
            reason=lost.reason, confidence=lost.confidence,
        )  # fmt: skip

    def _explain(self, i: int, ids: Sequence[str]) -> Explanation:
        """Explain why none of some memories is a hit, by the one that came farthest."""
        with self._engine.store.read() as reader:
            rows = reader.records.find_ids(ids, self._base)
        text, request = self._questions[i].text, self._requests[i]
        explanations = [explain(self._engine, text, None, id, rows[id], request) for id in ids if id in rows]
        gone = Explanation(id=ids[0], query="", returned=False, stage="filter", reason="it was forgotten meanwhile")
        # Ranked ones by rank, then those with signals, then those that a filter hides.
        return min(explanations, key=lambda one: (one.rank is None, one.rank or 0, not one.signals), default=gone)

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


Source = str | os.PathLike[str] | IO[str] | Iterable[Mapping[str, Any]]

_MAX_LINE_CHARS = 1_000_000
_EXAMPLE = '{"question": "Where does Ada live?", "expected": ["Ada moved to Bergen"]}'
_FILTER = tuple(FilterFields.__annotations__)
# A line: the filter checks its own fields.
_Line: Any = msgspec.defstruct(
    "_Line",
    [
        ("question", str),
        ("expected", list[str]),
        ("id", str | int | UnsetType, UNSET),
        *((name, Any, UNSET) for name in _FILTER),
    ],
    forbid_unknown_fields=True,
)


class Question(NamedTuple):
    """A question, its name in the report, how its expected memories are named, and its own fields of a filter.

    `place` is what errors call it.
    """

    id: str
    text: str
    expected: tuple[str, ...]
    fields: dict[str, Any]
    place: str


def read_questions(source: Source, store: str) -> list[Question]:
    """Return the questions of a file, of a text stream or of a list, all checked; `store` is the path of the store."""
    questions: dict[str, Question] = {}
    for number, place, item in _entries(source, store):
        try:
            question = _question(item, str(number), place)
        except InvalidInput as fault:
            raise InvalidInput(f"{place}: {fault}") from None
        if (other := questions.setdefault(question.id, question)) is not question:
            raise InvalidInput(f"{place}: the id {shown(question.id)} is that of {other.place} too")
    if not questions:
        raise InvalidInput(f"there is no question in the input: a line is {_EXAMPLE}")
    return [*questions.values()]


def request_of(question: Question, base: str, profile: Any, k: int, options: Mapping[str, Any], now: int) -> Request:
    """Return the request that asks a question; its own fields of a filter take precedence over the options."""
    if "limit" in options:
        raise InvalidInput("limit is no option here: k says how many hits count")
    try:
        request = build_request(base, profile, limit=k, **recall_arguments({**options, **question.fields}))
    except InvalidInput as fault:
        if not question.fields:
            raise
        raise type(fault)(f"{question.place}: {fault}", fault.reason) from None
    return msgspec.structs.replace(request, now=now, counted=False)


def _entries(source: Source, store: str) -> Iterator[tuple[int, str, Any]]:
    if isinstance(source, str | os.PathLike) or callable(getattr(source, "readline", None)):
        file: Any = source
        with reading(file, store=store, count=False) as (stream, _):
            yield from _decoded(Lines(stream, max_chars=_MAX_LINE_CHARS))
        return
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InvalidInput(
            f"questions is {shown(source)}: give the path of a file with a JSON object on each line, or a list of dicts"
        )
    for number, item in enumerate(source, 1):
        yield number, f"question {number}", item


def _decoded(lines: Lines) -> Iterator[tuple[int, str, Any]]:
    while True:
        try:
            text = next(lines, None)
        except RecalliteError as fault:
            raise InvalidInput(f"line {lines.number}: {fault}") from None
        if text is None:
            return
        if not text.strip():
            continue
        place = f"line {lines.number}"
        try:
            yield lines.number, place, msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as fault:
            raise InvalidInput(f"{place}: {shown(text.strip())} is not JSON ({fault}): write {_EXAMPLE}") from None


def _question(item: object, number: str, place: str) -> Question:
    if not isinstance(item, Mapping):
        raise InvalidInput(f"{shown(item)} is no question: write {_EXAMPLE}")
    try:
        line = msgspec.convert(dict(item), _Line)
    except msgspec.ValidationError as fault:
        raise InvalidInput(_reason(str(fault), item)) from None
    if not line.question.strip():
        raise InvalidInput("the question is blank")
    for name in line.expected:
        if not name.strip():
            raise InvalidInput(f"expected holds {shown(name)}: give a text or an id, or an empty list for no answer")
    fields = {name: getattr(line, name) for name in _FILTER}
    return Question(
        id=number if line.id is UNSET else str(line.id),
        text=checks.check_query(line.question, "question"),
        expected=tuple(dict.fromkeys(line.expected)),
        fields={name: value for name, value in fields.items() if value is not UNSET and value is not None},
        place=place,
    )


def _reason(fault: str, item: Mapping[str, Any]) -> str:
    """Say a fault that msgspec found in the words of other errors."""
    if fault.startswith("Object contains unknown field"):
        return f"unknown field {fault.split('`')[1]!r}: use question, expected, id, {', '.join(_FILTER)}"
    if fault.startswith("Object missing required field"):
        name = fault.split("`")[1]
        return f'{name} is missing: write {_EXAMPLE}, with "expected": [] if the store has no answer'
    name = fault.rpartition("$.")[2].split("[")[0].rstrip("`")
    wanted = {"question": "a str", "expected": "a list of texts or ids", "id": "a str"}.get(name, "another value")
    return f"{name} is {shown(item.get(name))}: give {wanted}"


_MIN_ID_CHARS, _MAX_ID_CHARS = 4, 64
_IDS_SHOWN = 5


class Match(NamedTuple):
    """The memories that an expected text or id names: any of the ids will do, their text; or the reason for none."""

    name: str
    ids: tuple[str, ...] = ()
    text: str = ""
    reason: str = ""


def match_expected(reader: Reader, base: str, expected: Sequence[str], as_of: int | None, now: int) -> dict[str, Match]:
    """Match each expected text or id with memories that a handle bound to `base` sees.

    It is, in this order, an id; a text, but for case, white space, quote marks around it and a final stop; the only
    text that contains it; the only id that starts or ends with it. Several memories of one text are one. Texts are
    those of `as_of`, else those of now, also of expired memories: a filter may hide what a question expects.
    """
    rows = reader.records.fetch([*find_row_ids(reader, expected, base).values()]).values()
    matches = {row.public_id: Match(row.public_id, (row.public_id,), row.text) for row in rows}
    rest = [name for name in expected if name not in matches]
    if rest and as_of is None:
        matches |= _by_text(reader, base, rest, now)
    elif rest:
        past = Filter().within(base).replaced(as_of=as_of)
        by_past = _in_one_pass(reader.records.find(past, now), rest)
        matches |= {name: match for name, match in by_past.items() if match.ids}
    rest = [name for name in expected if name not in matches]
    if rest:
        matches |= _in_one_pass(reader.records.find(Filter().within(base), now, versions="open"), rest)
    return matches


def _by_text(reader: Reader, base: str, expected: Sequence[str], now: int) -> dict[str, Match]:
    """Match whole texts, through the index of texts."""
    names = {text_key(name): name for name in expected}
    matches: dict[str, Match] = {}
    for record in reader.records.current_by_text([*names], now):
        if base == "/" or record.scope == base or record.scope.startswith(f"{base}/"):
            name = names[text_key(record.text)]
            match = matches.get(name, Match(name, text=record.text))
            matches[name] = match._replace(ids=(*match.ids, record.public_id))
    return matches


def _in_one_pass(records: Iterable[Record], expected: Sequence[str]) -> dict[str, Match]:
    """Match each with these memories, which are read once."""
    anchored = _by_anchor(expected)
    id_parts = [name for name in expected if _MIN_ID_CHARS <= len(name) <= _MAX_ID_CHARS and " " not in name]
    equal: dict[str, list[Record]] = {name: [] for name in expected}
    containing: dict[str, list[Record]] = {name: [] for name in expected}
    with_id: dict[str, list[Record]] = {name: [] for name in expected}
    for record in records:
        text = bare_text(record.text)
        for anchor in anchored.keys() & {*text.split(" "), ""}:
            for name, sought in anchored[anchor]:
                if sought in text:
                    (equal if len(sought) == len(text) else containing)[name].append(record)
        for name in id_parts:
            if record.id.startswith(name) or record.id.endswith(name):
                with_id[name].append(record)
    return {name: _match(name, equal[name], containing[name], with_id[name]) for name in expected}


def _by_anchor(texts: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Group texts, each with its bare form, by a word of every text that holds them: their longest inner word, or "".

    A search for 480 texts in 20,000 takes 0.12 s with it and 1.24 s without.
    """
    anchored: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        bare = bare_text(text)
        anchored.setdefault(max(bare.split(" ")[1:-1], key=len, default=""), []).append((text, bare))
    return anchored


def _match(name: str, equal: list[Record], containing: list[Record], with_id: list[Record]) -> Match:
    named = equal or next((records for records in (containing, with_id) if len(records) == 1), [])
    if named:
        return Match(name, tuple(record.id for record in named), named[0].text)
    for records, relation in ((containing, "is part of the text of"), (with_id, "is part of the id of")):
        if records:
            ids = ", ".join(record.id for record in records[:_IDS_SHOWN])
            more = ", ..." if len(records) > _IDS_SHOWN else ""
            return Match(name, reason=f"{relation} {len(records):,} memories: {ids}{more}")
    return Match(name, reason="no memory has this text or id")


def measure(ranks: Sequence[int | None], k: int) -> Figures:
    """Return the figures of a question by the rank of each expected memory among its first `k` hits, None for one lost.

    nDCG is that of Järvelin and Kekäläinen (2002) with binary relevance; the ideal has all that is expected first.
    """
    hits = [rank for rank in ranks if rank is not None]
    best = min(hits, default=None)
    gain = math.fsum(map(_discount, hits))
    ideal = math.fsum(map(_discount, range(1, min(len(ranks), k) + 1)))
    return Figures(
        recall=len(hits) / len(ranks), hit=float(best is not None), hit_at_1=float(best == 1),
        mrr=0.0 if best is None else 1.0 / best, ndcg=gain / ideal,
    )  # fmt: skip


def mean_figures(figures: Iterable[Figures]) -> Figures | None:
    """Return the means of the figures of some questions; None without questions."""
    rows = [*map(structs.asdict, figures)]
    if not rows:
        return None
    return Figures(**{name: math.fsum(row[name] for row in rows) / len(rows) for name in Figures.__struct_fields__})


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)


# The recall of many hits says what a prompt gets, the reciprocal rank what comes first.
COMPARED = ("recall", "mrr")
_RESAMPLES = 10_000
_SEED = 0
_INTERVAL = (0.025, 0.975)


def compare(first: Evaluation, second: Evaluation) -> tuple[Comparison, ...]:
    """Compare the second run with the first, over the questions of the same id and text that both counted."""
    second_figures = {(result.id, result.question): result.figures for result in second.results}
    pairs = {
        result.id: (result.figures, figures)
        for result in first.results
        if result.figures is not None and (figures := second_figures.get((result.id, result.question))) is not None
    }
    if not pairs:
        return ()
    return tuple(_compare(figure, pairs) for figure in COMPARED)


def _compare(figure: str, pairs: Mapping[str, tuple[Figures, Figures]]) -> Comparison:
    differences = {name: getattr(second, figure) - getattr(first, figure) for name, (first, second) in pairs.items()}
    better, worse = (tuple(name for name, d in differences.items() if sign * d > 0) for sign in (1, -1))
    low, high = bootstrap_interval([*differences.values()])
    return Comparison(
        figure=figure, difference=math.fsum(differences.values()) / len(pairs), low=low, high=high, better=better,
        worse=worse, equal=len(pairs) - len(better) - len(worse), p=sign_test(len(better), len(worse)),
    )  # fmt: skip


def sign_test(better: int, worse: int) -> float:
    """Return the probability of a split at least as uneven if both sides were equally likely: two-sided, exact."""
    total = better + worse
    tail = splits = 1
    for drawn in range(min(better, worse)):
        splits = splits * (total - drawn) // (drawn + 1)  # the binomial coefficient of drawn + 1
        tail += splits
    return min(1.0, float(2 * tail / 2**total))


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean, from 10,000 resamples with a fixed seed.

    A resample is drawn as counts of the distinct differences, of which there are few.
    """
    import numpy as np

    values, counts = np.unique(np.array(differences, dtype=np.float64), return_counts=True)
    total = len(differences)
    # RandomState promises the same numbers in every version of NumPy.
    drawn = np.random.RandomState(_SEED).multinomial(total, counts / total, size=_RESAMPLES)
    low, high = np.quantile(drawn @ values / total, _INTERVAL)
    return float(low), float(high)
