"""The cohort: similarities in units that do not depend on the embedder that made the vectors.

A cosine of .8 is near with one model and what any two texts have with another. So an embedder whose cosines no weights
were fitted for is measured once by `cohort.txt`, questions in many languages with a sentence that answers each. From
them come a shift and a scale, with which its vectors and the words share the score of a hit as they do with the default
model, and whether it tells near from far at all. The confidence of a hit is weighed by its cosine against those that
question and text have with the cohort: symmetric, adaptive normalisation (AS-norm), as in speaker verification.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.embedding.protocol import embed_checked, embed_documents
from recallite.errors import EmbedderError, RecalliteError
from recallite.recall.calibration import is_fitted_for
from recallite.store.values import Parts
from recallite.system.telemetry import logger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.engine import Engine
    from recallite.store.values import EmbedderRow
    from recallite.system.numerics import kernels

FILE = Path(__file__).with_name("cohort.txt")
# The default model's cosines: of what has nothing to do with a question, and how much more that of what answers it.
_FAR, _GAP = 0.1, 0.5
# The nearest of the cohort that a cosine is compared with.
_NEAREST = 12
# The share of the cohort's questions that are nearer to their answer than to any other: below it vectors tell nothing.
# Random vectors have .005, words hashed to 64 components .08, bundled models .9.
_LEAST_FIRST = 0.03
# How much nearer its answer is to a question than the nearest other, in deviations of all others: 2.2 with
# multilingual-e5-small, 1.1 with all-MiniLM-L6-v2, 0.7 with token vectors. In the order of confidence SciFact's nDCG@10
# is .889 instead of .878 with the first, .925 instead of .873, and .799 instead of .866 (100 claims, 200 abstracts).
_LEAST_MARGIN = 1.0
_BATCH = 64
_log = logger(__name__)


class Cohort(NamedTuple):
    """An embedder's unit vectors of questions and of their answers, both float32 (n, dimension), and measures of it.

    - shift, scale: what makes the vector that is searched of a question's
    - deviation: the usual one of the nearest answers of a question
    - first: the share of questions that are nearest to their own answer; margin: how much nearer, in deviations
    """

    questions: NDArray[np.float32]
    answers: NDArray[np.float32]
    shift: NDArray[np.float32]
    scale: float
    deviation: float
    first: float
    margin: float

    @property
    def separates(self) -> bool:
        """Whether the embedder tells near from far."""
        return self.first >= _LEAST_FIRST

    @property
    def orders(self) -> bool:
        """Whether the embedder tells them so well that hits are put in the order of their confidence."""
        return self.margin >= _LEAST_MARGIN

    def searched(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vector that is searched for a question's: its products are on the scale of the default's cosines."""
        return (np.float32(self.scale) * (vector - self.shift)).astype(np.float32)

    def normalised(self, question: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float64]:
        """The cosines of a question with texts, in deviations from the nearest that either has in the cohort."""
        cosines = (texts @ question).astype(np.float64)
        of_question, of_texts = _nearest(question[None] @ self.answers.T), _nearest(texts @ self.questions.T)
        sides = [(cosines - mean) / (deviation + self.deviation) for mean, deviation in (of_question, of_texts)]
        normalised: NDArray[np.float64] = sides[0] + sides[1]
        return normalised


def _nearest(cosines: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and the standard deviation of the greatest of each row."""
    least = max(cosines.shape[1] - _NEAREST, 0)
    nearest = np.partition(cosines.astype(np.float64), least, axis=1)[:, least:]
    return nearest.mean(axis=1), nearest.std(axis=1)


def measured(questions: NDArray[np.float32], answers: NDArray[np.float32]) -> Cohort:
    """The cohort of an embedder, from its vectors."""
    cosines = (questions @ answers.T).astype(np.float64)
    near, every = np.diag(cosines), len(cosines)
    far = (cosines.sum() - near.sum()) / (every * (every - 1))
    scale = _GAP / max(float(near.mean() - far), 1e-3)
    # The mean question has the same product with every text: taken off, what has nothing in common is `_FAR`.
    share = max(1 - _FAR / (scale * far), 0.0) if far > 0 else 0.0
    first = float((cosines.argmax(axis=1) == np.arange(every)).mean())
    others = np.where(np.eye(every, dtype=np.bool_), -1.0, cosines)
    # The mean of a text's own deviation and of this one counts. With its own alone the ROC AUC of LoCoMo's questions is
    # .61 to .69 instead of .72 to .77, with one for all that of short notes with multilingual-e5-small .90 instead of
    # .91, and 64 % instead of 72 % are kept where 5 % of unrelated ones are.
    deviation = max(float(np.median(_nearest(others)[1])), 1e-3)
    shift = (share * questions.mean(axis=0)).astype(np.float32)
    spread = max(float(cosines[~np.eye(every, dtype=np.bool_)].std()), 1e-6)
    margin = float(np.median(near - others.max(axis=1))) / spread
    return Cohort(questions, answers, shift, float(scale), deviation, first, margin)


def notes_on(embedder: str | None, cohort: Cohort | None) -> list[str]:
    """What a store with the vectors of this embedder, by name, goes without, in words."""
    if is_fitted_for(embedder):
        return []
    notes = [f"{embedder} is none of the bundled models: hits are not read, nor ordered by the learned ranking"]
    if cohort is not None and not cohort.separates:
        notes.append(f"{embedder} gives questions and their answers no nearer vectors: recall is by keywords")
    return notes


@cache
def sentences() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The questions and the answers."""
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    return tuple(line[1] for line in lines), tuple(line[2] for line in lines)


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


def _kept(engine: Engine, active: EmbedderRow) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    with engine.store.read() as reader:
        kept = reader.embedding_cache.look_up(active, [_key()]).get(_key())
    count = len(sentences()[0])
    if kept is None or len(kept.values) != 2 * count:
        return None
    rows = np.frombuffer(b"".join(kept.values), np.float32).reshape(2 * count, active.dimension)
    return rows[:count], rows[count:]


def _embedded(engine: Engine, active: EmbedderRow) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    embedder, (asked, told) = engine.embedder.get(), sentences()
    size = engine.embedder.batch_size or _BATCH
    batches = [embed_checked(embedder, asked[begin : begin + size]) for begin in range(0, len(asked), size)]
    questions, embedded = np.concatenate(batches), embed_documents(embedder, told, [None] * len(told))
    first_parts = np.searchsorted(embedded.owners, np.arange(len(told)))
    answers = np.asarray(embedded.vectors[first_parts], np.float32)
    parts = Parts(tuple(row.tobytes() for row in (*questions, *answers)), ())
    try:
        with engine.store.atomic(wait=False) as writer:
            writer.embedding_cache.keep(active, {_key(): parts}, None)
    except RecalliteError:  # read-only, or another process writes: the next one embeds it again
        _log.debug("the cohort of %s is not kept", active.name)
    return questions, answers


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
