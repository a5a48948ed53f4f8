"""Files made to harm their reader: PDF, DOCX, HTML, Markdown, text, YAML, TOML, JSON, and archives that expand.

Each is ingested into a store that holds a good document, or read as settings. Failures: an error that is no
RecalliteError, a reader that takes more memory or processor time than its limits allow, a store that verify finds
fault with, a good document that has changed, a file or process that is left.
"""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from recallite import Memory, Settings
from recallite.errors import RecalliteError
from recallite_notes.config import WorkspaceConfig
from tests.attacks.outcome import Outcome

__all__ = ["attack"]

# The reader's own limits; what it may take beyond them is the cost of starting it.
_LIMITS = {"seconds": 5.0, "memory_mb": 512, "max_bytes": 4_000_000, "max_chars": 2_000_000}
_MOST_SECONDS = 60.0
_MOST_MB = 600.0
_GOOD = b"# Harbour\n\nThe ships leave at noon.\n"


def attack(tries: int, seed: int) -> Outcome:
    """Read so many hostile files."""
    outcome = Outcome("files")
    seeded = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="recallite-hostile-"))
    refused = read = 0
    try:
        with Memory(folder / "m.db", settings=Settings(embedder="none")) as memory:
            memory.knowledge.ingest(_GOOD, name="good.md")
            held = memory.knowledge.search("ships")[0].text
            for number in range(tries):
                name, data = _file(seeded)
                what = f"{name} of {len(data):,} bytes, seed {seed}, file {number}"
                before, started = _peak_mb(), time.process_time()
                try:
                    if name.startswith("settings"):
                        _load_settings(folder / name, data)
                        read += 1
                    else:
                        done = memory.knowledge.ingest(data, name=name, **_LIMITS)
                        read += len(done.documents)
                        refused += len(done.skipped)
                        for document in done.documents:
                            memory.knowledge.search("ships")
                            memory.knowledge.delete(document.id)
                except RecalliteError:
                    refused += 1
                except Exception as fault:
                    outcome.fail("untyped", f"{what}: {type(fault).__name__}: {str(fault)[:200]}")
                if (took := time.process_time() - started) > _MOST_SECONDS:
                    outcome.fail("hung", f"{what}: {took:.0f} s of the caller's processor time")
                if (grown := _peak_mb() - before) > _MOST_MB:
                    outcome.fail("leak", f"{what}: {grown:.0f} MB in the caller's process")
                outcome.tries += 1
                if number % 50 == 49 or number == tries - 1:
                    _check_store(memory, held, what, outcome)
        left = [each.name for each in folder.iterdir() if not each.name.startswith("m.db")]
        if left:
            outcome.fail("leak", f"files left: {left}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.figures |= {"refused": refused, "read": read, "peak_mb": round(_peak_mb(), 0)}
    return outcome


def _load_settings(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        load: Callable[[Path], object] = Settings.load if len(data) % 2 else WorkspaceConfig.load
        load(path)
    finally:
        path.unlink()


def _check_store(memory: Memory, held: str, what: str, outcome: Outcome) -> None:
    checked = memory.store.verify()
    if not checked.ok:
        outcome.fail("wrong", f"verify after {what}: {checked.problems}")
    found = memory.knowledge.search("ships leave noon")
    if not found or found[0].text != held:
        outcome.fail("lost", f"the good document after {what}")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _file(seeded: random.Random) -> tuple[str, bytes]:
    """The name and bytes of a hostile file."""
    make = seeded.choice((_pdf, _pdf, _docx, _docx, _html, _markdown, _markdown, _text, _yaml, _toml, _json))
    name, data = make(seeded)
    if seeded.random() < 0.4:
        data = _damaged(seeded, data)
    return name, data


def _damaged(seeded: random.Random, data: bytes) -> bytes:
    """Bits flipped, cut short, a part repeated, or rubbish in the middle."""
    changed = bytearray(data)
    for _ in range(seeded.randrange(1, 6)):
        place = seeded.randrange(len(changed) + 1)
        way = seeded.randrange(4)
        if way == 0 and place < len(changed):
            changed[place] ^= 1 << seeded.randrange(8)
        elif way == 1:
            del changed[place : place + seeded.randrange(1, 50)]
        elif way == 2:
            changed[place:place] = changed[place : place + 200]
        else:
            changed[place:place] = seeded.randbytes(seeded.randrange(1, 40))
    return bytes(changed[: seeded.randrange(len(changed) + 1)] if seeded.random() < 0.2 else changed)


def _pdf(seeded: random.Random) -> tuple[str, bytes]:
    content = seeded.choice(
        (
            b"BT /F1 12 Tf 50 700 Td (ships) Tj ET",
            b"q " * 100_000,
            b"BT /F1 1e38 Tf 1e308 -1e308 Td (x) Tj ET " * 500,
            b"/X0 Do " * 20,
            b"BT /F1 12 Tf " + b"(a) Tj " * 200_000 + b"ET",
            b"[" * 50_000,
        )
    )
    packed = zlib.compress(content if seeded.random() < 0.7 else b" " * 60_000_000, 9)
    pages = seeded.choice((1, 3, 2000))
    kids = b"3 0 R " * pages
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (seeded.choice((pages, -1, 2**31, pages)), kids),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %s %s] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> "
        b"/XObject << /X0 6 0 R >> >> >>" % (seeded.choice((b"595", b"1e30", b"-5")), seeded.choice((b"842", b"0"))),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
        % (seeded.choice((len(packed), len(packed), 2**31)), packed),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        # A form that draws itself.
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X0 6 0 R >> >> /Length 7 >>\n"
        b"stream\n/X0 Do \nendstream",
    ]
    body = b"%PDF-1.7\n"
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = seeded.choice((len(body), len(body), 0, 2**40))
    root = seeded.choice((b"1 0 R", b"1 0 R", b"2 0 R", b"9 0 R"))
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, rows)
    trailer = b"trailer\n<< /Size %d /Root %s >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, root, start)
    return "hostile.pdf", body + table + trailer


