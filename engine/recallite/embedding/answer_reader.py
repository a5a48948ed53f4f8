"""The bundled reader: a model that reads a question and a text together and says whether the one answers the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial

from recallite.embedding.model_folder import read_folder
from recallite.embedding.session import Runtime, runtime
from recallite.embedding.token_ids import TokenIds
from recallite.errors import EmbedderError
from recallite.system.parallel import run_tasks

# Tokens of what it was trained on: a longer text may answer elsewhere than in what would be left of it.
_LONGEST_QUESTION, _LONGEST_TEXT = 40, 88


class AnswerReader:
    """Reads with the bundled model. Thread-safe; a forked child opens its own session."""

    def __init__(self) -> None:
        import recallite_models

        self._folder = read_folder(recallite_models.path(recallite_models.READER))
        self._ids = TokenIds(runtime(self._folder).tokenizer)

    def answers(self, question: str, texts: Sequence[str]) -> list[float | None]:
        """The logit that each text answers the question, None if it is too long to be read. Raises EmbedderError."""
        engine, after = runtime(self._folder), self._ids.after
        question_ids, *rows = (
            [id for id in ids.tolist() if id not in after] for ids in self._ids.encode([question, *texts])
        )
        start = [*self._ids.before, *question_ids[:_LONGEST_QUESTION], *after]
        # Five texts side by side, each on a core, take 11 ms; one after the other on two cores 20.
        return run_tasks(
            [partial(_read, engine, [*start, *row, *after]) if len(row) < _LONGEST_TEXT else _unread for row in rows]
        )


def _read(engine: Runtime, ids: list[int]) -> float | None:
    import numpy as np

    (logit,) = engine.run(["answers"], {"input_ids": np.array([ids], np.int64)})
    return float(logit[0, 0])


def _unread() -> float | None:
    return None


@cache
def load_reader() -> AnswerReader | None:
    """The reader of this process; None if what it needs is not installed."""
    with suppress(ImportError):
        try:
            return AnswerReader()
        except EmbedderError as fault:
            if fault.reason != "missing":
                raise
    return None
