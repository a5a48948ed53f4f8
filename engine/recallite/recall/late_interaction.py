"""The tokens of queries for token-level reranking by late interaction (Khattab and Zaharia, ColBERT, 2020).

The kernel `rank_candidates` compares them with the tokens of the best candidates. It changes the fused score, before
spreading, so that neighbours gain too. After spreading, at the same weight, it gave LoCoMo as much and cost RealMem
0.005 of recall@20.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallite.index.query_batch import QueryCodes
from recallite.text.index_terms import placed_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.embedding.protocol import QueryTokens
    from recallite.index.query_batch import QueryBatch
    from recallite.recall.query import Words


def query_codes(
    batch: QueryBatch, texts: Sequence[str], tokens: Sequence[QueryTokens | None], words: Sequence[Words]
) -> QueryCodes | None:
    """The codes of each query's tokens whose words are in it, with their weights; None where no query has any."""
    codes, weights, counts, width = [], [], [0], 1
    bounds, every = batch.slices.word_offsets.tolist(), batch.slices.idf.tolist()
    for query, (text, each, known) in enumerate(zip(texts, tokens, words, strict=True)):
        counts.append(counts[-1])
        if each is None:
            continue
        idf = dict(zip(known.known, every[bounds[query] : bounds[query + 1]], strict=True))
        if known.unknown:
            idf.update(zip(known.unknown, batch.unknown_idf(known.unknown), strict=True))
        shares = token_weights(text, each.places, idf)
        asked = [place for place, share in enumerate(shares) if share]
        if asked:
            codes.append(each.codes[asked])
            weights += [shares[place] for place in asked]
            counts[-1] += len(asked)
            width = each.width
    if not codes:
        return None
    return QueryCodes(
        codes[0] if len(codes) == 1 else np.concatenate(codes),
        np.array(weights, dtype=np.float32),
        np.array(counts, dtype=np.int64),
        width,
    )


def token_weights(text: str, places: NDArray[np.int64], idf: Mapping[str, float]) -> list[float]:
    """The share of each token of a query, of sum 1: its word's `idf`, 0 for words that are not in it.

    `places` are the characters at which the tokens begin. Of a word of several terms the rarest counts. All zero where
    no token has a word.
    """
    begins, weights = [], [0.0]
    for begin, terms in placed_terms(text):
        begins.append(begin)
        if len(terms) == 1:
            weights.append(idf.get(terms[0], 0.0))
        else:
            weights.append(max([idf.get(term, 0.0) for term in terms], default=0.0))
    # Plain lists: for a dozen words they take half the time of arrays.
    found = [weights[bisect_right(begins, place)] for place in places.tolist()]
    total = sum(found) or 1.0
    return [weight / total for weight in found]
