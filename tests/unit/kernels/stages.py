"""Stages of a recall as functions of Python, held to `oracle`; `test_recall` holds the compiled recall to them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import recallite_kernels as kernels
from recallite_kernels.arguments import Codes, Mentions, Tokens
from recallite_kernels.python_backend import evidence, forest, rank

_TIMES, _VALUES = np.empty(0, np.int64), np.empty(0, np.float32)
_NO_CODES = Codes(_VALUES, np.inf, _TIMES, np.empty(0, np.int32), np.empty((0, 0), np.int8), _VALUES)
_NO_MENTIONS = Mentions(np.empty(0, np.int32), _TIMES, _TIMES, _TIMES)
_NO_TOKENS = Tokens(np.empty((0, 0), np.uint64), _VALUES, _TIMES, np.empty(0, np.uint64), 1)


def rank_candidates(lists, codes, postings, graph, records, parameters, rerank=None, mentions=None, tokens=None):
    """Rows, signals and order of the candidates; None if something is out of range."""
    return rank.rank_candidates(
        lists, codes or _NO_CODES, postings, graph, records, kernels.check_parameters(parameters),
        np.empty(0) if rerank is None else rerank, mentions or _NO_MENTIONS, tokens or _NO_TOKENS,
    )  # fmt: skip


def rank_by_forest(*arguments):
    names = "features", "outputs", "order", "scores"
    return SimpleNamespace(**dict(zip(names, forest.rank_by_forest(*arguments), strict=True)))


def assess(*arguments):
    names = "evidence", "confidence", "reasons", "contained"
    return SimpleNamespace(**dict(zip(names, evidence.assess(*arguments), strict=True)))
