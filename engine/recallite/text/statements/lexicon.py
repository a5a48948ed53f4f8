"""Classes of English words that the reading of a statement goes by. Tables of verbs, nouns and states hold stems."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from recallite.text.patterns import read_tables, word_set
from recallite.text.words import stem_of, tokenize


def stems(text: str) -> frozenset[str]:
    """The words of a text, and their stems."""
    words = text.split()
    return frozenset((*words, *map(stem_of, words)))


def _groups(text: str) -> dict[str, int]:
    """The number of its group, by word; a semicolon ends a group."""
    return {word: i for i, line in enumerate(text.split(";")) for word in line.split()}


def _named(text: str) -> dict[str, str]:
    """The first word of its group, by word; a semicolon ends a group."""
    return {word: group.split()[0] for group in text.split(";") for word in group.split()}


def _numbered(text: str, first: int = 0, step: int = 1) -> dict[str, str]:
    """The number of each word, in their order."""
    return {word: str(first + i * step) for i, word in enumerate(text.split())}


# Kinds of words.
WORD, NAME, IDENTIFIER, NUMBER, CLOCK, DAY, DATE, UNIT, STOP, COMMA, MARK = range(11)
NAMED, TYPED = frozenset((NAME, IDENTIFIER)), frozenset((NUMBER, CLOCK, DAY, DATE))

_TABLES = read_tables(__file__)

# Words that say of how many or how surely it holds: no other value, and yet not the same again.
DEGREES = word_set(_TABLES["degrees"])
# Words that change the tone of a statement, not what it says.
FILLERS = word_set(_TABLES["fillers"]) | DEGREES
ARTICLES = word_set("the a an this that these those some any which who where whom")
DEFINITE = word_set("the my our your his her its their")
POSSESSIVES = {"my": "i", "our": "we", "your": "you", "his": "he", "her": "she", "its": "it", "their": "they"}
SPEAKERS = word_set("i we")
PRONOUNS = word_set("i we you he she it they someone everyone everybody nobody there")
OBJECTS = {"me": "i", "us": "we", "him": "he", "them": "they", "myself": "i", "mine": "i"}
# Nobody can tell from the text alone whom these name.
UNRESOLVED = word_set("he she it they this that these those one you someone somebody everyone everybody there")
BE = word_set("is are was were am be been being become stay remain get")
PAST_BE = word_set("was were")
AUXILIARIES = word_set("have do having done")
MODALS = word_set("will would can could might may must shall should let")
UNREAL = word_set(_TABLES["unreal"])
NEGATIONS = word_set(_TABLES["negations"])
PREPOSITIONS = word_set(_TABLES["prepositions"])
PARTICLES = word_set("up down off out back over in away on")
# What opens a part that tells when, with whom or why: it adds to the value.
ADJUNCTS = word_set(_TABLES["adjuncts"])
CONJUNCTIONS = word_set("and but so because though although while")
NOW = word_set(_TABLES["now"])
FORMER = word_set("formerly previously")
STOPPED = word_set("no_longer not_anymore anymore")
CORRECTIONS = word_set("sorry correction actually oops scratch turns_out wait nope mistake")
# Phrases of two words that are read as one.
JOINED = {
    (phrase.split()[0], phrase.split()[1]): word.strip()
    for word, _, phrases in (line.partition(":") for line in _TABLES["joined"].split(";"))
    for phrase in phrases.split(",")
}
# The forms of irregular verbs.
IRREGULAR = {
    form: lemma.strip()
    for lemma, _, forms in (line.partition(":") for line in _TABLES["forms"].split(";"))
    for form in forms.split()
}
# Verbs of a state that lasts, with one value at a time.
EXCLUSIVE = stems(_TABLES["exclusive"])
# Verbs by which something takes another value, named after "to": "moved the meeting to Friday", "rose to 5 %".
CHANGES = stems(_TABLES["changes"])
# Verbs that end what held of their object or, in the passive, of their subject.
ENDS = stems(_TABLES["ends"])
# Of the same line, one replaces another: what is done to plans, orders, tickets, machines; how people stand.
STATUS = _groups(_TABLES["status"])
# The same of a passive verb: "was repaired".
STATUS_STEMS = {stem_of(word): line for word, line in STATUS.items()}
LASTING_NOUNS = stems(_TABLES["lasting_nouns"])
SOURCES = stems(_TABLES["sources"])
VERBS = stems(_TABLES["verbs"]) | EXCLUSIVE | CHANGES | ENDS
# Immutable: a later text that says otherwise corrects, or is wrong.
LASTING = stems("born bear die found create develop compose direct educate write author invent build publish")
UNITS = _named(_TABLES["units"])
NUMBERS = _numbered(_TABLES["numbers"]) | _numbered("thirty forty fifty sixty seventy eighty ninety", 30, 10)
del NUMBERS["one"]
ORDINALS = _numbered("first second third fourth fifth sixth seventh eighth ninth tenth", 1)
DAYS = _named(_TABLES["days"])
for _name in ("mon", "wed", "fri", "sat", "sun", "weekday"):
    del DAYS[_name]
MONTHS = _named(_TABLES["months"])
for _name in ("jan", "mar"):
    del MONTHS[_name]
DATE_WORDS = word_set(_TABLES["date_words"])
# A noun that names an attribute: what has one has one value of it.
ATTRIBUTES = stems(_TABLES["attributes"])
# Nouns of which a person may have several: who says "my friend is Ann" may have other friends.
SEVERAL_NOUNS = stems(_TABLES["several_nouns"])
KIN = stems(_TABLES["kin"])
# What a stem is about, so that "I'm vegetarian" and "I eat meat again" are compared.
SUBJECTS: dict[str, str] = {}
for _name, _, _about in (line.partition(":") for line in _TABLES["subjects"].split(";")):
    for _word in _about.split():
        SUBJECTS.setdefault(stem_of(_word), _name.strip())


@lru_cache(maxsize=64)
def several_valued(more: Iterable[str] = ()) -> frozenset[str]:
    """The stems of verbs and nouns that may have several values, as "speak" does: the table and `more`."""
    return frozenset(tokenize(" ".join((_TABLES["several"], *more))))


SEVERAL = several_valued(())
"""The table without additions."""
