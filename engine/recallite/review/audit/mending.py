"""Repairs, as findings propose them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import Conflict, NotFound
from recallite.model.checks import check_time, now_us, to_datetime
from recallite.model.reports import Finding
from recallite.remember import change, relations
from recallite.remember.relations import row_id, supersede
from recallite.review.audit.findings import batches
from recallite.store.transaction import Reader
from recallite.text.secrets import redact, redact_all

_REASON = "found by audit"


def last_changes(reader: Reader, findings: Iterable[Finding]) -> dict[str, datetime]:
    """Return when the memories of findings were last changed, by id."""
    names = {id for finding in findings for id in (finding.id, finding.other) if id is not None}
    ids = sorted(reader.records.find_ids(sorted(names), "/").values())
    return {record.id: record.updated_at for batch in batches(ids) for record in reader.records.get_many(batch)}


def mended(engine: Engine, findings: Iterable[Finding], seen: dict[str, datetime], base: str) -> Iterator[Finding]:
    """Repair each finding, unless its memory was changed or forgotten since it was `seen`."""
    by_verb: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_verb[finding.verb].append(finding)
    yield from by_verb.pop(None, [])
    mend: dict[str | None, Callable[[Finding], Any]] = {
        "forget": lambda item: _forget(engine, item, base),
        "purge_expired": lambda item: change.forget(engine, [item.id], None, base=base),
        "expire": lambda item: change.update(engine, item.id, {"expires_at": to_datetime(now_us())}, base=base),
        "link": lambda item: relations.link(engine, item.id, str(item.other), "contradicts", 1.0, base=base),
        "supersede": lambda item: supersede(
            engine, item.id, item.other, reason=_REASON, strength=1.0, at=None, base=base
        ),
        "redact": lambda item: _redact(engine, item.id, base),
    }
    ours: set[str] = set()
    for verb, repairable in by_verb.items():
        for finding in repairable:
            # A redaction embeds, which takes too long for a transaction: it reads the memory again.
            with nullcontext() if verb == "redact" else engine.atomic():
                others = {id for id in (finding.id, finding.other) if id is not None and id not in ours}
                with engine.store.read() as reader:
                    now = last_changes(reader, [finding])
                as_seen = all(now.get(id, False) == seen.get(id) for id in others)
                if as_seen:
                    with suppress(NotFound, Conflict):  # by an earlier finding
                        mend[verb](finding)
            if as_seen:
                ours.add(finding.id)
            yield structs.replace(finding, mended=as_seen)


def _forget(engine: Engine, finding: Finding, base: str) -> None:
    """Forget a memory; the times of a duplicate go to the one that stays."""
    if finding.other is not None:
        with engine.atomic() as writer:
            spare_id, remaining_id = row_id(writer, finding.id, base), row_id(writer, finding.other, base)
            spare, remaining = writer.records.get(spare_id), writer.records.get(remaining_id)
            text = None if spare.text == remaining.text else spare.text
            times = writer.occurrences.of([spare_id]).get(spare_id, [])
            rows = [(remaining_id, check_time(spare.created_at, "created_at") or 0, text)]
            rows += [(remaining_id, time.at, text if time.text is None else time.text) for time in times]
            writer.occurrences.add(rows)
    change.forget(engine, [finding.id], None, base=base)


def _redact(engine: Engine, id: str, base: str) -> None:
    with engine.store.read() as reader:
        record = reader.records.get(row_id(reader, id, base))
    context = None if record.context is None else redact(record.context)
    fields = {"text": redact(record.text), "context": context, "metadata": redact_all(record.metadata)}
    changes = {name: value for name, value in fields.items() if value != getattr(record, name)}
    if changes:
        change.update(engine, id, changes, base=base, keep_version=False)
    change.purge_versions(engine, id, base=base)
