"""The text of a file that people wrote."""

from __future__ import annotations


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and what is wrong with it. Bytes that are no character become U+FFFD.

    UTF-8, with or without a byte order mark, and UTF-16 with one.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    problem = None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as fault:
        text = data.decode(encoding, errors="replace")
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        problem = f"byte {fault.start:,} is not {name}: indexed with � in its place; convert the file"
    if "\x00" in text:
        problem = problem or f"character {text.index(chr(0)):,} is NUL: indexed with � in its place"
        text = text.replace("\x00", "�")
    return text, problem
