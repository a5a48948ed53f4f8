"""A text as the rules see it: its sentences, their clauses, and what may be said of two texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from recallite.text.patterns import lazily, word_set
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import (
    LASTING,
    OPENING_CONDITIONS,
    SINCE,
    Clause,
    is_of_reader,
    is_passing,
    read_complement,
    read_predicate,
)
from recallite.text.statements.statement_words import SELF, Word, read_words, text_of
from recallite.text.words import stem_of

if TYPE_CHECKING:
    from recallite.text.statements.properties import Traits

# What says more is hardly replaced as a whole, nor one change: of 5,587 pairs of the fit none has so long a text, and
# of lines of chat those which have take half the time of reading all.
MOST_CHARS, MOST_WORDS = 200, 30
LONGEST = 400
_MOST_SENTENCES = 4
# A statement of more words hardly says one thing.
_LONGEST_COMPARED = 18
_SPEAKER = lazily(r"\W*([^\W\d_][\w.'-]*)(?: ([A-Z]|\d{1,3}))?(?: [\w.'-]+){0,2}\s*(?:[:(,\[\-]|$)")
_PERSONS = frozenset(("user", "me", "human", "i", "myself", "customer", "person"))


class Statement(Struct, gc=False):
    """A text with its context, parsed; nothing changes it afterwards.

    - `speaker`: the stem of the name of who says it, "i" where the context names nobody
    - `whole`: whether every part was read as a clause
    - `question`: whether it only asks; what a text asks beside what it states is not read
    - `compared`: whether it states one thing in a short sentence, and so can be replaced by another
    """

    text: str
    speaker: str
    words: tuple[Word, ...] = ()
    clauses: tuple[Clause, ...] = ()
    whole: bool = False
    question: bool = False
    compared: bool = False
    # The forms of its words and of what it asks; None if it asks nothing.
    canonical: tuple[str, ...] | None = None
    # Of use only where two texts are compared, and then often: made once, by `properties.traits_of`.
    traits: Traits | None = None


@lru_cache(maxsize=4096)
def statement_of(text: str, context: str | None = None, *, much: bool = False) -> Statement:
    """The statement that a text makes under its context, such as the name of who says it.

    `much`: also of a text that says more than can be replaced.
    """
    speaker = _speaker(context)
    if len(text) > LONGEST or (not much and (len(text) > MOST_CHARS or text.count(" ") >= MOST_WORDS)):
        return Statement(text, speaker)
    if (assigned := _assignments(text)) is not None:
        return Statement(text, speaker, tuple(read_words(text)), assigned, True, compared=len(assigned) == 1)
    read = words = read_words(text)
    # Questions state nothing; of a text that only asks all is read.
    if ("?" in text or not text.isascii()) and "?" in [word.text for word in read]:
        stated = [sentence for sentence in sentences_of(read) if sentence[-1].text != "?"]
        words = [word for sentence in stated for word in sentence] or read
    asks = len(words) < len(read)
    stops = [word.text for word in words if word.kind == lx.STOP]
    if len(stops) > _MOST_SENTENCES + 1:
        return Statement(text, speaker)
    clauses, whole = clauses_of(words, speaker)
    sentences = len(stops) + (words[-1].kind != lx.STOP) if words else 0
    question = "?" in stops
    return Statement(
        text, speaker, tuple(words), tuple(clauses), whole and not asks, question,
        compared=sentences == 1 and whole and not question and not asks and len(words) <= _LONGEST_COMPARED
        and len(clauses) == 1,
        canonical=canon_of(read, speaker) if asks else None,
    )  # fmt: skip


def canon_of(words: Sequence[Word], speaker: str) -> tuple[str, ...]:
    """The forms of words: texts that say the same have them in common."""
    forms = [word.value + word.unit if word.value else word.form for word in words]
    return tuple([speaker if form == SELF else form for form in forms if form])


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


# Assignments: "PORT=80", {"port": 80}.

_ASSIGNED = lazily(
    r"(?:export |set |let |const )?([A-Za-z_][\w.-]*)\s?(?::?=|[=-]>)\s?(\"[^\"\n]*\"|'[^'\n]*'|[^\s=;,'\"]+)[;,]?\s*"
)
_OBJECT = lazily(r"\s*\{.*\}\s*", re.DOTALL)


def _assignments(text: str) -> tuple[Clause, ...] | None:
    """The names that a text gives values, each as a clause; None for a text that says anything else."""
    members: list[tuple[str, str]] = []
    if "=" in text or "->" in text:
        end = 0
        while (match := _ASSIGNED.match(text, end)) is not None:
            members.append((match[1], match[2].strip("\"'")))
            end = match.end()
        if end < len(text):
            return None
    elif _OBJECT.fullmatch(text):
        try:
            decoded = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeEncodeError):  # the latter by half of a surrogate pair
            return None
        members = [(name, bytes(value).decode().strip('"')) for name, value in decoded.items()]
    clauses = []
    for name, value in members[:MAX_CLAUSES]:
        head, words = tuple(read_words(name)), tuple(read_words(value))
        if len(words) != 1 or words[0].kind == lx.MARK:
            words = tuple(read_words(f'"{value[:80]}"'))
        stated = frozenset([word.key for word in words])
        subject = frozenset([word.key for word in head])
        clauses.append(Clause(subject, head, "be", (("", words),), stated, stated, assigned=True))
    return tuple(clauses) or None


# The clauses of a text: where each begins, its subject, and where its verb is.

MAX_CLAUSES = 6
_CONJUNCTIONS = frozenset(("and", "but", "so", "because", "while", "although", "though", "since", "or"))
_OPENING_CLAUSES = LASTING | {"because", "since"}
_DIVIDING = _CONJUNCTIONS | frozenset(",:()\u2014\u2013")
_BETWEEN = _CONJUNCTIONS | lx.FILLERS | lx.NOW | lx.STOPPED
_OPENERS = word_set("in on at since from after before during for by until as_of according")
_AUXILIARY = lx.BE | lx.MODALS | {"have", "has", "had", "do", "does", "did", "going_to", "used_to"}
# A verb's form after one of these is a noun: "my work", "a move".
_NOUN_BEFORE = lx.DEFINITE | {"a", "an", "of", "'s", "this", "that", "for", "in", "no", "new"}
# "Die" begins many a German sentence.
_COMMANDS = lx.VERBS - lx.stems("die")
_SAME_PAST = frozenset(("quit", "dump", "install", "cut", "put", "set", "split", "hit"))
# What stands before a colon: "Correction: ...", "Reminder: ...".
_HEADINGS = frozenset(("correct", "chang", "updat", "remind", "note", "news", "fact"))
_CORRECTING = frozenset(("correct", "chang", "updat"))
_UNNAMED = lx.FILLERS | lx.ARTICLES | lx.NOW | lx.STOPPED | lx.NEGATIONS | lx.FORMER | {"later"}
# "Formerly Twitter, X has 500 employees" tells of now.
_AFTER_FORMER = lx.PRONOUNS | lx.DEFINITE | {","}
_NAMING = frozenset((lx.NAME, lx.IDENTIFIER, lx.NUMBER))
_LONGEST_TITLE = 4
_TELLS_NOTHING = lx.NOW | lx.CORRECTIONS | lx.PREPOSITIONS


def clauses_of(words: Sequence[Word], speaker: str) -> tuple[list[Clause], bool]:
    """The clauses of a text, and whether each of its parts was read as one."""
    clauses: list[Clause] = []
    whole = True
    for sentence in sentences_of(words):
        # Of several sentences a first one that is a name: "Biome. Uses Biome for linting".
        names = len(sentence) <= _LONGEST_TITLE and all(word.kind in _NAMING for word in sentence[:-1])
        if names and len(sentence) < len(words) and not clauses and whole:
            continue
        if sentence[-1].text == "?":
            whole = False
            continue
        previous: Clause | None = None
        bounds, before = list[Clause | None](), len(clauses)
        for part in _parts(sentence):
            if len(clauses) >= MAX_CLAUSES:
                return clauses, False
            clause = _clause(part, speaker, previous)
            if not LASTING.isdisjoint(map(text_of, part[:2])):
                bounds.append(clause)
            if clause is not None:
                previous = clause
                clauses.append(clause)
            elif (
                clauses and any(word.stem in lx.SOURCES for word in part) and "not" not in {word.text for word in part}
            ):
                clauses[-1].sourced = True
            elif whole:
                # Whether it says something.
                whole = not any(
                    word.kind in (lx.NAME, lx.IDENTIFIER, lx.NUMBER, lx.CLOCK)
                    or (word.kind == lx.WORD and word.text not in lx.FILLERS)
                    for word in part
                    if word.text not in _TELLS_NOTHING
                )
        told = clauses[before:]
        lasting = any(bound is None or _bounds(bound, told) for bound in bounds)
        condition = next((i for i, word in enumerate(sentence[:2], 1) if word.text in OPENING_CONDITIONS), None)
        if lasting or condition is not None:
            of_reader = condition is not None and is_of_reader(sentence[condition:])
            for clause in told:  # "I live in Bergen while my flat is renovated"
                clause.bounded = clause.bounded or lasting or not (clause.now and of_reader)
                clause.passing = clause.passing or clause.bounded
    return clauses, whole


def _bounds(bound: Clause, told: Sequence[Clause]) -> bool:
    """Whether the clause after "while" says how long the others of its sentence hold.

    One of the past does not ("while you were away"), nor does one that says the same of another: "I live in Oslo now,
    while Ben lives in Bergen".
    """
    about = dict(bound.chunks).keys()
    return not bound.past and not any(
        clause.relation == bound.relation != "be"
        and clause.subject != bound.subject
        and dict(clause.chunks).keys() == about
        for clause in told
    )


def sentences_of(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The words of each sentence, the mark at its end with it."""
    begin = 0
    for i, word in enumerate(words):
        if word.kind == lx.STOP:
            if i > begin:
                yield words[begin : i + 1]
            begin = i + 1
    if begin < len(words):
        yield words[begin:]


