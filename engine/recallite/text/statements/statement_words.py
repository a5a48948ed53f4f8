"""The words of a text as statements are read: each with its stem, kind and normal form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import log2
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from recallite.text.patterns import lazily, word_set
from recallite.text.statements import lexicon as lx
from recallite.text.words import Cached, normalized, share_of, stem_of

_MOST_CACHED = 1 << 16

_TOKEN = lazily(
    r"[^\W\d_]++(?=\s)"  # most words, told before all else in two thirds of the time
    r"|\"[^\"\n]{1,80}\""
    r"|https?://\S+"
    r"|[\w.+-]+@[\w-]+\.[\w.-]*\w"
    r"|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|Inc|Ltd|Co|Mt)\."
    r"|(?:[A-Za-z]\.){2,}"
    r"|\b[A-Z]\.(?=\s[A-Z])"
    r"|'s\b"  # of a number: "Node 3's"
    r"|[$€£¥#@]?\d+(?:[.,:/-]\d+)*(?:[a-zA-Z]+\b|[%°][CF]?)?"
    r"|[\u3005\u3040-\u30ff\u3400-\u9fff]+"  # words that no space divides from a number
    r"|[^\W\d](?:[\w]|['./:\\_+#-](?=\w))*\+*#?"
    r"|/[\w./-]+"
    r"|[.!?…\n]+|[;,:()—–]|\S"
)
# Of a name where another name follows, else the end of a sentence.
_INITIAL = lazily(r"\b[A-Z]\.$")
_NUMBER = lazily(r"([$€£¥#@]?)(\d[\d.,:/-]*)([a-zA-Z%°]*)")
_CLOCK = lazily(r"(\d{1,2})[:.](\d\d)")
_RELATIVE = frozenset(("this", "next", "last"))
# The minute of the hour that follows. ("To the third quarter" may follow "quarter" as "to seven" does.)
_MINUTES = {"quarter_past": "15", "half_past": "30"}
# The words that begin a phrase; numbers and times may, too.
_OPENING = frozenset(first for first, _ in lx.JOINED) | _RELATIVE | _MINUTES.keys() | {"every", "each", "$"}
_SPANS = word_set("week month year quarter time season semester term sprint summer winter spring")
_MONTH_VALUES = frozenset(lx.MONTHS.values())
_CONTRACTED = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "'s"}
_IS = word_set("he she it that there here what who where how everything let")
_FUNCTION = (
    lx.FILLERS | lx.ARTICLES | lx.DEFINITE | lx.PRONOUNS | lx.BE | lx.AUXILIARIES | lx.MODALS | lx.UNREAL | lx.NEGATIONS
    | lx.PREPOSITIONS | lx.ADJUNCTS | lx.CONJUNCTIONS | lx.NOW | lx.CORRECTIONS | {"not", "or", "turns", "all", "one"}
)  # fmt: skip
# The kind, stem and value of words that have one.
_VALUES = (
    {word: (lx.DATE, word, word) for word in lx.DATE_WORDS}
    | {word: (lx.DAY, day, day) for word, day in lx.DAYS.items()}
    | {word: (lx.WORD, word, value) for word, value in lx.ORDINALS.items()}
    | {word: (lx.NUMBER, word, value) for word, value in lx.NUMBERS.items()}
)
SELF = " "
# Words in which two texts that say the same may differ.
_UNSAID = (
    lx.FILLERS | lx.ARTICLES | lx.BE | lx.NOW | lx.CORRECTIONS
    | {"in", "on", "at", "of", "for", "by", "with", "as", "got", "do", "does"}
)  # fmt: skip

_NUMBER_WEIGHT, _IDENTIFIER_WEIGHT = 6.0, 14.0
ALIKE = {
    stem_of(word): stem_of(group.split()[0])
    for group in (
        "mother mum mom mama mommy", "father dad papa daddy", "grandmother grandma granny nana",
        "grandfather grandpa granddad", "brother bro", "sister sis", "child kid kids children", "flat apartment",
        "film movie", "bike bicycle", "phone mobile cellphone", "tv television", "license licence", "doctor dr",
        "favourite favorite", "colour color", "photo picture", "job position", "exam test", "car vehicle",
        "holiday vacation", "autumn fall", "girlfriend gf", "boyfriend bf", "trash garbage rubbish bin",
    )
    for word in group.split()
}  # fmt: skip
SKIPPED = (
    lx.PRONOUNS | lx.DEFINITE | lx.ARTICLES | lx.FILLERS | lx.BE | lx.PREPOSITIONS | lx.PARTICLES | lx.AUXILIARIES
    | lx.MODALS | lx.CONJUNCTIONS | lx.NOW | lx.NEGATIONS | lx.CORRECTIONS | lx.ADJUNCTS
    | {"not", "or", "all", "one", "new", "do", "have", "has", "had", "going_to", "instead", "instead_of", "me", "us",
       "got", "get", "what", "who", "when", "how", "yet", "already", "will", "used_to", "more", "no", "too", "also"}
)  # fmt: skip


class Word(Struct, frozen=True, gc=False):
    """A word in lower case, the stem of its base form, and its kind; `value` is the normal form of what is typed.

    - `unit`: of a number, if it has one; `base`: the base form of a verb
    - `form`: one for all words without a value that say the same: "" if they say nothing, `SELF` for the speaker
    - `key`: the value of what is typed, else the stem
    - `meaning`: the key, one for words of one meaning
    - `weight`: how rare it is, in bits; 0 if it says nothing
    """

    text: str
    stem: str
    kind: int
    value: str
    base: str
    capital: bool
    unit: str
    form: str
    key: str
    meaning: str
    weight: float

    def with_value(self, value: str, unit: str = "", *, kind: int | None = None, text: str | None = None) -> Word:
        """The same word with another value."""
        kind, text = self.kind if kind is None else kind, self.text if text is None else text
        return _word(text, kind, self.stem, value=value, base=self.base, unit=unit, capital=self.capital)

    def with_stem(self, stem: str) -> Word:
        """The same word, which names what `stem` does."""
        return replace(self, stem=stem, key=stem, meaning=ALIKE.get(stem, stem))


text_of: Callable[[Word], str] = attrgetter("text")
key_of: Callable[[Word], str] = attrgetter("key")


def _word(
    text: str,
    kind: int = lx.WORD,
    stem: str | None = None,
    *,
    value: str = "",
    base: str | None = None,
    unit: str = "",
    capital: bool = False,
) -> Word:
    stem = text if stem is None else stem
    key, form = (value.replace(".", ":") + unit, "") if value else (stem, _form(text, kind, stem))
    weight = 0.0
    if kind in lx.TYPED:
        weight = _NUMBER_WEIGHT
    elif kind == lx.IDENTIFIER:
        weight = _IDENTIFIER_WEIGHT
    elif kind in (lx.WORD, lx.NAME) and stem and text not in SKIPPED:
        weight = -log2(share_of(stem))
    base = text if base is None else base
    return Word(text, stem, kind, value, base, capital, unit, form, key, ALIKE.get(key, key), weight)


def _form(text: str, kind: int, stem: str) -> str:
    if kind in (lx.STOP, lx.COMMA, lx.MARK):
        return text if text in ("?", ":") else ""
    if text in ("i", "my"):
        return SELF
    if text in _UNSAID:
        return ""
    past = text.endswith("ed") or (text in lx.IRREGULAR and not text.endswith("s"))
    return stem + "*" if past else stem


def read_words(text: str) -> list[Word]:
    """The words of a text, in order, contractions split and phrases of one meaning joined."""
    if not text.isascii():
        text = normalized("NFKC", text).replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    if "\n" not in text and '"' not in text:
        words: list[Word] = []
        opened = False
        for chunk in text.split():
            read = _CHUNKS[chunk]
            if read is None:
                break
            if opened:  # what came before may be joined with this
                _join(read.words, words)
                opened = _opens(words[-1])
            else:
                words += read.joined
                opened = read.opens
        else:
            return words
    return _join([word for token in _TOKEN.findall(text) for word in _CACHE[token]], [])


class _Chunk(Struct, frozen=True, gc=False):
    """A text between two spaces: its words, the same joined, and whether a word after it may be joined to them."""

    words: tuple[Word, ...]
    joined: tuple[Word, ...]
    opens: bool


def _opens(word: Word) -> bool:
    """Whether the word that follows may be joined to this."""
    return word.kind in lx.TYPED or word.text in _OPENING


def _join(words: Iterable[Word], joined: list[Word]) -> list[Word]:
    """Append words; a phrase, a date, a time, or a number with its unit becomes one word."""
    last = joined[-1] if joined else None
    for word in words:
        if last is not None and _opens(last):
            if (phrase := lx.JOINED.get((last.text, word.text))) is not None:
                base = lx.IRREGULAR.get(phrase, phrase)
                last = joined[-1] = _word(phrase, lx.WORD, base if "_" in base else _stem(base), base=base)
                continue
            if (merged := _typed(last, word)) is not None:
                last = joined[-1] = merged
                continue
        joined.append(word)
        last = word
    return joined


def _typed(last: Word, word: Word) -> Word | None:
    """A date, time or quantity of two words."""
    if last.kind == lx.NUMBER:
        if last.text in lx.NUMBERS and word.text in ("fifteen", "thirty"):
            return _clock(f"{last.value}:{word.value}", "")
        if word.kind == lx.NUMBER and _grouped(last) and _grouped(word):
            return last.with_value(last.value + word.value, "id")
        if word.kind == lx.UNIT and not last.unit:
            if word.value in ("am", "pm"):
                return _clock(last.value, word.value)
            return last.with_value(last.value, word.value, text=f"{last.text} {word.text}")
        if word.kind == lx.DATE and word.value in _MONTH_VALUES and last.value.isdigit() and not last.unit:
            return word.with_value(f"{word.value} {last.value}")
    elif last.kind == lx.CLOCK and word.kind == lx.UNIT and word.value in ("am", "pm"):
        return _clock(last.value, word.value)
    elif (
        last.kind == lx.DATE
        and word.kind in (lx.DATE, lx.NUMBER)
        and last.value in _MONTH_VALUES
        and word.value.isdigit()
    ):
        return last.with_value(f"{last.value} {word.value}")
    elif last.kind == lx.DATE and last.value.isdigit() and word.value in _MONTH_VALUES:
        return word.with_value(f"{word.value} {last.value}")
    elif (last.text in ("every", "each") and word.text != "second" and word.kind in (lx.UNIT, lx.DAY, lx.DATE)) or (
        last.text in _RELATIVE and (word.text in _SPANS or word.kind in (lx.DAY, lx.DATE))
    ):
        first = "every" if last.text == "each" else last.text
        value = f"{first} {word.value or word.text}"
        return _word(f"{last.text} {word.text}", lx.DATE, word.stem, value=value, base=word.text)
    elif last.text in _MINUTES and word.kind == lx.NUMBER and not word.unit:
        return _clock(f"{word.value}:{_MINUTES[last.text]}", "")
    elif last.text == "$" and word.kind == lx.NUMBER:
        return word.with_value(word.value, "$")
    return None


def _grouped(word: Word) -> bool:
    """Whether a number may be a part of a longer one, as of a phone number."""
    return len(word.value) >= 3 and word.value.isdigit() and word.unit in ("", "id")


def _clock(value: str, half: str) -> Word | None:
    hour, _, minute = value.partition(":")
    if not hour.isdigit() or int(hour) > 12:
        return None
    hours = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour)
    shown = f"{hours}:{minute or '00'}"
    return _word(shown, lx.CLOCK, value=shown)


def _read_chunk(chunk: str) -> _Chunk | None:
    """A chunk; None where its words depend on what follows."""
    body, end = chunk[:-1], chunk[-1]
    if chunk.isalpha() and chunk.isascii():
        tokens = [chunk]
    elif body.isalpha() and body.isascii() and (end in ",;:!?" or (end == "." and body.islower() and body != "vs")):
        tokens = [body, end]  # a third of all, in half the time
    else:
        tokens = _TOKEN.findall(chunk)
    words = tuple([word for token in tokens for word in _CACHE[token]])
    joined = words if len(words) == 1 else tuple(_join(words, []))
    return None if end == "." and _INITIAL.search(chunk) else _Chunk(words, joined, _opens(joined[-1]))


def _words_of(token: str) -> tuple[Word, ...]:
    lower = token.lower()
    first = token[0]
    if first == '"' and len(token) > 2:
        return (_word(lower, lx.IDENTIFIER, value=lower),)
    if not first.isalnum() and not token[-1].isalnum() and (len(token) == 1 or not any(map(str.isalnum, token))):
        kind = lx.STOP if first in ".!?…\n;" else lx.COMMA if first in ",:()—–" else lx.MARK
        return (_word("?" if "?" in token else first, kind, "", base=""),)
    letters = token.isalpha()
    if not letters and (match := _NUMBER.fullmatch(token)):
        return _number(match, lower)
    if "'" in token:
        return (_word("'s", lx.MARK, "", base=""),) if token == "'s" else _contraction(token)
    return (_plain(token, lx.OBJECTS.get(lower, lower), first.isupper(), letters=letters),)


def _plain(token: str, lower: str, capital: bool, *, letters: bool) -> Word:
    """A word that is no number, mark or contraction; `lower` is its form in lower case."""
    if lower in _VALUES:
        kind, stem, value = _VALUES[lower]
        return _word(lower, kind, stem, value=value, capital=capital)
    if lower in lx.MONTHS and (capital or lower not in ("may", "march")):
        return _word(lower, lx.DATE, lx.MONTHS[lower], value=lx.MONTHS[lower], capital=capital)
    if lower == "am":
        return _word(lower)
    if lower in ("pm", "a.m.", "p.m."):
        return _word(lower, lx.UNIT, lower[0] + "m", value=lower[0] + "m")
    if lower in lx.UNITS and not (capital and (len(lower) > 2 or lower == "ms")):
        return _word(lower, lx.UNIT, _stem(lower), value=lx.UNITS[lower], capital=capital)
    if not letters and (
        any(map(str.isdigit, token))
        or any(mark in token for mark in "_/\\@:")
        or ("." in token[:-1] and token.count(".") == 1 and token[0].islower())
    ):
        return _word(lower, lx.IDENTIFIER, value=lower, capital=capital)
    plain = lower.replace(".", "")
    base = lx.IRREGULAR.get(plain, plain)
    name = capital and lower not in _FUNCTION
    return _word(plain, lx.NAME if name else lx.WORD, _stem(base), base=base, capital=name)


def _stem(word: str) -> str:
    if "-" in word:
        word = word.replace("-", "")
    return stem_of(word) if word.isascii() else word


def _number(match: re.Match[str], lower: str) -> tuple[Word, ...]:
    sign, digits, unit = match.groups()
    unit = unit.lower()
    digits = digits.rstrip(".,:/-")
    if sign in ("#", "@"):
        return (_word(lower, lx.IDENTIFIER, value=lower),)
    if unit in ("st", "nd", "rd", "th"):
        return (_word(digits, lx.DATE, value=digits),)
    clock = _CLOCK.fullmatch(digits)
    if clock and (":" in digits or unit in ("am", "pm", "h")) and int(clock[1]) < 25:
        word = _word(lower, lx.CLOCK, digits, value=f"{int(clock[1])}:{clock[2]}", base=digits)
        return ((_clock(word.value, unit) or word) if unit in ("am", "pm") else word,)
    value = digits
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        value = digits.replace(",", "")
    if re.fullmatch(r"(?:19|20)\d\d-[01]?\d-[0-3]?\d", digits):
        return (_word(digits, lx.DATE, value=digits),)
    if re.fullmatch(r"\d+-\d[\d-]*", digits) or digits.count(".") > 1 or "/" in digits or ":" in digits:
        value = re.sub(r"[^\d.:/]", "", digits)
        unit = "id" if len(value) > 4 else ""
        return (_word(lower, lx.NUMBER, value, value=value, base=value, unit=unit),)
    if unit in ("am", "pm") and (clock_word := _clock(value, unit)) is not None:
        return (clock_word,)
    if unit and unit not in lx.UNITS:
        return (_word(lower, lx.IDENTIFIER, value=lower),)
    value = value if len(value) > 2 else value.lstrip("0") or "0"
    return (_word(value, lx.NUMBER, value=value, unit=lx.UNITS[unit] if unit else sign),)


def _contraction(token: str) -> tuple[Word, ...]:
    head, _, tail = token.partition("'")
    lower, mark = head.lower(), "'" + tail.lower()
    if mark == "'t" and lower.endswith("n") and len(lower) > 1:
        base = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}.get(lower[:-1], lower[:-1])
        return (*_CACHE[base], *_CACHE["not"])
    if mark == "'s":
        return (*_CACHE[head], *(_CACHE["is"] if lower in _IS else (_word("'s", lx.MARK, "", base=""),)))
    if mark in _CONTRACTED and head:
        return (*_CACHE[head], *_CACHE[_CONTRACTED[mark]])
    plain = token.replace("'", "")
    return _words_of(plain) if plain else (_word("'", lx.MARK, "", base=""),)


_CACHE = Cached(_words_of, _MOST_CACHED)
_CHUNKS = Cached(_read_chunk, _MOST_CACHED)
