"""Findings about one memory: secrets, orders to a model, small talk, what has passed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from recallite.model.checks import check_time, now_us, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.model.reports import Finding
from recallite.review.audit.findings import MADE_ELSEWHERE, batches, finding
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.text.junk import is_junk
from recallite.text.secrets import find_secrets, strings_of
from recallite.text.standing import addresses_model, passing_time

# A text that says "next week" is stale after the first, one that was never recalled after the second.
_PASSED_DAYS = 30
_UNUSED_DAYS = 365


def of_texts(
    reader: Reader, ids: Sequence[int], wanted: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """Find secrets and orders in any text, small talk and what is stale in those that are not superseded."""
    done, now = 0, now_us()
    for batch in batches(ids):
        for record in reader.records.get_many(batch):
            text = record.text if record.context is None else f"{record.context}\n{record.text}"
            if "secrets" in wanted and (kinds := _kinds_of_secrets([text, *strings_of(record.metadata)])):
                yield finding("secrets", record, f"holds {kinds}")
            if "instructions" in wanted and (way := addresses_model(text)) is not None:
                yield finding("instructions", record, way)
            if record.superseded_by:
                continue
            if "junk" in wanted and record.kind != "chunk" and is_junk(record.text):
                yield finding("junk", record, "is only small talk or tool noise")
            if "stale" in wanted and (why := _stale(record, now)) is not None:
                yield finding("stale", record, why)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(ids))


def _stale(record: Record, now: int) -> str | None:
    moment = to_datetime(now)
    age_days = (moment - (record.valid_from or record.created_at)).days
    if record.kind in MADE_ELSEWHERE:
        return None
    when = passing_time(record.text) if age_days > _PASSED_DAYS else None
    if when is not None:
        return f"says {when!r} and is {age_days} days old"
    unused = record.access_count == 0 and age_days > _UNUSED_DAYS
    if unused and record.importance < 0.5:
        return f"was never recalled in {age_days} days, importance {record.importance:g}"
    return None


def expired(reader: Reader, filter: Filter) -> Iterator[Finding]:
    """Find memories that have expired and are still in the file."""
    for record in reader.records.find(filter, now_us(), versions="expired"):
        yield finding("expired", record, f"expired at {record.expires_at:%Y-%m-%d %H:%M} UTC")


def secrets_of_versions(reader: Reader, filter: Filter) -> Iterator[Finding]:
    """Find secrets in texts that later ones have replaced."""
    for record in reader.records.find(filter, now_us(), versions="closed"):
        if kinds := _kinds_of_secrets([record.text, record.context or ""]):
            yield finding("secrets", record, f"an earlier version holds {kinds}")


def diverged(reader: Reader, ids: Collection[int]) -> Iterator[Finding]:
    """Find memories whose text two devices had changed, until it is changed again."""
    for public_id, other, current in reader.synced.diverged():
        record_id = reader.records.find_ids([public_id], "/").get(public_id)
        if record_id is None or record_id not in ids:
            continue
        versions = {check_time(version.recorded_from, "time"): version for version in reader.records.history(public_id)}
        newest = reader.records.get(record_id)
        if other in versions and current == check_time(newest.recorded_from, "time"):
            place = [*versions].index(other)
            reason = f"was changed on two devices, and the later text is current; restore --to {place} undoes that"
            yield Finding(
                check="diverged", id=public_id, text=newest.text, reason=reason, other=public_id,
                other_text=versions[other].text, verb=None,
            )  # fmt: skip


def _kinds_of_secrets(texts: Iterable[str]) -> str:
    return ", ".join(sorted({secret.kind for text in texts for secret in find_secrets(text)}))
