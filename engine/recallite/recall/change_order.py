"""What changed: of the best candidates that state one thing with different values, the one that holds leads.

"Dana lives in Bergen now" goes directly before "Dana lives in Oslo", whichever is nearer to the question, if it is the
later one. A question about the past turns that around: what held before, at first, or at the time that it names leads.
Statements that were marked as superseded when they were written are not shown at all, but to such a question they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.recall.dates import spans_of
from recallite.recall.learned_ranking import DEPTH
from recallite.system.numerics import kernels
from recallite.text.index_terms import query_terms, tokenize
from recallite.text.past import as_past, in_past_tense
from recallite.text.stopwords import STOP_TERMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.recall.candidates import Candidates
    from recallite.recall.record_loader import RecordLoader


_EVER = np.iinfo(np.int64)
# Words. Without a limit LoCoMo lost 0.002 of MRR to turns that share a clause and are about other things.
_LONGEST_TURN = 12
# Odd, so that scopes stay apart: frames of two scopes are never the same thing.
_SCOPE_FACTOR = np.uint32(0x9E3779B1)


class Asked(NamedTuple):
    """The time that a question is about: a moment in microseconds, or what is former.

    `before` are index terms of what it was before, in a question about what was before something.
    """

    moment: int
    former: bool = False
    before: frozenset[str] = frozenset()


NOW, _FORMER, _FIRST = Asked(_EVER.max), Asked(_EVER.max, former=True), Asked(_EVER.min)


@lru_cache(maxsize=64)  # a question about the past is looked at again when it is answered
def asked_of(question: str, clock_us: int) -> Asked:
    """The time that a question is about; `NOW` for one that is not recognised as being about the past."""
    past = as_past(question)
    if past is not None and past.which != "before":
        return _FORMER if past.which == "former" else _FIRST
    if past is None and not in_past_tense(question):
        return NOW
    spans = spans_of(question, query_terms(question), clock_us)
    moment = max((span.end for span in spans if span.begin <= clock_us), default=clock_us) - 1
    if spans:
        return Asked(moment) if moment < clock_us else NOW
    return NOW if past is None else _FORMER._replace(before=frozenset(tokenize(past.named)) - STOP_TERMS)


def order_changes(
    candidates: Candidates, batch: QueryBatch, loader: RecordLoader, asked: Sequence[Asked], *, marked: bool
) -> Candidates:
    """The candidates with what holds at the time asked about, by query, before what it replaced, among the best.

    `marked`: superseded records are among them.
    """
    best = candidates.best(DEPTH)
    places = best[0] if len(best) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *best])
    keys, rows = candidates.keys[places], candidates.rows[places]
    much = _tells_much(batch, rows)
    marked = marked and batch.any_superseded
    if not marked and len(much) - np.count_nonzero(much) < 2:  # nothing to compare: most questions of transcripts
        return candidates
    read = loader.frames(keys[~much])
    stated = np.zeros((len(keys), *read.shape[1:]), dtype=np.uint32)
    stated[~much] = read
    if marked:
        stated = _with_chains(stated, keys.tolist(), loader.superseded(keys))
    frames = stated[..., 0]
    found = frames[frames != 0].tolist()
    if len(found) == len(set(found)):  # nothing is stated twice: most questions of most stores
        return candidates
    frames = np.where(frames == 0, frames, frames ^ (batch.scopes(rows).astype(np.uint32) * _SCOPE_FACTOR)[:, None])
    offsets = np.cumsum([0, *map(len, best)], dtype=np.int64)
    statements = kernels.Statements(offsets, frames, np.ascontiguousarray(stated[..., 1]), batch.began(rows), keys)
    asked = [
        _before(each, statements, slice(start, stop), loader) if each.before else each
        for each, (start, stop) in zip(asked, pairwise(offsets.tolist()), strict=False)
    ]
    moments = np.array([each.moment for each in asked], dtype=np.int64)
    former = np.array([each.former for each in asked], dtype=np.uint8)
    order, leads = kernels.order_changes(statements, kernels.Asked(moments, former))
    again = [own[order[start:stop]] for own, (start, stop) in zip(best, pairwise(offsets.tolist()), strict=False)]
    changed = candidates.reordered(best, again)
    changed.successors = np.full(len(candidates), -1, dtype=np.int64)
    replaced = leads >= 0
    firsts = np.repeat(offsets[:-1], np.diff(offsets))
    changed.successors[places[replaced]] = keys[(leads + firsts)[replaced]]
    changed.raised = np.zeros(len(candidates), dtype=np.bool_)
    ranks = np.arange(len(places)) - firsts
    changed.raised[places[order + firsts]] = ranks < order
    return changed


def _tells_much(batch: QueryBatch, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row is a longer turn of a transcript: what it is about is seldom what one clause of it states."""
    much: NDArray[np.bool_] = batch.positioned(rows) & (batch.lengths(rows) > _LONGEST_TURN)
    return much


def _with_chains(stated: NDArray[np.uint32], keys: list[int], pairs: Iterable[tuple[int, int]]) -> NDArray[np.uint32]:
    """With records of which one superseded the other as one more thing with a value each.

    What a superseded record states besides does not matter: all of it was superseded.
    """
    place_of = {key: place for place, key in enumerate(keys)}
    chain, old = list(range(len(keys))), []
    for ends in pairs:
        if all(end in place_of for end in ends):
            old.append(place_of[ends[0]])
            before, after = (chain[place_of[end]] for end in ends)
            chain = [after if each == before else each for each in chain]
    added = np.array([chain, range(len(keys))], dtype=np.uint32).T + 1
    added[[chain.count(each) == 1 for each in chain]] = 0
    stated = stated.copy()
    stated[old] = 0
    return np.concatenate([stated, added[:, None].astype(np.uint32)], axis=1)


def _before(asked: Asked, statements: kernels.Statements, own: slice, loader: RecordLoader) -> Asked:
    """The moment before what a question names began: of the candidates that say it best, the earliest."""
    frames = statements.frames[own]
    things, counts = np.unique(frames[frames != 0], return_counts=True)
    about = np.isin(frames, things[counts > 1]).any(axis=1)
    texts = loader.texts(statements.keys[own][about])
    said = np.array([len(asked.before.intersection(tokenize(text))) for text in texts], dtype=np.int64)
    if not said.any():
        return asked
    return Asked(int(statements.moments[own][about][said == said.max()].min()) - 1)
