"""Unknown keyword arguments of public methods: the error names what was meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def suggests(error: Callable[[str, str], Exception]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that raises `error(method, argument)` for a keyword argument that the method does not have."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        code = method.__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return method(*args, **kwargs)
            except TypeError:
                for name in kwargs:
                    if name not in known:
                        raise error(method.__name__, name) from None
                raise

        return call

    return decorate
