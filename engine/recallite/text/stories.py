"""Questions about a whole story: in what order things happened, how something changed, a summary. Rules for English.

Such a question is about memories of many times, and most of its words are a frame ("in what order did I bring up"), not
its topic. The rules prefer precision to recall.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recallite.text.lazy_patterns import lazily, may_match

# A longer text is a request with much besides: it can be split into sub-queries.
_MOST_CHARS = 600
_TALKS = r"(?:all )?(?:of )?(?:my|our|these|the)(?: \w+)? (?:conversations?|chats?|discussions?|sessions?|talks)"
_PERIOD = (
    r"over (?:time|the (?:past|last|course|years|months|weeks|days))|(?:throughout|so far|through the years)\b"
    rf"|(?:across|during|in|over|from|through|based on) {_TALKS}"
    r"|since (?:the (?:start|beginning)|(?:i|we) (?:started|began|met))|from (?:the )?(?:start|beginning) to\b"
    r"|(?:everything|all|advice|topics?) (?:that )?we(?:['’]ve| have) (?:covered|discussed|talked about)"
)
_CHANGED = r"(?:changed|evolved|developed|progressed|unfolded|grown|shifted)"
_ASKER = r"(?:i|we|you|he|she|they|[a-z]+ and i)"
_SUMMARY = r"(?:summari[sz]e|(?:summary|overview|recap|account|rundown|outline) of|recap)"
_STORY = lazily(
    "|".join(
        (
            r"\bin (?:what|which) (?:chronological )?order (?:did|have|had|were|was)\b",
            rf"\b(?:order|sequence) (?:in which|that) {_ASKER}\b",
            rf"\b(?:list|name|tell|give|put|walk|take)\b.{{0,60}}\bin order\b.{{0,20}}\b{_ASKER}\b",
            r"\bin chronological order\b|\bchronologically\b|\b(?:a|the) timeline of\b",
            rf"\b{_SUMMARY}\b.{{0,300}}\b(?:{_PERIOD}|{_CHANGED}\b)",
            rf"\b(?:walk|take) me through\b.{{0,300}}\b(?:{_PERIOD})",
            r"\bhow (?:did|do|does|has|have|had) (?!you\b).{0,120}"
            rf"\b(?:chang|evolv|develop|progress|unfold|grow|shift|improv)\w*\b.{{0,60}}\b(?:{_PERIOD})",
            rf"\bhow (?:has|have)\b.{{0,80}}\b{_CHANGED}\b",
            r"\b(?:the )?(?:whole|entire|full|complete) (?:story|history|journey) of\b",
            r"\b(?:trace|track) (?:how|the (?:evolution|development|progress|history))\b",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
# What `_STORY` needs.
_NEEDED = (
    "order", "sequence", "chronological", "timeline", "summar", "overview", "recap", "account", "rundown", "outline",
    "me through", "chang", "evolv", "develop", "progress", "unfold", "grow", "shift", "improv", "story", "history",
    "journey", "trac",
)  # fmt: skip
_OWN_WORDS = lazily(
    r"\b(?:i|i['’]ve)(?: have)?(?: first| ever| already)? "
    r"(?:bring|brought|mention|raise|say|said|ask|talk|tell|told|discuss|describe|share)d?(?:ed)?\b",
    re.IGNORECASE,
)
# What a question is without its frame is its topic. The parts of the frame, in the order in which they are cut out.
_FRAME = tuple(
    lazily(part, re.IGNORECASE | re.DOTALL)
    for part in (
        r"\bmention(?:ing)? (?:only|just)\b.*$",
        rf"\b(?:throughout|across|during|in|over|from|through|based on) {_TALKS}",
        r"\b(?:can|could|would|will) you (?:please )?|\bplease\b",
        r"\b(?:walk|take) me through\b|\b(?:list|tell me|give me|provide|show me|trace|track)\b",
        r"\b(?:(?:a|an|the|my) )?(?:(?:quick|brief|complete|comprehensive|full|short|detailed|whole|entire) ){0,3}"
        r"(?:summary|overview|recap|account|rundown|outline|story|history|timeline) of\b|\b(?:summari[sz]e|recap)\b",
        rf"\b(?:{_PERIOD})(?: (?:few |\d+ )?(?:days|weeks|months|years))?",
        r"\b(?:in (?:what|which) )?(?:chronological )?order (?:did|have|had|were|was)\b",
        r"\b(?:the )?(?:order|sequence) (?:in which|that)\b|\bin (?:chronological )?order\b|\bchronologically\b",
        r"\bhow (?:did|do|does|has|have|had)\b|\bhow\b|\b(?:i|we)(?:['’](?:ve|d))?\b|\bhave been\b",
        r"\b(?:bring|brought) up\b|\bmention(?:ed)?\b|\btalk(?:ed)? about\b|\bdiscuss(?:ed)?\b",
        r"\bdifferent (?:(?:aspects|ideas|ways|topics|details|things|points|parts) )?(?:of |to |related to |about )?",
        rf"\b(?:has|have|had) {_CHANGED}\b|\b{_CHANGED}\b|\b(?:change|evolve|develop|progress|unfold|shift)\b",
    )
)
_SPACE = lazily(r"[\s?,.:;!]+")


class Story(NamedTuple):
    """The topic of a question about a whole story, and whether it asks for what the asker said."""

    topic: str
    own_words: bool


def as_story(question: str) -> Story | None:
    """The story that a question asks for; None where it asks for one thing."""
    if len(question) > _MOST_CHARS or not may_match(question, _NEEDED) or not _STORY.search(question):
        return None
    topic = question
    for part in _FRAME:
        topic = part.sub(" ", topic)
    topic = _SPACE.sub(" ", topic).strip()
    return Story(topic or question, bool(_OWN_WORDS.search(question)))
