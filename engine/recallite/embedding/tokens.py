"""Tokens of texts: their ids, their codes, words with known tokens, and where in a text each begins.

Each text is tokenised once, whatever its length. Words are cached for a tokenizer: those of a language are few and
repeat. Offsets of tokens measure passages, whether or not a model is installed.

A tokenizer has an id for every text. One made for English cuts Russian into letters and has one token for any word of
Thai, and the vectors of such texts say nothing of what they mean. So the letters of a text are counted by script, and
a script is read if the vocabulary has pieces of its words. Letters in Latin script are, whatever the language.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recallite.embedding.load import is_foreign, model_path
from recallite.embedding.protocol import Unread
from recallite.errors import EmbedderError, RecalliteError
from recallite.system.messages import fault_text
from recallite.system.numerics import kernels
from recallite.text.words import STOP_WORDS, Cached

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Measure = Callable[[Sequence[str]], list[NDArray[np.int64]]]


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


# Single ASCII punctuation characters, and runs of anything else between them and whitespace. BERT's own pre-tokenizer
# splits there too, without context, so the tokens of these words, joined, are the tokens of the text.
WORD = re.compile(r"[^ \t\n\r!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")


def read_tokenizer(path: Path) -> Any:
    """The tokenizer that a `tokenizer.json` describes. Raises EmbedderError, also if the library is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError as reason:
        raise missing("tokenizers") from reason
    try:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as reason:
        raise EmbedderError(f"{path} is no tokenizer that can be read: {reason}", "invalid_model") from reason
    return tokenizer


def missing(package: str) -> EmbedderError:
    """The error for a package that is not installed."""
    return EmbedderError(
        f"cannot embed without {package}: pip install {package}, "
        'or use Settings(embedder="none") for keyword search alone',
        "missing",
    )


