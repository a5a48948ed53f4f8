"""A budget of requests and tokens for a language model."""

from __future__ import annotations

import threading
import time

from recallite.errors import InvalidInput, LanguageModelError
from recallite.model.checks import check_count, check_finite


class Budget:
    """Counts requests and tokens, in total or per interval of `per_seconds`; thread-safe.

    Rejected requests are not counted. Tokens are known only after the answer, so concurrent requests may exceed
    `most_tokens`.
    """

    def __init__(
        self, most_calls: int | None = None, most_tokens: int | None = None, per_seconds: float | None = None
    ) -> None:
        for value, name in ((most_calls, "most_calls"), (most_tokens, "most_tokens")):
            if value is not None:
                check_count(value, name, minimum=0)
        if per_seconds is not None and check_finite(per_seconds, "per_seconds") <= 0:
            raise InvalidInput("per_seconds is not above 0: give seconds, or None for a budget in all")
        self._most_calls = most_calls
        self._most_tokens = most_tokens
        self._per_seconds = per_seconds
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.calls = 0
        self.tokens = 0

    def take_call(self) -> None:
        """Count one request. Raises LanguageModelError if the budget is spent."""
        with self._lock:
            now = time.monotonic()
            if self._per_seconds is not None and now - self._began >= self._per_seconds:
                self._began, self.calls, self.tokens = now, 0, 0
            limits = (self.calls, self._most_calls, "calls"), (self.tokens, self._most_tokens, "tokens")
            for used, most, unit in limits:
                if most is not None and used >= most:
                    span = "" if self._per_seconds is None else f" in {self._per_seconds:g} s"
                    raise LanguageModelError(
                        f"the language model's budget of {most:,} {unit}{span} is spent ({used:,} used): "
                        f"wait, or raise most_{unit}"
                    )
            self.calls += 1

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a request and its answer."""
        with self._lock:
            self.tokens += tokens
