"""Measure options on your own questions: store in one call, ask all questions in one call, count the right hits.

Output:

    default         first 7/7, first three 7/7
    vectors alone   first 7/7, first three 7/7
    keywords alone  first 6/7, first three 6/7
    rank fusion     first 7/7, first three 7/7
"""

from __future__ import annotations

from typing import Any

from recallite import Memory
from recallite.recall.request import recall_arguments

FACTS = [
    "The staging cluster runs MySQL 8.4 in Frankfurt",
    "Production moved from PostgreSQL to MySQL last spring",
    "Ada is on call for the billing service",
    "Bob maintains the exporter and its nightly job",
    "Deploys are frozen from December 20 to January 6",
    "The office plants are watered on Fridays",
    "Invoices are written on the first working day of the month",
    "The design review decided to decouple billing from the web process",
]
# Each question with the index of the fact that answers it.
QUESTIONS = {
    "Where is staging hosted?": 0,
    "Which database did production use before?": 1,
    "Who takes care of billing problems?": 2,
    "Whom do I ask about the nightly export?": 3,
    "When may we not release?": 4,
    "When are invoices sent?": 6,
    "What was decided about the architecture of billing?": 7,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "vectors alone": {"mode": "vector"},
    "keywords alone": {"mode": "keyword"},
    "rank fusion": {"fusion": "rrf"},
}


def main() -> None:
    """Print how many answers are the first hit, and among the first three."""
    with Memory(":memory:") as memory:
        ids = memory.remember_many(FACTS)
        expected = [ids[place] for place in QUESTIONS.values()]
        for name, options in OPTIONS.items():
            results = memory.recall_many(list(QUESTIONS), limit=3, **recall_arguments(options))
            first = sum(hits[:1] != [] and hits[0].id == id for hits, id in zip(results, expected, strict=True))
            three = sum(id in [hit.id for hit in hits] for hits, id in zip(results, expected, strict=True))
            print(f"{name:15} first {first}/{len(expected)}, first three {three}/{len(expected)}")


if __name__ == "__main__":
    main()
