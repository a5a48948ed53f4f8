"""Audit: unwanted records (duplicates, contradictions, secrets, ...), each with the method that repairs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from msgspec import structs

from recollect.checks import now_us, shown, to_datetime
from recollect.engine import Engine
from recollect.errors import InvalidInput, NotFound
from recollect.filters import Filter
from recollect.records import Record
from recollect.remember import change, links
from recollect.remember.supersession import row_id
from recollect.remember.threshold_search import Neighbor, threshold_search
from recollect.reports import Audit, Finding
from recollect.store.protocol import Progress, Reader
from recollect.store.values import CurrentRecord
from recollect.text.contrast import Statement, contradiction, same_statement
from recollect.text.junk import is_junk
from recollect.text.secrets import NO_DETECTOR, find_secrets, has_detector, redact, redact_all, strings_of
from recollect.text.unwanted import addresses_model, passing_time

if TYPE_CHECKING:
    from datetime import datetime


CHECKS = {
    "duplicates": "forget",
    "near-duplicates": "forget",
    "contradictions": "link",
    "stale": "expire",
    "expired": "purge_expired",
    "secrets": "redact",
    "instructions": "expire",
    "junk": "forget",
}
"""Each check with the method that repairs its findings."""

_DUPLICATE_COSINE = 0.98
_CONTRADICTION_COSINE = 0.6
_NEIGHBORS = 10
_BATCH = 256
_SHOWN_CHARS = 200
_DAY_US = 86_400_000_000
# A text that says "next week" is stale after so many days, one that was never recalled after so many.
_PASSED_DAYS = 30
_UNUSED_DAYS = 365
# Records of a file, or saved as a whole, must be changed there.
_MADE_ELSEWHERE = ("chunk", "procedure")


def audit(
    engine: Engine, checks: Sequence[str] | None, chosen: Filter, *, mend: bool, on_progress: Progress | None
) -> Audit:
    """Run these checks (None: all) on the memories that `chosen` matches; `mend` repairs the findings.

    Raises InvalidInput for an unknown check, for "secrets" by name without its detector, and for `mend` without checks.
    """
    wanted = list(dict.fromkeys(CHECKS if checks is None else checks))
    if unknown := [name for name in wanted if name not in CHECKS]:
        raise InvalidInput(f"there is no check {shown(unknown[0])}: use {', '.join(CHECKS)}")
    if mend and not checks:
        raise InvalidInput("mend needs the names of the checks whose findings are to be mended, e.g. duplicates")
    skipped = {}
    if checks is not None and "secrets" in wanted and not has_detector():
        raise InvalidInput(NO_DETECTOR)
    if "secrets" in wanted and not has_detector():
        skipped["secrets"] = NO_DETECTOR
        wanted.remove("secrets")
    with engine.store.read() as reader:
        ids = reader.records.matching_ids(chosen.replaced(include_superseded=True), now_us())
        found = [*_of_texts(reader, ids, wanted, on_progress)]
        if "expired" in wanted:
            found += _expired(reader, chosen)
        if "secrets" in wanted:
            found += _secrets_of_versions(reader, chosen)
        if "duplicates" in wanted:
            found += _duplicates(reader, ids)
        if reader.vectors.active_embedder() is None:
            without = "no memory has a vector"
            skipped |= {name: without for name in ("near-duplicates", "contradictions") if name in wanted}
        elif {"near-duplicates", "contradictions"} & {*wanted}:
            found += _pairs(engine, reader, ids, wanted, on_progress)
        seen = _last_changes(reader, found) if mend else {}
    redacts = has_detector()
    findings = [
        structs.replace(each, text=(redact(each.text) if redacts else each.text)[:_SHOWN_CHARS]) for each in found
    ]
    if mend:
        findings = [*_mended(engine, findings, seen, chosen.base)]
    order = list(CHECKS)
    findings.sort(key=lambda each: (order.index(each.check), each.id))
    return Audit(records=len(ids), findings=tuple(findings), skipped=skipped)


def _of_texts(
    reader: Reader, ids: Sequence[int], wanted: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """What a memory shows by itself."""
    done, now = 0, now_us()
    for some in _batches(ids):
        for record in reader.records.get_many(some):
            said = record.text if record.context is None else f"{record.context}\n{record.text}"
            if "secrets" in wanted:
                kinds = {secret.kind for secret in find_secrets(said)}
                kinds |= {secret.kind for text in strings_of(record.metadata) for secret in find_secrets(text)}
                if kinds:
                    yield _finding("secrets", record, f"holds {', '.join(sorted(kinds))}")
            if "instructions" in wanted and (way := addresses_model(said)) is not None:
                yield _finding("instructions", record, way)
            if "junk" in wanted and record.kind != "chunk" and is_junk(record.text):
                yield _finding("junk", record, "is only small talk or tool noise")
            if "stale" in wanted and (why := _stale(record, now)) is not None:
                yield _finding("stale", record, why)
        done += len(some)
        if on_progress is not None:
            on_progress(done, len(ids))


def _stale(record: Record, now: int) -> str | None:
    moment = to_datetime(now)
    age_days = (moment - (record.event_at or record.created_at)).days
    if record.kind in _MADE_ELSEWHERE:
        return None
    when = passing_time(record.text) if age_days > _PASSED_DAYS else None
    if when is not None:
        return f"says {when!r} and is {age_days} days old"
    unused = record.access_count == 0 and age_days > _UNUSED_DAYS
    if unused and record.importance < 0.5:
        return f"was never recalled in {age_days} days, importance {record.importance:g}"
    return None


def _expired(reader: Reader, chosen: Filter) -> Iterator[Finding]:
    for record in reader.records.find(chosen, now_us(), versions="expired"):
        yield _finding("expired", record, f"expired at {record.expires_at:%Y-%m-%d %H:%M} UTC")


def _secrets_of_versions(reader: Reader, chosen: Filter) -> Iterator[Finding]:
    for record in reader.records.find(chosen, now_us(), versions="closed"):
        kinds = {secret.kind for text in (record.text, record.context or "") for secret in find_secrets(text)}
        if kinds:
            yield _finding("secrets", record, f"an earlier version holds {', '.join(sorted(kinds))}")


def _duplicates(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Memories with the same text in one scope and kind: all except the pinned or the first one."""
    same: defaultdict[tuple[str, str, bytes], list[CurrentRecord]] = defaultdict(list)
    for each in reader.records.current(ids, now_us()):
        if each.kind not in _MADE_ELSEWHERE:
            same[each.scope, each.kind, each.content_hash].append(each)
    for group in same.values():
        kept, *others = sorted(group, key=lambda each: (not each.pinned, each.record_id))
        for each in others:
            yield _of_pair("duplicates", each, kept, "has the same text as an earlier memory")


