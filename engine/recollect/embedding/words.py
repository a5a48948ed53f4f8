"""Token ids of words, remembered: the words of a language are few and come again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from recollect.embedding.tokens import TokenIds
from recollect.errors import EmbedderError

__all__ = ["WordIds"]

# Single ASCII punctuation characters, and what stands between them and whitespace. BERT's own splitting cuts there
# too and looks at no neighbour, so the tokens of these words, joined, are the tokens of the text.
_words = re.compile(r"[^ \t\n\r!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]").findall
_KEPT_WORDS = 32_768
_LONGEST_KEPT = 32


class WordIds(dict[str, list[int]]):
    """A WordPiece tokenizer of BERT's kind, uncased, behind a bounded memory of words; thread-safe.

    `ids` gives what the tokenizer gives, but that the name of a special token, "[SEP]", is text like any other. Chat
    turns take a third of the tokenizer's own time on one core, a short query a tenth.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._long = TokenIds(tokenizer)

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens. Raises EmbedderError."""
        return list(chain.from_iterable(self._each(text)))

    def _each(self, text: str) -> Iterable[list[int]]:
        # Lower case where that is a matter of ASCII, so that a word is remembered once; else the tokenizer's own does.
        return map(self.__getitem__, _words(text.lower() if text.isascii() else text))

    def __missing__(self, word: str) -> list[int]:
        # A word that is a token by itself is found by its name, without the tokenizer.
        whole = self._tokenizer.token_to_id(word) if word.isascii() else None
        ids = [whole] if whole is not None else self._encoded(word)
        if len(word) <= _LONGEST_KEPT:
            if len(self) >= _KEPT_WORDS:
                self.clear()
            self[word] = ids
        return ids

    def _encoded(self, word: str) -> list[int]:
        if len(word) > _LONGEST_KEPT:
            return [int(token) for token in self._long.encode([word])[0]]
        try:
            return list(self._tokenizer.encode(word, add_special_tokens=False).ids)
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason
