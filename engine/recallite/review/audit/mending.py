"""What findings propose, carried out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import AlreadySuperseded, NotFound
from recallite.model.checks import check_time, now_us, to_datetime
from recallite.model.reports import Finding
from recallite.remember import change, links
from recallite.remember.supersession import row_id, supersede
from recallite.review.audit.findings import batches
from recallite.store.protocol import Reader
from recallite.text.secrets import redact, redact_all

_REASON = "found by audit"


def last_changes(reader: Reader, findings: Iterable[Finding]) -> dict[str, datetime]:
    """When the memories of findings were last changed, by id."""
    named = {id for each in findings for id in (each.id, each.other) if id is not None}
    ids = sorted(reader.records.find_ids(sorted(named), "/").values())
    return {record.id: record.updated_at for some in batches(ids) for record in reader.records.get_many(some)}


def mended(engine: Engine, findings: Iterable[Finding], seen: dict[str, datetime], base: str) -> Iterator[Finding]:
    """Repair each finding, unless its memory was changed or forgotten since it was `seen`."""
    by_verb: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for each in findings:
        by_verb[each.verb].append(each)
    yield from by_verb.pop(None, [])
    mend: dict[str | None, Callable[[Finding], Any]] = {
        "forget": lambda each: _forget(engine, each, base),
        "purge_expired": lambda each: change.forget(engine, [each.id], None, base=base),
        "expire": lambda each: change.update(engine, each.id, {"expires_at": to_datetime(now_us())}, base=base),
        "link": lambda each: links.link(engine, each.id, str(each.other), "contradicts", 1.0, base=base),
        "supersede": lambda each: supersede(
            engine, each.id, each.other, reason=_REASON, strength=1.0, at=None, base=base
        ),
        "redact": lambda each: _redact(engine, each.id, base),
    }
    ours: set[str] = set()
    for verb, some in by_verb.items():
        for each in some:
            # A redaction embeds, which takes too long for a transaction: it reads the memory again.
            with nullcontext() if verb == "redact" else engine.atomic():
                others = {id for id in (each.id, each.other) if id is not None and id not in ours}
                with engine.store.read() as reader:
                    now = last_changes(reader, [each])
                as_seen = all(now.get(id, False) == seen.get(id) for id in others)
                if as_seen:
                    with suppress(NotFound, AlreadySuperseded):  # by an earlier finding
                        mend[verb](each)
            ours |= {each.id} if as_seen else set()
            yield structs.replace(each, mended=as_seen)


def _forget(engine: Engine, finding: Finding, base: str) -> None:
    """Forget a memory; the times of a duplicate go to the one that stays."""
    if finding.other is not None:
        with engine.atomic() as writer:
            spare_id, kept_id = row_id(writer, finding.id, base), row_id(writer, finding.other, base)
            spare, kept = writer.records.get(spare_id), writer.records.get(kept_id)
            text = None if spare.text == kept.text else spare.text
            times = writer.occurrences.of([spare_id]).get(spare_id, [])
            rows = [(kept_id, check_time(spare.created_at, "created_at") or 0, text)]
            rows += [(kept_id, each.at, text if each.text is None else each.text) for each in times]
            writer.occurrences.add(rows)
    change.forget(engine, [finding.id], None, base=base)


def _redact(engine: Engine, id: str, base: str) -> None:
    """Redact the secrets of a memory, and purge its earlier versions."""
    with engine.store.read() as reader:
        record = reader.records.get(row_id(reader, id, base))
    context = None if record.context is None else redact(record.context)
    fields = {"text": redact(record.text), "context": context, "metadata": redact_all(record.metadata)}
    changes = {name: value for name, value in fields.items() if value != getattr(record, name)}
    if changes:
        change.update(engine, id, changes, base=base, keep_version=False)
    change.purge_versions(engine, id, base=base)
