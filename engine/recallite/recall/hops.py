"""Questions of several steps: facts about what a hit states join the hits.

Of "Where was the author of Dune born?" the first step finds "The author of Dune is Frank Herbert", and nothing in the
question names Frank Herbert. So it is asked again together with the value that a hit states, and what has that value as
its subject joins the hits. Each round brings values of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from recallite.model.records import Hit, Hits
from recallite.recall.request import Request
from recallite.text.questions import several_steps
from recallite.text.statements import statement_of
from recallite.text.words import tokenize

# Hits that give values, hits that each value brings, hits it is looked for among, and the share of the limit that
# stays first.
_SEEDS, _BROUGHT, _LOOKED_AT, _KEPT_SHARE = 4, 2, 12, 0.4

Ask = Callable[[Sequence[str], int], Sequence[Hits]]
"""A function that recalls some queries, with a number of hits each."""


def has_steps(question: str, request: Request) -> bool:
    """Whether a question is followed in steps."""
    whole = not request.one_per_source and request.diversify_by is None and request.token_budget is None
    return request.profile.hops > 0 and whole and several_steps(question)


def follow(question: str, hits: Hits, request: Request, ask: Ask) -> None:
    """Let what further steps find join the hits of a question, after the first of them."""
    known = frozenset(tokenize(question))
    ranked = [hit for hit in hits if "standing" not in hit.match_reasons]
    first = ranked[: max(1, int(_KEPT_SHARE * request.limit))]
    seeds = [hit for hit in ranked if not hit.superseded_by][:_SEEDS]
    brought: dict[str, Hit] = {}
    asked_values: set[frozenset[str]] = set()
    for _ in range(request.profile.hops):
        values = {value: text for seed in seeds for value, text in _values(seed) if not value <= known}
        new = [value for value in values if value not in asked_values]
        asked_values.update(new)
        answers = ask([f"{values[value]}: {question}" for value in new], _LOOKED_AT) if new else []
        seeds = [hit for value, found_hits in zip(new, answers, strict=True) for hit in _about(value, found_hits)]
        brought.update((hit.id, hit) for hit in seeds)
        seeds = seeds[: 2 * _SEEDS]
    for hit in first:
        brought.pop(hit.id, None)
    if not brought:
        return
    joined = [
        structs.replace(
            hit,
            score=first[-1].score,
            match_reasons=(*hit.match_reasons, "step"),
            evidence_gaps=hits.evidence_gaps,
        )
        for hit in brought.values()
    ]
    rest = [hit for hit in ranked[len(first) :] if hit.id not in brought]
    standing = hits[len(ranked) :]
    hits[:] = [*[*first, *joined, *rest][: request.limit - len(standing)], *standing]


def _values(hit: Hit) -> list[tuple[frozenset[str], str]]:
    """The stems and the text of the value that each clause of a hit gives its subject."""
    values = []
    for clause in statement_of(hit.text, hit.context, much=True).clauses[:2]:
        if clause.chunks and not clause.negated:
            words = [word for word in clause.chunks[0][1] if word.stem not in clause.nouns]
            if words:
                values.append((frozenset(word.stem for word in words), " ".join(word.text for word in words)))
    return values


def _about(value: frozenset[str], hits: Hits) -> list[Hit]:
    """The first hits that have a value as the subject of a clause, and hold."""
    about = []
    for hit in hits:
        clauses = statement_of(hit.text, hit.context, much=True).clauses
        if not hit.superseded_by and any(value <= clause.subject for clause in clauses):
            about.append(hit)
    return about[:_BROUGHT]
