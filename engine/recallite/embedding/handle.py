"""The engine's handle on its embedder, which is loaded at first use and may be missing, and its cache of queries.

Agents repeat queries: the embeddings of the last ones are kept in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from recallite.embedding.protocol import (
    NO_PREFIXES,
    Embedder,
    Prefixes,
    QueryTokens,
    ScriptReader,
    TokenEmbedder,
    embed_checked,
    embed_documents,
    embed_tokens_checked,
    faults_of,
)
from recallite.errors import EmbedderError, RecalliteError
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.embedding.cohort import Cohort
    from recallite.embedding.protocol import Embedded
    from recallite.embedding.tokens import Measure
    from recallite.store.columns import Parts


class EmbeddedQuery(NamedTuple):
    """A query's vector, float32 (dimension,), read-only, and its tokens if requested and available."""

    vector: NDArray[np.float32]
    tokens: QueryTokens | None


class QueryCache:
    """An LRU cache of the last `size` distinct queries; thread-safe. Size 0 caches nothing."""

    def __init__(self, embedder: Embedder, size: int = 512) -> None:
        self._embedder = embedder
        # Asked once: it takes 20 microseconds, for a protocol is compared method by method.
        self.coder = embedder if isinstance(embedder, TokenEmbedder) else None
        self._size = size
        self._cached: OrderedDict[str, EmbeddedQuery] = OrderedDict()
        self._lock = threading.Lock()

    def embed_many(self, queries: list[str], *, tokens: bool = False) -> list[EmbeddedQuery]:
        """The queries embedded, with tokens if requested; the missing ones in one batch, outside the lock."""
        coder = self.coder if tokens else None
        with self._lock:
            embedded = {query: self._cached[query] for query in queries if query in self._cached}
        if missing := [
            query
            for query in dict.fromkeys(queries)
            if query not in embedded or (coder is not None and embedded[query].tokens is None)
        ]:
            of_each: Sequence[QueryTokens | None] = [None] * len(missing)
            if coder is None:
                vectors = embed_checked(self._embedder, missing)
            else:
                vectors, of_each = embed_tokens_checked(coder, missing)
            for query, row, found_tokens in zip(missing, vectors, of_each, strict=True):
                vector = row.copy()  # a cached row must not keep its whole batch alive
                vector.setflags(write=False)
                embedded[query] = EmbeddedQuery(vector, found_tokens)
        with self._lock:
            for query in dict.fromkeys(queries[-self._size :] if self._size else ()):
                self._cached[query] = embedded[query]
                self._cached.move_to_end(query)
            while len(self._cached) > self._size:
                self._cached.popitem(last=False)
        return [embedded[query] for query in queries]


_log = logger(__name__)


class Identity(NamedTuple):
    """Identity of an embedder: embedders with the same fingerprint produce the same vectors."""

    fingerprint: str
    name: str
    dimension: int


class _Ahead(threading.local):
    parts: Mapping[tuple[str, str | None], Parts] = MappingProxyType({})


