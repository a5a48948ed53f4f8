"""Words: normal forms and hashes of texts, index terms, function words, and how frequent words are.

Index terms are the words of a text for the keyword index, queries and MMR. Writing and querying use the same function.
Its steps:

- NFKC and case folding. Marks that people leave out are folded: accents in Latin and Greek, stress and the dots of `ё`
  in Cyrillic, the points of Arabic, Hebrew and Syriac, the forms of alef and of what is typed like another letter in
  Arabic, nasals before a stop, chandrabindu and nukta in Devanagari and scripts built like it.
- Words are runs of letters, digits and marks; everything else separates them. Emoji and punctuation give no term.
- English words are stemmed (Snowball `english`, also called Porter2).
- Clitics are dropped (`Caroline's`, `we'll`, `l'été`); other apostrophes are removed (`don't` gives `dont`).
- `foo_bar` and `e-mail` give their parts and the joined whole (`foo`, `bar`, `foobar`; `email`).
- `v1.2.3` gives `1·2·3` and its prefixes `1·2` and `1`; `1,000` gives `1000`; `U.S.A.` gives `usa`.
- `C++` gives `cplusplus` and `C#` gives `csharp`.
- Scripts written without spaces, and Hangul, give overlapping bigrams of characters, in South-East Asia of consonants
  with their vowels and marks. A lone character is a term, and so is each that may be a word: Han, and syllables.

A term has only ASCII letters and digits and non-ASCII characters, so that FTS5's `ascii` tokenizer splits joined terms
at the spaces. It has at most `MAX_TERM_CHARS` characters; a longer word is cut.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain, pairwise
from math import log2
from pathlib import Path
from typing import Generic, Literal, TypeVar

import Stemmer

from recallite.text.patterns import lazily, read_tables, word_set

KEY_BYTES = 8
_EXACT_BYTES = 8
# Quote marks and emphasis around a text, and full stops, which quoting adds or drops.
_LEADING = "\"'`*_“”„‘’‚«»‹›「」『』 \t"
_TRAILING = _LEADING + ".…。"
# Combining marks are not word characters, and no text has 31 in a row: Unicode's Stream-Safe Text Format
# (UAX #15, 13) breaks a run after 30.
_MARKS = lazily(r"[^\w\x00-\x7f]{31,}")
_MOST_MARKS = 30
# Copying one takes a third of the time of making one; the second has read the head of a text without context.
_OF_BARE = blake2b(digest_size=KEY_BYTES)
_OF_EXACT = blake2b(bytes(8), digest_size=_EXACT_BYTES)


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The normal form of a text; a run of combining marks is sorted 30 at a time.

    `unicodedata.normalize` sorts a run by insertion: 16,000 marks took 0.2 s, and a million would take 13 minutes.
    """
    pieces, begin = [], 0
    for run in _MARKS.finditer(text):
        for end in range(run.start() + _MOST_MARKS, run.end(), _MOST_MARKS):
            pieces.append(unicodedata.normalize(form, text[begin:end]))
            begin = end
    return "".join([*pieces, unicodedata.normalize(form, text[begin:])])


def content_hash(text: str, context: str | None = None) -> bytes:
    """16 bytes that are equal for equal text and context after NFC normalisation.

    No context and an empty one are the same. Case, spaces and punctuation matter, except in the first 8 bytes, which
    are `text_key`.
    """
    if context:
        head = _encoded(context)
        exact = blake2b(len(head).to_bytes(8, "little") + head, digest_size=_EXACT_BYTES)
    else:
        exact = _OF_EXACT.copy()
    exact.update(text.encode() if text.isascii() else _encoded(text))
    return text_key(text) + exact.digest()


def text_key(text: str) -> bytes:
    """8 bytes that are equal for texts of the same `bare_text`."""
    of_bare = _OF_BARE.copy()
    of_bare.update(bare_text(text).encode("utf-8", "surrogatepass"))
    return of_bare.digest()