def _parts(sentence: Sequence[Word]) -> list[Sequence[Word]]:
    """A sentence divided after each comma or conjunction that another clause follows, as after "we moved:"."""
    texts = [word.text for word in sentence]
    if _DIVIDING.isdisjoint(texts):
        return [sentence]
    parts = []
    begin, size = 0, len(sentence)
    for i in [i for i, text in enumerate(texts) if text in _DIVIDING]:
        word = sentence[i]
        if i <= begin or i >= size - 1 or (word.text == ":" and not _reports(sentence[begin:i])):
            continue
        after = i + 1
        while after < size and sentence[after].text in _BETWEEN:
            after += 1
        if after < size and _begins_clause(sentence, after) and _has_verb(sentence[begin:i]):
            parts.append(sentence[begin:i])
            contrast = word.text == "," and texts[i + 1] == "while"  # "..., while Ben ...": nothing ends with it
            begin = i if word.text in _OPENING_CLAUSES else i + 1 + contrast
    return [*parts, sentence[begin:]]


def _reports(words: Sequence[Word]) -> bool:
    """Whether what stands before a colon says that something happened, and nothing about who says it."""
    return words[0].text in lx.PRONOUNS and _has_verb(words) and lx.SOURCES.isdisjoint([word.stem for word in words])


