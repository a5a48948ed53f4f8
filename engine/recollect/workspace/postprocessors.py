"""What happens to the rows of a strategy, in order: threshold, decay, MMR, registered post-processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recollect.checks import shown
from recollect.errors import InvalidInput
from recollect.numerics import kernel_errors, kernels
from recollect.text.tokens import tokenize
from recollect.workspace.strategies import RawSearchRow, check_rows

__all__ = ["apply_own", "check_postprocessor", "diversify", "fade", "reach"]


def reach(
    rows: Sequence[RawSearchRow], min_score: float, min_confidence: Callable[[RawSearchRow], float]
) -> list[RawSearchRow]:
    """The rows whose score is at least `min_score`, and whose confidence, if known, is at least what the row needs."""
    return [
        row
        for row in rows
        if row.score >= min_score and (row.confidence is None or row.confidence >= min_confidence(row))
    ]


def fade(rows: Sequence[RawSearchRow], ages_days: Sequence[float | None], half_life_days: float) -> list[RawSearchRow]:
    """Rows with their score times 0.5 ** (age / half-life), best first; one without an age keeps its score."""
    if not rows:
        return []
    ages = np.array([0.0 if age is None else age for age in ages_days])
    with kernel_errors():
        weights = kernels.decay(ages, half_life_days).tolist()
    faded = [replace(row, score=row.score * weight) for row, weight in zip(rows, weights, strict=True)]
    return sorted(faded, key=lambda row: -row.score)


def diversify(rows: Sequence[RawSearchRow], mmr_lambda: float) -> list[RawSearchRow]:
    """The rows by maximal marginal relevance over the sets of their words (bigrams for CJK)."""
    if len(rows) < 2:
        return list(rows)
    numbers: dict[str, int] = {}
    sets = [np.unique([numbers.setdefault(word, len(numbers)) for word in tokenize(row.text)]) for row in rows]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    with kernel_errors():
        order = kernels.maximal_marginal_relevance(
            np.array([row.score for row in rows], dtype=np.float64),
            np.concatenate(sets).astype(np.int32), offsets, mmr_lambda, len(rows),
        )  # fmt: skip
    return [rows[place] for place in order.tolist()]


def apply_own(
    rows: list[RawSearchRow],
    query: str,
    processors: Sequence[Any],
    finish: Callable[[Any], Any],
    options: dict[str, Any],
) -> list[RawSearchRow]:
    """The rows after the registered post-processors. InvalidInput names one that returns something else."""
    for processor in processors:
        rows = check_rows(
            finish(processor.apply(rows, query, **options)), f"the post-processor {type(processor).__name__}"
        )
    return rows


def check_postprocessor(processor: object) -> object:
    """An object with `apply`. Raises InvalidInput."""
    if isinstance(processor, type) or not callable(getattr(processor, "apply", None)):
        raise InvalidInput(
            f"the post-processor is {shown(processor)}: give an object with apply(rows, query, **kwargs)"
        )
    return processor
