"""The bundled reader: a model that reads a question and a text together and says whether the one answers the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from recallite.embedding.model_folder import read_folder
from recallite.embedding.session import runtime
from recallite.embedding.token_ids import TokenIds
from recallite.errors import EmbedderError

# Tokens of what it was trained on: a longer text may answer elsewhere than in what would be left of it.
_LONGEST_QUESTION, _LONGEST_TEXT = 40, 88


class AnswerReader:
    """Reads with the bundled model. Thread-safe; a forked child opens its own session."""

    def __init__(self) -> None:
        import recallite_models

        self._folder = read_folder(recallite_models.path(recallite_models.READER))
        self._ids = TokenIds(runtime(self._folder, queries_first=True).tokenizer)

    def answers(self, question: str, texts: Sequence[str]) -> list[float | None]:
        """The logit that each text answers the question, None if it is too long to be read. Raises EmbedderError."""
        import numpy as np

        engine, after = runtime(self._folder, queries_first=True), self._ids.after
        question_ids, *rows = (
            [id for id in ids.tolist() if id not in after] for ids in self._ids.encode([question, *texts])
        )
        logits: list[float | None] = []
        for row in rows:
            if len(row) >= _LONGEST_TEXT:
                logits.append(None)
                continue
            ids = [*self._ids.before, *question_ids[:_LONGEST_QUESTION], *after, *row, *after]
            (logit,) = engine.run_query(["answers"], {"input_ids": np.array([ids], np.int64)})
            logits.append(float(logit[0, 0]))
        return logits


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
