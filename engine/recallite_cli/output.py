"""Standard input and output: text, JSON, tables on a terminal, tab-separated lines elsewhere.

A byte of the input that is not UTF-8 stays recognisable, so that its line can be named. Failures and hints go to
stderr.
"""

from __future__ import annotations

import io
import re
import sys
import threading
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import IO, TYPE_CHECKING, Any

from recallite.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console


def stdin_stream() -> IO[str]:
    """Standard input, as UTF-8 whatever the locale."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="")
    return sys.stdin


def stdout_stream() -> IO[str]:
    """Standard output, as UTF-8 whatever the locale."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="")
    return sys.stdout


def stdin_text(command: str) -> str:
    """All of standard input; a person who typed nothing is told what to type."""
    if sys.stdin.isatty():
        raise InvalidInput(f'no text was given: recallite {command} "...", or pipe it in')
    return _decoded(sys.stdin.buffer.read(), "standard input").strip()


def stdin_lines(path: str | None) -> list[str]:
    """The non-blank lines of a file, or of standard input."""
    if path is None or path == "-":
        if sys.stdin.isatty():
            raise InvalidInput('no query was given: recallite recall "...", --file FILE, or pipe them in, one a line')
        data, name = sys.stdin.buffer.read(), "standard input"
    else:
        try:
            with open(path, "rb") as stream:
                data, name = stream.read(), path
        except (OSError, ValueError) as fault:
            raise InvalidInput(f"{path} cannot be read: {fault}") from fault
    questions = [line.strip() for line in _decoded(data, name).splitlines() if line.strip()]
    if not questions:
        raise InvalidInput("there is no query in the input: give one a line")
    return questions


def _decoded(data: bytes, name: str) -> str:
    """A text in UTF-8, or in UTF-16 with a byte order mark, as older shells of Windows write it."""
    try:
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput(
            f"{name} is not UTF-8: the byte {data[fault.start]:#04x} at {fault.start} is no part of a character; "
            "convert it first"
        ) from None


