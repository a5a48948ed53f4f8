"""The embedder that uses an OpenAI-compatible endpoint."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from recallite.errors import EmbedderError, EmbedderReason
from recallite.model.checks import check_count
from recallite.model.environment import ModelAddress
from recallite.remote import CONTENT_REFUSED, EndpointError, cleaned, open_service

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_PAUSE_SECONDS = 2.0


class _Item(Struct):
    embedding: list[float]
    index: int


class _Answer(Struct):
    data: list[_Item]


class RemoteEmbedder:
    """An `Embedder` by the embeddings endpoint of OpenAI, Ollama, vLLM, llama.cpp and the like; thread-safe.

    Nothing is sent before the first text is embedded or the dimension is needed, which one short request determines.
    The fingerprint is the model's name and dimension: the same model elsewhere produces the same vectors. After a
    failure the endpoint is not asked for 2 s, then twice as long each time, up to 5 minutes; meanwhile every call fails
    at once, and `problem` says why.

    - max_tokens: the length of the parts of long documents, at four characters per token
    - batch_size: texts per request
    - timeout_seconds: for one attempt; attempts: the most of a request that the endpoint cannot serve (unreachable,
      429, 5xx); longest_wait_seconds: the longest Retry-After that is honoured
    - clock: seconds, for the pause after a failure
    - routed: asked through litellm, as "voyage/voyage-3"; base_url may then be empty

    Raises InvalidInput for a wrong argument and EmbedderError if the extra `llm` is not installed.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        max_tokens: int = 256,
        batch_size: int = 64,
        timeout_seconds: float = 30.0,
        attempts: int = 3,
        longest_wait_seconds: float = 10.0,
        clock: Callable[[], float] | None = None,
        routed: bool = False,
    ) -> None:
        self._address = address = ModelAddress(
            base_url=base_url, model=model, api_key=api_key, batch_size=batch_size, timeout_seconds=timeout_seconds,
            routed=routed,
        )  # fmt: skip
        self.name, self.batch_size = address.model, address.batch_size
        self.max_tokens = check_count(max_tokens, "max_tokens", minimum=8)
        self._service = open_service(
            address, partial(EmbedderError, reason="missing"), attempts=attempts, pause_seconds=_PAUSE_SECONDS,
            longest_wait_seconds=longest_wait_seconds, clock=clock,
        )  # fmt: skip
        self._probing = threading.Lock()
        self._dimension: int | None = None

    @property
    def problem(self) -> str | None:
        """The failure of the last request, and when the endpoint is asked again; None if it succeeded."""
        return self._service.problem

    @property
    def dimension(self) -> int:
        """Components of a vector; sends one request the first time. Raises EmbedderError."""
        with self._probing:
            if self._dimension is None:
                self._dimension = len(self._ask(["dimension"])[0].embedding)
            return self._dimension

    @property
    def fingerprint(self) -> str:
        """The model and the dimension: vectors of the same are comparable. Raises EmbedderError."""
        return f"remote:{self._address.model}:{self.dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors float32 (n, dimension), one row a text.

        Raises EmbedderError if the endpoint refuses these texts ("text_refused"), fails, or returns another number of
        vectors, another dimension, NaN, infinity or zeros.
        """
        import numpy as np

        dimension = self.dimension
        vectors = np.empty((len(texts), dimension), np.float64)
        for begin in range(0, len(texts), self.batch_size):
            batch = list(texts[begin : begin + self.batch_size])
            for item in self._ask(batch):
                if len(item.embedding) != dimension:
                    raise self._wrong(f"a vector of {len(item.embedding)} components where {dimension} are expected")
                vectors[begin + item.index] = item.embedding
        peaks = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
        if not (np.isfinite(peaks).all() and peaks.all()):
            row = int(np.flatnonzero(~(np.isfinite(peaks) & (peaks > 0)))[0])
            raise EmbedderError(str(self._wrong(f"a vector that is zero or not finite for text {row}")), "text_refused")
        vectors /= peaks  # squares of large components overflow
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self._address.base_url!r}, {self._address.model!r})"

    def _ask(self, texts: list[str]) -> list[_Item]:
        """Return the vectors of one request: one for each text, none empty."""
        body: dict[str, Any] = {"model": self._address.model, "input": texts}
        try:
            answer = self._service.post("/embeddings", body)
        except EndpointError as failure:
            reason: EmbedderReason = "text_refused" if failure.status in CONTENT_REFUSED else "failed"
            raise EmbedderError(f"{self._address.model}: {failure}", reason) from failure
        try:
            items = msgspec.convert(answer, _Answer).data
        except msgspec.ValidationError as reason:
            quoted = cleaned(repr(answer), self._address)
            raise self._wrong(f"{quoted}, which is no list of embeddings ({reason})") from None
        if sorted(item.index for item in items) != list(range(len(texts))):
            raise self._wrong(f"{len(items)} vectors for {len(texts)} texts, or not one a text")
        if not all(item.embedding for item in items):
            raise self._wrong("an empty vector")
        return items

    def _wrong(self, answer: str) -> EmbedderError:
        return EmbedderError(f"{self._address} answered {answer}: is it an embedding model?")
