"""What a memory shows by itself: secrets, orders to a model, small talk, what has passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recallite.model.checks import now_us, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.model.reports import Finding
from recallite.review.audit.findings import MADE_ELSEWHERE, batches, finding
from recallite.store.protocol import Progress, Reader
from recallite.text.junk import is_junk
from recallite.text.secrets import find_secrets, strings_of
from recallite.text.unwanted import addresses_model, passing_time

# A text that says "next week" is stale after so many days, one that was never recalled after so many.
_PASSED_DAYS = 30
_UNUSED_DAYS = 365


def of_texts(
    reader: Reader, ids: Sequence[int], wanted: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """Secrets and orders in any text; small talk and what is stale where it is not superseded."""
    done, now = 0, now_us()
    for some in batches(ids):
        for record in reader.records.get_many(some):
            said = record.text if record.context is None else f"{record.context}\n{record.text}"
            if "secrets" in wanted:
                kinds = {secret.kind for secret in find_secrets(said)}
                kinds |= {secret.kind for text in strings_of(record.metadata) for secret in find_secrets(text)}
                if kinds:
                    yield finding("secrets", record, f"holds {', '.join(sorted(kinds))}")
            if "instructions" in wanted and (way := addresses_model(said)) is not None:
                yield finding("instructions", record, way)
            if record.superseded_by:
                continue
            if "junk" in wanted and record.kind != "chunk" and is_junk(record.text):
                yield finding("junk", record, "is only small talk or tool noise")
            if "stale" in wanted and (why := _stale(record, now)) is not None:
                yield finding("stale", record, why)
        done += len(some)
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


def expired(reader: Reader, chosen: Filter) -> Iterator[Finding]:
    """What has expired and is still in the file."""
    for record in reader.records.find(chosen, now_us(), versions="expired"):
        yield finding("expired", record, f"expired at {record.expires_at:%Y-%m-%d %H:%M} UTC")


def secrets_of_versions(reader: Reader, chosen: Filter) -> Iterator[Finding]:
    """Secrets in texts that later ones have replaced."""
    for record in reader.records.find(chosen, now_us(), versions="closed"):
        kinds = {secret.kind for text in (record.text, record.context or "") for secret in find_secrets(text)}
        if kinds:
            yield finding("secrets", record, f"an earlier version holds {', '.join(sorted(kinds))}")
