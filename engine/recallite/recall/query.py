"""Queries as a recall takes them: checked texts and their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.checks import check_vector
from recallite.store.values import EmbedderRow
from recallite.text.words import STOP_TERMS, query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.embedding.protocol import QueryTokens
    from recallite.engine import Engine
    from recallite.recall.request import Request


class Queries(NamedTuple):
    """Texts with a unit vector each, or none where only keywords are searched (`gap` says why).

    `tokens` are there where the store has token codes for reranking.

    `fingerprint` is that of the embedder that made the vectors, None where the caller gave them.
    """

    texts: list[str]
    vectors: Sequence[NDArray[np.float32]] | None
    tokens: Sequence[QueryTokens | None] | None = None
    fingerprint: str | None = None
    gap: str | None = None

    def part(self, start: int, stop: int) -> Queries:
        """Some of them."""
        one = slice(start, stop)
        return self._replace(
            texts=self.texts[one],
            vectors=None if self.vectors is None else self.vectors[one],
            tokens=None if self.tokens is None else self.tokens[one],
        )


def prepare_queries(
    engine: Engine, queries: Sequence[str], vectors: Sequence[NDArray[np.float32]] | None, request: Request
) -> Queries:
    """Embed the queries in one batch, before a transaction is open."""
    texts = [*queries]
    if vectors is not None:
        return Queries(texts, vectors)
    if request.mode == "keyword" or request.profile.vector_weight == 0 or not texts:
        return Queries(texts, None)
    active, has_codes = _stored_vectors(engine)
    by_tokens = request.profile.rerank_weight > 0 and has_codes
    if active is None:
        return Queries(texts, None)
    if request.mode == "vector" and not engine.embedder.enabled:
        raise EmbedderError("this memory has no embedder: give vector=, or use mode='keyword'", "missing")
    try:
        fingerprint = engine.check_embedder(active, queries_first=len(texts) == 1).fingerprint
        # A server is not waited for again. Should the store move to another embedder, `check_comparable` finds it.
        engine.queried_embedder = active if has_codes else None
        embedded = engine.embedder.queries(texts, tokens=by_tokens)
        engine.embedder.worked()
        tokens = [query.tokens for query in embedded] if by_tokens else None
        return Queries(texts, [query.vector for query in embedded], tokens, fingerprint)
    except EmbedderMismatch:
        raise
    except EmbedderError as failure:
        if request.mode == "vector":
            raise
        engine.embedder.failed(failure, "recall is by keywords")
        return Queries(texts, None, gap=f"meaning was not searched: {failure}")


def _stored_vectors(engine: Engine) -> tuple[EmbedderRow | None, bool]:
    """The embedder of the store's vectors, and whether it has codes of their tokens."""
    if engine.queried_embedder is not None:
        return engine.queried_embedder, True
    with engine.store.read() as reader:
        return reader.vectors.active_embedder(), reader.vectors.has_token_codes()


def check_comparable(queries: Queries, active: EmbedderRow | None, path: str) -> None:
    """Refuse query vectors that cannot be compared with those of the store in this transaction."""
    if active is None or queries.vectors is None:
        return
    if queries.fingerprint is not None and queries.fingerprint != active.fingerprint:
        raise EmbedderMismatch(
            f"{path} holds vectors of {active.name} ({active.dimension}, {active.fingerprint}) by now: another process "
            "moved it to that embedder; open the memory with it"
        )
    for place, vector in enumerate(queries.vectors):
        if len(vector) != active.dimension:
            raise InvalidInput(
                f"vector {place} has shape ({len(vector)},): this store takes shape ({active.dimension},)", "vector"
            )


def query_words(text: str) -> list[str]:
    """The query's words without stop words; all of them where it has only stop words."""
    terms = query_terms(text)
    return [word for word in terms if word not in STOP_TERMS] or terms


def given_vectors(vectors: Sequence[object], count: int) -> list[NDArray[np.float32]]:
    """Check the vectors that the caller gives for `count` queries."""
    try:
        listed = list(vectors)
    except TypeError:
        raise InvalidInput(f"vectors is {type(vectors).__name__}: give one vector a query") from None
    if len(listed) != count:
        raise InvalidInput(f"vectors has {len(listed)} entries for {count} queries: give one each")
    return [check_vector(vector, None) for vector in listed]
