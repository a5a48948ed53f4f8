"""Pooling (float32): a text's vector from the quantised vectors of its tokens."""

from __future__ import annotations

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import F32, I8, I64, array


def pool_tokens(codes: I8, scales: F32, token_ids: I64, offsets: I64) -> F32:
    """The sum of each text's token vectors, divided by its length; a text without a token, or a sum of 0, is 0.

    Token v has the vector codes[v] * scales[v]: codes int8 (v, d), scales float32 (v,). Text i has the tokens
    token_ids[offsets[i]:offsets[i + 1]], int64 -> float32 (n, d). A text's row does not depend on the others.
    """
    array("codes", codes, contract.i8, None, None)
    array("scales", scales, contract.f32, codes.shape[0])
    contract.indices("token_ids", token_ids, codes.shape[0])
    contract.offsets("offsets", offsets, token_ids.shape[0])
    vectors = dispatch.active.pool_tokens(codes, scales, token_ids, offsets)
    contract.finite_scores(vectors, "scales")
    return vectors
