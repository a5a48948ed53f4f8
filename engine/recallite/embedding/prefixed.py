"""An embedder before whose texts stand the words that its model was trained with, as "query: " and "passage: "."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite.embedding.protocol import Embedded, Embedder, Progress, Unread, embed_in_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Prefixes(NamedTuple):
    """What stands before a query, and before a document."""

    query: str = ""
    document: str = ""


NO_PREFIXES = Prefixes()


def written(prefixes: Prefixes) -> str:
    """Prefixes as a part of a fingerprint: empty without any."""
    return "|".join(prefix.replace("|", "\\|") for prefix in prefixes) if any(prefixes) else ""


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
        """The other's, with the prefixes."""
        return f"{self._embedder.fingerprint}:prefix={written(self._prefixes)}"

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
