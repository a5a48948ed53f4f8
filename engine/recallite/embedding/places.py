"""Offsets at which the tokens of texts begin. They measure passages, whether or not a model is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recallite.embedding.load import is_foreign, model_path
from recallite.embedding.token_ids import int64_array, pieces
from recallite.embedding.word_cache import WORD, WordCache, folded
from recallite.errors import EmbedderError, RecalliteError
from recallite.system.messages import fault_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Measure = Callable[[Sequence[str]], list[NDArray[np.int64]]]


_BUNDLED = ("default", "none", "instant")
_CHARS_PER_TOKEN = 4
# WordPiece turns a word of more than 100 characters into one token, [UNK]: without a bound in characters a megabyte of
# base64 would be a passage of one token. Whitespace and characters without a token are bounded likewise.
_LONGEST_TOKEN = 32
_LONGEST_GAP = 256
_LONGEST_WORD = 100
_CACHED_WORDS = 65_536
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x9FFF), (0xAC00, 0xD7FF), (0x20000, 0x3FFFF),
)  # fmt: skip


def measure_of(spec: object, loaded: Callable[[], object] | None = None) -> Measure:
    """A function that returns the character offsets at which the tokens of each text begin: int64 arrays, ascending.

    It uses the tokenizer of the model folder that `spec` names, or the embedder's own method `token_starts`; for
    anything else, including "none" and a missing folder, the bundled model's tokenizer. If `tokenizers` is not
    installed, or another package's embedder has no such method, a token is four characters, or one character in a
    script without spaces. Long words and gaps get offsets within them. The function
    raises EmbedderError.

    `loaded` returns the embedder that `spec` names, and is called only if another package registers it; without
    `loaded` it is not asked. Raises as `loaded` does.
    """
    measure = _measure(spec, loaded)

    def starts(texts: Sequence[str]) -> list[NDArray[np.int64]]:
        try:
            return [_filled(token_starts, len(text)) for token_starts, text in zip(measure(texts), texts, strict=True)]
        except RecalliteError:
            raise
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {fault_text(reason)}") from reason

    return starts


def _measure(spec: object, loaded: Callable[[], object] | None) -> Measure:
    foreign = spec not in _BUNDLED and is_foreign(spec)  # entry points take 20 ms to read
    token_starts = getattr(loaded() if foreign and loaded is not None else spec, "token_starts", None)
    if callable(token_starts):
        return cast("Measure", token_starts)
    if foreign:
        return _by_characters
    try:
        bundled = model_path(None).with_name("tokenizer.json")
        path = _named(spec) or bundled
        return _of_tokenizer(path, bundled=path == bundled)
    except (RecalliteError, ImportError):
        return _by_characters


def _named(spec: object) -> Path | None:
    """The tokenizer of the folder that `spec` names; None if it is missing, so that documents can still be read."""
    if not isinstance(spec, (str, os.PathLike)) or str(spec).lower() in _BUNDLED:
        return None
    try:
        path = model_path(spec)
    except RecalliteError:
        return None
    tokenizer = path / "tokenizer.json" if path.is_dir() else path.with_name("tokenizer.json")
    return tokenizer if tokenizer.is_file() else None


@cache
def _of_tokenizer(path: Path, bundled: bool) -> Measure:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    find = partial(_places, tokenizer)
    if bundled:
        find = partial(_places_by_word, WordCache(partial(_places_in_word, tokenizer), _CACHED_WORDS))
    return lambda texts: [int64_array(find(text)) for text in texts]


def _places(tokenizer: Any, text: str) -> list[int]:
    """The token offsets of any tokenizer; a long token gets one every four characters."""
    starts: list[int] = []
    offset = 0
    for piece in pieces(text):
        for begin, end in tokenizer.encode(piece, add_special_tokens=False).offsets:
            step = _CHARS_PER_TOKEN if end - begin > _LONGEST_TOKEN else max(1, end - begin)
            starts += range(offset + begin, offset + end, step)
        offset += len(piece)
    return starts


def _places_by_word(words: WordCache[Sequence[int]], text: str) -> list[int]:
    """The token offsets of the bundled tokenizer behind a word cache: a tenth of its own time."""
    return [match.start() + place for match in WORD.finditer(folded(text)) for place in words[match[0]]]


def _places_in_word(tokenizer: Any, word: str) -> Sequence[int]:
    if word.isascii() and len(word) > _LONGEST_WORD:
        return range(0, len(word), _CHARS_PER_TOKEN)
    return _places(tokenizer, word)


def _by_characters(texts: Sequence[str]) -> list[NDArray[np.int64]]:
    import numpy as np

    starts = []
    for text in texts:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        unspaced = np.zeros(len(points), np.bool_)
        for low, high in _UNSPACED:
            unspaced |= (points >= low) & (points <= high)
        passed = np.cumsum(np.where(unspaced, _CHARS_PER_TOKEN, 1)) - 1
        starts.append(np.flatnonzero(np.diff(passed // _CHARS_PER_TOKEN, prepend=-1)))
    return starts


def _filled(starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """`starts` with more offsets in gaps that are too long."""
    import numpy as np

    edges = np.zeros(len(starts) + 2, np.int64)
    edges[1:-1], edges[-1] = starts, length
    gaps = edges[1:] - edges[:-1]
    if gaps.max() <= _LONGEST_GAP:
        return starts
    between = [
        np.arange(edges[i] + _LONGEST_GAP, edges[i + 1], _LONGEST_GAP) for i in np.flatnonzero(gaps > _LONGEST_GAP)
    ]
    return np.sort(np.concatenate((starts, *between)))
