"""The loggers of Recallite, and spans of OpenTelemetry and lines of the log at level DEBUG about each operation.

What they say holds no text of a memory, query or document, no key and no token. OpenTelemetry is not imported here:
importing it takes 75 ms. A program that records spans has imported it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from recallite._version import __version__

# A library leaves it to the application what is shown.
logging.getLogger("recallite").addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """The logger of a module, below `recallite`: `recallite_server.warm` logs as `recallite.server.warm`."""
    return logging.getLogger(module.replace("recallite_", "recallite.", 1))


Value = str | bool | int | float
P = ParamSpec("P")
R = TypeVar("R")

_log = logger(__name__)


class _Telemetry(NamedTuple):
    """OpenTelemetry as it is used here."""

    tracer: Any
    context: Any
    trace: Any


_telemetry: _Telemetry | None = None


class Span:
    """An operation; `recording` says whether anyone sees its attributes."""

    __slots__ = ()
    recording = False

    def set(self, **attributes: Value) -> None:
        """Add attributes: figures and fixed words, never what was stored or asked."""

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class _Recorded(Span):
    """A span that goes to OpenTelemetry, if the program uses it, and to the log."""

    __slots__ = ("_attributes", "_began", "_name", "_own", "_result", "_telemetry", "_token")
    recording = True

    def __init__(self, name: str, attributes: dict[str, Value], telemetry: _Telemetry | None) -> None:
        self._name, self._attributes, self._telemetry = name, attributes, telemetry
        self._result: dict[str, Value] = {}

    def set(self, **attributes: Value) -> None:
        self._result.update(attributes)

    def __enter__(self) -> Span:
        if self._telemetry is not None:
            tracer, context, trace = self._telemetry
            self._own = tracer.start_span(f"recallite.{self._name}", attributes=_named(self._attributes))
            if self._own.get_span_context().is_valid:
                self._token = context.attach(trace.set_span_in_context(self._own))
            else:  # there is no provider
                self._telemetry = None
        self._began = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        taken_ms = (perf_counter() - self._began) * 1e3
        # A message may quote a text: only the class is told. An interrupt is no failure of the operation.
        error = type(fault).__qualname__ if isinstance(fault, Exception) else None
        if self._telemetry is not None:
            self._end(self._telemetry, error)
        if _log.isEnabledFor(logging.DEBUG):
            attributes = {**self._attributes, **self._result}
            pairs = "".join(f" {name}={_short(value)}" for name, value in attributes.items())
            outcome = "" if error is None else f" failed with {error}"
            _log.debug("%s%s: %.2f ms%s", self._name, outcome, taken_ms, pairs)

    def _end(self, telemetry: _Telemetry, error: str | None) -> None:
        telemetry.context.detach(self._token)
        if self._own.is_recording():
            self._own.set_attributes(_named(self._result))
            if error is not None:
                self._own.set_attribute("error.type", error)
                self._own.set_status(telemetry.trace.Status(telemetry.trace.StatusCode.ERROR))
        self._own.end()


_NOT_RECORDED = Span()


def span(name: str, **attributes: Value) -> Span:
    """Return a context manager around one operation; its span and attributes are named `recallite.<name>`."""
    telemetry = _telemetry_now()
    if telemetry is None and not _log.isEnabledFor(logging.DEBUG):
        return _NOT_RECORDED
    return _Recorded(name, attributes, telemetry)


def traced(
    name: str, attributes: Callable[[Any], Mapping[str, Value]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that puts a `span` around a function; `attributes` returns what to add about its result."""

    def around(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            with span(name) as seen:
                result = function(*arguments, **options)
                if attributes is not None and seen.recording:
                    seen.set(**attributes(result))
                return result

        return call

    return around


def _telemetry_now() -> _Telemetry | None:
    """None where the program has not imported OpenTelemetry.

    Spans of a tracer that was asked for before a provider is set go to that provider once it is.
    """
    global _telemetry
    if _telemetry is None and "opentelemetry.trace" in sys.modules:
        from opentelemetry import context, trace  # waits where another thread is importing them

        _telemetry = _Telemetry(trace.get_tracer("recallite", __version__), context, trace)
    return _telemetry


def _named(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {f"recallite.{name}": value for name, value in attributes.items()}


def _short(value: Value) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
