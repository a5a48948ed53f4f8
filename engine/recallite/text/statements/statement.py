"""A text as the rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from recallite.text.patterns import lazily
from recallite.text.statements.clause import Clause
from recallite.text.statements.clauses import clauses_of, sentences_of
from recallite.text.statements.statement_words import SELF, STOP, Word, read_words
from recallite.text.words import stem_of

# What says more is hardly replaced as a whole, nor one change: of 5,587 pairs of the fit none has so long a text, and
# of lines of chat those which have take half the time of reading all.
MOST_CHARS, MOST_WORDS = 200, 30
LONGEST = 400
_MOST_SENTENCES = 4
# Nearly all that the fit found in longer turns of dialogues was wrong.
_MOST_CLAUSES, _LONGEST_OLD, _LONGEST_NEW = 3, 18, 26
_SPEAKER = lazily(r"\W*([^\W\d_][\w.'-]*)(?: ([A-Z]|\d{1,3}))?(?: [\w.'-]+){0,2}\s*(?:[:(,\[\-]|$)")
_PERSONS = frozenset(("user", "me", "human", "i", "myself", "customer", "person"))


class Statement(Struct, gc=False):
    """A text with its context, parsed; nothing changes it afterwards.

    - `speaker`: the stem of the name of who says it, "i" where the context names nobody
    - `whole`: whether every part was read as a clause
    - `question`: whether it only asks; what a text asks beside what it states is not read
    - `negated`: whether one of its clauses is
    - `replaceable`, `replacing`: whether it is as short as the older and the newer statements that the fit was shown
    """

    text: str
    speaker: str
    words: tuple[Word, ...] = ()
    clauses: tuple[Clause, ...] = ()
    whole: bool = False
    question: bool = False
    negated: bool = False
    replaceable: bool = False
    replacing: bool = False
    # Of use only where two texts are compared, and then often: made once.
    canonical: tuple[str, ...] | None = None
    gist: object = None
    traits: object = None
    cues: frozenset[str] | None = None
    mentioned: frozenset[str] | None = None
    elsewhere: object = None

    def canon(self) -> tuple[str, ...]:
        """The forms of its words, which texts that say the same have in common; with those of what it asks."""
        if self.canonical is None:
            self.canonical = _canon(self.words, self.speaker)
        return self.canonical

    def mentions(self) -> frozenset[str]:
        """The keys of all that its clauses name."""
        if self.mentioned is None:
            self.mentioned = frozenset([key for clause in self.clauses for key in (*clause.every, *clause.subject)])
        return self.mentioned


@lru_cache(maxsize=4096)
def statement_of(text: str, context: str | None = None, *, much: bool = False) -> Statement:
    """The statement that a text makes under its context, such as the name of who says it.

    `much`: also of a text that says more than can be replaced.
    """
    if len(text) > LONGEST or (not much and (len(text) > MOST_CHARS or text.count(" ") >= MOST_WORDS)):
        return Statement(text, _speaker(context))
    return _parse(text, _speaker(context))


def _parse(text: str, speaker: str) -> Statement:
    read = read_words(text)
    words = _stated(read)
    asks = len(words) < len(read)
    stops = [word.text for word in words if word.kind == STOP]
    if len(stops) > _MOST_SENTENCES + 1:
        return Statement(text, speaker)
    clauses, whole = clauses_of(words, speaker)
    sentences = len(stops) + (words[-1].kind != STOP) if words else 0
    question = "?" in stops
    return Statement(
        text, speaker, tuple(words), tuple(clauses), whole and not asks, question,
        negated=any(clause.negated for clause in clauses),
        replaceable=sentences == 1 and not question and not asks and len(words) <= _LONGEST_OLD and len(clauses) <= 1,
        replacing=1 <= sentences <= 2 and len(words) <= _LONGEST_NEW and len(clauses) <= _MOST_CLAUSES,
        canonical=_canon(read, speaker) if asks else None,
    )  # fmt: skip


def _canon(words: Sequence[Word], speaker: str) -> tuple[str, ...]:
    forms = [word.value + word.unit if word.value else word.form for word in words]
    return tuple([speaker if form == SELF else form for form in forms if form])


def _stated(words: list[Word]) -> list[Word]:
    """The words of a text without its questions, which state nothing; all of them if it only asks."""
    if not any(word.text == "?" for word in words):
        return words
    stated = [word for sentence in sentences_of(words) if sentence[-1].text != "?" for word in sentence]
    return stated or words


def _speaker(context: str | None) -> str:
    if context is None:
        return "i"
    match = _SPEAKER.match(context[:100])
    if match is None:
        return "i"
    name, label = match[1].lower(), match[2]
    if label is not None and (match[1].islower() or name in _PERSONS):  # "user A" is another than "user B"
        return f"{stem_of(name)} {label}"
    return "i" if name in _PERSONS else stem_of(name)