# What could move a terminal's cursor, change its colours or feed it keys.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SPACE = re.compile(r"\s+")
_UUID = re.compile(r"(?:doc_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IDS = ("id", "from", "to", "old", "new")


def safe(text: str) -> str:
    """Text that a terminal may be given: no control characters, no lone surrogates."""
    return _CONTROL.sub("�", text).encode("utf-8", "replace").decode()


def one_line(text: object) -> str:
    """A value on one line, without tabs."""
    return safe(_SPACE.sub(" ", str(text)).strip())


def stamp(moment: datetime | None) -> str:
    """A time of UTC for a table; nothing for None."""
    return "" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%SZ")


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line at once, in UTF-8 if the locale has ASCII alone."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() in ("ascii", "ansi_x3.4-1968", "us-ascii"):
        stream.reconfigure(encoding="utf-8")
    print(text, file=stream, flush=True)


def encoded(value: object) -> str:
    """A value in JSON, on one line."""
    import msgspec

    return msgspec.json.encode(list(value) if isinstance(value, list) else value).decode()


def print_json(value: object) -> None:
    """One JSON value: indented for people, on one line elsewhere."""
    print_encoded(encoded(value))


def print_encoded(encoded: str) -> None:
    """A value that is JSON already, as `print_json`."""
    if sys.stdout.isatty():
        import msgspec

        encoded = msgspec.json.format(encoded, indent=2)
    echo(encoded)


def console() -> Console | None:
    """The terminal behind standard output, or None when it is none."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console(highlight=False)


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], *, under: Collection[str] = ()) -> None:
    """A table on a terminal, a tab-separated line a row elsewhere.

    On a terminal the last column takes the room that is left, and the columns named in `under` stand below it.
    """
    rows = list(rows)
    if not rows:  # a header alone says nothing
        return
    terminal = console()
    if terminal is None:
        for row in rows:
            echo("\t".join(one_line("" if cell is None else cell) for cell in row))
        return
    from rich.table import Table
    from rich.text import Text

    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for i, name in enumerate(columns):
        if name in _IDS:
            for cells, id in zip(texts, short_ids([cells[i] for cells in texts]), strict=True):
                cells[i] = id
    table = Table(box=None, show_header=any(columns), header_style="bold", padding=(0, 2, 0, 0))
    beside = [i for i, name in enumerate(columns[:-1]) if name not in under]
    below = [i for i, name in enumerate(columns[:-1]) if name in under]
    for i in beside:
        table.add_column(columns[i], no_wrap=True, style="cyan" if columns[i] in _IDS else "")
    table.add_column(columns[-1], overflow="fold")
    for cells in texts:
        last = Text(safe(cells[-1]))
        if below:
            last.append("\n" + "  ".join(one_line(cells[i]) for i in below), "dim")
        table.add_row(*(Text(one_line(cells[i])) for i in beside), last)
    terminal.print(table)


def print_table(
    columns: str, row: Callable[[Any], Sequence[object]] | None = None, *, under: Collection[str] = ()
) -> Callable[[Any], None]:
    """`print_rows` for one or more values: `row` makes the cells, else each column is an attribute or key.

    `columns` are names, as "score id created:created_at uses:use_count:.0%" with attributes and formats.
    """
    parts = [column.split(":") for column in columns.split()]

    def cells(value: object) -> list[str]:
        get: Any = itemgetter if isinstance(value, Mapping) else attrgetter
        return [_cell(get(part[min(1, len(part) - 1)])(value), *part[2:]) for part in parts]

    def show(values: Any) -> None:
        values = values if isinstance(values, list | tuple) else [values]
        print_rows([part[0] for part in parts], [*map(row or cells, values)], under=under)

    return show


def _cell(value: object, style: str = ".2f") -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return stamp(value)
    return format(value, style) if isinstance(value, float) else "" if value is None else str(value)


def short_ids(ids: Sequence[str]) -> list[str]:
    """The ends of ids that tell these apart, of 8 characters or more. The start of an id is the time it was made."""
    chars, different = 8, len(set(ids))
    while len({id[-chars:] for id in ids}) < different:
        chars += 1
    return [id[-chars:] if _UUID.fullmatch(id) else id for id in ids]


def print_counts(names: str) -> Callable[[Any], None]:
    """Print how many there are of each thing, as "stored:records; already in the store:known", with its attribute.

    A number is the count of the only name.
    """
    parts = [name.partition(":") for name in names.split("; ")]

    def show(value: Any) -> None:
        counts = [
            value if isinstance(value, int) else attrgetter(attribute or name)(value) for name, _, attribute in parts
        ]
        print_rows(("", ""), [(f"{count:,}", name) for count, (name, _, _) in zip(counts, parts, strict=True)])

    return show


def attributes(value: object, names: str) -> dict[str, Any]:
    """Attributes of a value by name, for JSON."""
    return {name: getattr(value, name) for name in names.split()}


def named(name: str) -> Callable[[object], dict[str, object]]:
    """A value as a JSON object with one field."""
    return lambda value: {name: value}


def print_pairs(pairs: Mapping[str, object]) -> None:
    """A line a field, without empty fields."""
    full = [(name, _plain(value)) for name, value in pairs.items() if value not in (None, "", (), {}, [])]
    print_rows(("", ""), full)


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def hint(text: str) -> None:
    """A remark for people, on stderr."""
    echo(safe(text), err=True)


def fail_quietly(failed: bool) -> None:
    """End with exit code 1 where nothing was found."""
    if failed:
        import click

        raise click.exceptions.Exit(1)


def fail(name: str, message: str, *, reason: str | None = None, as_json: bool) -> None:
    """One failure on one line of stderr."""
    message = one_line(message)
    if as_json:
        import msgspec

        echo(msgspec.json.encode({"error": {"type": name, "reason": reason, "message": message}}).decode(), err=True)
    else:
        echo(f"recallite: {name}: {message}", err=True)


@contextmanager
def progress(label: str, unit: str, *, after_s: float = 1.0) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar with rate and remaining time, fed by `on_progress(done, total)`; None when stderr is no terminal.

    It appears after `after_s` seconds.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class _Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            done = f"{int(task.completed):,}" + (f"/{int(task.total):,}" if task.total else "")
            speed = task.finished_speed or task.speed
            return Text(f"{done} {unit}" + (f", {speed:,.0f}/s" if speed else ""))

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), _Rate(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task(label, total=None)
    later = threading.Timer(after_s, bar.start)
    later.daemon = True
    later.start() if after_s else bar.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        later.cancel()
        if later.is_alive():
            later.join()
        if bar.live.is_started:
            bar.stop()
