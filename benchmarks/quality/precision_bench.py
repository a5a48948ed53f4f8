"""PrecisionMemBench: whether exactly the beliefs that matter to a question are returned, and nothing if none does.

77 questions and 12 turns of two sessions over 35 beliefs (tenurehq/precisionmembench, MIT), from a folder or a git
repository of the set. This is a port of its harness for external systems: pinned beliefs, open questions, the persona
and the participants of relations are the harness's own, and the system gets at most 20 hits into what remains of the
budget. A case passes if all that it expects holds. A pass is active if anything expected was retrieved.

`ADAPTERS` are what is stored. "wire" stores what the harness sends over HTTP: one text, the user, the first scope and
the aliases. "typed" stores what the beliefs say besides: the name as context, which are questions, what superseded them
and when they were resolved, by which the set's own baseline of vectors filters. Both are asked plainly and for what is
relevant (`relevant=True`); nothing else is set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.quality import checkout
from benchmarks.quality.result import OpenMemory, Progress
from recallite import Memory

__all__ = ["ADAPTERS", "evaluate"]

ADAPTERS = {
    "wire, plain": (False, False), "wire, relevant": (False, True),
    "typed, plain": (True, False), "typed, relevant": (True, True),
}  # fmt: skip
"""Whether what the beliefs say besides their text is stored, and the value of `relevant`."""
_USER = "test-user"
_BUDGET = {"maxBeliefs": 20, "maxQuestions": 15}
_STRUCTURAL = {
    "Scope disambiguation", "Supersession chain exclusion", "Type routing and open questions", "Ranking stability",
    "Budget eviction and capacity", "Cross-user isolation", "Persona prelude content",
}  # fmt: skip
_HARNESS = "src/retrieval.external.eval.test.ts"
Belief = dict[str, Any]


class _Context(NamedTuple):
    """Ids of the beliefs that the harness puts together for a question, best first."""

    pinned: list[str]
    relevant: list[str]
    questions: list[str]
    persona: str


class _Outcome(NamedTuple):
    case: str
    category: str
    failures: list[str]
    precision: float | None
    recall: float | None

    @property
    def is_active(self) -> bool:
        return not self.failures and bool(self.precision)


class _Harness:
    """The beliefs, in the harness and in a store."""

    def __init__(self, memory: Memory, beliefs: list[Belief], persona: str, *, typed: bool, relevant: bool) -> None:
        self._memory, self._persona, self._typed, self._relevant = memory, persona, typed, relevant
        self._beliefs: dict[str, Belief] = {}
        self.always = {belief["_id"] for belief in beliefs if belief["pinned"] and belief["user_id"] == _USER}
        for belief in beliefs:
            self.store(belief)
        for belief in beliefs:
            if typed and belief["superseded_by"]:
                self._handle(belief["user_id"]).supersede(belief["_id"], belief["superseded_by"])

    def store(self, belief: Belief) -> None:
        """Store a belief, or what it says now."""
        self._beliefs[belief["_id"]] = belief
        parts = (belief["canonical_name"], *belief["aliases"], belief["content"], belief["why_it_matters"])
        fields: dict[str, Any] = {"tags": belief["aliases"]}
        if self._typed:
            fields |= {
                "context": belief["canonical_name"].replace("_", " "), "expires_at": belief["resolved_at"],
                "kind": "question" if belief["type"] == "open_question" else "memory",
            }  # fmt: skip
        self._handle(belief["user_id"]).remember(
            " ".join(filter(None, parts)), id=belief["_id"], scope=f"/{belief['scope'][0]}",
            created_at=belief["created_at"], on_existing="replace", **fields,
        )  # fmt: skip

    def add_aliases(self, id: str, aliases: list[str]) -> None:
        """Give a belief more aliases."""
        belief = self._beliefs[id]
        self.store({**belief, "aliases": list(dict.fromkeys([*belief["aliases"], *map(str.lower, aliases)]))})

    def context(self, user: str, scopes: list[str], question: str, budget: dict[str, int]) -> _Context:
        """Put together the beliefs that are shown for a question."""
        budget = {**_BUDGET, **budget}
        visible = [
            belief
            for belief in self._beliefs.values()
            if belief["pinned"] and not belief["resolved_at"] and self._is_within(belief, user, scopes)
        ]
        questions = [belief["_id"] for belief in visible if belief["type"] == "open_question"]
        pinned = [
            belief["_id"] for belief in visible if belief["type"] != "open_question" and not belief["superseded_by"]
        ]
        most, relevant = budget["maxBeliefs"], []
        if question.strip() and most > 0:
            kinds = "memory" if self._typed else None
            hits = self._handle(user).recall(
                question, limit=most, scope=f"/{scopes[0]}", kinds=kinds, relevant=self._relevant
            )
            relevant = [hit.id for hit in hits if hit.id not in pinned]
        relevant += self._participants(user, scopes, relevant, {*pinned, *relevant})
        persona = self._persona if user == _USER else ""
        return _Context(
            pinned[:most], relevant[: max(0, most - len(pinned[:most]))], questions[: budget["maxQuestions"]], persona
        )

    def _participants(self, user: str, scopes: list[str], relevant: list[str], without: set[str]) -> list[str]:
        participants = [id for hit in relevant for id in self._beliefs[hit].get("participants", ())]
        return [id for id in participants if id not in without and self._is_within(self._beliefs[id], user, scopes)]

    def _is_within(self, belief: Belief, user: str, scopes: list[str]) -> bool:
        return belief["user_id"] == user and bool(set(belief["scope"]) & set(scopes))

    def _handle(self, user: str) -> Memory:
        return self._memory.scoped(f"/{user}")


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The passes of each adapter in the questions and in the turns of sessions, precision and recall."""
    beliefs, cases, sessions = (
        json.loads(checkout.read(data, f"fixtures/{name}.json"))
        for name in ("beliefs.seed", "retrieval.cases", "session-retrieval.cases")
    )
    persona = re.search(r'universal:\s*"([^"]+)"', checkout.read(data, _HARNESS))
    figures: dict[str, dict[str, float]] = {}
    failed: dict[str, list[str]] = {}
    for done, (name, (typed, relevant)) in enumerate(ADAPTERS.items(), 1):
        outcomes = []
        for part in (cases, *(session["turns"] for session in sessions)):
            with open_memory() as memory:
                harness = _Harness(memory, beliefs, persona[1] if persona else "", typed=typed, relevant=relevant)
                outcomes.append(list(_outcomes(harness, part)))
        figures[name] = _figures(outcomes[0], [outcome for turns in outcomes[1:] for outcome in turns])
        failed[name] = [outcome.case for part in outcomes for outcome in part if outcome.failures]
        on_progress(done, len(ADAPTERS))
    turns = sum(len(session["turns"]) for session in sessions)
    return {
        "questions": len(cases) + turns,
        "records": len(beliefs),
        "figures": figures,
        "failed": failed,
        "seconds": {},
    }


