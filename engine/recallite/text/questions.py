"""What a question says: its words, names and times, and what it asks for besides them.

`recognise` has rules for English, which prefer precision to recall. All look first for what they need, once for each
question. What a recall does with it:

| recognised | the recall |
| --- | --- |
| a whole story | searches its topic, over time, with what no longer holds, and cuts nothing |
| the past | shows what no longer holds, and what held at that time first |
| a value that may have changed | puts the newest text that gives it first |
| several steps | asks again with the values that hits give |
| keywords alone | keeps every hit that has all of them, where it leaves out what does not answer |
| times | raise what is told of them |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from math import fsum, log2
from typing import Literal, NamedTuple

from recallite.system.numerics import kernels
from recallite.text.dates.languages import (
    DOTTED_CENTURIES,
    Language,
    Mention,
    fold,
    languages_of,
    terms_of_times,
    time_terms,
)
from recallite.text.dates.periods import Time, ranged, years_before
from recallite.text.patterns import lazily
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, is_foreign, query_terms, share_of, tokenize

# The words of a question.

_NAME = re.compile(r"^\W*[A-Z]|[a-z][A-Z]|[A-Z]{2}|\d")
_INNER = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\d")
CONTENT, NAMED = kernels.CONTENT, kernels.NAMED
# A longer text is not searched for times.
_LONGEST_TIMED = 2_000
_MOST_KEYWORDS, _LONGEST_KEYWORDS = 3, 60


class Question(NamedTuple):
    """The index terms of a question, and its words that count, with the share of texts that contain each and its role.

    `counting` is how many count; 0 if all are stop words, which are in nearly every record. It is `foreign` if it
    is not English.
    """

    terms: list[str]
    words: list[str]
    shares: list[float]
    roles: list[int]
    counting: float
    has_time: bool
    foreign: bool


@lru_cache(maxsize=1024)  # a question is often asked again
def read_question(text: str) -> Question:
    """The words of a question without stop words; all of them where it has only stop words."""
    terms = query_terms(text)
    words = [word for word in terms if word not in STOP_TERMS]
    # Names and numbers: words with a capital letter or a digit, except times. The first word of a sentence and most
    # words of a title have a capital without being names.
    chunks = text.split()
    capital = [chunk for i, chunk in enumerate(chunks) if _NAME.search(chunk) and (i or _INNER.search(chunk))]
    if 2 * len(capital) > len(chunks):
        capital = [chunk for chunk in capital if any(map(str.isdigit, chunk))]
    named = set(tokenize(" ".join(capital))) - STOP_TERMS - time_terms() if capital else set()
    named -= {term for term in named if term.isdigit()}
    roles = [NAMED if word in named else 0 if word in QUESTION_TERMS else CONTENT for word in words or terms]
    may_have_time = not time_terms().isdisjoint(terms) or any(map(text.__contains__, DOTTED_CENTURIES))
    has_time = may_have_time and len(text) <= _LONGEST_TIMED and terms_of_times(text, terms) is not None
    foreign = is_foreign(terms)
    shares = [share_of(word, foreign) for word in words or terms]
    return Question(terms, words or terms, shares, roles, float(len(words)), has_time, foreign)


def is_time_word(term: str) -> bool:
    """Whether an index term is a word of a time, or a number."""
    return term in time_terms() or term.isdigit()


# What a question asks for besides its words.


class Asked(NamedTuple):
    """What is recognised in a question; in most of them nothing is.

    - keywords: it is one to three words that do not ask, each of which counts
    - steps: it describes something by something else, and asks for what holds of it
    """

    story: Story | None
    past: Past | None
    in_past_tense: bool
    value: AskedValue | None
    keywords: bool
    steps: bool


@lru_cache(maxsize=1024)
def recognise(question: str) -> Asked:
    """Recognise what a question asks for."""
    lower = question.lower()
    # Of a text that is not ASCII other characters may be case variants of letters.
    every = not lower.isascii()
    # To look for these words takes 5 microseconds, to match a long alternation 10 to 20.
    story, tensed, presently, asks, number = [every or any(map(lower.__contains__, cues)) for cues in _CUES]
    in_past_tense = tensed and _OVER.search(question) is not None
    past = None if _PAST_WORDS.isdisjoint(lower.replace("?", " ").split()) else _as_past(question, lower, in_past_tense)
    value = None
    if past is None and (presently or (asks and number)):
        value = _asked_value(question, in_past_tense)
    keywords = False
    if len(question) <= _LONGEST_KEYWORDS and not question.rstrip().endswith("?"):
        terms = read_question(question).terms
        keywords = (
            0 < len(terms) <= _MOST_KEYWORDS and STOP_TERMS.isdisjoint(terms) and QUESTION_TERMS.isdisjoint(terms)
        )
    told = None
    if story and len(question) <= _MOST_STORY_CHARS and _STORY.search(question):
        topic = question
        for part in _FRAME:
            topic = part.sub(" ", topic)
        told = Story(_SPACE.sub(" ", topic).strip() or question, bool(_OWN_WORDS.search(question)))
    steps = False
    if " the " in question and len(question) <= _MOST_STEPS_CHARS and _STEPS_QUESTION.match(question):
        described = len(_DESCRIBED.findall(question))
        steps = described > (1 if _ASKED.match(question) else 0) and not _PERSONAL.search(question)
    return Asked(told, past, in_past_tense, value, keywords, steps)


# Questions about how something was: before it changed, at first, before something else. Where these rules err, what no
# longer holds comes before what does.

# A longer text is a request with much besides.
_MOST_PAST_CHARS = 300
_WHOSE = r"\b(?:my|our|your|his|her|its|their|the|\w+['’]s?)"
# What has one value at a time, and another one later: "my old address" is no longer mine, "my old shoes" are.
_STATES = (
    r"(?:\w+ )?(?:address|apartment|bank|boss|car|carrier|city|company|country|dentist|doctor|domain|editor|e-?mail"
    r"|employer|flat|gym|home|house|insurance|insurer|job|landlord|language|limit|location|manager|name|number|office"
    r"|password|phone|place|plan|position|price|provider|rate|rent|role|salary|schedule|school|title|university"
    r"|username|value|version)(?:e?s)?\b"
)
_TALK = r"(?!(?:conversations?|chats?|discussions?|talks?|sessions?|messages?|questions?|answers?|notes?)\b)\w"
_PAST_QUESTION = lazily(
    r"(?i)\?|^\s*(?:(?:and|so|but|then|well),? )?(?:who|whom|whose|what|which|when|where|why|how|did|do|does|was|were"
    r"|had|has|have|is|are|can|could|tell|list|name|show|give|remind|(?:the )?history)\b"
)
_ASKS_OF_NOW = lazily(r"(?i)\b(?:now|currently|current|nowadays|at the moment|these days|right now|still)\b")
_COUNTED = r"(?<!days )(?<!weeks )(?<!months )(?<!years )(?<!hours )(?<!minutes )(?<!long )(?<!day )(?<!week )"
_OVER = lazily(r"(?i)\b(?:did|didn['’]t|was|were|wasn['’]t|weren['’]t|had|hadn['’]t|used to)\b")
# What `_OVER` needs.
_PAST_TENSE = ("did", "was", "were", "had", "used to")


_Which = Literal["former", "first", "before"]


class Past(NamedTuple):
    """The time and thing that a question about the past asks for.

    - which: "former" is what something else has replaced, "first" what held first, "before" what held before
      something
    - named: the words of what it was before
    """

    which: _Which
    named: str = ""


# What questions about the past ask for, phrases of which they have one, their pattern, and whether it takes the past
# tense. It is looked for only where the question has a phrase of it: most questions cost 2 microseconds, not 100.
_FORMS: tuple[tuple[_Which, tuple[str, ...], re.Pattern[str], bool], ...] = (
    ("former", ("use to", "used to"), lazily(
        r"(?i)^(?!.*\b(?:is|are|be|been|being|get|got)\b.*\bused to\b).*"
        r"\bused to (?!(?:it|this|that|the|my|your|being|having)\b)|\bdid (?:\w+ ){1,3}use to\b"
    ), False),
    ("former", ("previously", "formerly", "back then", "the past"),
     lazily(r"(?i)\b(?:previously|formerly|back then|in the past)\b"), False),
    ("former", ("before", "prior to", "until"),
     lazily(r"(?i)\b(?:before|prior to|until) (?:that|this|now|then|today)\b"), False),
    ("former", ("previous", "former", "prior"),
     lazily(rf"(?i){_WHOSE} (?:most recent )?(?:previous|former|prior) {_TALK}"), False),
    ("former", ("old", "earlier", "past"), lazily(rf"(?i){_WHOSE} (?:old|earlier|past) {_STATES}"), False),
    ("former", ("from",),
     lazily(r"(?i)\b(?:switch|chang|mov|migrat|convert)(?:e|ed|ing)? (?:\w+ ){0,3}from\s*\?"), False),
    ("former", ("replace",), lazily(r"(?i)\bwhat (?:did|was|were) (?:\w+ ){1,8}replaced?(?: by| with)? ?\?"), False),
    ("first", ("originally", "initially", "at first", "beginning", "start"),
     lazily(r"(?i)\b(?:originally|initially|at first|(?:in|at) the (?:very )?(?:beginning|start))\b"), True),
    # In the past tense only: an original language is one still.
    ("first", ("original", "initial"), lazily(rf"(?i){_WHOSE} (?:very )?(?:original|initial) {_TALK}"), True),
    ("first", ("first", "earliest"), lazily(rf"(?i){_WHOSE} (?:very )?(?:first|earliest) {_STATES}"), False),
    ("first", ("history of",), lazily(rf"(?i)\bhistory of {_WHOSE} {_STATES}"), False),
    ("before", ("before", "prior to", "until", "till"), lazily(
        rf"(?i)\b{_COUNTED}(?:before|prior to|until|till)(?: (?P<named>[^?.!]{{2,80}})|[ ?.]{{0,3}}$)"
    ), True),
)  # fmt: skip
# Every question that has a phrase has one of these.
_PAST_WORDS = {max(phrase.split(), key=len) for _, phrases, *_ in _FORMS for phrase in phrases} | {"replaced"}


def _as_past(question: str, lower: str, in_past_tense: bool) -> Past | None:
    """A question about the past; None for the present, and for times that it names by a date."""
    if len(question) > _MOST_PAST_CHARS:
        return None
    for which, phrases, pattern, tensed in _FORMS:
        if not any(phrase in lower for phrase in phrases):
            continue
        match = pattern.search(question)
        if match is None or (tensed and not in_past_tense):
            continue
        if _ASKS_OF_NOW.search(question) or not _PAST_QUESTION.search(question):
            return None
        named = match["named"] if which == "before" else None
        return Past("former") if which == "before" and not named else Past(which, (named or "").strip())
    return None


# Questions about a value that may have changed, and how well a text answers one: "How many commits have been merged?"
# and "what is the API quota now?" ask for one value, of which there may be an older one in another text.
_MOST_TEXT_CHARS, _MOST_SENTENCE_CHARS = 4_000, 600
_HOW = "how (?:many|much|often|long|old|big|high|far|fast)"
_QUANTITIES = (
    "number", "count", "amount", "rate", "percentage", "percent", "time", "date", "deadline", "version", "price",
    "cost", "salary", "budget", "score", "coverage", "quota", "limit", "size", "total", "average", "accuracy",
    "temperature", "weight", "length", "duration", "record", "when",
)  # fmt: skip
_NUMBER = lazily(rf"(?i)\b(?:{_HOW}|{'|'.join(_QUANTITIES)})\b")
_ASKS = lazily(rf"(?i)\b(?:{_HOW}|what(?:['’]?s| is| are| was| were)?|when)\b")
_PRESENT = lazily(
    r"(?i)\b(?:currently|current|now|nowadays|these days|at the moment|right now|latest|(?:most )?recent(?:ly)?)\b"
)
# What `_NUMBER`, `_ASKS` and `_PRESENT` need.
_NUMBERS = ("how ", *_QUANTITIES)
_ASKING, _PRESENTLY = ("how ", "what", "when"), ("current", "now", "these days", "at the moment", "latest", "recent")
_WHEN = lazily(r"(?i)\bwhen\b")
_SENTENCES = lazily(r"(?<=[.!?])\s+|\n+")
_VALUE = lazily(
    r"(?i)\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|fourth|fifth|once|twice"
    r"|half|dozen|hundred)\b"
)


class AskedValue(NamedTuple):
    """What a question asks the value of.

    - weights: how rare its words are, by index term, in bits
    - number: whether the value is a number or a time
    """

    weights: dict[str, float]
    number: bool

    def answered_by(self, text: str) -> float:
        """The share of the question's words, rare ones counting more, in the sentence of `text` that has most of them.

        For a number only sentences with one count. Of long texts the beginning is read.
        """
        weights, most = self.weights, 0.0
        for whole in _SENTENCES.split(text[:_MOST_TEXT_CHARS]):
            sentence = whole[:_MOST_SENTENCE_CHARS]
            if not self.number or _VALUE.search(sentence):
                most = max(most, fsum(weights[term] for term in weights.keys() & set(tokenize(sentence))))
        return most / fsum(weights.values())


def _asked_value(question: str, in_past_tense: bool) -> AskedValue | None:
    """What a question that is not about the past asks the value of; None for other questions."""
    number = _NUMBER.search(question) is not None
    present = _PRESENT.search(question) is not None
    if not present and not (number and _ASKS.search(question)):
        return None
    # "How many did I buy?" asks for the last count, "when did I buy it?" for a moment.
    if in_past_tense and (not number or _WHEN.search(question)):
        return None
    terms = set(tokenize(question)) - STOP_TERMS - QUESTION_TERMS
    return AskedValue({term: -log2(share_of(term)) for term in terms}, number) if terms else None


# Questions about a whole story: in what order things happened, how something changed, a summary. Such a question is
# about memories of many times, and most of its words are a frame ("in what order did I bring up"), not its topic.

# A longer text is a request with much besides: it can be split into sub-queries.
_MOST_STORY_CHARS = 600
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
    "(?is)"
    + "|".join(
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
    )
)
# What `_STORY` needs.
_STORIES = (
    "order", "sequence", "chronological", "timeline", "summar", "overview", "recap", "account", "rundown", "outline",
    "me through", "chang", "evolv", "develop", "progress", "unfold", "grow", "shift", "improv", "story", "history",
    "journey", "trac",
)  # fmt: skip
_OWN_WORDS = lazily(
    r"(?i)\b(?:i|i['’]ve)(?: have)?(?: first| ever| already)? "
    r"(?:bring|brought|mention|raise|say|said|ask|talk|tell|told|discuss|describe|share)d?(?:ed)?\b"
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


# Questions of several steps: they describe what they ask about by something that another memory has to tell.

# A longer text is a request with much besides.
_MOST_STEPS_CHARS = 200
_STEPS_QUESTION = lazily(
    r"(?i)^(?:(?:in|on|from|at|to|by|for|of) )?(?:what|which|who|whom|where|when)\b[^.!?]*(?:\.[^.!?]*){0,3}\?$"
)
# "the spouse of Ada", "the sport that Ada plays": one thing, told by another.
_DESCRIBED = lazily(
    r"(?i)\b(?:the|its) (?:[\w/-]+ ){1,3}?"
    r"(?:of (?!my\b|our\b|your\b|his\b|her\b|this\b|these\b|it\b)|who\b|where\b|that\b|which\b|in which\b"
    r"|associated with|connected (?:to|with)|linked to|belonging to|created by|founded by|written by|played by)"
)
# Of "what is the capital of France" the description is what is asked for, not a step.
_ASKED = lazily(r"(?i)^(?:\w+ )?(?:(?:what|who|which)(?: \w+)? (?:is|are|was|were)|where (?:is|are)) the\b")
_PERSONAL = lazily(r"\b(?:I|me|my|mine|we|our|us|you|your)\b")


# What the rules need, in the order in which `recognise` asks for it.
_CUES = (_STORIES, _PAST_TENSE, _PRESENTLY, _ASKING, _NUMBERS)


# The times that a question names, as spans that raise the records in them: "in May", "last week", "since 2019".
# `recallite.text.dates` finds them, in questions as in memories. A question without a year means any year, and what
# happened then may have been told soon after. Days are in UTC.

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
# A day or month without a year is of any year: up to this number of years back, and of the next.
_YEARS_BACK = 10
# What happened on a day, or in a month, is often told within a week.
_TOLD_WITHIN_DAYS = 7
_LONGEST_TOLD_DAYS = 31
_LIMIT_CHARS = 24


class Span(NamedTuple):
    """Microseconds since 1970 UTC, `end` excluded; what is told within `fade` after it counts less and less."""

    begin: int
    end: int
    fade: int


def spans_of(text: str, terms: Sequence[str], clock_us: int) -> tuple[Span, ...]:
    """The times that a text with these index terms names, seen from a moment in microseconds; often none."""
    named = terms_of_times(text, terms) if len(text) <= _LONGEST_TIMED else None
    if named is None:
        return ()
    folded = fold(text)
    languages = languages_of(folded, named) if len(folded) == len(text) else ()
    try:
        today = date.fromordinal(_EPOCH + clock_us // _DAY_US)
        for language in languages:
            times = language.find(folded, named, today, question=True)
            if spans := [span for time in _joined(folded, times, language) for span in _spans(time)]:
                return tuple(dict.fromkeys(spans))
    except (ValueError, OverflowError):  # far from our years
        pass
    return ()


def _joined(folded: str, times_found: list[Mention], language: Language) -> list[Time]:
    """Each time; "from X to Y" and "between X and Y" are one, and "since X" or "before Y" is open at one end."""
    times, skip = [], False
    for one, other in pairwise([*times_found, None]):
        assert one is not None
        if skip:
            skip = False
            continue
        limit = language.context.limit.search(folded, max(0, one.start - _LIMIT_CHARS), one.start)
        word = None if limit is None else limit.lastgroup
        if other is not None and word == "range" and language.context.joint.fullmatch(folded, one.stop, other.start):
            times.append(ranged(one.time, other.time))
            skip = True
        elif word in ("since", "after") and not one.time.recurs:
            begin = one.time.end if word == "after" else one.time.begin
            times.append(Time(begin, date.max))
        elif word in ("before", "until") and not one.time.recurs:
            times.append(Time(date.min, one.time.begin if word == "before" else one.time.end))
        else:
            times.append(one.time)
    return times


def _spans(time: Time) -> Iterator[Span]:
    length = (time.end - time.begin).days
    fade = _TOLD_WITHIN_DAYS * _DAY_US if time.retold and length <= _LONGEST_TOLD_DAYS else 0
    for back in range(-1, _YEARS_BACK + 1) if time.recurs else (0,):
        try:
            begin = time.begin.replace(year=time.begin.year - back)
            end = begin + timedelta(1) if length == 1 else years_before(time.end, back)
        except ValueError:  # 29 February
            continue
        yield Span((begin.toordinal() - _EPOCH) * _DAY_US, (end.toordinal() - _EPOCH) * _DAY_US, fade)


# The time that a question is about. Of the best candidates that state one thing with different values, the one that
# holds leads: "Dana lives in Bergen now" goes directly before "Dana lives in Oslo", whichever is nearer to the
# question, if it is the later one. A question about the past turns that around: what held before, at first, or at the
# time that it names leads. Statements that were marked as superseded when they were written are not shown at all, but
# to such a question they are.

_FIRST_MOMENT, _LAST_MOMENT = -(2**63), 2**63 - 1


class AskedTime(NamedTuple):
    """The time that a question is about: a moment in microseconds, or what is former.

    `before` are index terms of what came after, in a question about what was before something.
    """

    moment: int
    former: bool = False
    before: frozenset[str] = frozenset()


NOW, _FIRST = AskedTime(_LAST_MOMENT), AskedTime(_FIRST_MOMENT)
_FORMER = AskedTime(_LAST_MOMENT, former=True)


@lru_cache(maxsize=64)  # a question about the past is looked at again when it is answered
def asked_time(question: str, clock_us: int) -> AskedTime:
    """The time that a question is about; `NOW` for one that is not recognised as being about the past."""
    asked = recognise(question)
    past = asked.past
    if past is not None and past.which != "before":
        return _FORMER if past.which == "former" else _FIRST
    if past is None and not asked.in_past_tense:
        return NOW
    spans = spans_of(question, read_question(question).terms, clock_us)
    moment = max((span.end for span in spans if span.begin <= clock_us), default=clock_us) - 1
    if spans:
        return AskedTime(moment) if moment < clock_us else NOW
    return NOW if past is None else _FORMER._replace(before=frozenset(tokenize(past.named)) - STOP_TERMS)
