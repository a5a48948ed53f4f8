"""Unwanted text in memories: instructions to a model, and times that have passed. For English. `junk` is small talk.

The rules prefer precision to recall; a person decides on what they find.
"""

from __future__ import annotations

import re

from recallite.text.lazy_patterns import lazily

_TARGET = (
    r"(?:(?:all|any|the|these|those|of) ){0,3}(?:your|my|previous|prior|earlier|above|preceding|system|existing) "
    r"(?:previous |prior |earlier |system |initial ){0,2}"
)
_ORDERS = {
    "tells the reader to drop its instructions": (
        rf"\b(?:ignore|disregard|forget|override|bypass) {_TARGET}(?:instructions?|prompts?|rules|guidelines"
        r"|directives)\b"
    ),
    "gives the reader a role": (
        r"\b(?:you are now|from now on,? you (?:are|will|must)|act as (?:an? )?(?:unrestricted|jailbroken|dan\b)"
        r"|pretend (?:to be|you are) (?:an? )?(?:unrestricted|different|other))"
    ),
    "asks for the system prompt": (
        r"\b(?:reveal|print|show|repeat|output|leak|expose|tell me) (?:\w{1,20} ){0,2}"
        r"(?:system prompt|hidden instructions|initial instructions|developer message)\b"
    ),
    "asks to hide something from the user": (
        r"\b(?:do not|don't|never) (?:tell|inform|show|mention (?:this )?to|alert|notify|warn) (?:the )?user\b"
    ),
    "asks for data to be sent away": (
        r"\b(?:send|post|upload|forward|exfiltrate|email) (?:\w{1,20} ){0,4}(?:api keys?|credentials|passwords?"
        r"|secrets?|tokens?|conversation|chat history|memories) (?:\w{1,20} ){0,3}to\b"
    ),
    "holds markers of a chat template": (
        r"<\|(?:im_start|im_end|system|assistant|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<<SYS>>"
        r"|^ {0,8}#{2,4} ?(?:system|instruction)s?:"
    ),
}
_ADDRESSES = tuple((reason, lazily(pattern, re.IGNORECASE | re.MULTILINE)) for reason, pattern in _ORDERS.items())
_PASSING = lazily(
    r"\b(?:tomorrow|tonight|today|this (?:morning|afternoon|evening|week|weekend|month)|next (?:week|weekend|month"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|later today|in an hour"
    r"|in (?:a few|\d{1,2}) (?:minutes|hours|days)|right now|at the moment)\b",
    re.IGNORECASE,
)


def addresses_model(text: str) -> str | None:
    """Return the words with which a text instructs a model, or None."""
    return next((reason for reason, pattern in _ADDRESSES if pattern.search(text)), None)


def passing_time(text: str) -> str | None:
    """The first expression for a time that soon passes, such as "next week"."""
    match = _PASSING.search(text)
    return None if match is None else match[0]
