"""Stages of a recall as functions of Python, held to `oracle`; `test_recall` holds the compiled recall to them."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np

import recallite_kernels as kernels
from recallite_kernels.arguments import Mentions, Tokens
from recallite_kernels.python_backend import changes, evidence, forest, lexical, rank

_NO_INDEX, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0)
_NO_MENTIONS = Mentions(np.empty(0, np.int32), *[_NO_INDEX] * 5)
_NO_TOKENS = Tokens(np.empty((0, 0), np.uint64), np.empty(0, np.float32), *[_NO_INDEX] * 2, np.empty(0, np.uint64), 1)


def rank_candidates(lists, codes, postings, graph, records, parameters, rerank=None, mentions=None, tokens=None):
    """Offsets, rows, signals and order of the candidates of each query; None if something is out of range."""
    return rank.rank_candidates(
        lists, codes, postings, graph, records, kernels.check_parameters(parameters),
        _NO_NUMBERS if rerank is None else rerank, mentions or _NO_MENTIONS, tokens or _NO_TOKENS,
    )  # fmt: skip


def rank_by_forest(*arguments):
    names = "features", "outputs", "order", "scores"
    return SimpleNamespace(**dict(zip(names, forest.rank_by_forest(*arguments), strict=True)))


def assess(*arguments):
    names = "evidence", "confidence", "reasons", "held"
    return SimpleNamespace(**dict(zip(names, evidence.assess(*arguments), strict=True)))


def order_changes(statements, asked):
    return changes.order_changes(statements, asked)


def fill_bm25(postings, offsets, candidates, scores):
    """Write the BM25 of each query's candidates whose score is NaN."""
    for query, (start, stop) in enumerate(pairwise(offsets.tolist())):
        lexical.fill_bm25(postings, query, candidates[start:stop], scores[start:stop])


def word_coverage(*arguments):
    """The summed IDF of the words that each candidate contains, and which words any of them contains."""
    covered, contained = lexical.coverage(*arguments)
    return covered, contained.any(axis=0).astype(np.uint8)
