"""Printers for values of operations that are neither a table of attributes nor a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recallite.doors.cli.output import (
    attributes,
    hint,
    one_line,
    print_pairs,
    print_rows,
    print_table,
    stamp,
)

if TYPE_CHECKING:
    from recallite.agents.experience import Tip
    from recallite.agents.procedures import Procedure
    from recallite.agents.snapshots import Snapshot
    from recallite.model.records import Record
    from recallite.model.reports import Audit, Finding, Stats, Synced, Verification

# The command that does what a finding proposes.
_REMEDIES = {
    "forget": "forget", "link": "link --type contradicts", "supersede": "supersede", "expire": "update --expires-at",
    "redact": "audit secrets --mend", "purge_expired": "purge-expired",
}  # fmt: skip


def print_id(stored: Record | Procedure) -> None:
    """Print the id of what was stored."""
    print_rows(("",), [(stored.id,)])


def print_stored(record: Record) -> None:
    """Print the id of a memory that was stored, and what it changed."""
    if record.outcome == "skipped":
        hint("not stored: it is only small talk or tool noise")
        return
    print_id(record)
    if record.outcome == "duplicate":
        times = f", now {record.occurrences:,} times" if record.occurrences > 1 else ""
        hint(f"{record.id} says it already{times}")
    for old in record.supersedes:
        hint(f"{record.id} supersedes {old}: history shows it, restore undoes it")
    for entry in record.contradictions:
        hint(f"{record.id} may contradict {entry.id}: {one_line(entry.text)}")


def print_versions(versions: Sequence[Record]) -> None:
    """Print a history, and from when until when each version held."""
    rows = [(entry.id, stamp(entry.held[0]), stamp(entry.held[1]) or "now", entry.text) for entry in versions]
    print_rows(("id", "since", "until", "text"), rows)


def print_messages(messages: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None) -> None:
    """Print the messages of a session, or one if there is one."""
    from recallite.agents.session_messages import plain_text

    messages = [messages] if isinstance(messages, Mapping) else messages or []
    print_rows(("role", "content"), [(entry.get("role"), plain_text(entry.get("content"))) for entry in messages])


def print_episodes(episodes: Sequence[Record]) -> None:
    """Print episodes with their times and types."""
    rows = [
        (
            entry.id,
            stamp(entry.valid_from or entry.created_at),
            entry.metadata.get("event_type"),
            f"{entry.importance:.2f}",
            entry.text,
        )
        for entry in episodes
    ]
    print_rows(("id", "at", "type", "importance", "text"), rows, under=("at", "type", "importance"))


def print_snapshots(snapshots: Sequence[Snapshot]) -> None:
    """Print snapshots of sessions."""
    rows = [
        (entry.session_id or entry.id, stamp(entry.ended_at), len(entry.messages), entry.summary) for entry in snapshots
    ]
    print_rows(("session", "ended", "messages", "summary"), rows)


def print_outcome(procedure: Procedure) -> None:
    """Print how often a procedure worked."""
    print_pairs({"name": procedure.name, "success rate": procedure.success_rate, "uses": procedure.use_count})


def print_tips(tips: Sequence[Tip]) -> None:
    """Print tips, a sentence a line."""
    print_rows(("tip",), [(str(tip),) for tip in tips])


def tips_as_json(tips: Sequence[Tip]) -> object:
    """Tips with their sentences."""
    from msgspec import structs

    return [{"text": str(tip), **structs.asdict(tip)} for tip in tips]


def print_recorded(_: object) -> None:
    """Print that experience was recorded."""
    print_rows(("",), [("recorded",)])


def print_stats(figures: Stats) -> None:
    """Print the state of a store."""
    omitted = {"notes"} if figures.index.get("commit") else {"notes", "index"}  # no commit: the index is not loaded
    print_pairs({name: getattr(figures, name) for name in figures.__struct_fields__ if name not in omitted})
    for note in figures.notes:
        hint(f"note: {note}")


def print_synced(report: Synced) -> None:
    """Print what was exchanged, and how far each device is."""
    rows = [
        (
            entry.device, entry.name, "this device" if entry.this else "yes" if entry.confirmed else "not yet",
            entry.forgettings, entry.waiting,
        )
        for entry in report.devices
    ]  # fmt: skip
    print_rows(("device", "machine", "has merged all", "forgettings to confirm", "files to merge"), rows)
    hint(f"sent {report.sent:,}, merged {report.merged:,}, forgot {report.forgotten:,}")
    if report.diverged:
        hint(f"changed on two devices: {' '.join(report.diverged)} (see recallite audit diverged)")
    for problem in report.problems:
        hint(f"waiting: {problem}")


def print_verification(verification: Verification) -> None:
    """Print the problems of a store."""
    print_table("count problem:name examples remedy", _problem_row)(verification.problems)
    outcome = "clean" if verification.ok else f"{len(verification.problems)} problems"
    hint(f"{verification.records:,} records and {verification.vectors:,} vectors: {outcome}")


def _problem_row(problem: Any) -> tuple[object, ...]:
    return problem.count, problem.name, " ".join(problem.examples), problem.remedy


def verification_as_json(verification: Verification) -> object:
    """The problems of a store, without what every store has."""
    return attributes(verification, "ok records vectors problems")


def has_problems(verification: Verification) -> bool:
    """Whether a store has problems."""
    return not verification.ok


def print_audit(audit: Audit) -> None:
    """Print findings and their remedies."""
    rows = [
        (entry.check, _remedy(entry), entry.id, entry.reason, _other(entry), entry.text) for entry in audit.findings
    ]
    print_rows(("check", "remedy", "id", "reason", "other", "text"), rows, under=("reason", "other"))
    if not rows:
        hint(f"{audit.records:,} memories were checked: nothing was found")
    if audit.superseded and all(entry.check != "superseded" for entry in audit.findings):
        hint(f"{audit.superseded:,} of them are superseded: audit superseded shows by what")


def _remedy(finding: Finding) -> str:
    return "mended" if finding.mended else _REMEDIES.get(finding.verb or "", "")


def _other(finding: Finding) -> str:
    """The memory that a finding compares with, and the start of its text."""
    return "" if finding.other is None else f"{finding.other} {finding.other_text or ''}"


def has_findings(audit: Audit) -> bool:
    """Whether something was found and not mended."""
    return not all(entry.mended for entry in audit.findings)


def print_revoked(arguments: Mapping[str, Any]) -> None:
    """Print what was revoked."""
    hint(f"revoked {next(iter(arguments.values()))}")