def _has_verb(words: Sequence[Word]) -> bool:
    return len(words) > 1 and any(
        word.text in _AUXILIARY or word.stem in lx.VERBS or (word.kind == lx.WORD and word.text.endswith("ed"))
        for word in words
    )


def _begins_clause(words: Sequence[Word], i: int) -> bool:
    word = words[i]
    if word.text in lx.PRONOUNS or word.text in lx.BE or (word.kind == lx.WORD and _finite(word)):
        return True
    if word.text not in lx.DEFINITE and word.kind != lx.NAME and word.text not in ("a", "an"):
        return False
    for later in words[i + 1 : i + 5]:
        if later.kind in (lx.COMMA, lx.STOP):
            return False
        if later.text in lx.BE or later.text in lx.MODALS or (later.kind == lx.WORD and _finite(later)):
            return True
    return False


def _finite(word: Word) -> bool:
    """Whether a word can only be a verb with a subject: "works", "moved"."""
    if word.stem not in lx.VERBS:
        return False
    return word.text != word.base or word.text.endswith(("ed", "s")) or word.text == "quit"


def _clause(words: Sequence[Word], speaker: str, previous: Clause | None) -> Clause | None:
    """The clause that some words make; None if they have no verb."""
    clause = Clause()
    begin, opened = _lead_in(words, clause)
    if begin + 1 < len(words) and words[begin].kind == lx.NAME and words[begin].stem in _COMMANDS:
        # A capitalised verb is a command, unless it is a name: then a verb of its own follows.
        following = words[begin + 1 : begin + (8 if words[begin].text.endswith("ing") else 4)]
        named = any(map(_is_finite, following))
        words = words if named else [*words[:begin], replace(words[begin], kind=lx.WORD), *words[begin + 1 :]]
    verb = _verb_of(words, begin)
    if verb is not None and words[verb].stem in lx.SOURCES and (inner := _quoted(words, verb)) is not None:
        clause.sourced = True
        begin, verb = inner
    if verb is None:
        return None
    label: tuple[Word, ...] = ()
    if words[verb].text == ":":
        inner_verb = _verb_of(words, verb + 1)
        if inner_verb is not None and inner_verb > verb + 1 and _is_finite(words[inner_verb]):
            # "Warehouse: parcel 1 is on shelf 4" tells of that parcel of the warehouse.
            label, begin, verb = tuple(words[begin:verb]), verb + 1, inner_verb
        else:
            # What stands before ":" may be who speaks, not the name of a setting.
            clause.assigned = not all(
                word.kind in (lx.NAME, lx.NUMBER) or word.text in _PERSONS for word in words[begin:verb]
            )
    head = tuple([word for word in words[begin:verb] if word.kind not in (lx.COMMA, lx.MARK)])
    if _UNNAMED.issuperset(map(text_of, head)):
        clause.command = previous is None
        head = () if previous is None else previous.head
    elif previous is not None and len(head) == 1 and head[0].text in ("it", "he", "she", "they", "that"):
        head = _antecedent(head[0].text, previous)
    clause.head = (*label, *head)
    clause.owned = any(
        word.text == "'s" or (word.text in lx.DEFINITE and word.text != "the") for word in words[begin:verb]
    )
    if clause.assigned:
        clause.relation, i, must = "be", verb + 1, False
    else:
        i, must = read_predicate(words, verb, clause)
    read_complement(words, i, clause, speaker, opened, must=must)
    return clause


