"""Embedding rows, outside a transaction, and inserting them with the embedder that their vectors come from.

A caller may give vectors of its own, or vectors that another process made of the text (`EmbeddedText`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from recallite.embedding.handle import EmbedderHandle, Identity
from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from recallite.model.checks import MAX_PARTS, check_vectors
from recallite.model.filters import MESSAGE_KIND
from recallite.remember.relations import supersede_named
from recallite.store.columns import Parts, Row, RowColumns
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Writer
from recallite.system.messages import fault_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


EXTERNAL = "external"
_PLAIN = "memory"
# float32 keeps the length of a unit vector to about 1e-7.
_UNIT_TOLERANCE = 1e-3
# A text gets vectors if the model reads this share of its letters. Of ten texts of our own that mix English names with
# other scripts, all were first for a question in English with .3, nine with .5 and four with .6.
_READ_SHARE = 0.3
_WORD_BYTES = 8  # token codes are whole words of 64 bits
MESSAGE_CHARS = 16_000
"""Characters that are embedded of a message of a session, as tools return long ones: this much takes some 0.1 s."""


class EmbeddedText(Struct, frozen=True):
    """An embedder's result for a text and its context; it takes the place of `vector` in a `NewRecord`.

    `vectors` has the float32 bytes of each part, of unit length, and `codes` the codes of each part's tokens, or none.
    A text that the embedder refuses has neither, and `refused` says why.
    """

    embedder: Identity
    vectors: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    refused: str | None = None


def identity_for(engine: Engine, vector: object, active: EmbedderRow | None = None) -> Identity | None:
    """The embedder that this store takes vectors of: its own, else the configured one, else the one of given vectors.

    None if there is neither an embedder nor a given vector. `active` is the store's embedder, read if it is None.
    """
    made_by = vector.embedder if isinstance(vector, EmbeddedText) else None
    embedder = engine.embedder
    if active is None:
        active = engine.active_embedder()
    if not embedder.enabled:
        if active is not None and not _begins_anew(engine, vector, active):
            return Identity(active.fingerprint, active.name, active.dimension)
        if vector is None or made_by is not None:
            return made_by
        dimension = check_vectors(vector, None).shape[1]
        return Identity(f"{EXTERNAL}:{dimension}", EXTERNAL, dimension)
    try:
        return engine.check_embedder(active)
    except EmbedderMismatch:
        raise
    except EmbedderError:
        return made_by if active is None else Identity(active.fingerprint, active.name, active.dimension)


def _begins_anew(engine: Engine, vector: object, active: EmbedderRow) -> bool:
    """Whether a given vector has another dimension than earlier given vectors, and none of them is left."""
    if vector is None or active.name != EXTERNAL or isinstance(vector, EmbeddedText):
        return False
    if check_vectors(vector, None).shape[1] == active.dimension:
        return False
    with engine.store.read() as reader:
        return reader.vectors.none_left()


def embed_rows(
    embedder: EmbedderHandle, rows: Sequence[Row], vectors: Sequence[object], identity: Identity | None
) -> str | None:
    """Give rows the given vectors, else the parts of an `EmbeddedText`, else what the embedder makes of their texts.

    A refused text is marked on its row. If the embedder fails, rows are marked pending and the reason is returned.
    """
    columns = RowColumns.of(rows)
    given = [i for i, vector in enumerate(vectors) if vector is not None]
    made: dict[int, Parts] = {}
    if given:
        if identity is None:
            raise InvalidInput("a vector was given, but this memory has no embedder and no dimension yet", "vector")
        if columns is rows and (arrays := _stacked(vectors, identity.dimension)) is not None:
            columns.give_vectors(arrays)
            return None
        parts_given = _given_parts([vectors[i] for i in given], identity, codes=embedder.stores_codes)
        made.update(zip(given, parts_given, strict=True))
    lacking: list[int] = []
    texts: list[str] = []
    contexts: list[str | None] = []
    ahead = embedder.ahead.parts
    embedded = _embedded_texts(columns.text, columns.kind)
    for i, (text, context) in enumerate(zip(embedded, columns.context, strict=True)):
        if not columns.indexed[i] or i in made:
            continue
        if ahead and (kept := ahead.get((text, context))) is not None:
            made[i] = kept
        else:
            lacking.append(i)
            texts.append(text)
            contexts.append(context)
    problem = None
    if lacking and embedder.enabled:
        try:
            if identity is None:  # the embedder could not even say what it is
                raise EmbedderError(embedder.failure or "the embedder cannot be asked")
            parts = parts_of(embedder, texts, contexts)
            embedder.worked()
            problem = retry_reason(parts)
        except EmbedderError as reason:
            embedder.failed(reason, f"memories that wait for vectors: {len(lacking)}")
            problem = fault_text(reason)
            parts = [Parts((), problem=problem)] * len(lacking)
        made.update(zip(lacking, parts, strict=True))
    plain = {i for i in given if not isinstance(vectors[i], EmbeddedText)} if given else set[int]()
    columns.put_parts(made, plain)
    return problem


def _embedded_texts(texts: Sequence[str], kinds: Sequence[str]) -> Sequence[str]:
    """Return what is embedded of the texts of records of these kinds: of a long message its beginning."""
    if MESSAGE_KIND not in kinds:
        return texts
    return [text[:MESSAGE_CHARS] if kind == MESSAGE_KIND else text for text, kind in zip(texts, kinds, strict=True)]


def insert_rows(writer: Writer, rows: Sequence[Row], identity: Identity | None) -> list[int]:
    """Insert rows in this transaction, their vectors under `identity`; returns their row ids.

    A row that supersedes others stands in their place from then on.
    """
    columns = RowColumns.of(rows)
    asked = any(columns.vectors) or any(columns.refused)
    ids = writer.records.insert(columns, embedder_of(writer, identity) if asked else None)
    if any(columns.supersedes):
        supersede_named(writer, columns, ids)
    return ids


def embedder_of(writer: Writer, identity: Identity | None, row: Row | None = None) -> EmbedderRow | None:
    """The stored embedder of an identity; None if it neither made the vectors of `row` nor refused its text."""
    if identity is None or (row is not None and not row.vectors and row.refused is None):
        return None
    vectors = writer.vectors
    active = vectors.active_embedder() if identity.name == EXTERNAL else None
    changed = active is not None and active.name == EXTERNAL and active.dimension != identity.dimension
    if changed and vectors.none_left():
        vectors.start_over(vectors.add_embedder(**identity._asdict()))
    return vectors.register_embedder(**identity._asdict())


def parts_of(
    embedder: EmbedderHandle, texts: Sequence[str], contexts: Sequence[str | None], *, patient: bool = False
) -> list[Parts]:
    """The parts of each text, in order.

    A text that the embedder refuses does not fail the others: it is found by bisection, in about 1.5 log2(texts)
    requests, and its `Parts` say why. With `patient` the same holds for a text on which the embedder fails otherwise.

    Raises EmbedderError where the embedder fails for a plain word too.
    """
    try:
        return _embedded(embedder, texts, contexts)
    except EmbedderError as fault:
        if not (patient or fault.reason == "text_refused") or embedder.failure is not None:
            raise
        _embedded(embedder, [_PLAIN], [None])
        return _bisected(embedder, texts, contexts, fault)


def parts_by_id(
    embedder: EmbedderHandle, records: Sequence[tuple[int, str, str | None, str]], *, patient: bool = False
) -> dict[int, Parts]:
    """`parts_of` of records (row id, text, context, kind), by row id."""
    ids, texts, contexts, kinds = zip(*records, strict=True)
    parts = parts_of(embedder, _embedded_texts(texts, kinds), contexts, patient=patient)
    return dict(zip(ids, parts, strict=True))


def finished(parts: Mapping[int, Parts]) -> dict[int, Parts]:
    """The parts of texts that were embedded, or that the embedder refuses for good."""
    return {key: part for key, part in parts.items() if part.values or part.refused}


def retry_reason(parts: Iterable[Parts]) -> str | None:
    """Return the reason why embedding failed for the first text to be tried again; None if there is none."""
    return next(iter([part.problem for part in parts if part.problem is not None and not part.refused]), None)


def _bisected(
    embedder: EmbedderHandle, texts: Sequence[str], contexts: Sequence[str | None], reason: EmbedderError | None
) -> list[Parts]:
    """The parts of texts, one of them impossible to embed; `reason` is the error for exactly these texts, if known."""
    if len(texts) == 1:
        attempt = reason or _attempted(embedder, texts, contexts)
        if isinstance(attempt, list):
            return attempt
        return [Parts((), problem=str(attempt), refused=attempt.reason == "text_refused")]
    middle = len(texts) // 2
    head, tail = (texts[:middle], contexts[:middle]), (texts[middle:], contexts[middle:])
    first = _attempted(embedder, *head)
    if isinstance(first, list):
        # The failing text is in the other half: no need to try all of that.
        return first + _bisected(embedder, *tail, None)
    attempt = _bisected(embedder, *head, first)
    last = _attempted(embedder, *tail)
    return attempt + (last if isinstance(last, list) else _bisected(embedder, *tail, last))


def _attempted(
    embedder: EmbedderHandle, texts: Sequence[str], contexts: Sequence[str | None]
) -> list[Parts] | EmbedderError:
    """The parts of each text, or why there are none; raises EmbedderError where the embedder is down."""
    try:
        return _embedded(embedder, texts, contexts)
    except EmbedderError as fault:
        if embedder.failure is not None:
            raise
        return fault


def _embedded(embedder: EmbedderHandle, texts: Sequence[str], contexts: Sequence[str | None]) -> list[Parts]:
    """The parts of each text, embedded in one call; none of a text that the model does not read.

    Raises EmbedderError.
    """
    unread = embedder.unread(texts, _READ_SHARE)
    if any(unread):
        read = [i for i, reason in enumerate(unread) if reason is None]
        made = _embedded(embedder, [texts[i] for i in read], [contexts[i] for i in read]) if read else []
        parts_read = dict(zip(read, made, strict=True))
        return [parts_read.get(i) or Parts((), problem=reason, refused=True) for i, reason in enumerate(unread)]
    embedded, codes = embedder.documents(texts, contexts)
    try:
        values = np.ascontiguousarray(embedded.vectors, dtype="<f4")
        owners = np.asarray(embedded.owners)
    except (AttributeError, TypeError, ValueError) as reason:
        raise EmbedderError(f"embed_documents returned {type(embedded).__name__}: return Embedded(...)") from reason
    dimension = embedder.get().dimension
    if values.shape != (len(owners), dimension):
        raise EmbedderError(f"the embedder returned shape {values.shape} for {len(owners)} parts of {dimension}")
    if len(codes) not in (0, len(owners)):
        raise EmbedderError(f"the embedder returned token codes of {len(codes)} parts for {len(owners)}")
    if not np.array_equal(np.unique(owners), np.arange(len(texts))) or (np.diff(owners) < 0).any():
        raise EmbedderError("the embedder left out a text, or its parts are not grouped by text")
    vectors = _unit_rows(values)
    if vectors is None:
        raise EmbedderError("the embedder returned a NaN, an infinity or a zero vector")
    bounds = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
    return [Parts(tuple(vectors[start:stop]), tuple(codes[start:stop])) for start, stop in itertools.pairwise(bounds)]


def _given_parts(vectors: Sequence[object], identity: Identity, *, codes: bool) -> list[Parts]:
    """The parts that callers give, checked and normalised in one array where possible; `codes` keeps token codes."""
    embedded = [vector for vector in vectors if isinstance(vector, EmbeddedText)]
    check_embedded(embedded, identity)
    plain = [vector for vector in vectors if not isinstance(vector, EmbeddedText)]
    rows = _stacked(plain, identity.dimension) if plain else None
    if rows is None:
        values = iter([tuple(part.tobytes() for part in check_vectors(each, identity.dimension)) for each in plain])
    else:
        values = iter([(row,) for row in rows])
    return [
        Parts(vector.vectors, vector.codes if codes else (), vector.refused, refused=vector.refused is not None)
        if isinstance(vector, EmbeddedText)
        else Parts(next(values))
        for vector in vectors
    ]


def _stacked(arrays: Sequence[object], dimension: int) -> list[bytes] | None:
    """All vectors as unit rows; None where any of them needs its own check."""
    if not all(
        isinstance(vector, np.ndarray) and vector.shape == (dimension,) and vector.dtype.kind == "f"
        for vector in arrays
    ):
        return None
    with np.errstate(over="ignore"):  # an overflow of float32 is reported by the check of each
        return _unit_rows(np.stack(arrays).astype(np.float32, copy=False))  # type: ignore[arg-type]


def _unit_rows(values: NDArray[np.float32]) -> list[bytes] | None:
    """The bytes of each row at unit length; None where one is zero or not finite."""
    # In float64: the squares of large components overflow float32.
    norms = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))
    if not (np.isfinite(norms).all() and norms.all()):
        return None
    return [*map(np.ndarray.tobytes, (values / norms[:, None]).astype("<f4"))]


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
    if parts and not are_unit(parts):
        raise InvalidInput("a vector of an embedded text is not of length 1: it was changed or damaged", "vector")


def are_unit(parts: Sequence[bytes]) -> bool:
    """Whether all of these float32 vectors of one dimension are of length 1."""
    values = np.frombuffer(b"".join(parts), dtype="<f4").reshape(len(parts), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))
    return bool((np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all())  # False for NaN
