"""German, French and Spanish: what no longer holds, and what holds now in the place of something else.

No clause is read. With its words of change taken out, the newer text says what the older one does ("nicht mehr",
"ne ... plus", "ya no"), or does so but for one name or number ("jetzt", "maintenant", "ahora") after a verb that has
one value at a time; or it says that what the older one uses was replaced ("wurde durch B ersetzt").
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from recallite.text.patterns import lazily, read_tables, word_set
from recallite.text.statements.clause_changes import REPLACED
from recallite.text.statements.statement import Ruling, Statement
from recallite.text.words import normalized

ENDED, ANOTHER = "no longer holds, in another language", "another value, in another language"
"""The reasons of the findings."""
_CHANGES = lazily(
    r"(?i)\b(?:jetzt|nun|inzwischen|mittlerweile|neuerdings|nicht mehr|kein(?:e[nmrs]?)?\b.{1,40}\bmehr|maintenant"
    r"|d[ée]sormais|dor[ée]navant|n(?:e |['’]).{1,30}\bplus|ahora|actualmente|ya no)\b"
)
_TABLES = read_tables(__file__)
_PART = "[^,.;:!?]{1,60}"
_REPLACED = lazily(
    rf"(?i)(?P<gone>{_PART}?) (?:"
    rf"(?:wurden?|ist|sind) (?:(?!nicht\b|nie\b)\w+ )?durch {_PART} (?:ersetzt|abgelöst)(?: worden)?"
    rf"|(?:a|ont) été remplacée?s? par {_PART}"
    rf"|(?:fue|fueron|ha sido|han sido) (?:reemplazad|sustituid)[oa]s? por {_PART})\W*"
)
_REPLACING = word_set(_TABLES["replacing"])
# "Früher wohnte ich in Bonn", but "früher aufstehen".
_FORMERLY = lazily(
    r"(?:Früher (?!oder\b)|Autrefois\b|Auparavant\b|Anteriormente\b|Antes (?!de\b|que\b))[,\s]*[a-zäöüéèáíóúñ]"
)
_FORMER_WORDS = word_set("früher autrefois auparavant anteriormente antes")
_WORD = lazily(r"[^\W_]+(?:[.:,_-][^\W_]+)*'?")
_NOW = word_set("jetzt nun inzwischen mittlerweile neuerdings maintenant désormais dorénavant ahora actualmente")
_MARKS = _NOW | {"mehr", "plus", "ya", "desormais", "dorenavant"}
_FULL = {"j'": "je", "n'": "ne", "l'": "le", "c'": "ce", "s'": "se", "m'": "me"}
_ARTICLES = word_set("ein eine einen einem einer kein keine keinen keinem keiner un une una de d' du des")
# Two words of which neither tells of an end alone: "mehr Geld", "plus tard".
_ENDS = (("nicht", "mehr"), ("kein", "mehr"), ("ne", "plus"), ("ya", "no"))
# Living and working somewhere, being called: the value follows a preposition, or is a number.
_PLACED = word_set(_TABLES["placed"])
# The value follows the verb at once.
_USED = word_set(_TABLES["used"])
# The value has to be a number: "der Preis ist 50 Euro".
_COUNTED = word_set("ist sind beträgt kostet kosten est sont coûte coûtent es son cuesta cuestan")
_HOLDING = _PLACED | _USED | _COUNTED
_LONGEST_VALUE = 3


class _Spelled(NamedTuple):
    """A text's words in lower case without words of change, whether each is named, and whether the text ends something.

    `gone` are the words of what the text says was replaced.
    """

    words: tuple[str, ...]
    named: tuple[bool, ...]
    ended: bool
    gone: tuple[str, ...]


def compare_in_other_languages(new: Statement, old: Statement) -> Ruling | None:
    """Compare two statements by German, French and Spanish words of change; None if both may hold."""
    if new.elsewhere is None:
        new.elsewhere = _spelled(new.text) if has_words_of_change(new) else ()
    if not isinstance(new.elsewhere, _Spelled) or not old.words or old.question:
        return None
    newer, before = new.elsewhere, _spelled(old.text)
    if before.ended or len(before.words) < 2:
        return None
    if newer.gone:
        return Ruling("supersedes", REPLACED, cued=True) if _uses(before, newer.gone) else None
    if newer.ended:
        return Ruling("supersedes", ENDED, cued=True) if sorted(newer.words) == sorted(before.words) else None
    return Ruling("supersedes", ANOTHER, cued=True) if _has_another_value(newer, before) else None


def has_words_of_change(statement: Statement) -> bool:
    """Whether a statement has words of change; looking for single words first takes a tenth of the pattern's time."""
    if statement.question:
        return False
    texts = [word.text for word in statement.words]
    if not _MARKS.isdisjoint(texts) and _CHANGES.search(_plain(statement.text)):
        return True
    return not _REPLACING.isdisjoint(texts) and _REPLACED.fullmatch(_plain(statement.text)) is not None


