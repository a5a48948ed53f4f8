"""What a text is to those who read it later: a standing wish, an instruction to the model, of one time, of one person.

Standing instructions and preferences are what a person wants from now on, not once: "Always format dates as ISO", "call
me Bob", "I prefer tea". A verb that tells how to do something has to follow "always", so that "Always here for you" and
"Never give up!" are neither. Rules for English, which prefer precision to recall.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recallite.text.patterns import lazily, read_tables, word_set
from recallite.text.words import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray


Standing = Literal["instruction", "preference"]
STANDING: tuple[Standing, ...] = ("instruction", "preference")

# Contexts that name who answers, not who asks.
ANSWERING = frozenset(("assistant", "ai", "model", "bot", "chatbot", "system", "tool", "developer", "function"))
# Kinds of records that no person has said.
_OTHER_KINDS = frozenset(("chunk", "episode", "procedure", "session_message"))
# A longer text is a document, of which one sentence may be an instruction to someone else.
MOST_CHARS = 1_000
# What is done in one way or another: what follows "always" in an instruction.
_TABLES = read_tables(__file__)
VERBS = word_set(_TABLES["done"])
_VERB = r"([a-z]+)"
# The start of a sentence, past words that only lead in.
_START = (
    r"(?:\A|[.!?;\n]\s{0,3})"
    r"(?:(?:and|also|but|so|oh|ok|okay|hey|hi|just|btw|by the way|note|reminder)[,:]?\s){0,2}(?:please,?\s)?"
)
_NO_NAME = (
    r"(?!(?:back|later|when|if|at|on|in|tomorrow|tonight|today|now|asap|again|before|after|once|an?|the|any|some|or|and|to"
    r"|crazy|old|maybe|by|this|next|every|with|for|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b)"
)
LANGUAGES = word_set(_TABLES["languages"])
_LANGUAGE = rf"(?:{'|'.join(sorted(LANGUAGES))}|bullet points|plain text|markdown|json|full sentences|one sentence)"
_MODAL = (
    r"(?:please |always |never |just |(?:you )?(?:should|must|will|are to) |make sure to |(?:don['’]t|do not) ){0,3}"
)
_INSTRUCTION = lazily(
    _START
    + "(?:"
    + "|".join(
        (
            rf"(?:always|never(?: ever)?) {_VERB}\b(?! (?:you|up|me wrong|my best)\b)",
            rf"(?:from now on|going forward|from here on|in (?:the )?future|from today on|henceforth)[, ] ?"
            rf"(?:i(?: want|['’]d like) you to )?{_MODAL}{_VERB}\b",
            r"(?:whenever|every time|each time|any time|if|when) i (?:ask|request|want|mention|say|talk)\b"
            rf"[^.!?\n]{{3,120}}, {_MODAL}{_VERB}\b",
            r"(?:do not|don['’]t) (?:ever )?use \w+",
            rf"(?:do not|don['’]t) ever {_VERB}\b",
            r"(?:(?:do not|don['’]t) )?(?:call|phone|ring|text|email|message|contact|wake|disturb) me"
            r" (?:before|after|between|during|on weekends|at (?:work|night|weekends|home))\b",
            rf"(?:you (?:can|may) |just )?call me {_NO_NAME}[a-z][\w'’-]*"
            r"(?: from now on| instead|, (?:and )?not \w+)?\s?(?:\Z|[.,;!\n])",
            r"(?:address|refer to) me (?:as|by|with)\b",
            rf"(?:answer|reply|respond|write|speak|talk)(?: to me)?(?: only)? in {_LANGUAGE}\b",
            r"use (?:the )?(?:metric|imperial|si|iso|british|american|24[- ]hour|12[- ]hour|celsius|fahrenheit)\b",
            r"(?:you (?:should|must)|make sure(?: that)?(?: you| to)?) (?:always|never)"
            rf" {_VERB}\b",
            r"i(?:['’]d)?(?: would)? (?:want|like|need|expect) you to (?:always|never)\b",
            rf"{_VERB} [^.!?;\n]{{1,150}} (?:from (?:now|here|today) on|going forward|henceforth|in (?:the )?future)"
            r"\s?(?:\Z|[.!;\n])",
        )
    )
    + ")",
    re.IGNORECASE,
)
# These are standing only where they are asked for with "please" and tell a manner.
_PLEASE = lazily(
    r"(?i)\bplease (?:(?:do not|don['’]t) (?:ever )?)?(?:avoid|stop"
    r"|use (?:a |an |the )?\w+ (?:format|style|units?|tone|notation)"
    r"|keep (?:it|your|all|answers|replies|responses|things|explanations|messages|summaries)(?: \w+)?"
    r" (?:short|brief|concise|simple|formal|informal))\b"
)
_PREFERENCE = lazily(
    # What a match begins with is looked at before what stands before it.
    r"(?=[im])(?:"
    r"(?<!do )(?<!should )(?<!would )(?<!if )(?<!what )(?<!which )(?<!whether )(?<!why )(?<!think )(?<!said )(?<!did )"
    r"\bi(?:['’]d| would)?(?: (?:really|strongly|generally|usually|always|much|also|still|definitely|personally|tend to"
    r"|typically|mostly|often)){0,2} (?:prefer|['’]?d rather|would rather)\b(?!red\b)"
    r"|\bmy (?:(?:strong|clear|personal|general) )?(?:preference (?:is|for)|preferred \w+(?: \w+)? (?:is|are))\b"
    r"|\bi (?:don['’]t|do not|really don['’]t) like (?:it|being|to be)\b (?:when|\w+ed|called|interrupted)"
    r"|\bi (?:hate|can['’]t stand|dislike) (?:it when|being \w+ed)\b"
    r"|\bi (?:always )?(?:like|take|drink|want) my (?:coffee|tea|steak|eggs|answers|replies|reports|summaries|code"
    r"|meetings) \w+)",
    re.IGNORECASE,
)
# Characters that match an ASCII letter where case is ignored.
_VARIANTS = "\u0130\u0131\u017f\u212a"
# Every text without them that a pattern takes has one of its cues, and one of the words that go with it: most texts are
# told apart by them in a fiftieth of the time.
_INSTRUCTING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("always", ()), ("never", ()), ("future", ()), ("henceforth", ()), ("going forward", ()),
    ("from ", ("from now", "from here", "from today")),
    (" i ", ("when i ", "if i ", "time i ", "whenever i ")),
    ("t ever ", ()),
    (" use ", ("t use ", "ever use ")),
    ("use ", ("metric", "imperial", "si", "iso", "british", "american", "24", "12", "celsius", "fahrenheit")),
    (" me ", (
        "call me ", "phone me ", "ring me ", "text me ", "email me ", "message me ", "contact me ", "wake me ",
        "disturb me ", "address me ", "refer to me ",
    )),
    (" in ", (
        "answer in ", "reply in ", "respond in ", "write in ", "speak in ", "talk in ", "to me in ", "only in ",
    )),
)  # fmt: skip
_PREFERRING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("prefer", ()), ("rather", ()), (" like ", ("t like it", "t like being", "t like to be", "like my ")),
    ("hate ", ()), ("t stand ", ()), ("dislike ", ()), (" my ", ("take my ", "drink my ", "want my ")),
)  # fmt: skip
# If something is quoted, the rest may have a cue that the whole text does not have.
_QUOTES = ('"', "`", ">", "\u201c")
_QUOTED = lazily(r"```.*?(?:```|\Z)|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|^ {0,3}>[^\n]*$", re.DOTALL | re.MULTILINE)
_QUESTION = lazily(r"(?:\A|(?<=[.!?\n]))[^.!?\n]*+\?")
# The end of a sentence or a line. "Dr. Okafor" and "e.g. this" go on, and so does a long line that is continued in
# small letters.
_END = lazily(
    r"(?<!\n\d)(?<![\s.(][A-Z])(?<![\s.(][A-Z][a-z])(?<!\bMrs)(?<!\b[ei]\.[eg])[.!?;]+[\"”')]*(?:\s+|\Z)"
    r"|(?<![^\n]{60})\n\s*|\n\s*(?=[^a-z\s])"
)
_ITEM = lazily(r"\s*(?:[-*+•]|\(?\d{1,2}[.)])\s")
_TITLE = lazily(r"\s*#{1,6}\s|[^\n]*:\W*\Z")
# What begins so limits or explains the sentence before it.
_GOES_ON = lazily(
    r"(?i)\W*(?:(?:and|or) )?(?:except|unless|but|only|exceptions?|the (?:only )?exception|otherwise|however|until"
    r"|though|although|because|it|its|they|this|that|these|those|for (?:example|instance)|e\.g\.|i\.e\.|that is)\b"
)
_BACK = lazily(r"(?i)\W*(?:and |but |so )?(?:then|otherwise|instead|in (?:that|this|such an?) case|if so|if not)\b")
_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")
_PRONOUNS = frozenset(("it", "its", "they", "them", "their", "he", "him", "his", "she", "her", "there", "so"))
_POINTING = frozenset(("this", "that", "these", "those", "such"))
_LEADING = frozenset(("always", "never", "please", "ever", "going", "forward", "henceforth", "future", "today"))
_EVERY_SECOND = np.uint64(0x5555_5555_5555_5555)


def standing_of(kind: str, text: str, context: str | None = None) -> Standing | None:
    """Classify a record as standing instruction or preference, by its kind, its text and who said it (the context).

    What an assistant says, what is quoted, questions, and texts that address the model are none.
    """
    if len(text) > MOST_CHARS or kind in _OTHER_KINDS or (context or "").strip().lower() in ANSWERING:
        return None
    instructing = preferring = asking = True
    unquoted = _QUOTED.sub(" ", text) if any(map(text.__contains__, _QUOTES)) else text
    if text.isascii() or not any(map(text.__contains__, _VARIANTS)):
        lower = unquoted.lower()
        instructing, preferring, asking = _has(lower, _INSTRUCTING), _has(lower, _PREFERRING), "please" in lower
        if not (instructing or preferring or asking):
            return None
    stated = _QUESTION.sub(" ", unquoted) if "?" in unquoted else unquoted
    # The verb of an instruction, if it has one to check, has to tell how to do something.
    instructs = instructing and any(
        match.lastindex is None or match[match.lastindex].lower() in VERBS for match in _INSTRUCTION.finditer(stated)
    )
    if instructs or (asking and _PLEASE.search(stated)):
        return None if addresses_model(text) else "instruction"
    return "preference" if preferring and _PREFERENCE.search(unquoted) else None


def standing_part(text: str) -> str:
    """The sentences of a text that say what its author wants from now on, and others that explain them.

    The rest was asked for once, or is no wish at all: "Set up the tests. Never run the slow ones unasked." What is left
    out between two sentences is shown by an ellipsis.
    """
    bounds, masked = sentence_bounds(text)
    parts = [masked[begin:end] for begin, end in bounds]
    needed = {i for i, part in enumerate(parts) if standing_of("", part.strip()) is not None}
    for i in sorted(needed):
        needed |= _needed_before(parts, i) | _needed_after(parts, i)
    return joined(text, [bounds[i] for i in sorted(needed)]) or text


def sentence_bounds(text: str) -> tuple[list[tuple[int, int]], str]:
    """Where the sentences of a text begin and end, and the text with "x" for what is quoted."""
    masked = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)
    ends = [match.end() for match in _END.finditer(masked)]
    return [(begin, end) for begin, end in pairwise([0, *ends, len(text)]) if text[begin:end].strip()], masked


def joined(text: str, bounds: Sequence[tuple[int, int]]) -> str:
    """Sentences of a text, with an ellipsis for what is left out between two."""
    runs: list[tuple[int, int]] = []
    for begin, end in bounds:
        if runs and runs[-1][1] == begin:
            begin = runs.pop()[0]
        runs.append((begin, end))
    return " … ".join(text[begin:end].strip() for begin, end in runs)


def _needed_before(parts: Sequence[str], i: int) -> set[int]:
    """The sentences before one that it needs: what its pronouns stand for, and the heading that it stands under."""
    needed = set[int]()
    first = i
    while first > 0 and _refers(parts[first], parts[first - 1]):
        first -= 1
        needed.add(first)
    for title in range(first - 1, -1, -1):
        if _TITLE.match(parts[title].rstrip()):
            return needed | {title}
        if not (_ITEM.match(parts[title]) and _ITEM.match(parts[first])):
            break
    return needed


def _needed_after(parts: Sequence[str], i: int) -> set[int]:
    """The sentences after one that belong to it: what limits or explains it, and the items that it announces."""
    last = i
    announces = parts[i].rstrip().endswith(":")
    while last + 1 < len(parts):
        opens = announces and (last == i or _ITEM.match(parts[last + 1]))
        if not opens and (parts[last].count("\n") > 1 or not _GOES_ON.match(parts[last + 1])):
            break
        last += 1
    return {*range(i + 1, last + 1)}


def _refers(part: str, before: str) -> bool:
    """Whether a sentence begins by what was said before, or has a pronoun with nothing in it to stand for."""
    if _BACK.match(part):
        return True
    words, known = _WORD.findall(part.lower()), {*_WORD.findall(before.lower())} - STOP_WORDS
    named, previous = 0, ""
    for word, following in pairwise([*words, ""]):
        if word in _PRONOUNS and named <= 1 and previous != "keep":
            return True
        bare = not following or (word != "that" and following in STOP_WORDS)
        if word in _POINTING and ((named <= 1 and bare) or following in known):
            return True
        named += word not in STOP_WORDS and word not in _LEADING
        previous = word
    return False


def gate_strings() -> dict[str, int]:
    """Return strings in lower case, each with a mark, a power of two, by which `may_be_standing` decides."""
    strings = dict.fromkeys(("please", *_QUOTES, *_VARIANTS), 1)
    pairs = 0
    for cue, words in (*_INSTRUCTING, *_PREFERRING):
        if all(cue.strip() in word for word in words):
            strings |= dict.fromkeys(words or (cue,), 1)
        else:
            strings |= {cue: 2 << 2 * pairs, **dict.fromkeys(words, 4 << 2 * pairs)}
            pairs += 1
    return strings


def may_be_standing(marks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether texts with these marks of `gate_strings`, combined by "or", may be standing; False is certain."""
    firsts = (marks >> np.uint64(1)) & _EVERY_SECOND
    candidates: NDArray[np.bool_] = (marks & np.uint64(1) != 0) | (firsts & (marks >> np.uint64(2)) != 0)
    return candidates


