"""Audit: unwanted records (duplicates, contradictions, secrets, ...), each with the method that repairs it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import now_us
from recallite.model.filters import Filter
from recallite.model.reports import Audit
from recallite.review.audit.findings import CHECKS, REVIEWS
from recallite.review.audit.mending import last_changes, mended
from recallite.review.audit.pairs import compared, duplicates, superseded, unjudged
from recallite.review.audit.texts import diverged, expired, of_texts, secrets_of_versions
from recallite.store.store import Progress
from recallite.system.messages import shown
from recallite.text.secrets import redact

__all__ = ["CHECKS", "REVIEWS", "audit"]

_SHOWN_CHARS = 200


def audit(
    engine: Engine, checks: Sequence[str] | None, filter: Filter, *, mend: bool, on_progress: Progress | None
) -> Audit:
    """Run these checks (None: all but `REVIEWS`) on the memories that `filter` matches, superseded or not.

    `mend` repairs the findings. Raises InvalidInput for an unknown check, and for `mend` without checks.
    """
    wanted = list(dict.fromkeys([check for check in CHECKS if check not in REVIEWS] if checks is None else checks))
    if unknown := [name for name in wanted if name not in CHECKS]:
        raise InvalidInput(f"there is no check {shown(unknown[0])}: use {', '.join(CHECKS)}")
    if mend and not checks:
        raise InvalidInput("mend needs the names of the checks whose findings are to be mended, e.g. duplicates")
    filter = filter.replaced(include_superseded=True)
    with engine.store.read() as reader:
        ids = reader.records.matching_ids(filter, now_us())
        current = reader.records.matching_ids(filter.replaced(include_superseded=False), now_us())
        findings = [*of_texts(reader, ids, wanted, on_progress)]
        if "expired" in wanted:
            findings += expired(reader, filter)
        if "secrets" in wanted:
            findings += secrets_of_versions(reader, filter)
        if "duplicates" in wanted:
            findings += duplicates(reader, current)
        if {"near-duplicates", "contradictions"} & {*wanted}:
            findings += compared(engine, reader, current, wanted, on_progress)
        if "superseded" in wanted:
            findings += superseded(reader, sorted({*ids} - {*current}))
        if "unjudged" in wanted:
            findings += unjudged(reader, current)
        if "diverged" in wanted and engine.store.confined_to is None:  # devices synchronise no server
            findings += diverged(reader, {*ids})
        seen = last_changes(reader, findings) if mend else {}
    findings = [
        structs.replace(entry, text=_shown(entry.text), other_text=entry.other_text and _shown(entry.other_text))
        for entry in findings
    ]
    if mend:
        findings = [*mended(engine, findings, seen, filter.base)]
    order = list(CHECKS)
    findings.sort(key=lambda entry: (order.index(entry.check), entry.id))
    return Audit(records=len(ids), superseded=len(ids) - len(current), findings=tuple(findings))


def _shown(text: str) -> str:
    return redact(text)[:_SHOWN_CHARS]
