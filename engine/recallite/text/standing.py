"""What a text is to those who read it later: a standing wish, an instruction to the model, of one time, of one person.

Standing instructions and preferences are what a person wants from now on, not once: "Always format dates as ISO", "call
me Bob", "I prefer tea". A logistic regression on n-grams of characters tells the sentences that are, in the languages
that it was trained on (`benchmarks/training/standing.py`), and prefers precision to recall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, filterfalse, groupby, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct

from recallite.system.numerics import kernels
from recallite.text.patterns import lazily, word_set
from recallite.text.questions import recognise
from recallite.text.words import QUESTION_TERMS, STOP_WORDS, normalized, rarity_of, tokenize

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
# Prompts that ask, and so are no request.
_ASKS = lazily(
    r"^(?:wh(?:o|om|ose|at|ich|en|ere|y)|how|do|does|did|is|are|am|was|were|has|have|had|can|could|will|would|should)\b",
    re.IGNORECASE,
)
_QUESTION_MARKS = ("?", "？", "؟", ";", "፧")
_TELLS = lazily(r"\b(?:tell|remind) (?:me|us)\b", re.IGNORECASE)
# "Can you book a table?" has the form of a question and asks for what follows; "Can you check who called?" asks.
_POLITE = lazily(
    r"^(?:can|could|would) you\b(?: please)?(?!.*\b(?:wh(?:o|om|ose|at|ich|en|ere|y|ether)|how|if)\b)", re.IGNORECASE
)
# Words alone are searched for, unless they plainly ask for something. With the same chance for both 18 % of 497 runs of
# words of LoCoMo's questions and 24 % of 500 headings were requests, with this one 6 and 17 %.
_LEAST_REQUEST, _LEAST_REQUEST_OF_KEYWORDS = 0.5, 0.8
# Words that are no rarer stand between others, in any language. Other scripts were not measured.
_LEAST_RARITY = 0.4
_ASKING = frozenset(term for term in QUESTION_TERMS if not term.isascii())
# What is quoted is read as so many of this character, and so is a path, a name of a file or another word of code.
_MASK = "\x04"
_MASKS = lazily(f"{_MASK}+")
_ASCII = lazily(r"[!-~]{3,}")
# What begins with a set of characters is searched for several times faster: what is before them is looked at after.
_CODE = lazily(
    r"[-./\\_=:(~$@](?:(?<=\w\.)[A-Za-z]{2}|(?<=[A-Za-z][/\\_=])\w|(?<=[A-Za-z]:):\w|(?<=[A-Za-z]-)>\w"
    r"|(?<=\w[/\\_=])[A-Za-z]|(?<=\w\()\)|(?<![!-~][-./~$@_])(?:(?<=-)-?|(?<=[./~$@_])[./~$@_]*)[A-Za-z])"
)
_AFTER_WORD = ".,;:!?\"'"
_QUOTE_MARKS = ('"', "`", ">", "\u201c", "\u201e", "\u00ab", "\u300c")
_QUOTED = lazily(
    r"```.*?(?:```|\Z)|`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|[“„][^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」"
    r"|^ {0,3}>[^\n]*$|<[A-Za-z][\w-]{0,40}(?:\s[^<>\n]{0,100})?>[^\n]{1,400}?</[A-Za-z][\w-]{0,40}>",
    re.DOTALL | re.MULTILINE,
)
# The end of a sentence or a line. "Dr. Okafor" and "e.g. this" go on, and so does a long line that is continued in
# small letters.
_END = lazily(
    r"[.!?;。！？；\n](?:(?<=[.!?;])(?<!\n\d.)(?<![\s.(][A-Z].)(?<![\s.(][A-Z][a-z].)(?<!\bMrs.)(?<!\b[ei]\.[eg].)"
    r"[.!?;]*[\"”')]*(?:\s+|\Z)|(?<=[。！？；])[。！？；]*[」』”）]*\s*|(?<=\n)(?:(?<![^\n]{60}\n)|(?=\s*[^a-z\s]))\s*)"
)
_END_OF = re.Match.end
_SAID = lazily(r"\w")
_ITEM = lazily(r"\s*(?:[-*+•]|\(?\d{1,2}[.)])\s")
_TITLE = lazily(r"\s*#{1,6}\s|[^\n]*:\W*\Z")
# What begins so limits or explains the sentence before it.
_GOES_ON = lazily(
    r"(?i)\W*(?:(?:and|or) )?(?:except|unless|but|only|exceptions?|the (?:only )?exception|otherwise|however|until"
    r"|though|although|because|it|its|they|this|that|these|those|for (?:example|instance)|e\.g\.|i\.e\.|that is)\b"
)
_BACK = lazily(r"(?i)\W*(?:and |but |so )?(?:then|otherwise|instead|in (?:that|this|such an?) case|if so|if not)\b")
_WORD = lazily(r"[^\W\d_](?:[\w'’-]*\w)?")
_PRONOUNS = frozenset(("it", "its", "they", "them", "their", "he", "him", "his", "she", "her", "there", "so"))
_LEADING = frozenset(("always", "never", "please", "ever", "going", "forward", "henceforth", "future", "today"))


PATH = Path(__file__).with_suffix(".npz")
SHORTEST, LONGEST = 2, 5
"""The characters of an n-gram."""
CLASSES = ("other", "task", "preference", "instruction", "lasting")
"""What a sentence is; a task is asked for once, and what is lasting says so, as "from now on"."""
# The least chance of a standing sentence, and of one that asks for something once.
_LEAST, _LEAST_TASK = 0.58, 0.7
# A longer sentence is like none of the training: repeated words add up.
_LONGEST_SENTENCE = 240


# What texts are, whatever their kind and context: a write asks for the same when it looks for instructions.
_known: list[dict[str, Standing | None]] = [{"": None}]
_MOST_KNOWN = 1 << 10
# Characters read at a time: in Python each takes a hundred bytes meanwhile.
_CHARS_AT_ONCE = 1 << 15


class _Judged(Struct, frozen=True):
    """What a sentence is: a standing instruction or preference, one that says it `lasts`, or none.

    `task` is the chance that it asks for something once, `doubt` that it is not standing.
    """

    task: float
    standing: Standing | None
    lasts: bool
    doubt: float


def standing_of(kind: str, text: str, context: str | None = None) -> Standing | None:
    """Classify a record as standing instruction or preference, by its kind, its text and who said it (the context).

    What an assistant says, what is quoted, questions, and texts that address the model are none.
    """
    return standing_of_each([(kind, text, context)])[0]


def standing_of_each(records: Iterable[tuple[str, str, str | None]]) -> list[Standing | None]:
    """Classify records as `standing_of` does."""
    return standing_of_texts(_asked(records))


def standing_of_texts(texts: Sequence[str]) -> list[Standing | None]:
    """Classify texts of at most `MOST_CHARS` that a person says; what follows a task is about it, unless it lasts."""
    known = _known[0]
    if unknown := [*filterfalse(known.__contains__, dict.fromkeys(texts))]:
        if len(known) + len(unknown) > _MOST_KNOWN:  # another thread may read what was known
            known = _known[0] = {text: known[text] for text in texts if text in known}
        chars = accumulate(map(len, unknown))
        for _, some in groupby(zip(unknown, chars, strict=True), lambda one: one[1] // _CHARS_AT_ONCE):
            # 50 us each where there are many, and 150 us for one.
            sentences = {text: sentences_of(text)[0] for text, _ in some}
            judged = iter(_judged([*chain.from_iterable(sentences.values())]))
            for text, parts in sentences.items():
                beside_task = False
                found: Standing | None = None
                # The more sentences, the more may be taken for standing ones by mistake.
                most = (1 - _LEAST) / max(len(parts), 1)
                for one in islice(judged, len(parts)):
                    if one.standing is None or one.doubt > most:
                        pass
                    elif one.standing == "preference":
                        found = found or one.standing
                    elif one.lasts or not beside_task:
                        found = one.standing
                    beside_task = beside_task or one.task >= _LEAST_TASK
                known[text] = None if found == "instruction" and addresses_model(text) else found
    return [*map(known.__getitem__, texts)]


def take_standing(records: Sequence[tuple[str, str, str | None]], standing: Sequence[Standing | None]) -> None:
    """Take over what `standing_of_each` said of records when they were stored."""
    known = dict(zip(_asked(records), standing, strict=True))
    _known[0] = known | {"": None} if len(_known[0]) + len(known) > _MOST_KNOWN else _known[0] | known | {"": None}


def _asked(records: Iterable[tuple[str, str, str | None]]) -> list[str]:
    """The texts of records that may be standing; of others, none."""
    return [
        text
        if len(text) <= MOST_CHARS and kind not in _OTHER_KINDS and (context or "").strip().lower() not in ANSWERING
        else ""
        for kind, text, context in records
    ]


@lru_cache(maxsize=1024)
def is_request(prompt: str) -> bool:
    """Whether a prompt asks for something to be done: neither a question nor keywords nor a statement.

    A question ends as one in any script, begins as one or asks to be told in English, or has a word that asks in
    another script; what is a task tells the classifier, or its polite form in English.
    """
    if _POLITE.search(prompt):
        return not _TELLS.search(prompt)
    if prompt.rstrip().endswith(_QUESTION_MARKS) or _ASKS.search(prompt) or _TELLS.search(prompt):
        return False
    terms = tokenize(prompt)
    alone = prompt.isascii() and recognise(prompt).keywords and min(map(rarity_of, terms)) >= _LEAST_RARITY
    chance = max((one.task for one in _judged(sentences_of(prompt[:MOST_CHARS])[0])), default=0.0)
    return _ASKING.isdisjoint(terms) and chance >= (_LEAST_REQUEST_OF_KEYWORDS if alone else _LEAST_REQUEST)


def sentences_of(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The sentences of a text without what they quote, and where each begins and ends."""
    if any(map(text.__contains__, _QUOTE_MARKS)):
        text = _QUOTED.sub(lambda quoted: _MASK * len(quoted[0]), text)
    sentences, bounds, begin = [], [], 0
    ends = map(_END_OF, _END.finditer(text))
    for end in (*ends, len(text)):
        if _SAID.search(text, begin, end):
            sentences.append(text[begin:end])
            bounds.append((begin, end))
        begin = end
    return sentences, bounds


