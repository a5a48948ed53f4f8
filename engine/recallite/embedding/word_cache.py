"""A bounded cache of words for a tokenizer: the words of a language are few and repeat."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from recallite.embedding.token_ids import TokenIds
from recallite.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Found = TypeVar("Found")

# Single ASCII punctuation characters, and runs of anything else between them and whitespace. BERT's own pre-tokenizer
# splits there too, without context, so the tokens of these words, joined, are the tokens of the text.
WORD = re.compile(r"[^ \t\n\r!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
_CACHED_WORDS = 32_768
LONGEST_CACHED = 32


class WordCache(dict[str, Found]):
    """Cache of `find` for `most` words of at most 32 characters; thread-safe."""

    def __init__(self, find: Callable[[str], Found], most: int) -> None:
        super().__init__()
        self._find, self._most = find, most

    def __missing__(self, word: str) -> Found:
        value = self._find(word)
        if len(word) <= LONGEST_CACHED:
            if len(self) >= self._most:
                self.clear()
            self[word] = value
        return value


def folded(text: str) -> str:
    """Lower case where all is ASCII, so that a word is cached once and its length stays; else unchanged."""
    return text.lower() if text.isascii() else text


class WordIds:
    """An uncased WordPiece tokenizer of BERT's kind behind a word cache; thread-safe.

    `ids` gives the same as the tokenizer, except that the name of a special token, "[SEP]", is ordinary text. It takes
    a third of the tokenizer's own time for chat turns on one core, and a tenth for a short query.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.words = WordCache(self._ids, _CACHED_WORDS)
        self._long = TokenIds(tokenizer)

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens. Raises EmbedderError."""
        return list(chain.from_iterable(map(self.words.__getitem__, WORD.findall(folded(text)))))

    def placed_ids(self, text: str) -> tuple[list[int], list[int]]:
        """`ids`, and the character at which the word of each token begins."""
        ids: list[int] = []
        places: list[int] = []
        for match in WORD.finditer(folded(text)):
            word_ids = self.words[match[0]]
            ids += word_ids
            places += [match.start()] * len(word_ids)
        return ids, places

    def telling(self) -> NDArray[np.bool_]:
        """See `TokenIds.telling`."""
        return self._long.telling()

    def _ids(self, word: str) -> list[int]:
        # A word that is a token by itself is found by its name, without the tokenizer.
        whole = self._tokenizer.token_to_id(word) if word.isascii() else None
        if whole is not None:
            return [whole]
        if len(word) > LONGEST_CACHED:
            return [int(token) for token in self._long.encode([word])[0]]
        try:
            return list(self._tokenizer.encode(word, add_special_tokens=False).ids)
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason
