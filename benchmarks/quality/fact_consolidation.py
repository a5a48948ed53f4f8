"""FactConsolidation: facts that later facts overrule, and which of them answers a question at the end.

A part of MemoryAgentBench, read from a folder or a git repository of DSAIL-Memory/EvoMemBench. Its licence is not
stated: it is measured and nothing of it is stored here. A history is a list of short statements in order of time, 455,
2,310, 4,580 or 18,332 of them; of those with the same subject and relation the last one holds.

The set names no evidence, only answers. A statement is split into subject, relation and object by the frames of the
set's 35 relations. The current fact of a question that needs one is the last statement whose object is the answer and
whose subject the question names. The chain of a question that needs several is the shortest path of facts that hold at
the end from a subject that the question names to the answer; of several, the one whose relations the question shares
the most words with. Questions without such a path are left out and counted.

Each history is a store without anything else. Facts are remembered in order, one minute apart, with nothing but their
text; the questions are asked at the end. "current first" and "current within 5" are the shares of the questions of
single facts whose current fact is the first hit, or among the first five, by its text. "chain within 20" is the share
of the others whose whole chain is among twenty hits, "share of the chain" the mean share. "marked" counts the facts
that were marked as superseded, "current but marked" those of them that hold at the end.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.quality import checkout
from benchmarks.quality.metrics import recall_all_at_k, recall_at_k
from benchmarks.quality.result import OpenMemory, Progress
from benchmarks.quality.ways import WAYS
from recallite import Memory
from recallite.model.records import Hits
from recallite.recall.request import recall_arguments

__all__ = ["SIZES", "Fact", "History", "Question", "evaluate", "read"]

SIZES = {455: "6k", 2310: "32k", 4580: "64k", 18332: "262k"}
"""Names in the set of the histories that are read, by their number of facts."""
_PATH = "In-Episode-Knowledge/INEP-KNOW/MemoryAgentBench/data/Conflict_Resolution.json"
_MOST_HOPS = 4
_WITHIN, _LIMIT = 5, 20
_FIRST_AT = datetime(2024, 1, 1, tzinfo=UTC)
# What stands around subject and object; `origianl` and `univeristy` are spelled as in the set.
_FRAMES = [
    re.compile(f"^{frame}$".replace("S", "(?P<subject>.+?)").replace("O", "(?P<object>.+)"))
    for frame in (
        "The name of the current head of the S government is O",
        "The name of the current head of state in S is O",
        "The headquarters of S is located in the city of O",
        "The univeristy where S was educated is O",
        "The type of music that S plays is O",
        "The company that produced S is O",
        "The (?:author|capital|chairperson|chief executive officer|director|head coach|official language) of S is O",
        "The (?:original language|origianl broadcaster) of S is O",
        "S is associated with the sport of O",
        "S is affiliated with the religion of O",
        "S is (?:a citizen of|married to|employed by|famous for) O",
        "S is located in the continent of O",
        "S was (?:created|founded) in the (?:city|country) of O",
        "S was (?:created|founded|performed|developed) by O",
        "S was written in the language of O",
        "S was born in the city of O",
        "S (?:died|worked) in the city of O",
        "S (?:speaks the language|plays the position) of O",
        "S works in the field of O",
        "S's child is O",
        "The S is O",
        "S is O",
    )
]


class Fact(NamedTuple):
    """One statement: its text, and what it says in parts."""

    text: str
    subject: str
    relation: str
    object: str


class Question(NamedTuple):
    """A question and the texts of the facts that it needs and that hold at the end."""

    text: str
    facts: tuple[str, ...]


class History(NamedTuple):
    """Statements in order, those that hold at the end, questions of one fact, and questions of a chain of facts."""

    statements: list[str]
    holding: frozenset[str]
    single_hop: list[Question]
    multi_hop: list[Question]


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The figures of each history, written and read in each of `WAYS`."""
    figures: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    seconds = dict.fromkeys(["remember", *WAYS], 0.0)
    counts: dict[str, int] = {"questions": 0, "records": 0, "without_chain": 0}
    for done, history in enumerate(read(data)):
        counts["questions"] += len(history.single_hop) + len(history.multi_hop)
        counts["records"] += len(history.statements)
        counts["without_chain"] += len(history.single_hop) - len(history.multi_hop)
        for step, (name, way) in enumerate(WAYS.items(), 1):
            with open_memory() as memory:
                began = perf_counter()
                memory.remember_many(_records(history), policy=way.policy)
                memory.store.catch_up()
                seconds["remember"] += perf_counter() - began
                began = perf_counter()
                scores = _ask(memory, history, way.options)
                seconds[name] += perf_counter() - began
                if name == "default":
                    scores |= _marked(memory, history)
            figures[name] |= {f"{len(history.statements):,} facts: {key}": value for key, value in scores.items()}
            on_progress(done * len(WAYS) + step, len(SIZES) * len(WAYS))
    return {**counts, "figures": figures, "seconds": {key: round(value, 2) for key, value in seconds.items()}}


