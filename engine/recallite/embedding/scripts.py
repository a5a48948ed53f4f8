"""Which scripts a model reads: those that its vocabulary has words of.

A tokenizer has an id for every text. One made for English cuts Russian into letters and has one token for any word of
Thai, and the vectors of such texts say nothing of what they mean. So the letters of a text are counted by script, and
a script is read if the vocabulary has pieces of its words. Letters in Latin script are, whatever the language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any

from recallite.embedding.protocol import Unread

# all-MiniLM-L6-v2 has 8 pieces of two or more Cyrillic letters, and at most 4 of other scripts; models of many
# languages have hundreds or thousands. Han is written in single characters: bert-base-chinese has 7,000, MiniLM 488.
_FEWEST_PIECES, _FEWEST_CHARACTERS = 100, 1_000
_BYTES = "Ġ"  # begins a word in a vocabulary of bytes, in which no script can be told
_LETTER = re.compile(r"[^\W\d_]")
_FIRST_WORD = re.compile("[ -]")
_NAMES = {"CJK": "Chinese characters", "FULLWIDTH": "full-width letters", "HALFWIDTH": "half-width letters"}
_SYMBOLS = "SYMBOLS"
_LATIN, _NONE = "LATIN", ""


class Scripts:
    """The scripts that the vocabulary of a tokenizer has words of; it is read at the first text in another than Latin.

    Thread-safe: what two threads compute at once is the same.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._read: frozenset[str] | None = None
        self._vocabulary: frozenset[str] = frozenset()

    def unread(self, text: str) -> Unread | None:
        """Return which letters of a text are not read, if any are not."""
        if text.isascii():
            return None
        letters = Counter(map(script_of, _LETTER.findall(text))) or Counter(map(self._of_symbol, text))
        del letters[_NONE]
        if letters.keys() <= {_LATIN}:
            return None
        read = self._scripts()
        unread = Counter({script: count for script, count in letters.items() if script not in read})
        if not unread:
            return None
        script = unread.most_common(1)[0][0]
        return Unread(_NAMES.get(script) or script.capitalize(), 1 - unread.total() / letters.total())

    def _of_symbol(self, character: str) -> str:
        """The script of a text without letters: emoji are read if the vocabulary has them, digits always."""
        if character.isascii() or unicodedata.category(character)[0] != "S":
            return _LATIN if character.isalnum() else _NONE
        self._scripts()
        return _LATIN if character in self._vocabulary else _SYMBOLS

    def _scripts(self) -> frozenset[str]:
        if self._read is None:
            pieces = self._tokenizer.get_vocab()
            if any(piece.startswith(_BYTES) for piece in pieces):
                self._vocabulary, self._read = frozenset(), _Everything()
                return self._read
            self._vocabulary = frozenset(piece for piece in pieces if len(piece) == 1)
            longer: Counter[str] = Counter()
            single: Counter[str] = Counter()
            for piece in pieces:
                if not piece.isascii() and (letters := _LETTER.findall(piece)):
                    (longer if len(letters) > 1 else single)[script_of(letters[0])] += 1
            read = {script for script, count in longer.items() if count >= _FEWEST_PIECES}
            read |= {script for script, count in single.items() if count >= _FEWEST_CHARACTERS}
            self._read = frozenset(read | {_LATIN})
        return self._read


class _Everything(frozenset[str]):
    def __contains__(self, _: object) -> bool:
        return True


@lru_cache(maxsize=1 << 16)
def script_of(letter: str) -> str:
    """The script of a letter, the first word of its name; none of the mark that lengthens vowels of kana."""
    return _NONE if letter == "ー" else _FIRST_WORD.split(unicodedata.name(letter, ""), maxsplit=1)[0]
