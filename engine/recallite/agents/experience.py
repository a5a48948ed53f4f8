"""Experience: which tools worked for which tasks and what fixed which errors, as tips for the next run.

To compare errors, what differs between runs (numbers, paths, ids) is masked, and their words are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.plugin import Service
from recallite.store.sql.repository import stored_json
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown
from recallite.text.words import STOP_TERMS, tokenize

# Dice coefficient of the words. Different errors of one tool, as "no such file" and "permission denied", reach 1/3.
_ALIKE = 0.5
_MASKS = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s'\"<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<![\w/.])(?:~|\.{1,2})?(?:/[^\s/:'\"<>)\],;]+)+/?|\b[A-Za-z]:\\[^\s:'\"<>]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<id>"),
    # A status code such as 404 identifies the error; other numbers do not.
    (re.compile(r"(?<![\w.])(?![1-5]\d\d(?![\w.]))[-+]?\d+(?:[.,]\d+)*"), "<n>"),
)
_MASK = re.compile(r"<(?:url|id|time|path|n)>")
_STATUS = re.compile(r"(?<![\w.])[1-5]\d\d(?![\w.])")


def error_pattern(error: str) -> str:
    """An error with numbers, paths, addresses, times and ids masked, and with white space and case normalised."""
    for mask, name in _MASKS:
        error = mask.sub(name, error)
    return " ".join(error.lower().split())


def similarity_of(pattern: str, other: str) -> float:
    """The similarity of two patterns: 1 for equal ones, else the Dice coefficient of their words, or 0 if low.

    Patterns with different status codes (404, 500) have 0.
    """
    if pattern == other:
        return 1.0
    statuses, others = set(_STATUS.findall(pattern)), set(_STATUS.findall(other))
    if statuses and others and not statuses & others:
        return 0.0
    words, known = _words(pattern), _words(other)
    if not words or not known:
        return 0.0
    nearness = 2 * len(words & known) / (len(words) + len(known))
    return nearness if nearness >= _ALIKE else 0.0


def _words(pattern: str) -> set[str]:
    return set(tokenize(_MASK.sub(" ", pattern))) - STOP_TERMS


# Patterns, recoveries and tips.

# The fewest runs and the lowest success rate of a pattern that is given as a tip.
FEWEST_RUNS = 2
LEAST_SUCCESS = 0.5
MAX_ERROR_CHARS = 4_000
# The most steps or tokens of a run: sums over nine million runs still fit in 64 bits.
MAX_FIGURE = 10**12


class Tip(Struct, frozen=True, kw_only=True):
    """One lesson; its `str` is a sentence for a prompt.

    A "pattern" has the task type, the tools and their figures; a "recovery" has the tool, the error and what fixed it.
    """

    kind: Literal["pattern", "recovery"]
    tools: tuple[str, ...]
    runs: int
    task_type: str | None = None
    success_rate: float = 1.0
    avg_steps: float | None = None
    avg_tokens: float | None = None
    error: str | None = None
    recovery: str | None = None

    def __str__(self) -> str:
        """The tip as a sentence, on one line."""
        if self.kind == "recovery":
            times = "once" if self.runs == 1 else f"{self.runs:,} times"
            return f"When {self.tools[0]} fails with {_line(self.error)!r}: {_line(self.recovery)} (helped {times})"
        averages = ((self.avg_steps, "step"), (self.avg_tokens, "token"))
        figures = [_counted(number, unit) for number, unit in averages if number is not None]
        average = f" (avg {', '.join(figures)})" if figures else ""
        return (
            f"For {self.task_type} tasks, use [{', '.join(self.tools)}] — {self.success_rate * 100:.0f}% success rate "
            f"over {_counted(self.runs, 'run')}{average}"
        )


class Experience(Service):
    """Experience recorded without an agent is shared by all agents of the handle's scope; with one it is private."""

    def record(
        self,
        *,
        task_type: str,
        tools: Sequence[str],
        success: bool,
        steps: int | None = None,
        tokens: int | None = None,
        agent: str | None = None,
    ) -> None:
        """Record a run: its tools in the order of first use, whether the task succeeded, its steps and tokens."""
        kind = checks.check_name(task_type, "task_type")
        pattern = msgspec.json.encode(unique_tools(tools)).decode()
        checks.check_flag(success, "success")
        for name, value in (("steps", steps), ("tokens", tokens)):
            if value is not None:
                checks.check_count(value, name, minimum=0, maximum=MAX_FIGURE)
        scope = self._scope(agent)
        with self._engine.atomic([scope]) as writer:
            key = scope, kind, pattern
            writer.tiers.add_run(key, success=success, steps=steps, tokens=tokens, now=checks.now_us())

    def record_recovery(self, *, tool: str, error: str, recovery: str, agent: str | None = None) -> None:
        """Record the recovery from an error of a tool; for each tool and error pattern the latest one is kept."""
        name = checks.check_name(tool, "tool")
        policy = self._engine.write_policy
        message = policy.clean(_message(error, "error"))
        cure = policy.clean(_message(recovery, "recovery"))
        scope = self._scope(agent)
        with self._engine.atomic([scope]) as writer:
            key = scope, name, error_pattern(message)
            writer.tiers.add_recovery(key, error=message, recovery=cure, now=checks.now_us())

    def tips(
        self,
        task_type: str | None,
        tool: str | None = None,
        error: str | None = None,
        *,
        agent: str | None = None,
        limit: int = 10,
    ) -> list[Tip]:
        """Return what helped before: recoveries for `error` of `tool`, then tool patterns for `task_type` (None: any).

        Patterns need at least 2 runs and 50 % success; the most successful come first. Recoveries are those for the
        same tool and a similar error. An agent sees its own experience and the shared one.
        """
        if task_type is not None:
            checks.check_name(task_type, "task_type")
        if (tool is None) != (error is None):
            raise InvalidInput("tool and error go together: recoveries are for an error of a tool")
        count = checks.check_count(limit, "limit")
        scopes = list(dict.fromkeys([self._base, self._scope(agent)]))
        with self._engine.store.read() as reader:
            patterns = reader.tiers.patterns(scopes, task_type)
            recoveries = [] if tool is None else reader.tiers.recoveries(scopes, checks.check_name(tool, "tool"))
        recovered: list[Tip] = []
        if error is not None:
            error_words = error_pattern(_message(error, "error"))
            similar = [(similarity_of(error_words, row.error_pattern), row) for row in recoveries]
            similar.sort(key=lambda scored: -scored[0])
            recovered = [
                Tip(kind="recovery", tools=(row.tool,), runs=row.total_count, error=row.error, recovery=row.recovery)
                for similarity, row in similar
                if similarity > 0
            ]
        tried = [
            Tip(
                kind="pattern", task_type=row.task_type,
                tools=tuple(stored_json(row.pattern, f"a tool pattern of {row.task_type!r}", list[str])),
                runs=row.total_count, success_rate=row.success_count / row.total_count,
                avg_steps=row.avg_steps, avg_tokens=row.avg_tokens,
            )
            for row in patterns
            if row.total_count >= FEWEST_RUNS
        ]  # fmt: skip
        good = [tip for tip in tried if tip.success_rate >= LEAST_SUCCESS]
        good.sort(key=lambda tip: (-tip.success_rate, -tip.runs, str(tip.task_type), tip.tools))
        return [*recovered, *good][:count]


class AsyncExperience(AsyncService[Experience]):
    """`Experience`, awaited."""

    record = awaited(Experience.record)
    record_recovery = awaited(Experience.record_recovery)
    tips = awaited(Experience.tips)


def unique_tools(tools: object) -> list[str]:
    """Return tool names in the order of their first use, each once."""
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise InvalidInput(f"tools is {shown(tools)}: give a list of tool names, e.g. ['file-write']")
    names = list(dict.fromkeys(checks.check_name(tool, f"tools[{i}]") for i, tool in enumerate(tools)))
    if not names:
        raise InvalidInput("tools is empty: give the tools of the run, e.g. ['file-write']")
    return names


def _message(text: object, name: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{name} is {shown(text)}: give a non-empty str")
    return checks.check_text(text, 2**31, name)[:MAX_ERROR_CHARS]


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _counted(number: float, unit: str) -> str:
    """`1 run`, `4 steps`, `1,190 tokens`."""
    whole = f"{number:,.0f}"
    return f"{whole} {unit}" if whole == "1" else f"{whole} {unit}s"