def is_former(statement: Statement) -> bool:
    """Whether a statement begins with "früher", "autrefois", "antes" and the like, and says nothing of now."""
    if not statement.words or statement.question or statement.words[0].text not in _FORMER_WORDS:
        return False
    return _FORMERLY.match(_plain(statement.text)) is not None and not has_words_of_change(statement)


def _spelled(text: str) -> _Spelled:
    replaced = _REPLACED.fullmatch(_plain(text))
    gone = () if replaced is None else tuple(word.lower() for word in _WORD.findall(replaced["gone"]))
    spelled = [(_FULL.get(word.lower(), word.lower()), word[0].isupper()) for word in _WORD.findall(_plain(text))]
    texts = [word for word, _ in spelled]
    ended = _end_in(texts)
    words = [
        (word, capital or word[0].isdigit())
        for i, (word, capital) in enumerate(spelled)
        if i not in ended and word not in _NOW and word not in _ARTICLES
    ]
    return _Spelled(tuple(word for word, _ in words), tuple(named for _, named in words), bool(ended), gone)


def _plain(text: str) -> str:
    return normalized("NFKC", text).replace("\u2019", "'")


def _end_in(words: list[str]) -> tuple[int, ...]:
    """The places of the two words that say that something has ended; () if none do."""
    for first, second in _ENDS:
        for i, word in enumerate(words):
            if (word.startswith("kein") if first == "kein" else word == first) and second in words[i + 1 :]:
                after = words.index(second, i + 1)
                if after == i + 1 or first in ("kein", "ne"):
                    return i, after
    return ()


def _uses(text: _Spelled, name: tuple[str, ...]) -> bool:
    """Whether a text says that a name, and no longer one, is in use."""
    for i, word in enumerate(text.words[: -len(name)], 1):
        stop = i + len(name)
        if word in _USED and text.words[i:stop] == name and all(text.named[i:stop]):
            return not any(text.named[stop : stop + 1])
    return False


def _has_another_value(new: _Spelled, old: _Spelled) -> bool:
    """Whether two texts differ in one name or number, after a verb that has one value at a time."""
    ours, theirs = _differing(new.words, old.words), _differing(old.words, new.words)
    verbs = [word for word in new.words if word in _HOLDING and word in old.words]
    if ours is None or theirs is None or len(verbs) != 1:
        return False
    counted = _is_number(new, ours)
    if counted != _is_number(old, theirs) or (verbs[0] in _COUNTED and not counted):
        return False
    sides = ((new, ours), (old, theirs))
    named = all(some.named[i] for some, value in sides for i in value)
    alike = new.words[ours.start - 1] == old.words[theirs.start - 1]
    return named and alike and all(_follows(some, value, verbs[0], counted) for some, value in sides)


def _is_number(text: _Spelled, value: range) -> bool:
    return any(word[0].isdigit() for word in text.words[value.start : value.stop])


def _differing(some: tuple[str, ...], others: tuple[str, ...]) -> range | None:
    """The indices of the words that only the first have, if they stand together and are few."""
    more = Counter(some) - Counter(others)
    indices = [i for i, word in enumerate(some) if word in more]
    if (
        not 0 < len(indices) <= _LONGEST_VALUE
        or indices[-1] - indices[0] != len(indices) - 1
        or more.total() != len(indices)
    ):
        return None
    return range(indices[0], indices[-1] + 1)


def _follows(text: _Spelled, value: range, verb: str, counted: bool) -> bool:
    """Whether a value stands where the verb takes one, with nothing named beside it that may be the subject."""
    words, before, after = text.words, value.start - 1, value.stop
    if words.index(verb) >= value.start or (after < len(words) and text.named[after] and not counted):
        return False
    return counted or (words[before] == verb if verb in _USED else words[before] != verb and not text.named[before])