_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org"
_TYPES = (
    f'<?xml version="1.0"?><Types xmlns="{_OFFICE}/package/2006/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    f'<?xml version="1.0"?><Relationships xmlns="{_OFFICE}/package/2006/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)


def _docx(seeded: random.Random) -> tuple[str, bytes]:
    depth = seeded.choice((10, 5_000, 50_000))
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(10))
    paragraph = "<w:p><w:r><w:t>ships</w:t></w:r></w:p>"
    body = seeded.choice(
        (
            paragraph * seeded.choice((1, 1000, 100_000)),
            "<w:tbl><w:tr><w:tc>" * depth + paragraph + "</w:tc></w:tr></w:tbl>" * depth,
            "<w:p>" * depth,
            "&a9;",
            "&x;",
            f"<w:p><w:r><w:t>{'x' * 3_000_000}</w:t></w:r></w:p>",
        )
    )
    begin = seeded.choice(
        (
            '<?xml version="1.0"?>',
            f'<?xml version="1.0"?><!DOCTYPE d [{laughs}]>',
            '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
            '<?xml version="1.0" encoding="utf-7"?>',
        )
    )
    document = f"{begin}<w:document {_WORD}><w:body>{body}</w:body></w:document>"
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/document.xml", document)
        if seeded.random() < 0.3:  # a bomb, names that leave the folder, very many members
            archive.writestr("word/media/bomb.xml", b"\0" * 80_000_000)
        if seeded.random() < 0.3:
            archive.writestr("../../../../tmp/recallite-escaped", "out")
        for number in range(seeded.choice((0, 0, 3000))):
            archive.writestr(f"word/{number}.xml", "x")
    return "hostile.docx", packed.getvalue()


def _html(seeded: random.Random) -> tuple[str, bytes]:
    depth = seeded.choice((10, 1_000, 100_000))
    body = seeded.choice(
        (
            "<div>" * depth + "ships",
            "<table><tr><td>" * min(depth, 20_000) + "ships",
            "<b><i><u>" * min(depth, 30_000),
            f"<p {' '.join(f'a{n}=x' for n in range(min(depth, 20_000)))}>ships",
            "<!--" * depth,
            "&lt;" * depth + "&#x110000;&#0;&#xD800;",
            "<script>" * depth,
            f"<a href='{'x' * depth}'>ships</a>" * 3,
            "<li>" * min(depth, 20_000),
            "<pre>" + "`" * depth,
        )
    )
    charset = seeded.choice(("utf-8", "utf-7", "utf-16", "x-user-defined", "none", "shift_jis"))
    return "hostile.html", f"<html><meta charset={charset}><title>{'t' * 500}</title><body>{body}".encode()


