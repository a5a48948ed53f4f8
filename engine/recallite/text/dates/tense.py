"""The tense of a sentence as far as its verbs tell: past, future, or open.

`PatternCues` looks for patterns of verbs, `VerbCues` reads an English sentence word by word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from recallite.text.lazy_patterns import lazily

PAST, OPEN, FUTURE = -1, 0, 1
_WORD = lazily(r"let's\b|[a-z]+n't\b|'(?:ll|re|ve|m|s|d)\b|[a-z]+")
# A participle belongs to an auxiliary up to this many words before it.
_REACH = 4
_FUTURE_PREDICATES = ("due", "scheduled", "planned", "booked", "on", "in", "set")


class Cue(NamedTuple):
    """A word in a sentence that tells its tense: PAST, FUTURE, or OPEN if it may be either."""

    start: int
    tense: int


class PatternCues:
    """The cues that three patterns find in a sentence as it is written; of one place the last pattern counts."""

    def __init__(self, *, past: str, ahead: str, open: str) -> None:
        self._patterns = (lazily(ahead), FUTURE), (lazily(past), PAST), (lazily(open), OPEN)

    def __call__(self, sentence: str) -> list[Cue]:
        """The cues in a sentence, in order."""
        tenses = {match.start(): tense for pattern, tense in self._patterns for match in pattern.finditer(sentence)}
        return [Cue(start, tense) for start, tense in sorted(tenses.items())]


@dataclass(frozen=True, kw_only=True)
class VerbCues:
    """The cues that lists of English verbs find.

    - scheduled: future after a plural subject, "we leave on Monday"
    - imperative: future at the beginning of a sentence
    - planning: past verbs after which a time may be that of the plan, if a word of `before_plan` follows
    - not_past: words that end in "ed" and are no verbs in the past
    - adverbs: words between an auxiliary and its participle
    """

    future: frozenset[str]
    open: frozenset[str]
    present: frozenset[str]
    past: frozenset[str]
    planning: frozenset[str]
    before_plan: frozenset[str]
    not_past: frozenset[str]
    imperative: frozenset[str]
    scheduled: frozenset[str]
    subjects: frozenset[str]
    adverbs: frozenset[str]
    participles: frozenset[str]
    have: frozenset[str]
    past_auxiliaries: frozenset[str]

    @cached_property
    def _telling(self) -> frozenset[str]:
        lists = self.have, self.future, self.open, self.present, self.scheduled, self.imperative, self.past, ("see",)
        return frozenset().union(*lists)

    def __call__(self, sentence: str) -> list[Cue]:
        """The cues in a sentence, in order."""
        matches = [*_WORD.finditer(sentence.lower().replace("\u2019", "'"))]
        words = [match[0] for match in matches]
        cues: list[Cue] = []
        governed = 0
        for place, word in enumerate(words):
            if word not in self._telling and not word.endswith("ed"):
                continue
            reading = self._read(words, place, governed=place < governed)
            if reading is not None:
                tense, reach = reading
                governed = place + reach
                cues.append(Cue(matches[place].start(), tense))
        return cues

    def _read(self, words: list[str], place: int, *, governed: bool) -> tuple[int, int] | None:
        """Return the tense that a word tells, and how many words it governs; None if it tells nothing."""
        word = words[place]
        following = next((word for word in words[place + 1 : place + 4] if word not in self.adverbs), "")
        if word in self.have:
            if following == "to":
                return FUTURE, _REACH
            return (PAST, _REACH) if self._is_past(following) or following in self.participles else None
        if word in self.future:
            return FUTURE, _REACH
        if word in self.open:
            return OPEN, _REACH
        if word in self.present:
            return None if governed else (self._tense_of_present(word, following), _REACH)
        if word in self.scheduled and place and words[place - 1] in self.subjects:
            return FUTURE, _REACH
        if (not place and word in self.imperative) or (word == "see" and following == "you"):
            return FUTURE, 1
        if governed or not self._is_past(word):
            return None
        later = words[place + 1 : place + 6]
        if word in self.past_auxiliaries:
            planned = following in self.planning or (following == "going" and "to" in later)
            return OPEN if planned else PAST, _REACH
        return OPEN if word in self.planning and not self.before_plan.isdisjoint(later) else PAST, 1

    def _is_past(self, word: str) -> bool:
        if word in self.past:
            return True
        return len(word) > 3 and word.endswith("ed") and word not in self.not_past and word[-3] != "e"

    def _tense_of_present(self, word: str, following: str) -> int:
        """Return FUTURE for "is leaving", "is due", "is on Friday"; "is closed" may be of any time."""
        if following.endswith("ing") or following in _FUTURE_PREDICATES:
            return FUTURE
        return PAST if word == "'s" and self._is_past(following) else OPEN
