"""Errors of public methods that say what to do: for an unknown argument, and for want of open files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from recallite.errors import StoreError

P = ParamSpec("P")
R = TypeVar("R")


def suggests(error: Callable[[str, str], Exception]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that raises `error(method, argument)` for a keyword argument that the method does not have.

    It raises StoreError too if the process may not open what the method loads when it is first called.
    """

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
            except OSError as fault:
                check_open_files(fault)
                raise

        return call

    return decorate


def check_open_files(fault: OSError) -> None:
    """Raise StoreError if the process or the system has as many open files as it may have."""
    if fault.errno in (errno.EMFILE, errno.ENFILE):
        path = fault.filename or "a file"
        raise StoreError(
            f"{path} cannot be opened: too many open files. Close some, or raise the limit (ulimit -n); then try again",
            "io",
        ) from fault
