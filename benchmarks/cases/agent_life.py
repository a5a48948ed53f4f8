"""One agent's life on LoCoMo: its conversations replayed turn by turn as episodes. `--data` holds `locomo*.json.gz`.

Each turn is an episode at its own date, and a message of a chat session, which begins with a bootstrap and ends with a
snapshot. Before a turn is logged, the agent recalls five episodes by it; every twentieth turn is pinned. Writes are
linked to similar ones, and ten new episodes start a cycle of consolidation. The conversation's questions are asked at
the end, of the episodes and of a plain store of the same turns.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks import isolated_process
from benchmarks.harness.case import Case, Context, Figures
from benchmarks.quality.locomo import LIMIT, Conversation, read
from benchmarks.quality.metrics import figures_at_k
from recallite import Memory, Settings
from recallite.agents.sessions import Session
from recallite.embedding import Embedder, load
from recallite.model.settings import Consolidation, WritePolicy

__all__ = ["AGENT", "BUDGET_TOKENS", "CASE", "SCOPE"]

AGENT = "ada"
SCOPE = f"/agents/{AGENT}"
BUDGET_TOKENS, _PINNED_EVERY, _RECALLED = 500, 20, 5
# Both stores are asked at one moment after the last session, so that a second process can ask the same.
_ASKED_AT = "2024-06-01T00:00:00+00:00"
LIVES: dict[str, Consolidation] = {
    "nothing pruned": Consolidation(prune_threshold=0.0),
    "pruned": Consolidation(),
    "pruned, recalls not counted": Consolidation(cycles_a_recall=0),
}
# Cycles after which an episode of importance 0.5 that was never recalled is pruned: 0.5 * 0.95^32 < 0.1.
_LIFETIME = 32
_GROUPS = ("pinned", "recalled often", "recalled once or twice", "never recalled")


@contextmanager
def _setup(context: Context) -> Iterator[list[Conversation]]:
    yield list(read(context.need("data")))[: context.records]
    context.model.flush()


def _tables(conversations: list[Conversation], context: Context) -> Iterator[Figures]:
    scores: dict[str, list[dict[str, float]]] = {"plain store": [], **{name: [] for name in LIVES}}
    lives: dict[str, list[dict[str, Any]]] = {name: [] for name in LIVES}
    for done, conversation in enumerate(conversations, 1):
        scores["plain store"] += _plain(conversation, context.model)
        for number, (name, consolidation) in enumerate(LIVES.items()):
            path = context.folder / f"{done}-{number}.db"
            figures, facts = _life(conversation, path, context.model, consolidation)
            scores[name] += figures
            lives[name].append(facts)
        context.log(f"life {done} of {len(conversations)}")
    rows: dict[str, dict[str, Any]] = {
        name: {metric: fmean(one[metric] for one in figures_of_life) for metric in figures_of_life[0]}
        for name, figures_of_life in scores.items()
    }
    rows["plain store"]["episodes kept"] = sum(len(figures_of_life.turns) for figures_of_life in conversations)
    for name, figures_of_life in lives.items():
        rows[name] |= _together(figures_of_life)
    yield Figures(f"{len(scores['plain store'])} questions of LoCoMo", rows)


def _plain(conversation: Conversation, embedder: Embedder) -> list[dict[str, float]]:
    with Memory(":memory:", embedder=embedder) as memory:
        places = {id: place for place, id in enumerate(memory.remember_many(conversation.turns))}
        answers = memory.recall_many(
            [question.text for question in conversation.questions], limit=LIMIT, as_of=_ASKED_AT
        )
        return _figures(conversation, places, [[hit.id for hit in hits] for hits in answers])


def _life(
    conversation: Conversation, path: Path, embedder: Embedder, consolidation: Consolidation
) -> tuple[list[dict[str, float]], dict[str, Any]]:
    settings = Settings(write=WritePolicy(link_cosine=0.85), consolidation=consolidation)
    places: dict[str, int] = {}
    recalled: Counter[str] = Counter()
    boot_tokens: list[int] = []
    tokenizer: Any = load()
    with Memory(path, embedder=embedder, settings=settings) as memory:
        session = None
        for place, turn in enumerate(conversation.turns):
            if session is None or session.id != turn["source"]:
                if session is not None:
                    _end(session)
                boot = memory.bootstrap(AGENT, turn["text"], budget_tokens=BUDGET_TOKENS)
                boot_tokens.append(tokenizer.count_tokens([boot.text])[0])
                session = memory.sessions.open(turn["source"], agent=AGENT, provider="locomo")
            recalled_hits = memory.recall(
                turn["text"], scope=SCOPE, kinds=["episode"], limit=_RECALLED, as_of=turn["created_at"]
            )
            recalled.update(hit.id for hit in recalled_hits)
            fields = {name: turn[name] for name in ("context", "source", "position", "created_at", "valid_from")}
            pinned = place % _PINNED_EVERY == 0
            record = memory.episodes.log(turn["text"], event_type="chat-turn", agent=AGENT, pinned=pinned, **fields)
            places[record.id] = place
            session.append({"role": "user", "name": turn["context"], "content": turn["text"]})
        if session is not None:
            _end(session)
        remaining = {record.id for record in memory.list(scope=SCOPE, kinds=["episode"], limit=None)}
        cycles = len(memory.consolidator.cycles(AGENT, limit=len(places)))
        facts = {"episodes kept": len(remaining), "cycles": cycles, "verified": memory.store.verify().ok}
        facts["links"] = memory.store.stats().links
    questions = [question.text for question in conversation.questions]
    # By the model in both processes: in batches of other texts, its vectors end in other digits.
    answers = _ask(str(path), questions)
    arguments = {"path": path, "questions": questions}
    again = isolated_process.run("benchmarks.cases.agent_life", arguments, limit_s=300)["answers"]
    begun = len(places) - len(places) % 10 - 10 * _LIFETIME
    old = {id: _group(place, recalled[id]) for id, place in places.items() if place < begun}
    facts |= {
        "same in a new process": [[tuple(hit) for hit in hits] for hits in again] == answers,
        "boot_tokens": boot_tokens,
        "logged": Counter(old.values()),
        "kept": Counter(group for id, group in old.items() if id in remaining),
    }
    return _figures(conversation, places, [[id for id, _ in hits] for hits in answers]), facts


def _ask(path: str, questions: list[str]) -> list[list[tuple[str, float]]]:
    """Ids and scores of the first hits of each question among the agent's episodes."""
    with Memory(path) as memory:
        memory.store.warmup()  # before the JIT kernels are loaded others answer, whose float32 sums end in other digits
        answers = memory.recall_many(questions, limit=LIMIT, scope=SCOPE, kinds=["episode"], as_of=_ASKED_AT)
        return [[(hit.id, hit.score) for hit in hits] for hits in answers]