def bare_text(text: str) -> str:
    """A text without what its copies differ in: case, white space, quote marks around it and a final stop."""
    plain = " ".join(text.split()) if text.isascii() else " ".join(normalized("NFKC", text).split())
    return (plain.lstrip(_LEADING).rstrip(_TRAILING) or plain).casefold()


def _encoded(text: str) -> bytes:
    if text.isascii():
        return text.encode()
    return normalized("NFC", text).encode("utf-8", "surrogatepass")


MAX_TERM_CHARS = 64
_MAX_CACHED_CHUNKS = 1 << 17  # 32 MB when full; a line of chat adds a third of a chunk
_MAX_JOINED_PARTS = 4
_DOT = "·"  # joins the numbers of a version or a decimal: a term has no ASCII punctuation

# Characters with a meaning inside a word; chunks with them are split once and cached.
_INNER = "'.,_-+#"
_EDGES = _INNER.replace("+", "").replace("#", "")
_NUMBER = re.compile(r"v?(\d+(?:,\d{3})*)((?:\.\d+)*)", re.ASCII)
_ACRONYM = re.compile(r"(?:[a-z]\.)+[a-z]", re.ASCII)
_LANGUAGE = re.compile(r"([a-z])(\+\+|#)(\d*)", re.ASCII)
_CLITIC = re.compile(r"'(?:s|ll|re|ve|d|m)$")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu)'(?=\w\w)")
_BREAKS = re.compile(r"[.,+#]+")
_WORD = re.compile(r"\S+")
_JOINTS = re.compile(r"[_-]+")
# Written without spaces between words: Thai, Lao, Myanmar, Hangul, Khmer, Kana, Bopomofo, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u30ff\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_SCRIPT_RUNS = lazily(f"([{_UNSPACED}]+)")
# A character; in Thai, Lao, Myanmar and Khmer a consonant with the vowels, marks and consonants attached to it.
_CHARACTER = lazily(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    "(?:[\u1039\u17d2].|[\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3])*"
)
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Of these one may be a word: Han, a syllable of Hangul, a consonant with a vowel.
_HAN = lazily(f"[{_IDEOGRAPHS}]")
_SYLLABLE = lazily(f"[\uac00-\ud7a3]|[{_SOUTH_EAST}]{{2,}}")


T = TypeVar("T")


class Cached(dict[str, T], Generic[T]):
    """Cache of what a function makes of each word: emptied when it has `most`, and without long ones.

    Thread-safe: what two threads compute at once is the same.
    """

    def __init__(self, read: Callable[[str], T], most: int, longest: int = 64) -> None:
        self._read, self._most, self._longest = read, most, longest

    def __missing__(self, word: str) -> T:
        value = self._read(word)
        if len(word) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[word] = value
        return value


class _PerThread(threading.local):
    """A Stemmer has its own buffer. One per thread needs no lock, which a fork could leave held."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord


_english = _PerThread()


def tokenize(text: str) -> list[str]:
    """The index terms of `text`, in order, repeats kept. Never raises; a text without words gives []."""
    if not text.isascii():
        text = foldable(text)
        if not text.isascii():
            return list(chain.from_iterable(map(_chunk_terms, text.split())))
    # Ends of clauses are removed first, so that the cache has each word once, not once per punctuation mark.
    # Translating bytes takes a third of the time of translating a str.
    plain = text.encode().translate(ASCII_FOLDS).decode()
    chunks = plain.replace(", ", " ").replace(". ", " ").split()
    return list(chain.from_iterable(map(_chunk_terms, chunks)))


def foldable(text: str) -> str:
    """Return a text with the same index terms, which `ASCII_FOLDS` separates into chunks."""
    if text.isascii():
        return text
    for mark, plain in _TYPOGRAPHY:
        text = text.replace(mark, plain)
    if text.isascii():  # as most English text now is
        return text
    for mark, combining in _KANA_MARKS:
        text = text.replace(mark, combining)
    folded = normalized("NFKC", normalized("NFKC", text).casefold())
    folded = _MARKS_AFTER_LETTER.sub("", folded.translate(_FOLDS))
    # The dot for a nasal, of the same block: U+0902 for U+0928.
    return _NASAL_BEFORE_STOP.sub(lambda nasal: chr(ord(nasal[0][0]) & ~0x7F | 2), folded)


def terms_of_chunks(chunks: Iterable[str]) -> list[tuple[str, ...]]:
    """The terms of each chunk: what stands between separators, in lower case."""
    return list(map(_chunk_terms, chunks))


def placed_terms(text: str) -> list[tuple[int, Sequence[str]]]:
    """The words of `text` between spaces: the character at which each begins, and its terms."""
    if not text.isascii():
        return [(word.start(), tokenize(word[0])) for word in _WORD.finditer(text)]
    plain = text.encode().translate(ASCII_FOLDS).decode()
    return [(word.start(), _chunk_terms(word[0].rstrip(",."))) for word in _WORD.finditer(plain)]


def query_terms(text: str) -> list[str]:
    """The distinct index terms of a query, in order of first occurrence.

    A character is left out where its neighbours of the same script say more of it: a word of several has each of them.
    Words that ask have no neighbours where none are written apart.
    """
    if text.isascii():
        return list(dict.fromkeys(tokenize(text)))
    return _without_paired(tokenize(_ASKING_UNSPACED.sub(r" \g<0> ", text)))


def _without_paired(terms: Iterable[str]) -> list[str]:
    """The distinct terms, without characters that are in a pair of one script."""
    terms = dict.fromkeys(terms)
    paired: set[str] = set()
    for term in terms:
        if _SCRIPT_RUNS.match(term):
            characters = _CHARACTER.findall(term)
            if len(characters) > 1 and len(set(map(bool, map(_HAN.match, characters)))) == 1:
                paired.update(characters)
    return [term for term in terms if term not in paired]


def stem_of(word: str) -> str:
    """The stem of an English word in lower case, by Snowball."""
    return _english.stem(word)


def _terms_of(chunk: str) -> tuple[str, ...]:
    """The terms of one chunk: lower case, no spaces. A comma or full stop behind it makes no difference."""
    if not chunk.isascii():
        return tuple(chain.from_iterable(map(_terms_of_run, _SCRIPT_RUNS.split(chunk))))
    if chunk.rstrip(",.").isalnum():
        return (_stem(chunk.rstrip(",.")),)
    if match := _LANGUAGE.fullmatch(chunk.strip(_EDGES)):
        letter, sign, version = match.groups()
        return (letter + ("sharp" if sign == "#" else "plusplus"), *([version] if version else ()))
    chunk = chunk.strip(_INNER)
    if match := _NUMBER.fullmatch(chunk):  # `1.2.3` as `1·2·3`, `1·2`, `1`
        numbers = (match[1].replace(",", "") + match[2]).split(".")
        ends = [len(numbers), *range(min(len(numbers), _MAX_JOINED_PARTS) - 1, 0, -1)]
        return tuple(_DOT.join(numbers[:end])[:MAX_TERM_CHARS] for end in ends)
    if _ACRONYM.fullmatch(chunk):
        return (_stem(chunk.replace(".", "")),)
    return tuple(chain.from_iterable(map(_compound, _BREAKS.split(chunk))))


def _terms_of_run(run: str) -> tuple[str, ...]:
    """The terms of a part of a chunk in scripts with spaces only, or without only."""
    if run.isascii():
        return _chunk_terms(run) if run else ()
    if _SCRIPT_RUNS.match(run):
        characters = _CHARACTER.findall(run)
        pairs = tuple(pair[:MAX_TERM_CHARS] for pair in map("".join, pairwise(characters)))
        if not pairs:
            return (run[:MAX_TERM_CHARS],)
        words = (character for character in characters if _HAN.match(character) or _SYLLABLE.match(character))
        return (*pairs, *(word[:MAX_TERM_CHARS] for word in words))
    return tuple(chain.from_iterable(map(_compound, _BREAKS.split(run))))


def _compound(word: str) -> tuple[str, ...]:
    """`foo_bar` as `foo`, `bar`, `foobar`."""
    parts = [term for part in _JOINTS.split(word) if (term := _simple(part))]
    if 1 < len(parts) <= _MAX_JOINED_PARTS:
        parts.append(_simple(_JOINTS.sub("", word)))
    return tuple(parts)


def _simple(word: str) -> str:
    """One word, maybe with apostrophes; "" where it has nothing else."""
    word = word.strip("'")
    if "'" in word:
        word = _ELISION.sub("", _CLITIC.sub("", word)).replace("'", "")
    return _stem(word)


def _stem(word: str) -> str:
    if len(word) > MAX_TERM_CHARS:
        return word[:MAX_TERM_CHARS]
    return _english.stem(word) if word.isascii() else word


_chunk_terms = Cached(_terms_of, _MAX_CACHED_CHUNKS, MAX_TERM_CHARS).__getitem__

ASCII_FOLDS = "".join(
    char.lower() if char.isalnum() or char in _INNER else " " for char in map(chr, range(128))
).encode() + bytes(range(128, 256))
"""A table of what each byte of a text is read as: lower case, and a space for what separates chunks."""

_LATIN_LETTERS = {
    "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i", "ŧ": "t"
}  # fmt: skip
_MARKS_AFTER_LETTER = lazily("(?<=[a-z\u03ac-\u03ce\u0430-\u045f])[\u0300-\u036f]+")
# As they are typed on a keyboard or by another language's.
_ARABIC_LETTERS = {"ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك"}
# Grave, acute, and two dots, which tell `ї` from `і` but are left out of `ё`.
_CYRILLIC_MARKS, _DOTTED_APART = frozenset("\u0300\u0301\u0308"), "і"
# Sound marks of kana beside their letter.
_KANA_MARKS = (("\u309b", "\u3099"), ("\u309c", "\u309a"))
# Devanagari, Gujarati, Telugu and Kannada have the same letters in the same places of their blocks. A nasal that is
# closed before a stop is written as a letter or as a dot.
_LIKE_DEVANAGARI = (0x0900, 0x0A80, 0x0C00, 0x0C80)
_NASAL_BEFORE_STOP = lazily(
    "|".join(
        f"[{''.join(chr(block + nasal) for nasal in (0x19, 0x1E, 0x23, 0x28, 0x2E))}]{chr(block + 0x4D)}"
        f"(?=[{chr(block + 0x15)}-{chr(block + 0x18)}{chr(block + 0x1A)}-{chr(block + 0x1D)}"
        f"{chr(block + 0x1F)}-{chr(block + 0x22)}{chr(block + 0x24)}-{chr(block + 0x27)}"
        f"{chr(block + 0x2A)}-{chr(block + 0x2D)}])"
        for block in _LIKE_DEVANAGARI
    )
)
_APOSTROPHES = frozenset("\u2018\u2019\u02bc\u2032\u02b9")
_JOINERS = frozenset("\u00ad\u200c\u200d\u2060\ufeff")
_HYPHENS = frozenset("\u2010\u2011")
_TYPOGRAPHY = (
    ("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'),
    ("–", " "), ("—", " "), ("…", " "), ("•", " "), ("\u00a0", " "),
)  # fmt: skip


class _Folds(dict[int, str]):
    """The replacement of each character, computed on first use."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(char: str) -> str:
    """A letter without the marks that people leave out, nothing for such a mark, a space for what is in no word."""
    if char.isascii():
        return chr(ASCII_FOLDS[ord(char)])
    if char in _APOSTROPHES:
        return "'"
    if char in _HYPHENS:
        return "-"
    category = unicodedata.category(char)
    if char in _JOINERS or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category[0] not in "LNM":
        return " "
    script, _, rest = unicodedata.name(char, "").partition(" ")
    decomposed = unicodedata.normalize("NFKD", char)
    base, marks = decomposed[0], decomposed[1:]
    if script == "LATIN":
        return base if base.isascii() and base.isalnum() else _LATIN_LETTERS.get(char, char)
    if script == "GREEK":
        return base
    if script == "CYRILLIC":
        return base if _CYRILLIC_MARKS.issuperset(marks) and base != _DOTTED_APART else char
    if script in ("ARABIC", "HEBREW", "SYRIAC"):
        return "" if category == "Mn" or rest == "TATWEEL" else _ARABIC_LETTERS.get(base, base)
    if rest.endswith("SIGN NUKTA"):
        return ""
    if rest.endswith("SIGN CANDRABINDU"):
        return chr(ord(char) + 1)
    return char


