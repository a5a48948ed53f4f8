"""The protocols of an embedder, and what any embedder is asked for by them.

Any object with these attributes and this method works. Texts with a context header are embedded in parts that fit its
window, and what it returns is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from recallite.errors import EmbedderError, InvalidInput, RecalliteError
from recallite.system.messages import fault_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Progress = Callable[[int, int], None]
"""Called with (parts done, parts in all), in the caller's thread."""


class Embedder(Protocol):
    """Turns texts into unit vectors.

    `fingerprint` identifies everything that changes a vector (weights, pooling, prefix, quantisation): a store
    refuses vectors with another fingerprint.
    """

    name: str
    dimension: int
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors float32 (n, dimension), one row a text, of unit length. May be called from many threads."""
        ...


class Embedded(NamedTuple):
    """Vectors of texts that may have several parts: `owners[i]` is the position of the text of row i.

    Rows are ordered by owner, then by part; every text has at least one.
    """

    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]


class QueryTokens(NamedTuple):
    """The tokens of a query, without special tokens.

    - codes: uint64 (tokens, ceil(width / 64)), 1 bit a component as `kernels.sketch` makes them
    - places: int64 (tokens,), the character of the query at which each begins
    - width: components of a token's vector
    """

    codes: NDArray[np.uint64]
    places: NDArray[np.int64]
    width: int


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also returns codes of a text's tokens, from the same run of the model; optional.

    Codes of documents are bytes: those of `QueryTokens.codes`, little-endian, token after token.
    """

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """Embed queries as `embed` does, and return the tokens of each."""
        ...

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> tuple[Embedded, list[bytes]]:
        """Embed as `embed_documents` does, and return the codes of each part's tokens, or of the informative ones."""
        ...


@runtime_checkable
class DocumentEmbedder(Protocol):
    """An embedder that splits long texts to its own window; optional: `documents.embed_documents` does it otherwise."""

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Embed each text, prefixed with its context, in as many overlapping parts as it needs."""
        ...


class Unread(NamedTuple):
    """A script that an embedder does not read, as "Thai", and the share of a text's letters that it reads."""

    script: str
    share: float


@runtime_checkable
class ScriptReader(Protocol):
    """An embedder that knows which texts it cannot read; optional: any other is taken to read all of them.

    Recallite compares no vectors of such texts, as these do not depend on what they say.
    """

    def unread(self, texts: Sequence[str]) -> list[Unread | None]:
        """The script of each text that is not read; None for texts that are read throughout."""
        ...


OVERLAP_TOKENS = 32
_CHARS_PER_TOKEN = 4
_DEFAULT_MAX_TOKENS = 256
_BATCH = 64


def header(context: str | None) -> str:
    """The prefix that joins a context to its text."""
    # Vector recall@20 on LoCoMo, speaker as context: 0.590 with ": ", 0.542 with " - ", 0.523 with a new line.
    stripped = context.strip() if context else ""
    return f"{stripped}: " if stripped else ""


def check_contexts(texts: Sequence[str], contexts: Sequence[str | None]) -> None:
    """Raise InvalidInput unless there is one context, or None, per text."""
    if len(texts) != len(contexts):
        raise InvalidInput(f"{len(texts)} texts with {len(contexts)} contexts: give one context a text, or None")


