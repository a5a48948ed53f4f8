"""Token ids of texts of any length; each text is tokenised once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from recallite.errors import EmbedderError
from recallite.text.stopwords import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Longer texts are tokenised in pieces: the tokenizer uses about 100 bytes per character.
PIECE_CHARS = 32_768
_FEW = 4


def pieces(text: str, size: int = PIECE_CHARS) -> Iterator[str]:
    """Consecutive pieces of `text` of at most `size` characters, split before whitespace where possible."""
    begin = 0
    while len(text) - begin > size:
        end = max(text.rfind(" ", begin + 1, begin + size), text.rfind("\n", begin + 1, begin + size))
        end = end if end > begin else begin + size
        yield text[begin:end]
        begin = end
    yield text[begin:]


class TokenIds:
    """A tokenizer whose ids are int64 arrays without special tokens; `frame` adds them."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        framed = tokenizer.encode("a")
        inner = [i for i, special in enumerate(framed.special_tokens_mask) if not special] or [len(framed.ids)]
        self.before = int64_array(framed.ids[: inner[0]])
        self.after = int64_array(framed.ids[inner[-1] + 1 :])
        self._telling: NDArray[np.bool_] | None = None
        self.padding: int = tokenizer.token_to_id("[PAD]") or tokenizer.token_to_id("<pad>") or 0

    @property
    def specials(self) -> int:
        """Number of special tokens around every sequence."""
        return len(self.before) + len(self.after)

    def encode(self, texts: Sequence[str], limit: int | None = None) -> list[NDArray[np.int64]]:
        """Ids of each text, the first `limit` if given. Raises EmbedderError."""
        try:
            short = [text for text in texts if len(text) <= PIECE_CHARS]
            if len(short) <= _FEW:
                # For few texts the tokenizer's thread pool costs more than it saves.
                rows = iter([self._tokenizer.encode(text, add_special_tokens=False) for text in short])
            else:
                rows = iter(self._tokenizer.encode_batch_fast(short, add_special_tokens=False))
            return [
                int64_array(next(rows).ids[:limit]) if len(text) <= PIECE_CHARS else self._long(text, limit)
                for text in texts
            ]
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason

    def encode_with_places(self, texts: Sequence[str], limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The first `limit` ids of each text, and the character at which each of the first piece's begins."""
        try:
            encoded = [self._tokenizer.encode(text[:PIECE_CHARS], add_special_tokens=False) for text in texts]
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason
        return [
            (
                int64_array(encoding.ids[:limit]) if len(text) <= PIECE_CHARS else self._long(text, limit),
                int64_array([begin for begin, _ in encoding.offsets[:limit]]),
            )
            for text, encoding in zip(texts, encoded, strict=True)
        ]

    def telling(self) -> NDArray[np.bool_]:
        """Mask of the ids whose tokens are informative: with a letter or digit, and no stop word."""
        import numpy as np

        if self._telling is None:
            vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
            telling = np.zeros(max(vocabulary.values(), default=0) + 1, np.bool_)
            for token, number in vocabulary.items():
                # A piece that begins a word is unmarked in BERT's vocabulary and marked "▁" or "Ġ" in others.
                word = token.lstrip("▁Ġ").lower()
                telling[number] = word not in STOP_WORDS and any(map(str.isalnum, word))
            self._telling = telling
        return self._telling

    def _long(self, text: str, limit: int | None) -> NDArray[np.int64]:
        import numpy as np

        parts: list[NDArray[np.int64]] = []
        count = 0
        for piece in pieces(text):
            parts.append(int64_array(self._tokenizer.encode(piece, add_special_tokens=False).ids))
            count += len(parts[-1])
            if limit is not None and count >= limit:
                break
        return np.concatenate(parts)[:limit]

    def frame(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """`ids` between the special tokens."""
        import numpy as np

        return np.concatenate((self.before, ids, self.after))


def int64_array(numbers: list[int]) -> NDArray[np.int64]:
    """An array of numbers; numpy is imported at first use."""
    import numpy as np

    return np.array(numbers, np.int64)