_FOLDS = _Folds()

# English function words, as index terms. They stay in the index; a query counts them less. With a quarter of their IDF,
# recall@20 on chat turns was 0.77 against 0.74 at full weight; leaving them out altogether cost first places. `may` and
# `us` are missing: they are also a month and a country.
_TABLES = read_tables(__file__)
STOP_TERMS = frozenset(tokenize(_TABLES["words"]))
# Words that ask: they tell little of what is asked for, and no evidence gap names them.
# Those of other scripts than Latin are listed as the terms that they have: making them here took 15 ms.
QUESTION_TERMS = (
    frozenset(tokenize(_TABLES["question_words"]))
    | word_set(_TABLES["asking_terms_unspaced"] + _TABLES["asking_terms"])
) - STOP_TERMS
# Of these, what a query has by itself where words are not written apart.
ASKED_APART = word_set(_TABLES["asking_terms_unspaced"])
_ASKING_UNSPACED = lazily("|".join(sorted(_TABLES["asking_words_unspaced"].split(), key=len, reverse=True)))
# Unstemmed, as the pieces of an embedder's vocabulary are.
STOP_WORDS = frozenset(_TABLES["words"].split())

# Frequency of words in conversations and notes: the share of texts that contain each index term. The file is made by
# `benchmarks.training.vocabulary`; a line is a level and the terms whose share is 2^(-level / 4).
PATH = Path(__file__).with_name("vocabulary.txt")
# The same of frequent terms in 29 other languages.
FOREIGN_PATH = PATH.with_name("foreign_vocabulary.txt")
# What words that ask count as: a small store cannot tell that "use" says less than "database".
_QUESTION_SHARE = 0.25


