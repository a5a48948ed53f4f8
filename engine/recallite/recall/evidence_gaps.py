"""Evidence gaps: what the hits of a query do not cover, in words that fit into a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from recallite.recall.dates import names_time
from recallite.text.index_terms import tokenize
from recallite.text.stopwords import QUESTION_TERMS

if TYPE_CHECKING:
    from recallite.index.query_batch import QueryBatch
    from recallite.recall.confidence import Assessment
    from recallite.recall.hits import ScoredHit
    from recallite.recall.query import Words
    from recallite.recall.request import Request


# Gaps go into prompts: limits on the words named and on their length.
_MOST_NAMED, _LONGEST_NAMED = 20, 60
# More than a mean of equal numbers differs from them.
_ROUNDING = 1e-6


def find_gaps(
    batch: QueryBatch,
    texts: Sequence[str],
    words: Sequence[Words],
    evidence: Assessment,
    hits: Sequence[Sequence[ScoredHit]],
    request: Request,
    found: Sequence[int],
) -> list[tuple[str, ...]]:
    """What the hits of each answer do not cover; of a decomposed question sub-query by sub-query.

    `found` counts the candidates of each answer.
    """
    profile, missing = request.profile, []
    minima = (("score", profile.min_score), ("confidence", profile.min_confidence))
    minimum = " and ".join(f"the minimum {name} of {least:g}" for name, least in minima if least > 0)
    # Plain lists: for a dozen words arrays take longer.
    idf, met = batch.slices.idf.tolist(), evidence.met.tolist()
    for query, (start, stop) in enumerate(pairwise(batch.slices.word_offsets.tolist())):
        answer = min(query, len(hits) - 1)
        missing.append(
            _gaps(
                texts[query], evidence.by_query[query].tolist(), words[query], idf[start:stop], met[start:stop],
                hits[answer], profile.gap_confidence, request.time_range, minimum if found[answer] else "",
            )
        )  # fmt: skip
    if len(hits) < len(texts):
        named = (
            f"{gap}, for {text!r}" if hits[0] else gap
            for text, gaps in zip(texts[1:], missing[1:], strict=True)
            for gap in gaps
        )
        return [tuple(dict.fromkeys(named))]
    least = math.inf if profile.gap_score is None else profile.gap_score
    return [() if any(hit.score >= least for hit in own) else gaps for own, gaps in zip(hits, missing, strict=True)]


def _gaps(
    text: str,
    confidence: list[float],
    words: Words,
    idf: list[float],
    met: list[bool],
    hits: Sequence[ScoredHit],
    threshold: float,
    time_range: str | None,
    minimum: str,
) -> tuple[str, ...]:
    """What the hits of one query do not cover: empty unless the best confidence is below `threshold`.

    `time_range` says in words which times were asked for; None where any will do. `minimum` says in words what the
    candidates did not reach; empty where there is no candidate or no minimum. No word of a time is named where a hit is
    of the time that the query names.
    """
    if not confidence:
        nothing = f"no match reaches {minimum}" if minimum else "nothing in this scope matches the query"
        return (nothing if time_range is None else f"no hit is {time_range}",) if threshold > 0 else ()
    best = max(confidence)
    if best >= threshold:
        return ()
    # Words at least as rare as the query's average word are named, and none that only asks.
    weight = sum(idf) / max(len(idf), 1) - _ROUNDING
    written = _as_written(text)
    dated = any(hit.signals["date"] > 0 for hit in hits)
    known = (word for word, own, there in zip(words.known, idf, met, strict=True) if not there and own >= weight)
    terms = (*words.unknown, *known)
    terms = tuple(term for term in terms if term not in QUESTION_TERMS and not (dated and names_time(term)))
    missing = list(dict.fromkeys(written.get(term, term) for term in terms))  # "Wi-Fi" has three terms
    gaps = [
        f"no hit mentions {word if len(word) <= _LONGEST_NAMED else word[:_LONGEST_NAMED] + '...'!r}"
        for word in missing[:_MOST_NAMED]
    ]
    if len(missing) > _MOST_NAMED:
        gaps.append(f"nor {len(missing) - _MOST_NAMED:,} other words of the query")
    return (*gaps, f"the best hit's confidence is {best:.2f}")


def _as_written(text: str) -> dict[str, str]:
    """Each index term of a text with the word it came from."""
    return {term: chunk.strip(".,;:!?\"'()[]") for chunk in text.split() for term in tokenize(chunk)}