class TokenIds:
    """A tokenizer that returns ids as int64 arrays, without special tokens; `frame` adds these."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        framed, ids = tokenizer.encode("a").ids, tokenizer.encode("a", add_special_tokens=False).ids
        begin = framed.index(ids[0]) if ids else len(framed)
        self.before, self.after = int64_array(framed[:begin]), int64_array(framed[begin + len(ids) :])
        # The number of special tokens around every sequence.
        self.specials = len(self.before) + len(self.after)
        self._informative: NDArray[np.bool_] | None = None
        self.padding: int = tokenizer.token_to_id("[PAD]") or tokenizer.token_to_id("<pad>") or 0

    def encode(self, texts: Sequence[str], limit: int | None = None) -> list[NDArray[np.int64]]:
        """Ids of each text, the first `limit` if given. Raises EmbedderError."""
        try:
            short = [text for text in texts if len(text) <= PIECE_CHARS]
            if len(short) <= _FEW:
                # For few texts the tokenizer's thread pool costs more than it saves.
                rows = map(partial(self._tokenizer.encode, add_special_tokens=False), short)
            else:
                rows = iter(self._tokenizer.encode_batch_fast(short, add_special_tokens=False))
            return [
                np.array(next(rows).ids[:limit], np.int64) if len(text) <= PIECE_CHARS else self._long(text, limit)
                for text in texts
            ]
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason

    def encode_with_begins(self, texts: Sequence[str], limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
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

    def informative(self) -> NDArray[np.bool_]:
        """Return a mask of the ids of informative tokens: with a letter or digit, and no stop word."""
        if self._informative is None:
            vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
            mask = np.zeros(max(vocabulary.values(), default=0) + 1, np.bool_)
            for token, number in vocabulary.items():
                # A piece that begins a word is unmarked in BERT's vocabulary and marked "▁" or "Ġ" in others.
                word = token.lstrip("▁Ġ").lower()
                mask[number] = word not in STOP_WORDS and any(map(str.isalnum, word))
            self._informative = mask
        return self._informative

    def _long(self, text: str, limit: int | None) -> NDArray[np.int64]:
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
        return np.concatenate((self.before, ids, self.after))


def int64_array(numbers: list[int]) -> NDArray[np.int64]:
    """Return the numbers as an int64 array."""
    return np.array(numbers, np.int64)


# Codes of tokens for token-level reranking: which tokens of a text get one, and its bits. Chosen on FriendsQA (test),
# as turns and as passages of 1,800 characters, and QMSum (validation), as passages of 2,500:
# - A code has 128 bits. The components of a token's vector are folded: 128 sums of equally many components each, one
#   bit a sum. 384, 192, 128 and 64 bits rank equally well, on turns and on passages.
# - A token that repeats in a text gets one code, and a text gets at most 64, those of its rarest tokens. The first 64
#   or 64 at random rank passages of QMSum lower, 32 both kinds of passage.
CODE_BITS = 128
MOST_CODES = 64


def token_codes(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The code of each vector of (n, width): uint64 (n, 2), or fewer words where the width has fewer than 65 bits."""
    count, width = vectors.shape
    if width > CODE_BITS:
        short = -width % CODE_BITS
        if short:
            vectors = np.concatenate((vectors, np.zeros((count, short), np.float32)), axis=1)
        vectors = vectors.reshape(count, (width + short) // CODE_BITS, CODE_BITS).sum(axis=1)
    return kernels.sketch(np.ascontiguousarray(vectors, dtype=np.float32))


def code_width(width: int) -> int:
    """The bits of the code of a vector of this width."""
    return min(width, CODE_BITS)


def choose_tokens(
    rows: Sequence[NDArray[np.int64]], owners: NDArray[np.int64], informative: NDArray[np.bool_]
) -> list[NDArray[np.int64]]:
    """The indexes in each row of token ids that get a code; row i is a part of the text owners[i], ascending.

    Only `informative` ids do. A vocabulary is in order of frequency, so the greatest ids are the rarest tokens.
    """
    ids = np.concatenate([np.empty(0, np.int64), *rows])
    lengths = np.array(list(map(len, rows)), np.int64)
    candidates = np.flatnonzero(informative[ids])
    of_text, size = np.repeat(owners, lengths)[candidates], len(informative)
    # Sorted by text, then the rarest first; of equal ones `unique` keeps the first.
    keys, first = np.unique(of_text * size + (size - 1 - ids[candidates]), return_index=True)
    texts = keys // size
    rank = np.arange(len(keys)) - np.searchsorted(texts, texts)
    coded = np.sort(candidates[first[rank < MOST_CODES]])
    ends = np.cumsum(lengths)
    bounds = np.searchsorted(coded, np.concatenate(([0], ends))).tolist()
    starts = (ends - lengths).tolist()
    return [coded[begin:end] - start for begin, end, start in zip(bounds, bounds[1:], starts, strict=False)]


_CACHED_WORDS, _LONGEST_CACHED = 32_768, 32


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
        self.words = Cached(self._ids, _CACHED_WORDS, _LONGEST_CACHED)
        self._long = TokenIds(tokenizer)
        self.informative = self._long.informative

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens. Raises EmbedderError."""
        return list(chain.from_iterable(map(self.words.__getitem__, WORD.findall(folded(text)))))

    def ids_and_begins(self, text: str) -> tuple[list[int], list[int]]:
        """`ids`, and the character at which the word of each token begins."""
        ids: list[int] = []
        begins: list[int] = []
        for match in WORD.finditer(folded(text)):
            word_ids = self.words[match[0]]
            ids += word_ids
            begins += [match.start()] * len(word_ids)
        return ids, begins

    def _ids(self, word: str) -> list[int]:
        # A word that is a token by itself is found by its name, without the tokenizer.
        whole = self._tokenizer.token_to_id(word) if word.isascii() else None
        if whole is not None:
            return [whole]
        if len(word) > _LONGEST_CACHED:
            return [int(token) for token in self._long.encode([word])[0]]
        try:
            return list(self._tokenizer.encode(word, add_special_tokens=False).ids)
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {reason}") from reason


# Where in a text each token begins.

_BUNDLED = ("default", "none", "instant")
_CHARS_PER_TOKEN = 4
# WordPiece turns a word of more than 100 characters into one token, [UNK]: without a bound in characters a megabyte of
# base64 would be a passage of one token. Whitespace and characters without a token are bounded likewise.
_LONGEST_TOKEN = 32
_LONGEST_GAP = 256
_LONGEST_WORD = 100
_CACHED_BEGINS = 65_536
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
    foreign = spec not in _BUNDLED and is_foreign(spec)  # entry points take 20 ms to read
    own = getattr(loaded() if foreign and loaded is not None else spec, "token_starts", None)
    measure = cast("Measure", own) if callable(own) else _by_characters
    if measure is _by_characters and not foreign:
        with suppress(RecalliteError, ImportError):
            bundled = model_path(None).with_name("tokenizer.json")
            path = _named(spec) or bundled
            measure = _of_tokenizer(path, bundled=path == bundled)

    def starts(texts: Sequence[str]) -> list[NDArray[np.int64]]:
        try:
            return [_filled(token_starts, len(text)) for token_starts, text in zip(measure(texts), texts, strict=True)]
        except RecalliteError:
            raise
        except Exception as reason:
            raise EmbedderError(f"the tokenizer failed: {fault_text(reason)}") from reason

    return starts


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
    tokenizer = read_tokenizer(path)
    if not bundled:
        return lambda texts: [int64_array(_begins(tokenizer, text)) for text in texts]

    def begins_in_word(word: str) -> Sequence[int]:
        if word.isascii() and len(word) > _LONGEST_WORD:
            return range(0, len(word), _CHARS_PER_TOKEN)
        return _begins(tokenizer, word)

    words = Cached(begins_in_word, _CACHED_BEGINS, _LONGEST_CACHED)

    def begins_by_word(text: str) -> NDArray[np.int64]:
        # A tenth of the tokenizer's own time.
        matches = WORD.finditer(folded(text))
        return int64_array([match.start() + begin for match in matches for begin in words[match[0]]])

    return lambda texts: list(map(begins_by_word, texts))


def _begins(tokenizer: Any, text: str) -> list[int]:
    """The token offsets of any tokenizer; a long token gets one every four characters."""
    starts: list[int] = []
    offset = 0
    for piece in pieces(text):
        for begin, end in tokenizer.encode(piece, add_special_tokens=False).offsets:
            step = _CHARS_PER_TOKEN if end - begin > _LONGEST_TOKEN else max(1, end - begin)
            starts += range(offset + begin, offset + end, step)
        offset += len(piece)
    return starts


def _by_characters(texts: Sequence[str]) -> list[NDArray[np.int64]]:
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
    edges = np.zeros(len(starts) + 2, np.int64)
    edges[1:-1], edges[-1] = starts, length
    gaps = edges[1:] - edges[:-1]
    if gaps.max() <= _LONGEST_GAP:
        return starts
    between = [
        np.arange(edges[i] + _LONGEST_GAP, edges[i + 1], _LONGEST_GAP) for i in np.flatnonzero(gaps > _LONGEST_GAP)
    ]
    return np.sort(np.concatenate((starts, *between)))


# Which scripts a model reads: those that its vocabulary has words of.

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
