"""The cohort: similarities in units that do not depend on the embedder that made the vectors.

A cosine of .8 is near with one model and what any two texts have with another. So an embedder whose cosines no weights
were fitted for is measured once by `cohort.txt`, questions in many languages with a sentence that answers each. From
them come a shift and a scale, with which its vectors and the words share the score of a hit as they do with the default
model, and whether it tells near from far at all. The confidence of a hit is weighed by its cosine against those that
question and text have with the cohort: symmetric, adaptive normalisation (AS-norm), as in speaker verification.

The file also has prompts that point at what is at hand, as "put it back", of which no memory is the answer: a line has
the prompts of a language, or a question and its answer. What is nearer to them than to questions is weighed down.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from recallite.system.numerics import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = Path(__file__).with_name("cohort.txt")
# The default model's cosines: of what has nothing to do with a question, how much more that of what answers it, and the
# deviation of the cohort's others.
_FAR, _GAP, _SPREAD = 0.1, 0.5, 0.13
# The nearest of the cohort that a cosine is compared with.
_NEAREST = 12
# The nearest prompts and questions that a question is compared with, and what being nearer to prompts counts.
_POINTING_NEAREST, _POINTING_WEIGHT = 3, 0.6
# The share of the cohort's questions that are nearer to their answer than to any other: below it vectors tell nothing.
# Random vectors have .005, words hashed to 64 components .08, bundled models .9.
_LEAST_FIRST = 0.03
# How much nearer its answer is to a question than the nearest other, in deviations of all others: 2.2 with
# multilingual-e5-small, 1.1 with all-MiniLM-L6-v2, 0.7 with token vectors. In the order of confidence SciFact's nDCG@10
# is .889 instead of .878 with the first, .925 instead of .873, and .799 instead of .866 (100 claims, 200 abstracts).
_LEAST_MARGIN = 1.0


class Cohort(Struct, frozen=True):
    """An embedder's unit vectors of questions, of their answers and of prompts, and measures of it.

    The first two are float32 (n, dimension), `prompts` are float32 (p, dimension).

    - shift, scale: what makes the vector that is searched of a question's
    - deviation: the usual one of the nearest answers of a question
    - first: the share of questions that are nearest to their own answer; margin: how much nearer, in deviations
    """

    questions: NDArray[np.float32]
    answers: NDArray[np.float32]
    prompts: NDArray[np.float32]
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
        """The cosines of a question with texts, in deviations from the nearest that either has in the cohort.

        What points at something more than it asks has less with each text.
        """
        cosines = (texts @ question).astype(np.float64)
        asked, pointed = products(texts, self.questions), products(texts, self.prompts)
        of_question = _nearest(question[None] @ self.answers.T, _NEAREST)
        of_texts = _nearest(np.hstack([asked, pointed]), _NEAREST)
        sides = [(cosines - mean) / (deviation + self.deviation) for mean, deviation in (of_question, of_texts)]
        # How much nearer it is to prompts than to questions, in deviations.
        near = [_nearest(question[None] @ of.T, _POINTING_NEAREST)[0] for of in (self.prompts, self.questions)]
        pointing = max(float(near[0][0] - near[1][0]) / self.deviation, 0.0)
        normalised: NDArray[np.float64] = sides[0] + sides[1] - _POINTING_WEIGHT * pointing
        return normalised


def _nearest(cosines: NDArray[np.floating], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and the standard deviation of the greatest of each row."""
    least = max(cosines.shape[1] - count, 0)
    nearest = np.partition(cosines.astype(np.float64), least, axis=1)[:, least:]
    return nearest.mean(axis=1), nearest.std(axis=1)


def measured(questions: NDArray[np.float32], answers: NDArray[np.float32], prompts: NDArray[np.float32]) -> Cohort:
    """The cohort of an embedder, from its vectors."""
    cosines = products(questions, answers).astype(np.float64)
    near, every = np.diag(cosines), len(cosines)
    far = (cosines.sum() - near.sum()) / (every * (every - 1))
    spread = max(float(cosines[~np.eye(every, dtype=np.bool_)].std()), 1e-6)
    # What hardly separates is not blown up: its noise would drown the words.
    scale = min(_GAP / max(float(near.mean() - far), 1e-3), _SPREAD / spread)
    # The mean question has the same product with every text: taken off, what has nothing in common is `_FAR`.
    share = max(1 - _FAR / (scale * far), 0.0) if far > 0 else 0.0
    first = float((cosines.argmax(axis=1) == np.arange(every)).mean())
    others = np.where(np.eye(every, dtype=np.bool_), -1.0, cosines)
    # The mean of a text's own deviation and of this one counts. With its own alone the ROC AUC of LoCoMo's questions is
    # .61 to .69 instead of .72 to .77, with one for all that of short notes with multilingual-e5-small .90 instead of
    # .91, and 64 % instead of 72 % are kept where 5 % of unrelated ones are.
    deviation = max(float(np.median(_nearest(others, _NEAREST)[1])), 1e-3)
    shift = (share * questions.mean(axis=0)).astype(np.float32)
    margin = float(np.median(near - others.max(axis=1))) / spread
    return Cohort(questions, answers, prompts, shift, float(scale), deviation, first, margin)


@cache
def sentences() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The questions, the answers and the prompts."""
    lines = [line.split("\t")[1:] for line in FILE.read_text("utf-8").splitlines()]
    pairs = [line for line in lines if len(line) == 2]
    prompts = chain.from_iterable(line for line in lines if len(line) > 2)
    return tuple(asked for asked, _ in pairs), tuple(told for _, told in pairs), tuple(prompts)
