"""What becomes of the older statement of a pair, told one by one or in bulk, and asked for in three ways.

Each pair has a scope of its own, so that nothing but the two meets. Statements are compared as the default policy does,
with times of writing that are given: 300 and 200 days ago, or 30 and 1.

Nothing can hide a statement that is neither marked nor missing from `list`: recall is asked for all that are though
they hold, and for the pairs that the caller names besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal

from benchmarks.truth.cases import Change, Fact, Grid, Pair, Subject
from recallite import Hit, Memory, NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.pending import MANY

__all__ = ["AGES_DAYS", "WAYS", "Among", "Answers", "Echoed", "Seen", "among_all", "bulk", "echo_all", "one_by_one"]

OpenMemory = Callable[[], Memory]
Way = Literal["one by one", "bulk"]
WAYS: tuple[Way, ...] = ("one by one", "bulk")
AGES_DAYS = ((300, 200), (30, 1))
TOP = 3
_PAIRS_PER_STORE = 256
_ONLY_STORES = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store")


@dataclass(frozen=True)
class Answers:
    """Texts of the first hits of plain recall and of `relevant=True`.

    `of_relevant_unmarked` is what `relevant=True` answers if nothing is marked, asked for only if the older one is
    missing. `names_newer` and `names_older` say whether the older and the newer hit name the other.
    """

    plain: tuple[str, ...]
    relevant: tuple[str, ...]
    names_newer: bool
    names_older: bool
    of_relevant_unmarked: tuple[str, ...] | None = None

    @property
    def name_each_other(self) -> bool:
        """Whether both hits name the other."""
        return self.names_newer and self.names_older


@dataclass(frozen=True)
class Seen:
    """What a store says of a pair: how the newer is marked and why, whether the older is listed, what is recalled."""

    pair: Pair
    way: Way
    age_days: tuple[int, int]
    supersedes: str | None
    contradicts: str | None
    listed: bool
    answers: Answers | None

    @property
    def is_marked(self) -> bool:
        """Whether the newer statement supersedes or contradicts the older."""
        return self.supersedes is not None or self.contradicts is not None

    @property
    def newer_first(self) -> bool:
        """Whether plain recall begins with the newer statement."""
        return self.answers is not None and self.answers.plain[:1] == (self.pair.newer,)

    @property
    def newer_first_of_relevant(self) -> bool:
        """Whether `relevant=True` begins with the newer statement."""
        return self.answers is not None and self.answers.relevant[:1] == (self.pair.newer,)

    @property
    def in_plain(self) -> bool:
        """Whether the older is among the first hits of plain recall."""
        return self.answers is not None and self.pair.older in self.answers.plain[:TOP]

    @property
    def in_relevant(self) -> bool:
        """Whether `relevant=True` gives the older."""
        return self.answers is not None and self.pair.older in self.answers.relevant

    @property
    def in_relevant_unmarked(self) -> bool:
        """Whether `relevant=True` gives the older if nothing is marked."""
        if self.answers is None or self.answers.of_relevant_unmarked is None:
            return self.in_relevant
        return self.pair.older in self.answers.of_relevant_unmarked


def one_by_one(
    pairs: Iterable[Pair], age_days: tuple[int, int], open_memory: OpenMemory, *, asked: Set[Pair] | None
) -> Iterator[Seen]:
    """Each statement is remembered alone, the older first. `asked` are asked for in any case; None asks for nothing."""
    for some in _batches(pairs):
        with open_memory() as memory:
            for place, pair in enumerate(some):
                scope = f"/{place}"
                older, newer = (
                    memory.remember(text, scope=scope, created_at=time)
                    for text, time in zip((pair.older, pair.newer), _times(age_days), strict=True)
                )
                yield _seen(memory, pair, "one by one", age_days, scope, older.id, newer.id, asked=asked)


def bulk(
    pairs: Iterable[Pair], age_days: tuple[int, int], open_memory: OpenMemory, *, asked: Set[Pair] | None
) -> Iterator[Seen]:
    """All statements of many pairs are remembered in one call and compared afterwards; `asked` as one by one."""
    for some in _batches(pairs):
        before, after = _times(age_days)
        olds = [NewRecord(pair.older, scope=f"/{place}", created_at=before) for place, pair in enumerate(some)]
        news = [NewRecord(pair.newer, scope=f"/{place}", created_at=after) for place, pair in enumerate(some)]
        others = [
            NewRecord(f"Stall {stall} of the fair", scope=f"/fair/{stall}") for stall in range(MANY - 2 * len(some))
        ]
        with open_memory() as memory:
            ids = memory.remember_many([*olds, *news, *others])
            memory.store.catch_up()
            for place, pair in enumerate(some):
                older, newer = ids[place], ids[len(some) + place]
                yield _seen(memory, pair, "bulk", age_days, f"/{place}", older, newer, asked=asked)


@dataclass(frozen=True)
class Among:
    """A fact of one subject among all its facts and changes, asked for in three ways."""

    subject: str
    text: str
    listed: bool
    in_plain: bool
    in_relevant: bool


def among_all(grid: Grid, age_days: tuple[int, int], open_memory: OpenMemory) -> Iterator[Among]:
    """Facts that no change of the grid may touch, in a store of all facts and then all changes of their subject."""
    touched = frozenset[str]().union(*(change.changes | change.may_change for change in grid.changes))
    for subject in grid.subjects:
        with open_memory() as memory:
            statements: list[Sequence[Fact | Change]] = [grid.facts, grid.changes]
            for said, time in zip(statements, _times(age_days), strict=True):
                for each in said:
                    memory.remember(subject.fill(each.pattern), created_at=time)
            shown = {record.text for record in memory.list(limit=None)}
            for fact in grid.facts:
                if fact.name not in touched:
                    yield _among(memory, subject, fact, shown)


def _among(memory: Memory, subject: Subject, fact: Fact, shown: set[str]) -> Among:
    text, question = subject.fill(fact.pattern), subject.fill(fact.question)
    plain, relevant = (memory.recall(question, limit=limit, relevant=limit != TOP) for limit in (TOP, 10))
    return Among(
        subject.name, text, text in shown, text in {hit.text for hit in plain}, text in {hit.text for hit in relevant}
    )


# How an agent says again what it was told.
_ECHOES = ("{}", "Noted: {}", "As you told me, {}", "I remember that {}", "To recap: {}")


@dataclass(frozen=True)
class Echoed:
    """Whether a change that the user told comes first after an agent repeated the older statement `times`.

    `in_plain` says whether it is among the first hits of plain recall.
    """

    times: int
    first: bool
    first_of_relevant: bool
    in_plain: bool


def echo_all(pairs: Iterable[Pair], counts: Sequence[int], open_memory: OpenMemory) -> Iterator[Echoed]:
    """The user tells the older statement and its change; then an agent says the older one again, a day apart."""
    now = datetime.now(UTC)
    for some in _batches(pairs):
        with open_memory() as memory:
            for place, pair in enumerate(some):
                scope = f"/{place}"
                for text, days in ((pair.older, 90), (pair.newer, 60)):
                    memory.remember(text, scope=scope, created_at=now - timedelta(days=days))
                for number in range(max(counts) + 1):
                    if number in counts:
                        plain = memory.recall(pair.question, scope=scope, limit=TOP)
                        relevant = memory.recall(pair.question, scope=scope, relevant=True)
                        first, first_of_relevant = (
                            [hit.text for hit in hits[:1]] == [pair.newer] for hits in (plain, relevant)
                        )
                        yield Echoed(number, first, first_of_relevant, pair.newer in {hit.text for hit in plain})
                    text = _ECHOES[number % len(_ECHOES)].format(pair.older)
                    told = now - timedelta(days=59 - number)
                    memory.remember(text, scope=scope, context="assistant", created_at=told)


def _batches(pairs: Iterable[Pair]) -> Iterator[tuple[Pair, ...]]:
    left = iter(pairs)
    while some := tuple(islice(left, _PAIRS_PER_STORE)):
        yield some


def _times(age_days: tuple[int, int]) -> list[datetime]:
    now = datetime.now(UTC)
    return [now - timedelta(days=days) for days in age_days]


def _seen(
    memory: Memory,
    pair: Pair,
    way: Way,
    age_days: tuple[int, int],
    scope: str,
    older: str,
    newer: str,
    *,
    asked: Set[Pair] | None,
) -> Seen:
    reasons = {
        link.type: link.reason or link.type
        for link in memory.neighbors(newer, types=["supersedes", "contradicts"])
        if older in (link.target, link.source)
    }
    listed = pair.older in {record.text for record in memory.list(scope=scope)}
    may_be_hidden = pair.outcome == "both hold" and (bool(reasons) or not listed)
    asks = asked is not None and (may_be_hidden or pair in asked)
    answers = _answers(memory, pair, scope) if asks else None
    return Seen(pair, way, age_days, reasons.get("supersedes"), reasons.get("contradicts"), listed, answers)


def _answers(memory: Memory, pair: Pair, scope: str) -> Answers:
    plain = memory.recall(pair.question, scope=scope, limit=TOP)
    relevant = tuple(hit.text for hit in memory.recall(pair.question, scope=scope, relevant=True))
    hits = {hit.text: hit for hit in reversed(plain)}
    older, newer = hits.get(pair.older), hits.get(pair.newer)
    unmarked = None
    if pair.older not in relevant:
        apart = f"/unmarked{scope}"
        for text in (pair.older, pair.newer):
            memory.remember(text, scope=apart, policy=_ONLY_STORES)
        unmarked = tuple(hit.text for hit in memory.recall(pair.question, scope=apart, relevant=True))
    return Answers(
        tuple(hit.text for hit in plain),
        relevant,
        _names(older, newer),
        _names(newer, older),
        of_relevant_unmarked=unmarked,
    )


def _names(one: Hit | None, other: Hit | None) -> bool:
    """Whether a hit says that the other supersedes, precedes or contradicts it."""
    if one is None or other is None:
        return False
    named = [*one.superseded_by, *one.supersedes, *getattr(one, "contradicts", ())]
    return other.id in {each if isinstance(each, str) else each.id for each in named}