def _markdown(seeded: random.Random) -> tuple[str, bytes]:
    count = seeded.choice((100, 5_000, 50_000))
    opening = seeded.choice(
        ("", "---\ntitle: x\n---\n", f"---\n{_aliases()}---\n", "---\n" + "a: {" * 500 + "\n---\n", "---\n- " * 2000)
    )
    body = seeded.choice(
        (
            "> " * count + "ships",
            "- " * min(count, 5_000) + "ships",
            "#" * count + " ships",
            "[" * count + "](" * count,
            "*a _b " * count,
            "`" * count + "\n" + "``" * count,
            "| a " * count + "\n" + "|--" * count,
            "![" * count,
            "<" * count + "!--" * count,
            "\\" * count + "\n\n" + "&" * count,
            "1. " * min(count, 5_000),
            "```\n" * count,
            "\r\n" * count + "ships" + "\u2028" * count,
            "[a]: <b> 'c\n" * count,
            "\ufeff" * 100 + "\0ships",
        )
    )
    return "hostile.md", (opening + body).encode()


def _text(seeded: random.Random) -> tuple[str, bytes]:
    data = seeded.choice(
        (
            seeded.randbytes(seeded.choice((10, 1_000, 300_000))),
            b"a" * 3_000_000,
            "\u0301".encode() * 300_000,
            "\U0010ffff\u202e\u200b".encode() * 50_000,
            b"\xff\xfe" + b"\xd8\x00" * 50_000,
            b" " * 2_000_000,
            b"a. " * 500_000,
            b"",
        )
    )
    return "hostile.txt", data


def _aliases() -> str:
    """YAML whose ten lines stand for ten thousand million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines) + "\n"


def _yaml(seeded: random.Random) -> tuple[str, bytes]:
    text = seeded.choice(
        (
            _aliases(),
            "a: " + "[" * seeded.choice((100, 20_000)),
            "a: &a [*a]\n",
            "!!python/object/apply:os.system ['touch escaped']\n",
            "? " * 5_000,
            "a: " + "{b: " * 500,
            "profile: *nobody\n",
            "write: !!binary " + "A" * 100_000 + "\n",
            "profile:\n  half_life_days: " + "9" * 5_000 + "\n",
            "\t" * 10_000,
        )
    )
    return "settings.yaml", text.encode()


def _toml(seeded: random.Random) -> tuple[str, bytes]:
    count = seeded.choice((10, 2_000, 20_000))
    text = seeded.choice(
        (
            ".".join(["a"] * count) + " = 1\n",
            "\n".join(".".join(["a"] * 50 + [f"b{n}"]) + " = 1" for n in range(count // 10)),
            "a = " + "[" * count,
            "a = " + "{b = " * min(count, 5_000),
            "[" + ".".join(["a"] * count) + "]\n",
            "\n".join(f"[a{'.a' * 100}.b{n}]" for n in range(count // 20)),
            "a = '''" + "x" * count,
            "half_life_days = " + "9" * count + "\n",
            "a = 1979-05-27T07:32:00+99:99\n",
            "\0",
        )
    )
    return "settings.toml", text.encode()


def _json(seeded: random.Random) -> tuple[str, bytes]:
    count = seeded.choice((10, 2_000, 100_000))
    text = seeded.choice(
        (
            "[" * count,
            '{"a":' * min(count, 50_000),
            '{"profile": ' + "9" * min(count, 20_000) + "}",
            "/*" * count,
            "{" + '"a": 1, ' * count + "}",
            '{"profile": "\\ud800"}',
            "//" * count,
            '{"profile": 1e999, "write": NaN}',
        )
    )
    return "settings.json", text.encode()
