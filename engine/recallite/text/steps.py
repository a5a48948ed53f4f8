"""Questions of several steps: what they ask for is told of something that another memory tells. Rules for English."""

from __future__ import annotations

import re

from recallite.text.lazy_patterns import lazily

# A longer text is a request with much besides.
_MOST_CHARS = 200
_QUESTION = lazily(
    r"^(?:(?:in|on|from|at|to|by|for|of) )?(?:what|which|who|whom|where|when)\b[^.!?]*(?:\.[^.!?]*){0,3}\?$",
    re.IGNORECASE,
)
# "the spouse of Ada", "the sport that Ada plays": one thing, told by another.
_DESCRIBED = lazily(
    r"\b(?:the|its) (?:[\w/-]+ ){1,3}?"
    r"(?:of (?!my\b|our\b|your\b|his\b|her\b|this\b|these\b|it\b)|who\b|where\b|that\b|which\b|in which\b"
    r"|associated with|connected (?:to|with)|linked to|belonging to|created by|founded by|written by|played by)",
    re.IGNORECASE,
)
# Of "what is the capital of France" the description is what is asked for, not a step.
_ASKED = lazily(r"^(?:\w+ )?(?:(?:what|who|which)(?: \w+)? (?:is|are|was|were)|where (?:is|are)) the\b", re.IGNORECASE)
_PERSONAL = lazily(r"\b(?:I|me|my|mine|we|our|us|you|your)\b")


def several_steps(question: str) -> bool:
    """Whether a question describes something by something else, and asks for what holds of it."""
    if len(question) > _MOST_CHARS or " the " not in question or not _QUESTION.match(question):
        return False
    steps = len(_DESCRIBED.findall(question))
    return steps > (1 if _ASKED.match(question) else 0) and not _PERSONAL.search(question)