def _is_finite(word: Word) -> bool:
    return word.text in _AUXILIARY or (word.kind == lx.WORD and _finite(word))


def _quoted(words: Sequence[Word], verb: int) -> tuple[int, int] | None:
    """The beginning of the clause that somebody says, and its verb: "Mika says the code is 4471"."""
    begin = verb + 1
    if begin < len(words) and words[begin].text == "i" and words[verb].stem == "tell":
        begin += 1  # "told me"
    if begin < len(words) and words[begin].text == "that":
        begin += 1
    if begin >= len(words):
        return None
    word = words[begin]
    if word.text not in lx.PRONOUNS and word.text not in lx.DEFINITE and word.kind not in lx.NAMED:
        return None
    inner = _verb_of(words, begin)
    return None if inner is None or inner == begin else (begin, inner)


def _lead_in(words: Sequence[Word], clause: Clause) -> tuple[int, list[Word]]:
    """The beginning of a clause after words that only lead in, and the times among these."""
    opened: list[Word] = []
    begin, size = 0, len(words)
    while begin < size:
        word = words[begin]
        text = word.text
        if text in lx.CORRECTIONS:
            clause.corrected = True
        elif text in lx.NOW:
            clause.now = True
            since = begin > 0 and words[begin - 1].text in SINCE
            clause.passing = clause.passing or (is_passing(word) and not since)
        elif text in lx.UNREAL:
            clause.unreal = True
        elif text in lx.FORMER and begin + 1 < size and words[begin + 1].text in _AFTER_FORMER:
            clause.former = True
        elif text in _CONJUNCTIONS or text in lx.FILLERS or word.kind in (lx.COMMA, lx.STOP, lx.MARK):
            pass
        elif text in lx.SPEAKERS and begin + 1 < size and words[begin + 1].stem in lx.SOURCES:
            clause.sourced = True
            begin += 1
        elif text in _OPENERS or text in SINCE or word.kind == lx.DATE or word.kind == lx.DAY:
            stop = _opener(words, begin)
            if stop is None:
                break
            clause.now = clause.now or text in SINCE or any(opener.text in lx.NOW for opener in words[begin:stop])
            clause.sourced = clause.sourced or text == "according"
            opened += [opener for opener in words[begin:stop] if opener.kind in lx.TYPED]
            if text not in SINCE:
                clause.passing = clause.passing or text in LASTING or any(map(is_passing, words[begin:stop]))
                clause.opening = tuple(
                    [opener for opener in words[begin + 1 : stop] if opener.weight and opener.kind not in lx.TYPED]
                )
            begin = stop - 1
        else:
            after = _heading(words, begin, clause)
            if after is None:
                break
            begin = after
        begin += 1
    return begin, opened


def _heading(words: Sequence[Word], begin: int, clause: Clause) -> int | None:
    """The index of the colon after "Correction" and the like, or of the comma after "good news"."""
    for i in range(begin + 1, min(begin + 5, len(words))):
        if words[i].kind != lx.COMMA:
            continue
        if words[i].text == "," and i < begin + 4 and i + 1 < len(words):
            after = words[i + 1]
            plain = not any(
                before.kind in lx.TYPED or before.text in lx.DEFINITE or before.stem in lx.VERBS
                for before in words[begin:i]
            )
            return i if plain and (after.text in lx.DEFINITE or after.text in lx.PRONOUNS) else None
        if words[i].text == ":":
            stems = {before.stem for before in words[begin:i]}
            if not stems & _HEADINGS or (_has_verb(words[begin:i]) and "chang" not in stems):
                return None
            clause.corrected = clause.corrected or bool(stems & _CORRECTING)
            return i
    return None


