"""The cohort of a store's embedder (`recallite.embedding.cohort`): embedded at the first recall, kept in the store."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from recallite.embedding.cohort import FILE, Cohort, measured, sentences
from recallite.embedding.protocol import embed_checked, embed_documents
from recallite.errors import EmbedderError, RecalliteError
from recallite.recall.calibration import is_fitted_for
from recallite.store.columns import Parts
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.engine import Engine
    from recallite.store.sql.vectors import EmbedderRow
    from recallite.system.numerics import kernels

_BATCH = 64
_log = logger(__name__)


def notes_on(embedder: str | None, cohort: Cohort | None) -> list[str]:
    """What a store with the vectors of this embedder, by name, goes without, in words."""
    if is_fitted_for(embedder):
        return []
    notes = [f"hits are not read, nor ordered by the learned ranking: neither is fitted for {embedder}"]
    if cohort is not None and not cohort.separates:
        notes.append(f"{embedder} gives questions and their answers no nearer vectors: recall is by keywords")
    return notes


def measure_embedder(engine: Engine, active: EmbedderRow) -> None:
    """Let the engine's embedder, which is the store's, have its cohort, if no weights were fitted for it.

    What it gives for the cohort is in the store's cache, or embedded and kept there.
    """
    handle = engine.embedder
    try:
        if not is_fitted_for(active.name):
            handle.cohort = measured(*(_kept(engine, active) or _embedded(engine, active)))
    except EmbedderError as failure:
        _log.warning("%s embeds no cohort, so that its cosines count as the default model's: %s", active.name, failure)
    for note in notes_on(active.name, handle.cohort):
        _log.info(note)
    handle.measured = True


def _kept(engine: Engine, active: EmbedderRow) -> list[NDArray[np.float32]] | None:
    with engine.store.read() as reader:
        kept = reader.embedding_cache.look_up(active, [_key()]).get(_key())
    ends = np.cumsum([len(texts) for texts in sentences()])
    if kept is None or len(kept.values) != ends[-1]:
        return None
    return np.split(np.frombuffer(b"".join(kept.values), np.float32).reshape(-1, active.dimension), ends[:-1])


def _embedded(engine: Engine, active: EmbedderRow) -> list[NDArray[np.float32]]:
    embedder, (asked, told, prompts) = engine.embedder.get(), sentences()
    size, queries = engine.embedder.batch_size or _BATCH, [*asked, *prompts]
    batches = [embed_checked(embedder, queries[begin : begin + size]) for begin in range(0, len(queries), size)]
    questions, embedded = np.concatenate(batches), embed_documents(embedder, told, [None] * len(told))
    first_parts = np.searchsorted(embedded.owners, np.arange(len(told)))
    answers = np.asarray(embedded.vectors[first_parts], np.float32)
    vectors = [questions[: len(asked)], answers, questions[len(asked) :]]
    parts = Parts(tuple(row.tobytes() for rows in vectors for row in rows), ())
    try:
        with engine.store.atomic(wait=False) as writer:
            writer.embedding_cache.keep(active, {_key(): parts}, None)
    except RecalliteError:  # read-only, or another process writes: the next one embeds it again
        _log.debug("the cohort of %s is not kept", active.name)
    return vectors


@cache
def _key() -> bytes:
    return hashlib.sha256(FILE.read_bytes()).digest()


def vectors_of(vectors: kernels.Vectors, rows: NDArray[np.int64], question: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors of rows of an index, of each the part nearest to a question; zeros for a row without one."""
    found = np.zeros((len(rows), len(question)), np.float32)
    for place, row in enumerate(rows.tolist()):
        if len(vectors.first_place):
            first, count = int(vectors.first_place[row]), int(vectors.parts[row])
        else:
            first, count = row, int(row < len(vectors.codes))
        if count:
            part = slice(first, first + count)
            of_row = vectors.codes[part].astype(np.float32) * vectors.scales[part, None]
            found[place] = of_row[int((of_row @ question).argmax())]
    return found