def _pairs(
    engine: Engine,
    reader: Reader,
    ids: Sequence[int],
    wanted: Sequence[str],
    on_progress: Progress | None,
) -> Iterator[Finding]:
    """Near-duplicates and contradictions among neighbours."""
    floor = _CONTRADICTION_COSINE if "contradictions" in wanted else _DUPLICATE_COSINE
    # Pairs that are already linked as contradictions are done.
    seen = reader.links.contradicting()
    within = {*ids}
    gone: set[int] = set()
    done = 0
    for some in _batches(ids):
        these = {each.record_id: each for each in reader.records.current(some, now_us())}
        near = _neighbors(engine, reader, list(these.values()), floor)
        ours = within.intersection(each.record_id for found in near.values() for each in found)
        others = these | {each.record_id: each for each in reader.records.current(list(ours), now_us())}
        for record_id, found in near.items():
            for each in found:
                pair = min(record_id, each.record_id), max(record_id, each.record_id)
                if each.record_id == record_id or each.record_id not in others or pair in seen:
                    continue
                seen.add(pair)
                first, second = others[pair[0]], others[pair[1]]
                finding = _compared(first, second, each, wanted, gone)
                if finding is not None:
                    yield finding
        done += len(some)
        if on_progress is not None:
            on_progress(done, len(ids))


