"""Which scripts a model reads: those that its vocabulary has words of.

A tokenizer has an id for every text. One made for English cuts Russian into letters and has one token for any word of
Thai, and the vectors of such texts say nothing of what they mean. So the letters of a text are counted by script, and
a script is read if the vocabulary has pieces of its words. Letters in Latin script are, whatever the language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

# all-MiniLM-L6-v2 has 8 pieces of two or more Cyrillic letters, and at most 4 of other scripts; models of many languages
# have hundreds or thousands. Han is written in single characters: a vocabulary of Chinese has 7,000, MiniLM's 244.
_FEWEST_PIECES, _FEWEST_CHARACTERS = 100, 1_000
# A text is read if this share of its letters is. Chosen on questions of our own that mix English names with ten other
# scripts: their other words decide what is asked.
READ_SHARE = 0.6
_BYTES = "Ġ"  # begins a word in a vocabulary of bytes, in which no script can be told
_LETTER = re.compile(r"[^\W\d_]")
_NAMES = {"CJK": "Chinese characters", "FULLWIDTH": "full-width letters", "HALFWIDTH": "half-width letters"}
_SYMBOLS = "SYMBOLS"
_READ = ("", "LATIN")


class Scripts:
    """The scripts that the vocabulary of a tokenizer has words of; it is read at the first text in another than Latin.

    Thread-safe: what two threads compute at once is the same.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._read: frozenset[str] | None = None
        self._vocabulary: frozenset[str] = frozenset()
        self._script_of: dict[str, str] = {}

    def unread(self, text: str) -> str | None:
        """Return the name of the script for which a text cannot be read; None if it can be."""
        if text.isascii():
            return None
        letters = Counter(map(self._script, _LETTER.findall(text)))
        if not letters:
            letters = Counter(map(self._of_symbol, text))
        if letters.keys() <= set(_READ):
            return None
        read = self._scripts()
        unread = Counter({script: count for script, count in letters.items() if script and script not in read})
        if letters.total() - unread.total() - letters[""] >= READ_SHARE * (letters.total() - letters[""]):
            return None
        script = unread.most_common(1)[0][0]
        return _NAMES.get(script) or script.capitalize()

    def _script(self, letter: str) -> str:
        script = self._script_of.get(letter)
        if script is None:
            # What is left of a letter, decomposed: a syllable of Hangul is Hangul as its parts are.
            name = unicodedata.name(letter, "")
            script = self._script_of[letter] = "" if letter == "ー" else re.split("[ -]", name, maxsplit=1)[0]
        return script

    def _of_symbol(self, character: str) -> str:
        """The script of a text without letters: emoji are read if the vocabulary has them, digits always."""
        if character.isascii() or unicodedata.category(character)[0] != "S":
            return "LATIN" if character.isalnum() else ""
        self._scripts()
        return "LATIN" if character in self._vocabulary else _SYMBOLS

    def _scripts(self) -> frozenset[str]:
        if self._read is None:
            pieces = self._tokenizer.get_vocab()
            if any(piece.startswith(_BYTES) for piece in pieces):
                self._vocabulary, self._read = frozenset(), _Everything()
                return self._read
            self._vocabulary = frozenset(piece for piece in pieces if len(piece) == 1)
            self._read = frozenset(_READ) | _scripts_of(pieces)
        return self._read


class _Everything(frozenset[str]):
    def __contains__(self, _: object) -> bool:
        return True


def _scripts_of(pieces: Iterable[str]) -> set[str]:
    """The scripts that enough pieces of a vocabulary are of."""
    longer: Counter[str] = Counter()
    single: Counter[str] = Counter()
    for piece in pieces:
        if not piece.isascii() and (letters := _LETTER.findall(piece)):
            script = re.split("[ -]", unicodedata.name(letters[0], ""), maxsplit=1)[0]
            (longer if len(letters) > 1 else single)[script] += 1
    return {script for script, count in longer.items() if count >= _FEWEST_PIECES} | {
        script for script, count in single.items() if count >= _FEWEST_CHARACTERS
    }
