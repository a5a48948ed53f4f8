"""Dates: whether the time that a sentence names becomes the record's valid time.

200 sentences in `phrases.jsonl`, each with the time at which it is said and the intervals that are right, or none (see
the README). Each is remembered with that time as `created_at`. What was resolved is

- "right": begin and end are those of an interval of the table; of parts of a day, hours and minutes, what lies within
  one, as "yesterday evening" may be the day or some hours of it;
- "left alone": nothing was resolved, whether or not there was something;
- "within the grain": both ends are off by less than the phrase's own grain (a day, a week, a month, ...);
- "wrong": off by more, or resolved where nothing is named.

"right or left alone" is the sum of the first two; "named and right" the share of right ones of the sentences that name
a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.result import OpenMemory, Progress
from recallite.model.records import Record

__all__ = ["TABLE", "evaluate", "judged", "read"]

TABLE = Path(__file__).with_name("phrases.jsonl")
RIGHT, LEFT, CLOSE, WRONG = "right", "left alone", "within the grain", "wrong"
GRAINS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "part": timedelta(days=1),
    "day": timedelta(days=1),
    "weekend": timedelta(days=2),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "quarter": timedelta(days=92),
    "season": timedelta(days=92),
    "year": timedelta(days=366),
    "decade": timedelta(days=3653),
}
_INSIDE = ("minute", "hour", "part")


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of each outcome, in all, by language and by grain."""
    phrases = read()
    outcomes: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    grains: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    with open_memory() as memory:
        for done, phrase in enumerate(phrases, 1):
            record = memory.remember(phrase["text"], created_at=phrase["reference"], scope=f"/{phrase['id']}")
            outcome = (phrase["expected"] is not None, judged(phrase, record))
            outcomes[phrase["id"][:2]].append(outcome)
            grains[phrase["grain"] or "nothing to resolve"].append(outcome)
            on_progress(done, len(phrases))
    return {
        "questions": len(phrases),
        "records": len(phrases),
        "figures": {
            "default": _figures([outcome_of_phrase for ones in outcomes.values() for outcome_of_phrase in ones])
        },
        "languages": {language: {"questions": len(ones), **_figures(ones)} for language, ones in outcomes.items()},
        "grains": {grain: {"questions": len(ones), **_figures(ones)} for grain, ones in grains.items()},
        "seconds": {},
    }


def read() -> list[dict[str, Any]]:
    """The phrases of the table."""
    return checkout.table(TABLE)


def judged(phrase: dict[str, Any], record: Record) -> str:
    """Classify the record of a phrase."""
    if record.valid_from is None:
        return LEFT
    begin, end, grain = record.valid_from, record.valid_until, phrase["grain"]
    closest = WRONG
    for wanted in phrase["expected"] or ():
        first, last = (None if bound is None else datetime.fromisoformat(bound) for bound in wanted)
        assert first is not None
        if begin == first and end == last:
            return RIGHT
        if grain in _INSIDE and last is not None and first <= begin < last and (end is None or end <= last):
            return RIGHT
        off = [abs(begin - first)]
        if end is not None and last is not None:
            off.append(abs(end - last))
        open_ended = (end is None) != (last is None) and grain not in _INSIDE
        if max(off) < GRAINS[grain] and not open_ended:
            closest = CLOSE
    return closest


def _figures(outcomes: list[tuple[bool, str]]) -> dict[str, float]:
    counts = Counter(outcome for _, outcome in outcomes)
    named = [outcome for named, outcome in outcomes if named]
    shares = {outcome: round(counts[outcome] / len(outcomes), 4) for outcome in (RIGHT, LEFT, CLOSE, WRONG)}
    return {
        "right or left alone": round((counts[RIGHT] + counts[LEFT]) / len(outcomes), 4),
        "named and right": round(named.count(RIGHT) / max(len(named), 1), 4),
        **shares,
    }
