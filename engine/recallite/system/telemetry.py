"""The loggers of Recallite, and spans of OpenTelemetry and lines of the log at level DEBUG about each operation.

What they say holds no text of a memory, query or document, no key and no token. OpenTelemetry is not imported here:
importing it takes 75 ms. A program that records spans has imported it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from time import perf_counter
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

    def __init__(self, *, recording: bool) -> None:
        self.recording = recording
        self.result: dict[str, Value] = {}

    def set(self, **attributes: Value) -> None:
        """Add attributes: figures and fixed words, never what was stored or asked."""
        if self.recording:
            self.result.update(attributes)


_NOT_RECORDED = nullcontext(Span(recording=False))


def span(name: str, **attributes: Value) -> AbstractContextManager[Span]:
    """Return a context manager around one operation; its span and attributes are named `recallite.<name>`."""
    telemetry = _telemetry_now()
    if telemetry is None and not _log.isEnabledFor(logging.DEBUG):
        return _NOT_RECORDED
    return _recorded(name, attributes, telemetry)


@contextmanager
def _recorded(name: str, attributes: dict[str, Value], telemetry: _Telemetry | None) -> Iterator[Span]:
    """A span that goes to OpenTelemetry, if the program uses it, and to the log."""
    seen, own, error = Span(recording=True), None, None
    if telemetry is not None:
        tracer, context, trace = telemetry
        own = tracer.start_span(f"recallite.{name}", attributes=_named(attributes))
        if own.get_span_context().is_valid:
            token = context.attach(trace.set_span_in_context(own))
        else:  # there is no provider
            own = None
    began = perf_counter()
    try:
        yield seen
    except Exception as fault:  # an interrupt is no failure of the operation
        error = type(fault).__qualname__  # a message may quote a text: only the class is told
        raise
    finally:
        taken_ms = (perf_counter() - began) * 1e3
        if own is not None:
            context.detach(token)
            if own.is_recording():
                own.set_attributes(_named(seen.result))
                if error is not None:
                    own.set_attribute("error.type", error)
                    own.set_status(trace.Status(trace.StatusCode.ERROR))
            own.end()
        if _log.isEnabledFor(logging.DEBUG):
            values = {**attributes, **seen.result}.items()
            pairs = "".join(f" {key}={f'{value:.2f}' if isinstance(value, float) else value}" for key, value in values)
            outcome = "" if error is None else f" failed with {error}"
            _log.debug("%s%s: %.2f ms%s", name, outcome, taken_ms, pairs)


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
