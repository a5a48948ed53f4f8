"""Verdicts of the rules on two statements."""

from __future__ import annotations

from typing import Literal, NamedTuple

Outcome = Literal["same", "supersedes", "contradicts", "independent"]


class Verdict(NamedTuple):
    """The relation of a new statement to an older one.

    - "same": it says the same again
    - "supersedes": it replaces all that the older one says
    - "contradicts": both cannot hold, and nothing says which does
    - "independent": both may hold

    `confidence` is the chance, in [0, 1], that the outcome is right; `reason` says in a few words why.
    """

    outcome: Outcome
    confidence: float
    reason: str


class Finding(NamedTuple):
    """The verdict of a rule on two clauses; `cued`: whether a word such as "now" or "moved" tells of a change."""

    outcome: Outcome
    reason: str
    cued: bool
