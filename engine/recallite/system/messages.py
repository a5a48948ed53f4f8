"""Values and faults as error messages show them."""

from __future__ import annotations

import re

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


def fault_text(fault: BaseException, limit: int = 300) -> str:
    """Type and message of an exception from foreign code, at most `limit` characters, safe to store and show."""
    try:
        message = str(fault)
    except Exception:  # a foreign __str__
        message = "its message cannot be read"
    name = type(fault).__name__
    text = readable(f"{name}: {message[:limit]}" if message else name)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def readable(text: str) -> str:
    """`text` with a replacement character for each lone surrogate and a space for each NUL."""
    if not text.isascii():
        text = _SURROGATE.sub("�", text)
    return text.replace("\x00", " ")