def _end(session: Session) -> None:
    """Leave a snapshot, summed up by how the session began."""
    messages = session.messages()
    session.end(snapshot=True, summary=f"{len(messages)} turns, from: {messages[0]['content'][:100]}")


def _group(place: int, recalls: int) -> str:
    if place % _PINNED_EVERY == 0:
        return "pinned"
    return "never recalled" if not recalls else "recalled often" if recalls > 2 else "recalled once or twice"


def _figures(conversation: Conversation, places: dict[str, int], answers: list[list[str]]) -> list[dict[str, float]]:
    return [
        figures_at_k([places[id] for id in ids], question.gold, LIMIT)
        for question, ids in zip(conversation.questions, answers, strict=True)
    ]


def _together(lives: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over conversations; old episodes are those that have lived through 32 cycles."""
    tokens = [count for life in lives for count in life["boot_tokens"]]
    totals: dict[str, Any] = {name: sum(life[name] for life in lives) for name in ("episodes kept", "links", "cycles")}
    for group in _GROUPS:
        logged, remaining = (sum(life[name][group] for life in lives) for name in ("logged", "kept"))
        totals[f"old, {group}"] = f"{remaining / logged:.0%}" if logged else ""
    totals |= {name: all(life[name] for life in lives) for name in ("verified", "same in a new process")}
    return totals | {"bootstrap tokens": f"{median(tokens):.0f}, at most {max(tokens)}"}


CASE = Case("agent_life", "an agent's months: pruning, links and bootstraps", _setup, _tables, (3,), 1, "conversations")

if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    isolated_process.finish({"answers": _ask(arguments["path"], arguments["questions"])})