def _has(lower: str, cues: tuple[tuple[str, tuple[str, ...]], ...]) -> bool:
    """Whether a text has one of the cues, and one of the words that go with it."""
    for cue, words in cues:
        if cue in lower:
            if not words:
                return True
            for word in words:
                if word in lower:
                    return True
    return False


# Unwanted text: instructions to a model, and times that have passed. A person decides on what is found.
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
    r"(?i)\b(?:tomorrow|tonight|today|this (?:morning|afternoon|evening|week|weekend|month)|next (?:week|weekend|month"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|later today|in an hour"
    r"|in (?:a few|\d{1,2}) (?:minutes|hours|days)|right now|at the moment)\b"
)


def addresses_model(text: str) -> str | None:
    """Return the words with which a text instructs a model, or None."""
    return next((reason for reason, pattern in _ADDRESSES if pattern.search(text)), None)


def passing_time(text: str) -> str | None:
    """The first expression for a time that soon passes: "next week"."""
    match = _PASSING.search(text)
    return None if match is None else match[0]


# Owner of a record's statement, by its metadata: "I live in Oslo" of two users are two facts.
_OWNERS = word_set(
    "user speaker author agent actor person customer account tenant owner role name project workspace repository repo "
    "environment env device host server"
)
_NAMES = frozenset(name + end for name in _OWNERS for end in ("", "id", "name"))


def whose(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that name the owner of a record, by names without case and underscores: "userId" is "user_id"."""
    named = ((name.replace("_", "").replace("-", "").lower(), value) for name, value in metadata.items())
    return {name: value for name, value in named if name in _NAMES}
