"""Questions that are recalled otherwise than they stand: those about a whole story, and those about the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from recallite.recall.asked_time import NOW, asked_of
from recallite.recall.request import Request
from recallite.text.questions import as_story
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, query_terms

_MOST_KEYWORDS, _LONGEST_KEYWORDS = 3, 60


class Adapted(NamedTuple):
    """Queries of one call that share a request: their places among all of them, and what is searched for each."""

    places: list[int]
    texts: list[str]
    request: Request


def adapt(query: str, request: Request, *, stories: bool) -> tuple[str, Request]:
    """The text that is searched for a query, and its request; `stories` may be searched by another text.

    A question about a whole story is searched by its topic: most of its other words name no memory. On BEAM's ordering
    questions that alone doubled the evidence among 40 hits. A story, and a question about the past, are told with what
    no longer holds.
    """
    if not request.profile.adaptive:
        return query, request
    story = as_story(query) if stories else None
    past = story is not None or asked_of(query, request.clock) is not NOW
    if past:
        request = structs.replace(request, about_past=True, filter=request.filter.replaced(include_superseded=True))
    if request.relevant and (story is not None or of_keywords(query)):
        profile = structs.replace(request.profile, min_confidence=request.own_least)
        request = structs.replace(request, profile=profile, relevant=story is None, keywords=story is None)
    if story is None:
        return query, request
    over = request.diversify_by or "time"
    return story.topic, structs.replace(request, diversify_by=over, own_words=story.own_words)


def of_keywords(query: str) -> bool:
    """Whether a query is one to three words that do not ask: each of them counts."""
    terms = query_terms(query) if len(query) <= _LONGEST_KEYWORDS and not query.rstrip().endswith("?") else []
    return 0 < len(terms) <= _MOST_KEYWORDS and not any(term in STOP_TERMS or term in QUESTION_TERMS for term in terms)


def adapt_all(queries: Sequence[str], request: Request, *, stories: bool) -> list[Adapted]:
    """The queries by the request that they become; most calls have one group."""
    groups: dict[tuple[str | None, bool, bool, bool], Adapted] = {}
    for place, query in enumerate(queries):
        text, query_request = adapt(query, request, stories=stories)
        group = groups.setdefault(
            (query_request.diversify_by, query_request.own_words, query_request.about_past, query_request.keywords),
            Adapted([], [], query_request),
        )
        group.places.append(place)
        group.texts.append(text)
    return list(groups.values())
