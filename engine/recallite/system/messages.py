"""Error messages: how they show values and faults, what to install, and methods whose errors say what to do."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from recallite.errors import StoreError

_LONGEST_FAULT = 300
_SURROGATE = re.compile("[\ud800-\udfff]")
_USERINFO = re.compile(r"(?<=//)[^/?#\s]*@")


def shown(value: object, limit: int = 60) -> str:
    """The repr of a value for an error message, cut to `limit` characters."""
    try:
        text = ascii(value[: limit + 1]) if isinstance(value, str) else repr(value)
    except Exception:  # nested too deep, or a foreign __repr__
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def without_userinfo(text: str) -> str:
    """A text without the user and password of the URLs in it."""
    return _USERINFO.sub("…@", text)


def fault_text(fault: BaseException) -> str:
    """Type and message of an exception from foreign code, at most 300 characters, safe to store and show."""
    try:
        message = str(fault)
    except Exception:  # a foreign __str__
        message = "its message cannot be read"
    name = type(fault).__name__
    text = readable(f"{name}: {message[:_LONGEST_FAULT]}" if message else name)
    return text if len(text) <= _LONGEST_FAULT else text[: _LONGEST_FAULT - 1] + "…"


def readable(text: str) -> str:
    """`text` with a replacement character for each lone surrogate and a space for each NUL."""
    if not text.isascii():
        text = _SURROGATE.sub("�", text)
    return text.replace("\x00", " ")


def install_command(extra: str) -> str:
    """The command that installs an extra from a checkout: Recallite is not published yet."""
    return f"pip install '.[{extra}]' in a checkout of Recallite"


P = ParamSpec("P")
R = TypeVar("R")


def suggests(
    error: Callable[[str, str], Exception], options: Iterable[str] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that raises `error(method, argument)` for a keyword argument that the method does not have.

    `options` are those that it passes on.

    It raises StoreError too if the process may not open what the method loads when it is first called.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        code = method.__code__
        known = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *options}

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


def shows_use(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that adds an example to the TypeError of a call with too few or too many arguments."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return method(*args, **kwargs)
            except TypeError as fault:
                if fault.__traceback__ is None or fault.__traceback__.tb_next is not None:  # raised by its body
                    raise
                raise TypeError(f"{fault}: use {example}") from None

        return call

    return decorate


def no_attribute(owner: object, name: str, use: Mapping[str, str]) -> AttributeError:
    """The error of an attribute that does not exist; `use` has ours by the names that users of others type."""
    hint = f": use {use[name]}" if name in use else ""
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=owner)


def check_open_files(fault: OSError) -> None:
    """Raise StoreError if the process or the system has as many open files as it may have."""
    if fault.errno in (errno.EMFILE, errno.ENFILE):
        path = fault.filename or "a file"
        raise StoreError(
            f"{path} cannot be opened: too many open files. Close some, or raise the limit (ulimit -n); then try again",
            "io",
        ) from fault


# Modules that are imported when something of theirs is first used, which may fail for want of open files.
class Deferred:
    """Stands for a module; for a type checker the module itself is imported in its place."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            value = getattr(import_module(self._name), attribute)
        except OSError as fault:
            check_open_files(fault)
            raise
        setattr(self, attribute, value)  # found without this function from now on
        return value