class EmbedderHandle:
    """Loads the embedder that `spec` names when it is first needed.

    `spec` is an object with the `Embedder` protocol, or what `embedding.load` takes; "none" means keyword only.
    With `stores_codes`, as the settings say, documents also get the codes of their tokens. `prefixes` go before texts.
    """

    def __init__(
        self, spec: object, *, query_cache_size: int, token_codes: bool = False, prefixes: Prefixes = NO_PREFIXES
    ) -> None:
        self.prefixes = prefixes
        self.stores_codes = token_codes
        self.spec = spec
        # False when the settings turn embedding off.
        self.enabled = spec != "none"
        self._query_cache_size = query_cache_size
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._cache: QueryCache | None = None
        self._failure: RecalliteError | None = None
        self._measure: Measure | None = None
        self._fails = False
        # The parts of texts under their contexts that this thread has embedded ahead of a transaction.
        self.ahead = _Ahead()
        # Its cohort, once a recall has measured it; None if weights of confidence were fitted for it.
        self.measured = False
        self.cohort: Cohort | None = None

    @property
    def loaded(self) -> bool:
        """Whether it is loaded, so that its identity costs nothing."""
        return self._embedder is not None

    @property
    def failure(self) -> str | None:
        """Reason why the embedder could not be loaded, or why its last request failed; None if neither happened."""
        if self._failure is not None:
            return str(self._failure)
        problem = getattr(self._embedder, "problem", None)
        return problem if isinstance(problem, str) else None

    @property
    def batch_size(self) -> int | None:
        """Texts per batch, where the embedder states it; loads nothing."""
        size = getattr(self._embedder or self.spec, "batch_size", None)
        return size if isinstance(size, int) and size > 0 else None

    def get(self) -> Embedder:
        """The embedder; EmbedderError when there is none here."""
        if self._embedder is not None:
            return self._embedder
        if not self.enabled:
            raise EmbedderError(
                "this memory has no embedder (Settings(embedder='none')): keyword recall only", "missing"
            )
        with self._lock:
            if self._embedder is None:
                from recallite.embedding.load import load

                try:
                    embedder = load(self.spec, prefixes=self.prefixes)
                except RecalliteError as failure:
                    if self._failure is None:  # nothing was embedded yet: the message quotes no text
                        _log.warning("embedder cannot be loaded: %s", failure)
                    self._failure = failure
                    raise
                self._failure = None
                self._cache = QueryCache(embedder, self._query_cache_size)
                self._embedder = embedder  # last: other threads look at it without the lock
            return self._embedder

    def failed(self, reason: RecalliteError, effect: str) -> None:
        """Warn once, until it works again, that embedding failed, and of the effect of that."""
        tell = _log.debug if self._fails else _log.warning
        self._fails = True
        tell("embedder failed with %s: %s; memory.store.stats() says why", type(reason).__name__, effect)

    def worked(self) -> None:
        """Texts were embedded, by the embedder or from the cache."""
        if self._fails and self.failure is None:
            self._fails = False
            _log.info("embedder works again")

    def identity(self) -> Identity:
        """Return what tells the embedder from others; it is loaded for that."""
        embedder = self.get()
        return Identity(embedder.fingerprint, embedder.name, embedder.dimension)

    def queries(self, texts: Sequence[str], *, tokens: bool = False) -> list[EmbeddedQuery]:
        """A unit vector for each query, and its tokens if requested; recent queries come from the cache."""
        self.get()
        assert self._cache is not None
        return self._cache.embed_many(list(texts), tokens=tokens)

    def documents(self, texts: Sequence[str], contexts: Sequence[str | None]) -> tuple[Embedded, Sequence[bytes]]:
        """Vectors of the parts of texts, each with its context header, and the codes of their tokens if stored."""
        embedder = self.get()
        assert self._cache is not None
        if not self.stores_codes or self._cache.coder is None:
            return embed_documents(embedder, texts, contexts), ()
        with faults_of(embedder):
            return self._cache.coder.embed_document_tokens(texts, contexts)

    def unread(self, texts: Sequence[str], least_share: float) -> list[str | None]:
        """The reason why the embedder does not read each text; None for those of which it reads this share of letters.

        Texts in ASCII are read: for these alone nothing is loaded. Raises what `get` raises.
        """
        if not self.enabled or all(map(str.isascii, texts)):
            return [None] * len(texts)
        embedder = self.get()
        if not isinstance(embedder, ScriptReader):
            return [None] * len(texts)
        return [
            None if of is None or of.share >= least_share else f"the model {embedder.name} does not read {of.script}"
            for of in embedder.unread(texts)
        ]

    @contextmanager
    def keeping(self, parts: Mapping[tuple[str, str | None], Parts]) -> Iterator[None]:
        """Keep the parts of texts for what this thread writes inside."""
        before, self.ahead.parts = self.ahead.parts, {**self.ahead.parts, **parts}
        try:
            yield
        finally:
            self.ahead.parts = before

    @property
    def gives_codes(self) -> bool:
        """True when token codes are stored and the embedder provides them."""
        return self.stores_codes and isinstance(self.get(), TokenEmbedder)

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The character offsets at which the tokens of each text begin; documents are chunked by them.

        They depend on the configured embedder, not on whether it can be loaded now, unless another package registers
        it. Raises EmbedderError, and then what `get` raises.
        """
        if self._measure is None:
            from recallite.embedding.tokens import measure_of

            self._measure = measure_of(self.spec, self.get)
        return self._measure(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text: the loaded embedder's own, else four characters a token."""
        counter = getattr(self._embedder, "count_tokens", None)
        if counter is not None:
            return [int(count) for count in counter(list(texts))]
        return [len(text) // 4 + 1 for text in texts]