@lru_cache(maxsize=4096)  # questions are asked in few words
def share_of(term: str, foreign: bool = False) -> float:
    """The share of texts, also of `foreign` ones, that contain a term; an unknown one counts like the rarest."""
    if term in QUESTION_TERMS:
        return _QUESTION_SHARE
    shares, least = _shares(PATH)
    share = shares.get(term, least)
    return max(share, _shares(FOREIGN_PATH)[0].get(term, least)) if foreign else share


def rarity_of(term: str) -> float:
    """The information of a term in texts of any language, from 0 for one in all of them to 1 for an unknown one."""
    return log2(share_of(term, foreign=True)) / log2(_shares(PATH)[1])


def is_foreign(terms: Sequence[str]) -> bool:
    """Whether the terms of a text are more common in other languages than in English, or mostly of another script."""
    (english, least), (foreign, _) = _shares(PATH), _shares(FOREIGN_PATH)
    bits = sum([log2(foreign.get(term, least) / english.get(term, least)) for term in terms])
    return bits >= 0 or 2 * sum(map(str.isascii, terms)) < len(terms)


@cache
def _shares(path: Path) -> tuple[dict[str, float], float]:
    """The share of each term of a file, and the least."""
    shares: dict[str, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        level, *terms = line.split(" ")
        shares |= dict.fromkeys(terms, 2.0 ** (-int(level) / 4))
    return shares, min(shares.values())
