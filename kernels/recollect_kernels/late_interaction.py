"""Late interaction of a query's tokens with those of a few records, all as 1-bit codes."""

from __future__ import annotations

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F32, I64, U64, array


def max_sim(query: U64, weights: F32, codes: U64, offsets: I64, dimension: int) -> F32:
    """Each record's MaxSim: the weighted sum over query tokens of the similarity of the record's most similar token.

    query uint64 (t, w) with weights float32 (t,); codes uint64 (n, w), of which record i has
    codes[offsets[i]:offsets[i + 1]], offsets int64 (m + 1,) -> float32 (m,). Codes are those of `sketch`; two that
    differ in h of `dimension` bits have the similarity 1 - 2 h / dimension. A record without tokens scores 0.
    MaxSim: Khattab and Zaharia, ColBERT, 2020.
    """
    array("query", query, contract.u64, None, None)
    words = query.shape[1]
    dimension = contract.whole("dimension", dimension, 1, 64 * words)
    array("weights", weights, contract.f32, query.shape[0])
    contract.finite("weights", weights)
    array("codes", codes, contract.u64, None, words)
    contract.offsets("offsets", offsets, codes.shape[0])
    return dispatch.active.max_sim(query, weights, codes, offsets, dimension)