def starts(length: int, body: int, overlap: int) -> list[int]:
    """The start of each part of `body` units, so that parts cover `length` and overlap by at least `overlap` units.

    Parts are spread evenly, and all are full unless the text fits into one.
    """
    if length <= body:
        return [0]
    count = -(-(length - overlap) // (body - overlap))
    return [round(i * (length - body) / (count - 1)) for i in range(count)]


def split(text: str, max_chars: int, overlap: int) -> list[str]:
    """Parts of at most `max_chars` characters that cover `text`, split at nearby whitespace."""
    parts: list[str] = []
    begin = 0
    while len(text) - begin > max_chars:
        end = _whitespace_before(text, begin + max_chars, begin + max_chars * 3 // 4)
        parts.append(text[begin:end])
        begin = max(_whitespace_before(text, end - overlap, end - 2 * overlap), begin + 1)
    parts.append(text[begin:])
    return [part for part in parts if part.strip()] or [text[:max_chars]]


def _whitespace_before(text: str, position: int, floor: int) -> int:
    """The last index in (floor, position] that follows whitespace, else `position`."""
    return next((i for i in range(position, floor, -1) if text[i - 1].isspace()), position)


def embed_documents(
    embedder: Embedder,
    texts: Sequence[str],
    contexts: Sequence[str | None],
    on_progress: Progress | None = None,
) -> Embedded:
    """Embed texts with their contexts by any embedder, in parts where a text is longer than the window.

    Uses the embedder's own `embed_documents` if it has one; otherwise splits texts by characters, four per token of
    its `max_tokens` (256 without that attribute). Raises EmbedderError.
    """
    check_contexts(texts, contexts)
    if isinstance(embedder, DocumentEmbedder):
        with faults_of(embedder):
            return embedder.embed_documents(texts, contexts, on_progress)
    return embed_in_parts(embedder, texts, contexts, on_progress)


def embed_in_parts(
    embedder: Embedder,
    texts: Sequence[str],
    contexts: Sequence[str | None],
    on_progress: Progress | None = None,
    *,
    prefix: str = "",
) -> Embedded:
    """Embed texts in parts that are split by characters, each with its context, and a prefix before all."""
    import numpy as np

    room = max(int(getattr(embedder, "max_tokens", _DEFAULT_MAX_TOKENS)), 8) * _CHARS_PER_TOKEN
    parts: list[str] = []
    owners: list[int] = []
    for owner, (text, context) in enumerate(zip(texts, contexts, strict=True)):
        head = prefix + header(context)[: room // 4]
        body = max(room - len(head), room // 2)
        pieces = split(text, body, min(OVERLAP_TOKENS * _CHARS_PER_TOKEN, body // 4))
        parts += [head + piece for piece in pieces]
        owners += [owner] * len(pieces)
    vectors = np.empty((len(parts), embedder.dimension), np.float32)
    together = max(1, int(getattr(embedder, "batch_size", _BATCH)))
    for begin in range(0, len(parts), together):
        batch = parts[begin : begin + together]
        vectors[begin : begin + len(batch)] = embed_checked(embedder, batch)
        if on_progress is not None:
            on_progress(begin + len(batch), len(parts))
    return Embedded(vectors, np.array(owners, np.int64))


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """`embedder.embed(texts)`, checked against the protocol: shape, finite, unit rows. Raises EmbedderError."""
    import numpy as np

    with faults_of(embedder):
        vectors = np.asarray(embedder.embed(texts), np.float32)
    return _unit_rows(embedder, vectors, len(texts))


def embed_tokens_checked(
    embedder: TokenEmbedder, texts: Sequence[str]
) -> tuple[NDArray[np.float32], Sequence[QueryTokens]]:
    """`embedder.embed_query_tokens(texts)`, checked against the protocol. Raises EmbedderError."""
    import numpy as np

    plain: Any = embedder
    with faults_of(plain):
        rows, tokens = embedder.embed_query_tokens(texts)
        vectors = np.asarray(rows, np.float32)
        shapes = [(found.codes.shape, (len(found.places), -(-found.width // 64))) for found in tokens]
    if len(shapes) != len(texts) or any(shape != expected for shape, expected in shapes):
        raise EmbedderError(f"{plain.name}.embed_query_tokens returned {shapes}: return codes and places of each text")
    return _unit_rows(plain, vectors, len(texts)), tokens


def _unit_rows(embedder: Embedder, vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    import numpy as np

    expected = (count, embedder.dimension)
    if vectors.shape != expected:
        message = f"{embedder.name}.embed returned shape {vectors.shape} for {expected}: return one row a text"
        raise EmbedderError(message)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        row = int(np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[0])
        raise EmbedderError(f"{embedder.name}.embed returned a zero, NaN or infinite vector in row {row}")
    return vectors if np.abs(norms - 1).max(initial=0) < 1e-4 else vectors / norms


@contextmanager
def faults_of(embedder: Embedder) -> Iterator[None]:
    """Raise any exception of the embedder's own as EmbedderError."""
    try:
        yield
    except RecalliteError:
        raise
    except Exception as reason:
        raise EmbedderError(f"{embedder.name} failed: {fault_text(reason)}") from reason


# Prefixes.


class Prefixes(NamedTuple):
    """The words that a model was trained with before a query and before a document, as "query: " and "passage: "."""

    query: str = ""
    document: str = ""

    def __str__(self) -> str:
        """The prefixes as a part of a fingerprint: empty without any."""
        return "|".join(prefix.replace("|", "\\|") for prefix in self) if any(self) else ""


NO_PREFIXES = Prefixes()


class Prefixed:
    """Another embedder with prefixes, which are part of its fingerprint; it gives no codes of tokens.

    Documents are split by characters, with the prefix before each part.
    """

    def __init__(self, embedder: Embedder, prefixes: Prefixes) -> None:
        self._embedder: Any = embedder
        self._prefixes = prefixes
        self.name = embedder.name
        for name in ("max_tokens", "batch_size", "count_tokens"):
            if (value := getattr(embedder, name, None)) is not None:
                setattr(self, name, value)

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return int(self._embedder.dimension)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the other, with the prefixes."""
        return f"{self._embedder.fingerprint}:prefix={self._prefixes}"

    @property
    def problem(self) -> str | None:
        """The failure of the other's last request, if it tells."""
        problem: str | None = getattr(self._embedder, "problem", None)
        return problem

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries."""
        vectors: NDArray[np.float32] = self._embedder.embed([self._prefixes.query + text for text in texts])
        return vectors

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """The vectors of documents' parts."""
        return embed_in_parts(self._embedder, texts, contexts, on_progress, prefix=self._prefixes.document)

    def unread(self, texts: Sequence[str]) -> list[Unread | None]:
        """The script of each text that the other does not read, if it tells."""
        unread = getattr(self._embedder, "unread", None)
        return [None] * len(texts) if unread is None else list(unread(texts))