def characters_of(sentences: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The characters of sentences as the model reads them, int32 (t,), and int64 (n + 1,) offsets.

    Case, white space, the mark of an item and the form of an apostrophe make no difference; a character stands for the
    begin of each, another for its end.
    """
    read = [*map(_as_read, sentences)]
    offsets = np.zeros(len(read) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, read), np.int64, len(read)), out=offsets[1:])
    return np.frombuffer("".join(read).encode("utf-32-le", "surrogatepass"), np.int32), offsets


def _as_read(sentence: str) -> str:
    item = _ITEM.match(sentence)
    plain = sentence[item.end() if item else 0 :]
    if _CODE.search(plain):
        plain = _ASCII.sub(
            lambda run: _MASK + run[0][len(run[0].rstrip(_AFTER_WORD)) :] if _CODE.search(run[0]) else run[0], plain
        )
    plain = " ".join((_MASKS.sub(_MASK, plain) if _MASK in plain else plain).split())
    plain = plain.lower() if plain.isascii() else normalized("NFKC", plain).casefold().replace("’", "'")
    return f"\x02{plain}\x03"


def sizes_of(offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The square root of the number of n-grams of each sentence: float64 (n,)."""
    counts = np.maximum(np.diff(offsets)[:, None] - np.arange(SHORTEST - 1, LONGEST), 0).sum(axis=1)
    sizes: NDArray[np.float64] = np.sqrt(np.maximum(counts, 1))
    return sizes


def _judged(sentences: Sequence[str]) -> list[_Judged]:
    """What each sentence is."""
    if not sentences:
        return []
    characters, offsets = characters_of(sentences)
    weights, scales, biases = _model()
    sums = kernels.sum_ngrams(characters, offsets, weights, SHORTEST, LONGEST)
    odds = sums * scales / sizes_of(offsets)[:, None] + biases
    chances = np.exp(odds - odds.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.diff(offsets) > _LONGEST_SENTENCE] = 0.0
    judged = []
    for _, task, preference, instruction, lasting in chances.tolist():
        asked = instruction + lasting
        name: Standing = "preference" if preference > asked else "instruction"
        standing = name if preference + asked >= _LEAST else None
        lasts = asked >= _LEAST and lasting >= instruction
        judged.append(_Judged(task, standing, lasts, 1 - preference - asked))
    return judged


@cache
def _model() -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """The weights of n-grams, int8 (2 ** bits, classes), with a scale and a bias of each class, float64 (classes,)."""
    with np.load(PATH) as file:
        return file["weights"], file["scales"], file["biases"]


def standing_part(text: str) -> str:
    """The sentences of a text that say what its author wants from now on, and others that explain them.

    The rest was asked for once, or is no wish at all: "Set up the tests. Never run the slow ones unasked." What is left
    out between two sentences is shown by an ellipsis.
    """
    parts, bounds = sentences_of(text)
    needed = {i for i, one in enumerate(_judged(parts)) if one.standing is not None}
    for i in sorted(needed):
        # Before it what its pronouns stand for, and the heading that it stands under.
        first = i
        while first > 0 and _refers(parts[first], parts[first - 1]):
            first -= 1
        for title in range(first - 1, -1, -1):
            if _TITLE.match(parts[title].rstrip()):
                needed.add(title)
                break
            if not (_ITEM.match(parts[title]) and _ITEM.match(parts[first])):
                break
        # After it what limits or explains it, and the items that it announces.
        last = i
        announces = parts[i].rstrip().endswith(":")
        while last + 1 < len(parts):
            opens = announces and (last == i or _ITEM.match(parts[last + 1]))
            if not opens and (parts[last].count("\n") > 1 or not _GOES_ON.match(parts[last + 1])):
                break
            last += 1
        needed.update(range(first, last + 1))
    return joined(text, [bounds[i] for i in sorted(needed)]) or text


def joined(text: str, bounds: Sequence[tuple[int, int]]) -> str:
    """Sentences of a text, with an ellipsis for what is left out between two."""
    runs: list[tuple[int, int]] = []
    for begin, end in bounds:
        if runs and runs[-1][1] == begin:
            begin = runs.pop()[0]
        runs.append((begin, end))
    return " … ".join(text[begin:end].strip() for begin, end in runs)


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
        if word in ("this", "that", "these", "those", "such") and ((named <= 1 and bare) or following in known):
            return True
        named += word not in STOP_WORDS and word not in _LEADING
        previous = word
    return False


# Unwanted text: instructions to a model. A person decides on what is found.
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


def addresses_model(text: str) -> str | None:
    """Return the words with which a text instructs a model, or None."""
    return next((reason for reason, pattern in _ADDRESSES if pattern.search(text)), None)


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
