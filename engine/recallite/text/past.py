"""Questions about how something was: before it changed, at first, before something else. Rules for English.

The rules prefer precision to recall: where they err, what no longer holds comes before what does.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from recallite.text.lazy_patterns import lazily, may_match

# A longer text is a request with much besides.
_MOST_CHARS = 300
_WHOSE = r"\b(?:my|our|your|his|her|its|their|the|\w+['’]s?)"
# What has one value at a time, and another one later: "my old address" is no longer mine, "my old shoes" are.
_STATES = (
    r"(?:\w+ )?(?:address|apartment|bank|boss|car|carrier|city|company|country|dentist|doctor|domain|editor|e-?mail"
    r"|employer|flat|gym|home|house|insurance|insurer|job|landlord|language|limit|location|manager|name|number|office"
    r"|password|phone|place|plan|position|price|provider|rate|rent|role|salary|schedule|school|title|university"
    r"|username|value|version)(?:e?s)?\b"
)
_TALK = r"(?!(?:conversations?|chats?|discussions?|talks?|sessions?|messages?|questions?|answers?|notes?)\b)\w"
_QUESTION = lazily(
    r"\?|^\s*(?:(?:and|so|but|then|well),? )?(?:who|whom|whose|what|which|when|where|why|how|did|do|does|was|were|had"
    r"|has|have|is|are|can|could|tell|list|name|show|give|remind|(?:the )?history)\b",
    re.IGNORECASE,
)
_PRESENT = lazily(r"\b(?:now|currently|current|nowadays|at the moment|these days|right now|still)\b", re.IGNORECASE)
_COUNTED = r"(?<!days )(?<!weeks )(?<!months )(?<!years )(?<!hours )(?<!minutes )(?<!long )(?<!day )(?<!week )"
_OVER = lazily(r"\b(?:did|didn['’]t|was|were|wasn['’]t|weren['’]t|had|hadn['’]t|used to)\b", re.IGNORECASE)
# What `_OVER` needs.
_PAST_TENSE = ("did", "was", "were", "had", "used to")


class Past(NamedTuple):
    """The time and thing that a question about the past asks for.

    - which: "former" is what something else has replaced, "first" what held first, "before" what held before
      something
    - named: the words of what it was before
    """

    which: Literal["former", "first", "before"]
    named: str = ""


class _Form(NamedTuple):
    """A pattern of questions, phrases of which they have one, what they ask for, and whether in the past tense only."""

    phrases: tuple[str, ...]
    pattern: re.Pattern[str]
    which: Literal["former", "first", "before"]
    tensed: bool = False


# A pattern is looked for only where the question has a phrase of it: most questions cost 2 microseconds, not 100.
_FORMS = (
    _Form(
        ("use to", "used to"),
        lazily(
            r"^(?!.*\b(?:is|are|be|been|being|get|got)\b.*\bused to\b).*"
            r"\bused to (?!(?:it|this|that|the|my|your|being|having)\b)"
            r"|\bdid (?:\w+ ){1,3}use to\b",
            re.IGNORECASE,
        ),
        "former",
    ),
    _Form(
        ("previously", "formerly", "back then", "the past"),
        lazily(r"\b(?:previously|formerly|back then|in the past)\b", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("before", "prior to", "until"),
        lazily(r"\b(?:before|prior to|until) (?:that|this|now|then|today)\b", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("previous", "former", "prior"),
        lazily(rf"{_WHOSE} (?:most recent )?(?:previous|former|prior) {_TALK}", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("old", "earlier", "past"),
        lazily(rf"{_WHOSE} (?:old|earlier|past) {_STATES}", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("from",),
        lazily(r"\b(?:switch|chang|mov|migrat|convert)(?:e|ed|ing)? (?:\w+ ){0,3}from\s*\?", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("replace",),
        lazily(r"\bwhat (?:did|was|were) (?:\w+ ){1,8}replaced?(?: by| with)? ?\?", re.IGNORECASE),
        "former",
    ),
    _Form(
        ("originally", "initially", "at first", "beginning", "start"),
        lazily(r"\b(?:originally|initially|at first|(?:in|at) the (?:very )?(?:beginning|start))\b", re.IGNORECASE),
        "first",
        True,
    ),
    _Form(
        ("original", "initial"),
        lazily(rf"{_WHOSE} (?:very )?(?:original|initial) {_TALK}", re.IGNORECASE),
        "first",
        True,  # an original language is one still
    ),
    _Form(
        ("first", "earliest"),
        lazily(rf"{_WHOSE} (?:very )?(?:first|earliest) {_STATES}", re.IGNORECASE),
        "first",
    ),
    _Form(("history of",), lazily(rf"\bhistory of {_WHOSE} {_STATES}", re.IGNORECASE), "first"),
    _Form(
        ("before", "prior to", "until", "till"),
        lazily(
            rf"\b{_COUNTED}(?:before|prior to|until|till)(?: (?P<named>[^?.!]{{2,80}})|[ ?.]{{0,3}}$)", re.IGNORECASE
        ),
        "before",
        True,
    ),
)
_WORDS = frozenset(
    """
    use used previously formerly back past before prior until till previous former old earlier from replace replaced
    originally initially first beginning start original initial earliest history
    """.split()  # noqa: SIM905
)


def as_past(question: str) -> Past | None:
    """Recognise a question about the past; None for the present, and for times that it names by a date."""
    lower = question.lower()
    if len(question) > _MOST_CHARS or _WORDS.isdisjoint(lower.replace("?", " ").split()):
        return None
    for phrases, pattern, which, tensed in _FORMS:
        if not any(phrase in lower for phrase in phrases):
            continue
        match = pattern.search(question)
        if match is None or (tensed and not in_past_tense(question)):
            continue
        if _PRESENT.search(question) or not _QUESTION.search(question):
            return None
        named = match["named"] if which == "before" else None
        return Past("former") if which == "before" and not named else Past(which, (named or "").strip())
    return None


def in_past_tense(question: str) -> bool:
    """Whether a question has an auxiliary verb in the past tense."""
    return may_match(question, _PAST_TENSE) and _OVER.search(question) is not None