def _opener(words: Sequence[Word], begin: int) -> int | None:
    """The beginning of the clause after words that tell when, if it does within ten words."""
    typed = words[begin].kind in lx.TYPED
    for i in range(begin + 1, min(begin + 10, len(words) - 1)):
        word = words[i]
        if word.kind == lx.COMMA:
            return i + 1
        if word.text in lx.PRONOUNS:
            return i
        if typed and word.kind not in lx.TYPED and word.text not in lx.PREPOSITIONS and word.text not in lx.ARTICLES:
            return None if word.text in lx.BE else i
        if word.text in lx.BE:
            return None
        if word.text in lx.DEFINITE and i > begin + 1 and words[i - 1].text not in lx.PREPOSITIONS:
            return i
        typed = typed or word.kind in lx.TYPED or word.stem in ("month", "week", "year", "now", "on")
    return None


def _antecedent(pronoun: str, previous: Clause) -> tuple[Word, ...]:
    """The words that a pronoun stands for: a person is the subject of the clause before, something its object."""
    stated = dict(previous.chunks).get("", ())
    personal = pronoun in ("he", "she", "they") and not any(word.text in lx.SPEAKERS for word in previous.head)
    if stated and previous.relation in ("get", "have", "chang") and not personal:
        return (*previous.head, *stated)
    if stated and not personal and (previous.relation != "be" or previous.negated):
        return stated
    return previous.head


def _verb_of(words: Sequence[Word], begin: int) -> int | None:
    """The index of the first word of the verb, or of the ":" that stands for one."""
    relative = False
    before = ""
    for i in range(begin, len(words)):
        word = words[i]
        text, kind = word.text, word.kind
        if kind in (lx.WORD, lx.UNIT):
            if text == "am" and i > begin and before not in lx.SPEAKERS | lx.NOW:
                pass  # of another language
            elif text in _AUXILIARY:
                if not relative or not any(later.text in lx.BE for later in words[i + 1 :]):
                    return i
            elif word.stem in lx.VERBS and before not in _NOUN_BEFORE:
                if not relative and (i == begin or before in lx.PRONOUNS or _is_verb(words, i)):
                    return i
            elif i > begin and text in ("who", "where", "that", "which"):
                relative = True
            elif before in lx.PRONOUNS and len(text) > 4 and text.endswith("ed"):
                return i
        elif text == ":" and begin < i < len(words) - 1:
            return i
        if kind != lx.COMMA and text not in lx.FILLERS and text not in lx.CORRECTIONS and text not in lx.NEGATIONS:
            before = text
    for i, word in enumerate(words[begin + 1 :], begin + 1):
        if word.kind == lx.WORD and len(word.text) > 4 and word.text.endswith("ed") and word.stem != word.text:
            return i
    return None


def _is_verb(words: Sequence[Word], i: int) -> bool:
    """Whether a word that may be a noun has the form or the place of a verb."""
    word, previous = words[i], words[i - 1]
    following = words[i + 1].text if i + 1 < len(words) else ""
    if following in lx.BE or following in lx.MODALS or following in ("has", "had"):
        return False
    return (
        word.text != word.base
        or word.text.endswith(("s", "ed"))
        or word.text in _SAME_PAST
        or (previous.kind == lx.NAME and previous.text.endswith("s"))
        or previous.text in lx.FILLERS
        or previous.text in lx.NOW
        or (previous.kind == lx.WORD and previous.text.endswith("s"))
        or following in ("to", "from", "the", "a")
    )


# Verdicts on two statements.

Outcome = Literal["same", "supersedes", "contradicts", "independent"]


class Verdict(NamedTuple):
    """The relation of a new statement to an older one.

    - "same": it says the same again
    - "supersedes": it replaces all that the older one says
    - "contradicts": both cannot hold, and nothing says which does
    - "independent": both may hold

    `confidence` is the chance, in [0, 1], that the outcome is right; `reason` says in a few words why. What is replaced
    is only left out of what is current if that is `certain`: the same sentence has another value, or says so itself.
    """

    outcome: Outcome
    confidence: float
    reason: str
    certain: bool = False
