"""Kinds of values that questions ask for, such as a person or a time, and whether a text has one. Rules for English.

A memory on the topic of a question is less likely to answer it if it has no value of the kind asked for: "What is the
user's phone number?" is not answered by "User works at Calder Freight".
"""

from __future__ import annotations

import re
from functools import lru_cache

from recallite.text.lazy_patterns import lazily

SLOTS = {
    "phone": "a phone number", "email": "an email address", "amount": "a number", "duration": "a length of time",
    "time": "a time", "place": "a place", "person": "a person", "reason": "a reason", "name": "a name",
}  # fmt: skip
"""Kinds of values, with the words that an evidence gap has for them."""
_LONGEST = 200  # characters: a longer question asks for several things
_REST = r".{0,200}"
_ASKED = tuple(
    (slot, lazily(pattern, re.IGNORECASE))
    for slot, pattern in (
        ("phone", rf"\bphone number\b|\b(?:what|which)\b{_REST}\bphone\??$|\bnumber can\b{_REST}\b(?:call|reach)"),
        ("email", rf"\b(?:what|which)\b{_REST}\be-?mail(?: address)?\??$"),
        ("duration", r"\bhow long\b(?! ago)|\bhow many (?:years|months|weeks|days|hours|minutes|seconds)\b"),
        (
            "amount",
            r"\bhow (?:many|much|tall|far|big|large|high|fast|heavy|deep|wide|old)\b"
            rf"|\bwhat\b{_REST}\b(?:earn|cost|pay)"
            rf"|\b(?:what|which)\b{_REST}\b(?:age|salary|price|rent|cost|budget|fee|height|weight|pin|number|size|port"
            r"|mileage)\b(?! of\b)",
        ),
        (
            "time",
            r"^(?:since |until |till |by |from )?when\b|\b(?:what|which) (?:time|day|date|month|year|weekday)\b"
            rf"|\bhow long ago\b|\b(?:what|which)\b{_REST}\b(?:birthday|date of birth|deadline|opening hours)\??$",
        ),
        (
            "place",
            r"^(?:and |from |to )?where\b|\b(?:what|which) (?:city|town|country|place|street|room|address|region)\b",
        ),
        ("person", r"^(?:and |with |to |for |by )?(?:who|whom|whose)\b"),
        ("reason", r"^(?:and )?why\b|\b(?:what|which) (?:is |was )?(?:the )?reason\b"),
        ("name", rf"\bwhat\b{_REST}\b(?:names?|called)\b"),
    )
)
_UNITS = r"centur(?:y|ies)|decades?|years?|months?|weeks?|days?|hours?|minutes?|seconds?|nights?"
_TIMES = (
    r"(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?|may"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|today|yesterday|tomorrow|tonight|mornings?"
    r"|evenings?|afternoons?|noon|midnight|spring|summer|autumn|winter|christmas|easter|ago|since|until|till|soon"
    r"|annually|daily|weekly|monthly|nightly|o'clock|[ap]m|birthday|half past|quarter (?:past|to)"
)
_NUMBERS = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|hundreds?|thousands?|millions?|dozen|couple|several|half"
    r"|third|only|none|no|free|pair|twins?|once|twice)\b"
)
_NO_DATE = (
    r"(?!(?:January|February|March|April|May|June|July|August|September|October|November|December|Mon|Tues|Wednes|Thurs"
    r"|Fri|Satur|Sun)(?:days?)?\b)"
)
_PERSONS = rf"(?<=[\w,;:]\s)[\"'(]?{_NO_DATE}[A-Z][a-z][\w'-]*|\b[A-Z][a-z]+ {_NO_DATE}[A-Z][a-z]+"
_NAMES = rf"{_PERSONS}|\b[A-Z]{{2,}}\b|[\w,;:]\s[\"'(]?[A-Z]\w*\d"
_PEOPLE = (
    r"\b(?:mothers?|fathers?|mom|mum|dad|sisters?|brothers?|wife|husband|sons?|daughters?|aunt|uncle|cousins?|nieces?"
    r"|nephews?|grand\w+|gran|friends?|boss|manager|doctor|dr|mr|mrs|ms|neighbou?rs?|colleagues?|team|people|person"
    r"|man|woman|guys?|girls?|boys?|kids?|child(?:ren)?|parents?|family|he|she|they|professor|teacher|boyfriend|girlfriend"
    r"|partner|clients?|customers?|everyone|nobody|no one|someone|nurse|dentist|lawyer|coach|trainer|\w*sitter|vet"
    r"|owner|landlord|landlady|designers?|developers?|engineers?|testers?|accountant|reception|department|company)\b"
)
# A time after the word is no place: "in mid October", "at 9:15", "on Fridays".
_PLACES = (
    rf"\b(?:in|at|on|from|near|via) (?!(?:the )?(?:mid|early|late|middle|end|beginning|next|last|every|average|{_TIMES}"
    rf"|{_UNITS}|moment|time|leave|sale)\b|\d)"
    r"|\b(?:behind|above|under|beside|between|inside|outside|into|home|here|there|to the|street|room|city|lives?"
    r"|address|located)\b|://"
)
# The day of a date is no amount, and neither is a year or the time of a clock.
_DATES = (
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]* \d{1,4}(?:st|nd|rd|th)?\b"
    r"|(?<!\d)\d{1,4}(?:st|nd|rd|th)\b"
    r"|\b\d{1,2}[:.]\d\d\b(?! ?(?:%|[a-z]))|\b(?:1[89]|20)\d\d\b"
)
_REASONS = (
    r"\b(?:because|since|so|due|reason|wants?|wanted|to|for|cause[ds]?|as|thanks|after|afraid|too|hates?|needs?)\b"
)
_HAS = {
    "phone": lazily(r"\+?\d(?:[ ()/.-]?\d){4,}"),
    "email": lazily(r"\S@\S"),
    "amount": lazily(_NUMBERS, re.IGNORECASE),
    "duration": lazily(rf"{_NUMBERS}|\b(?:{_UNITS}|since|until|till|always)\b", re.IGNORECASE),
    "time": lazily(
        rf"\b(?:{_TIMES}|{_UNITS})\b|\b(?:1[89]|20)\d\d\b|\d[:./h-]\d|\d(?:st|nd|rd|th)\b|\b(?:at|by|before|after) \d",
        re.IGNORECASE,
    ),
    "place": lazily(rf"(?i:{_PLACES})|{_NAMES}"),
    "person": lazily(rf"(?i:{_PEOPLE})|{_PERSONS}"),
    "reason": lazily(_REASONS, re.IGNORECASE),
    "name": lazily(_NAMES),
}
_DATED = lazily(_DATES, re.IGNORECASE)
_NAMED = ("person", "name", "place")
_QUESTION = lazily(r"[^.!?]{1,200}\?")


@lru_cache(maxsize=1024)
def slot_of(question: str) -> str | None:
    """The kind of value that a question asks for, a key of `SLOTS`; None for any other."""
    if len(question) > _LONGEST:
        return None
    return next((slot for slot, asks in _ASKED if asks.search(question)), None)


def lacks(slot: str | None, text: str, context: str | None = None) -> bool:
    """Whether a text has no value of a kind; its context may be the person. In small letters any word may be a name."""
    if slot is None or (slot == "person" and context is not None):
        return False
    if slot == "amount":
        text = _DATED.sub(" ", text)
    return _HAS[slot].search(text) is None and not (slot in _NAMED and text.islower())


def only_asks(text: str) -> bool:
    """Whether a text is a question and nothing else."""
    return text.endswith("?") and _QUESTION.fullmatch(text) is not None
