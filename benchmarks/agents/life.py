"""One agent's life on LoCoMo: its conversations replayed turn by turn as episodes.

Every turn is an episode of one agent at its own date, and a message of a chat session, which ends with a snapshot. Each
session begins with a bootstrap for its first turn. When a turn is said the agent first recalls five episodes by it, as
one that is about to answer does, and then logs it; every twentieth turn is pinned. Writes are linked to what is alike,
and ten new episodes start a cycle of consolidation. The conversation's questions are asked at the end, of the episodes,
beside a plain store of the same turns.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks import isolated_process
from benchmarks.quality.locomo import LIMIT, Conversation, read
from benchmarks.quality.metrics import hit_at_k, recall_at_k, reciprocal_rank
from recallite import Memory, Settings
from recallite.agents.sessions import Session
from recallite.embedding import Embedder, load
from recallite.model.policies import Consolidation, WritePolicy

__all__ = ["AGENT", "ask", "evaluate"]

AGENT = "ada"
SCOPE = f"/agents/{AGENT}"
BUDGET_TOKENS = 500
PINNED_EVERY = 20
RECALLED = 5
# Both stores are asked at one moment after the last session, so that a second process can ask the same.
ASKED_AT = "2024-06-01T00:00:00+00:00"
LIVES: dict[str, Consolidation] = {
    "nothing pruned": Consolidation(prune_threshold=0.0),
    "pruned": Consolidation(),
    "pruned, recalls not counted": Consolidation(cycles_a_recall=0),
}
# Cycles after which an episode of importance 0.5 that was never recalled is pruned: 0.5 * 0.95^32 < 0.1.
_LIFETIME = 32
_GROUPS = ("pinned", "recalled often", "recalled once or twice", "never recalled")


def evaluate(data: Path, embedder: Embedder, on_progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Figures of the plain store and of each life, averaged over all questions of all conversations."""
    conversations = list(read(data))
    asked: dict[str, list[dict[str, float]]] = {"plain": [], **{name: [] for name in LIVES}}
    lives: dict[str, list[dict[str, Any]]] = {name: [] for name in LIVES}
    folder = Path(tempfile.mkdtemp())
    try:
        for done, conversation in enumerate(conversations, 1):
            asked["plain"] += _plain(conversation, embedder)
            for number, (name, consolidation) in enumerate(LIVES.items()):
                path = folder / f"{done}-{number}.db"
                figures, facts = _life(conversation, path, embedder, consolidation)
                asked[name] += figures
                lives[name].append(facts)
            on_progress(done, len(conversations))
    finally:
        shutil.rmtree(folder)
    return {
        "questions": len(asked["plain"]),
        "turns": sum(len(conversation.turns) for conversation in conversations),
        "budget_tokens": BUDGET_TOKENS,
        "figures": {name: {key: fmean(one[key] for one in each) for key in each[0]} for name, each in asked.items()},
        "lives": {name: _together(each) for name, each in lives.items()},
    }


def ask(path: str, questions: list[str], embedder: Embedder | None = None) -> list[list[tuple[str, float]]]:
    """The first hits of each question among the agent's episodes: ids and scores."""
    with Memory(path, embedder=embedder) as memory:
        memory.warmup()  # until the JIT kernels are there others answer, whose float32 sums end in other digits
        answers = memory.recall_many(questions, limit=LIMIT, scope=SCOPE, kinds=["episode"], as_of=ASKED_AT)
        return [[(hit.id, hit.score) for hit in hits] for hits in answers]


def _plain(conversation: Conversation, embedder: Embedder) -> list[dict[str, float]]:
    with Memory(":memory:", embedder=embedder) as memory:
        ids = memory.remember_many(conversation.turns)
        answers = memory.recall_many([each.text for each in conversation.questions], limit=LIMIT, as_of=ASKED_AT)
        return _figures(conversation, {id: place for place, id in enumerate(ids)}, [[h.id for h in a] for a in answers])


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
            found = memory.recall(
                turn["text"], scope=SCOPE, kinds=["episode"], limit=RECALLED, as_of=turn["created_at"]
            )
            recalled.update(hit.id for hit in found)
            record = memory.episodes.log(
                turn["text"], event_type="chat-turn", agent=AGENT, context=turn["context"], source=turn["source"],
                position=turn["position"], created_at=turn["created_at"], event_at=turn["event_at"],
                pinned=place % PINNED_EVERY == 0,
            )  # fmt: skip
            places[record.id] = place
            session.append({"role": "user", "name": turn["context"], "content": turn["text"]})
        _end(session)
        kept = {record.id for record in memory.list(scope=SCOPE, kinds=["episode"], limit=None)}
        cycles = len(memory.consolidator.cycles(AGENT, limit=len(places)))
        clean = memory.verify().ok
    questions = [question.text for question in conversation.questions]
    answers = ask(str(path), questions, embedder)
    arguments = {"path": path, "questions": questions}
    again = isolated_process.run("benchmarks.agents.asking", arguments, limit_s=300)["answers"]
    begun = len(places) - len(places) % 10 - 10 * _LIFETIME
    groups = {id: _group(place, recalled[id]) for id, place in places.items() if place < begun}
    facts = {
        "episodes": len(places), "kept": len(kept), "cycles": cycles, "links": _links(path), "verify_clean": clean,
        "reopened_identical": [[tuple(hit) for hit in hits] for hits in again] == answers,
        "bootstrap_tokens": boot_tokens,
        "logged_by_group": {name: sum(group == name for group in groups.values()) for name in _GROUPS},
        "kept_by_group": {name: sum(groups.get(id) == name for id in kept) for name in _GROUPS},
    }  # fmt: skip
    return _figures(conversation, places, [[id for id, _ in hits] for hits in answers]), facts


def _end(session: Session) -> None:
    """Leave a snapshot, summed up by how the session began."""
    messages = session.messages()
    session.end(snapshot=True, summary=f"{len(messages)} turns, from: {messages[0]['content'][:100]}")


def _group(place: int, recalls: int) -> str:
    if place % PINNED_EVERY == 0:
        return "pinned"
    return "never recalled" if not recalls else "recalled often" if recalls > 2 else "recalled once or twice"


def _links(path: Path) -> int:
    with Memory(path, embedder="none") as memory:
        return memory.stats().links


def _figures(conversation: Conversation, places: dict[str, int], answers: list[list[str]]) -> list[dict[str, float]]:
    figures = []
    for question, ids in zip(conversation.questions, answers, strict=True):
        ranked = [places[id] for id in ids]
        figures.append({
            "recall@20": recall_at_k(ranked, question.gold, LIMIT),
            "hit@20": hit_at_k(ranked, question.gold, LIMIT),
            "MRR": reciprocal_rank(ranked, question.gold),
        })  # fmt: skip
    return figures


def _together(lives: list[dict[str, Any]]) -> dict[str, Any]:
    tokens = [count for life in lives for count in life["bootstrap_tokens"]]
    counts = ("episodes", "kept", "cycles", "links")
    together: dict[str, Any] = {name: sum(life[name] for life in lives) for name in counts}
    for name in ("logged_by_group", "kept_by_group"):
        together[name] = {group: sum(life[name][group] for life in lives) for group in _GROUPS}
    together |= {name: all(life[name] for life in lives) for name in ("verify_clean", "reopened_identical")}
    together |= {"bootstrap_tokens_median": median(tokens), "bootstrap_tokens_max": max(tokens)}
    return together | {"bootstraps": len(tokens)}