def _compared(
    first: CurrentRecord, second: CurrentRecord, near: Neighbor, wanted: Sequence[str], gone: set[int]
) -> Finding | None:
    """The finding of a pair; a record in `gone` is a near-duplicate already, and no other is one of it."""
    if first.content_hash == second.content_hash or first.kind in _MADE_ELSEWHERE or first.context != second.context:
        return None
    one, other = Statement.of(first.text), Statement.of(second.text)
    if near.cosine >= _DUPLICATE_COSINE and near.whole and same_statement(one, other):
        if "near-duplicates" not in wanted or gone & {first.record_id, second.record_id}:
            return None
        kept, spare = (second, first) if second.pinned and not first.pinned else (first, second)
        gone.add(spare.record_id)
        return _of_pair("near-duplicates", spare, kept, f"says what another memory says (cosine {near.cosine:.3f})")
    if "contradictions" in wanted and (difference := contradiction(one, other)) is not None:
        return _of_pair("contradictions", second, first, f"may contradict an older memory: another {difference}")
    return None


def _neighbors(
    engine: Engine, reader: Reader, records: Sequence[CurrentRecord], floor: float
) -> dict[int, list[Neighbor]]:
    rows, kept = [], []
    for record in records:
        parts = reader.vectors.of_record(record.record_id)
        if parts.values:
            row = change.version_row(record.text, record.context)
            row.scope, row.kind, row.vectors = record.scope, record.kind, parts.values
            rows.append(row)
            kept.append(record.record_id)
    found = threshold_search(engine, reader, rows, _NEIGHBORS, floor).neighbors
    return dict(zip(kept, found, strict=True))


def _last_changes(reader: Reader, findings: Iterable[Finding]) -> dict[str, datetime]:
    """When the memories of findings were last changed, by id."""
    named = {id for each in findings for id in (each.id, each.other) if id is not None}
    ids = sorted(reader.records.find_ids(sorted(named), "/").values())
    return {record.id: record.updated_at for some in _batches(ids) for record in reader.records.get_many(some)}


def _mended(engine: Engine, findings: Iterable[Finding], seen: dict[str, datetime], base: str) -> Iterator[Finding]:
    """Repair each finding, unless its memory was changed or forgotten since it was `seen`."""
    by_verb: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for each in findings:
        by_verb[each.verb].append(each)
    yield from by_verb.pop(None, [])
    mend: dict[str | None, Callable[[Finding], Any]] = {
        "forget": lambda each: change.forget(engine, [each.id], None, base=base),
        "purge_expired": lambda each: change.forget(engine, [each.id], None, base=base),
        "expire": lambda each: change.update(engine, each.id, {"expires_at": to_datetime(now_us())}, base=base),
        "link": lambda each: links.link(engine, each.id, str(each.other), "contradicts", 1.0, base=base),
        "redact": lambda each: _redact(engine, each.id, base),
    }
    ours: set[str] = set()
    for verb, some in by_verb.items():
        for each in some:
            # A redaction embeds, which takes too long for a transaction: it reads the memory again.
            with nullcontext() if verb == "redact" else engine.atomic():
                others = {id for id in (each.id, each.other) if id is not None and id not in ours}
                with engine.store.read() as reader:
                    now = _last_changes(reader, [each])
                as_seen = all(now.get(id, False) == seen.get(id) for id in others)
                if as_seen:
                    with suppress(NotFound):  # an earlier finding may have removed the memory
                        mend[verb](each)
            ours |= {each.id} if as_seen else set()
            yield structs.replace(each, mended=as_seen)


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


def _finding(check: str, record: Record, reason: str) -> Finding:
    verb: str | None = CHECKS[check]
    if (record.pinned and verb in ("forget", "expire")) or (record.kind in _MADE_ELSEWHERE and verb == "redact"):
        verb = None
    return Finding(check=check, id=record.id, text=record.text, reason=reason, verb=verb)


def _of_pair(check: str, found: CurrentRecord, other: CurrentRecord, reason: str) -> Finding:
    verb = None if found.pinned and CHECKS[check] == "forget" else CHECKS[check]
    return Finding(check=check, id=found.public_id, text=found.text, reason=reason, other=other.public_id, verb=verb)


def _batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
