"""Vectors that another process has made of a text: given in place of a vector, they are stored as if made here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from recallite.embedding.handle import Identity
from recallite.errors import EmbedderMismatch, InvalidInput
from recallite.model.checks import MAX_PARTS

# float32 keeps the length of a unit vector to about 1e-7.
_UNIT_TOLERANCE = 1e-3
_WORD_BYTES = 8  # token codes are whole words of 64 bits


class EmbeddedText(Struct, frozen=True):
    """An embedder's result for a text and its context; it takes the place of `vector` in a `NewRecord`.

    `vectors` has the float32 bytes of each part, of unit length, and `codes` the codes of each part's tokens, or none.
    A text that the embedder refuses has neither, and `refused` says why.
    """

    embedder: Identity
    vectors: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    refused: str | None = None


def check_embedded(texts: Sequence[EmbeddedText], identity: Identity) -> None:
    """Refuse what the embedder of `identity` has not made. Raises EmbedderMismatch and InvalidInput."""
    made_by = {embedded.embedder.fingerprint: embedded.embedder for embedded in texts}
    made_by.pop(identity.fingerprint, None)
    for other in made_by.values():
        raise EmbedderMismatch(
            f"the text was embedded by {other.name} ({other.dimension}, {other.fingerprint}), and this store takes "
            f"vectors of {identity.name} ({identity.dimension}, {identity.fingerprint}): leave its vectors out"
        )
    width = 4 * identity.dimension
    for embedded in texts:
        if embedded.refused is not None and not embedded.vectors:
            continue
        if not 0 < len(embedded.vectors) <= MAX_PARTS or any(len(part) != width for part in embedded.vectors):
            raise InvalidInput(
                f"an embedded text has parts of {[len(part) for part in embedded.vectors][:3]} bytes: "
                f"give 1 to {MAX_PARTS} parts of {width}",
                "vector",
            )
        if embedded.codes and (
            len(embedded.codes) != len(embedded.vectors) or any(len(codes) % _WORD_BYTES for codes in embedded.codes)
        ):
            raise InvalidInput(
                f"an embedded text of {len(embedded.vectors)} parts has token codes of "
                f"{[len(codes) for codes in embedded.codes][:3]} bytes: they were changed or damaged",
                "vector",
            )
    parts = [part for embedded in texts for part in embedded.vectors]
    values = np.frombuffer(b"".join(parts), dtype="<f4").reshape(len(parts), identity.dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))
    if not (np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all():  # NaN too
        raise InvalidInput("a vector of an embedded text is not of length 1: it was changed or damaged", "vector")