def _records(history: History) -> list[dict[str, Any]]:
    return [
        {"text": text, "created_at": _FIRST_AT + timedelta(minutes=minute)}
        for minute, text in enumerate(history.statements)
    ]


def _ask(memory: Memory, history: History, options: dict[str, Any]) -> dict[str, float]:
    ranks = [
        [hit.text for hit in hits].index(question.facts[0]) if question.facts[0] in {hit.text for hit in hits} else None
        for question, hits in zip(history.single_hop, _answers(memory, history.single_hop, options), strict=True)
    ]
    chains = [
        ([hit.text for hit in hits], set(question.facts))
        for question, hits in zip(history.multi_hop, _answers(memory, history.multi_hop, options), strict=True)
    ]
    return {
        "current first": fmean(rank == 0 for rank in ranks),
        "current within 5": fmean(rank is not None and rank < _WITHIN for rank in ranks),
        "chain within 20": round(fmean(recall_all_at_k(texts, gold, _LIMIT) for texts, gold in chains), 4),
        "share of the chain": round(fmean(recall_at_k(texts, gold, _LIMIT) for texts, gold in chains), 4),
    }


def _answers(memory: Memory, questions: Sequence[Question], options: dict[str, Any]) -> list[Hits]:
    return memory.recall_many([question.text for question in questions], limit=_LIMIT, **recall_arguments(options))


def _marked(memory: Memory, history: History) -> dict[str, float]:
    shown = {record.text for record in memory.list(limit=None)}
    hidden = [text for text in history.statements if text not in shown]
    return {"marked": len(hidden), "current but marked": len(history.holding.intersection(hidden))}


def read(root: Path) -> Iterator[History]:
    """The histories in order of size."""
    parts = {part["metadata"]["source"]: part for part in json.loads(checkout.read(root, _PATH))}
    for size, name in SIZES.items():
        single, multi = (parts[f"factconsolidation_{hops}_{name}"] for hops in ("sh", "mh"))
        statements = [line.split(". ", 1)[1] for line in single["context"].split("\n") if re.match(r"\d+\. ", line)]
        if len(statements) != size:
            raise ValueError(f"{_PATH}: {name} has {len(statements):,} facts, not {size:,}")
        facts = [_split(statement) for statement in statements]
        holding = _holding(facts)
        yield History(
            statements,
            frozenset(fact.text for facts_of_one in holding.values() for fact in facts_of_one),
            [Question(text, _current(text, answers, facts)) for text, answers in _asked(single)],
            [Question(text, chain) for text, answers in _asked(multi) if (chain := _chain(text, answers, holding))],
        )


def _asked(part: dict[str, list[object]]) -> Iterator[tuple[str, list[str]]]:
    for question, answers in zip(part["questions"], part["answers"], strict=True):
        yield str(question), [answers] if isinstance(answers, str) else list(map(str, answers))  # type: ignore[call-overload]


def _split(statement: str) -> Fact:
    for frame in _FRAMES:
        if match := frame.match(statement.removesuffix(".")):
            relation = (
                statement[: match.start("subject")] + "|" + statement[match.end("subject") : match.start("object")]
            )
            return Fact(statement, match["subject"], relation, match["object"])
    raise ValueError(f"no known relation: {statement!r}")


def _current(question: str, answers: Sequence[str], facts: Sequence[Fact]) -> tuple[str, ...]:
    """The last fact with the answer among those with the longest subject that the question names."""
    stating = [fact for fact in facts if fact.object in answers and fact.subject in question]
    longest = max(len(fact.subject) for fact in stating)
    return ([fact.text for fact in stating if len(fact.subject) == longest][-1],)


def _holding(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """The facts that hold at the end, by subject."""
    last = {(fact.subject, fact.relation): fact for fact in facts}
    by_subject = defaultdict(list)
    for fact in last.values():
        by_subject[fact.subject].append(fact)
    return by_subject


def _chain(question: str, answers: Sequence[str], holding: dict[str, list[Fact]]) -> tuple[str, ...]:
    """The texts of the path from a subject in the question to the answer; () if there is none."""
    named = [subject for subject in holding if subject in question]
    starts = [subject for subject in named if not any(subject != other and subject in other for other in named)]
    words = _words(question)
    paths: list[tuple[Fact, ...]] = [(fact,) for subject in starts for fact in holding[subject]]
    for _ in range(_MOST_HOPS):
        if ending := [path for path in paths if len(path) > 1 and path[-1].object in answers]:
            best = max(ending, key=lambda path: len(words & _words(" ".join(fact.relation for fact in path))))
            return tuple(fact.text for fact in best)
        paths = [(*path, fact) for path in paths for fact in holding.get(path[-1].object, ())]
    return ()


def _words(text: str) -> set[str]:
    return {word[:6] for word in re.findall(r"[a-z]{4,}", text.lower())}
