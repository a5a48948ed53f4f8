"""Unwanted text in memories: instructions to a model, small talk and noise, and times that have passed. For English.

The rules prefer precision to recall; a person decides on what they find.
"""

from __future__ import annotations

import re

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
_ADDRESSES = tuple((reason, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for reason, pattern in _ORDERS.items())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SAID = """
    hi hello hey hiya howdy yo greetings good morning afternoon evening night bye goodbye cheers thanks thank thx ty
    you u welcome please ok okay k kk sure yes yeah yep yup no nope nah alright right cool great nice awesome perfect
    fine got it understood noted done so much very lot a lots the that's thats is sounds there all again everyone
    wonderful excellent hmm hm uh um ah oh wow lol haha absolutely of course no problem worries np later see talk soon
"""
_SMALL_TALK = frozenset(_SAID.split())
_MOST_SMALL_TALK_CHARS = 60
_NOISE = re.compile(
    r"(?:null|none|undefined|nan|true|false|\[\]|\{\}|\"\"|n/a|test|testing|asdf+|lorem ipsum|todo|"
    r"(?:process )?exit(?:ed with)? (?:code|status):? ?-?\d{1,4}|command not found|success|no output|\.{2,80}"
    r"|-{3,80})[.!]?",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:tomorrow|tonight|today|this (?:morning|afternoon|evening|week|weekend|month)|next (?:week|weekend|month"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|later today|in an hour"
    r"|in (?:a few|\d{1,2}) (?:minutes|hours|days)|right now|at the moment)\b",
    re.IGNORECASE,
)


def addresses_model(text: str) -> str | None:
    """How a text instructs a model; None where it does not."""
    return next((reason for reason, pattern in _ADDRESSES if pattern.search(text)), None)


def is_junk(text: str) -> bool:
    """Whether a text is only a greeting, an acknowledgement or tool noise."""
    said = text.strip()
    if len(said) > _MOST_SMALL_TALK_CHARS:
        return False
    if _NOISE.fullmatch(said):
        return True
    words = _WORD.findall(said.lower())
    return not words or all(word in _SMALL_TALK for word in words)


def passing_time(text: str) -> str | None:
    """The first expression for a time that soon passes, such as "next week"."""
    found = _PASSING.search(text)
    return None if found is None else found[0]