def _outcomes(harness: _Harness, cases: list[dict[str, Any]]) -> Iterator[_Outcome]:
    for case in cases:
        is_turn = "turnIndex" in case
        question = case["userMessage" if is_turn else "query"]
        context = harness.context(case.get("userId", _USER), case["scope"], question, case.get("budget", {}))
        yield _outcome(case, context, harness.always, is_turn=is_turn)
        if created := case.get("createBeliefAtTurn"):
            harness.store(created)
        if updated := case.get("updateBeliefAtTurn"):
            harness.add_aliases(updated["beliefId"], updated.get("addAliases", []))


def _outcome(case: dict[str, Any], context: _Context, always: set[str], *, is_turn: bool) -> _Outcome:
    expected = case["expect"].get("relevantBeliefs", {})
    only, relevant, pinned = expected.get("shouldOnlyInclude"), set(context.relevant), set(context.pinned)
    if is_turn:
        gold = set(only or expected.get("mustInclude", ()))
        right = len(gold & (relevant | pinned))
        precision = right / len(relevant) if relevant else None
    else:
        gold = set(expected.get("mustInclude", ())) - always if only is None else set(only)
        right = len(gold & relevant)
        precision = right / len(relevant) if relevant else 0.0 if gold else None
    recall = right / len(gold) if gold else None
    name = f"turn {case['turnIndex']}" if is_turn else case["caseId"]
    return _Outcome(name, case.get("category", ""), list(_failures(case["expect"], context)), precision, recall)


def _failures(expect: dict[str, Any], context: _Context) -> Iterator[str]:
    beliefs, relevant = expect.get("relevantBeliefs", {}), context.relevant
    only = beliefs.get("shouldOnlyInclude")
    noise = expect.get("noiseCheck", {}).get("mustNotSurface", ())
    shown = {*context.pinned, *relevant}
    yield from (f"unexpected {id}" for id in relevant if only is not None and id not in only)
    yield from (f"missing {id}" for id in only or () if id not in relevant)
    wanted = (*beliefs.get("mustInclude", ()), *beliefs.get("shouldInclude", ()))
    yield from (f"missing {id}" for id in wanted if id not in shown)
    yield from (f"forbidden {id}" for id in (*beliefs.get("mustExclude", ()), *noise) if id in shown)
    if not beliefs.get("minCount", 0) <= len(relevant) <= (beliefs.get("maxCount") or len(relevant)):
        yield f"{len(relevant)} beliefs"
    for before, after in beliefs.get("orderedBefore", ()):
        if not ({before, after} <= set(relevant) and relevant.index(before) < relevant.index(after)):
            yield f"{before} not before {after}"
    for part, ids in (("pinnedFacts", context.pinned), ("openQuestions", context.questions)):
        yield from (f"missing {part} {id}" for id in expect.get(part, {}).get("mustInclude", ()) if id not in ids)
        yield from (f"forbidden {part} {id}" for id in expect.get(part, {}).get("mustExclude", ()) if id in ids)
    persona = expect.get("personaPrelude", {})
    texts = [text for text in persona.get("contains", ()) if text not in context.persona]
    texts += [text for text in persona.get("mustNotContain", ()) if text in context.persona]
    if texts or (persona.get("nonEmpty") and not context.persona) or (persona.get("isNull") and context.persona):
        yield "persona"


def _figures(questions: list[_Outcome], turns: list[_Outcome]) -> dict[str, float]:
    passed = [outcome for outcome in questions if not outcome.failures]
    structural = [one for one in passed if not one.is_active and one.category in _STRUCTURAL]
    active = sum(outcome.is_active for outcome in passed)
    return {
        "passes": len(passed),
        "active passes": active,
        "structural passes": len(structural),
        "empty passes": len(passed) - active - len(structural),
        "precision": _mean([outcome.precision for outcome in questions]),
        "recall": _mean([outcome.recall for outcome in questions]),
        "turns": sum(not outcome.failures for outcome in turns),
        "turn precision": _mean([outcome.precision for outcome in turns]),
    }


def _mean(values: list[float | None]) -> float:
    return round(fmean(value for value in values if value is not None), 4)
