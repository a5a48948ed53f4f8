"""Commands that look after the store: stats, verify, audit, rebuild, purge-expired, vacuum, backup, reembed, warmup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recallite.doors.cli.command import prints
from recallite.doors.cli.options import Scope, argument, flag, new_key, open_memory, option
from recallite.doors.cli.output import attributes, hint, named, print_number, print_pairs, print_rows, progress

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.reports import Audit, Finding, Forgotten, Judged, Stats, Verification
    from recallite.remember.pending import Progress


# As in recallite.review.audit, which is loaded when it is used.
_CHECKS = (
    "duplicates", "near-duplicates", "contradictions", "stale", "expired", "secrets", "instructions", "junk",
    "superseded", "unjudged",
)  # fmt: skip
# The command that does what a finding proposes.
_REMEDIES = {
    "forget": "forget", "link": "link --type contradicts", "supersede": "supersede", "expire": "update --expires-at",
    "redact": "audit secrets --mend", "purge_expired": "purge-expired",
}  # fmt: skip


def _print_stats(figures: Stats) -> None:
    unsaid = {"notes"} if figures.index.get("commit") else {"notes", "index"}  # no commit: the index is not loaded
    print_pairs({name: getattr(figures, name) for name in figures.__struct_fields__ if name not in unsaid})
    for note in figures.notes:
        hint(f"note: {note}")


@prints(_print_stats)
def stats(memory: Memory) -> Stats:
    """Show the state of the store, embedder, index and kernels."""
    return memory.store.stats()


def _print_verification(found: Verification) -> None:
    print_rows(
        ("count", "problem", "examples", "remedy"),
        [(each.count, each.name, " ".join(each.examples), each.remedy) for each in found.problems],
    )
    outcome = "clean" if found.ok else f"{len(found.problems)} problems"
    hint(f"{found.records:,} records and {found.vectors:,} vectors: {outcome}")


_prints_verification = prints(
    _print_verification,
    json=lambda found: attributes(found, "ok records vectors problems"),
    fails=lambda found: not found.ok,
    bar=("checking", "memories"),
)


@_prints_verification
def verify(memory: Memory, report: Progress | None) -> Verification:
    """Check the file and all derived data. Changes nothing."""
    return memory.store.verify(on_progress=report)


@_prints_verification
def rebuild(memory: Memory, report: Progress | None) -> Verification:
    """Rebuild all derived data from the memories, and verify."""
    return memory.store.rebuild(on_progress=report)


def _print_audit(found: Audit) -> None:
    rows = [(each.check, _remedy(each), each.id, each.reason, _other(each), each.text) for each in found.findings]
    print_rows(("check", "remedy", "id", "reason", "other", "text"), rows, under=("reason", "other"))
    if not rows:
        hint(f"{found.records:,} memories were checked: nothing was found")
    if found.superseded and all(each.check != "superseded" for each in found.findings):
        hint(f"{found.superseded:,} of them are superseded: audit superseded shows by what")
    for name, why in found.skipped.items():
        hint(f"{name} were not looked for: {why}")


def _remedy(finding: Finding) -> str:
    return "mended" if finding.mended else _REMEDIES.get(finding.verb or "", "")


def _other(finding: Finding) -> str:
    """The memory that a finding compares with, and the start of its text."""
    return "" if finding.other is None else f"{finding.other} {finding.other_text or ''}"


@prints(_print_audit, fails=lambda found: not all(each.mended for each in found.findings), bar=("auditing", "memories"))
def audit(
    memory: Memory,
    report: Progress | None,
    checks: Annotated[
        list[str] | None, argument("CHECK", f"{', '.join(_CHECKS)}. Default: all but the last two.")
    ] = None,
    scope: Scope = None,
    mend: Annotated[bool, flag("Carry out what the findings propose.", "--mend")] = False,
) -> Audit:
    """Find memories that should not be there, with a remedy.

    Of two that contradict each other, one supersedes the other (supersede), both hold (link --type elaborates), or one
    is wrong (forget). Changes nothing without --mend. The exit status is 1 where something was found and not mended.
    """
    return memory.review.audit(checks or None, scope=scope, mend=mend, on_progress=report)


def _print_judged(done: Judged) -> None:
    print_rows(
        ("", ""),
        [(done.superseded, "superseded"), (done.contradicting, "contradicting"), (done.independent, "independent"),
         (done.waiting, "still waiting")],
    )  # fmt: skip


@prints(_print_judged)
def judge_changes(
    memory: Memory, limit: Annotated[int | None, option("N", "At most so many pairs. Default: all.")] = None
) -> Judged:
    """Have the language model judge what the rules left open.

    These are pairs of memories of which the newer may supersede the older; audit unjudged lists them.
    """
    return memory.review.judge(limit=limit)


def _print_purged(gone: Forgotten) -> None:
    print_number("purged")(gone.records)


@prints(_print_purged)
def purge_expired(memory: Memory, scope: Scope = None) -> Forgotten:
    """Purge expired memories. Recall does not find them, but they are still in the file."""
    return memory.store.purge_expired(scope=scope)


@prints(print_number("bytes freed"), json=named("bytes_freed"), bar=("compacting", "files"))
def vacuum(memory: Memory) -> int:
    """Give unused space back to the file system."""
    return memory.store.vacuum()


@prints(typer.echo, json=named("path"), bar=("copying", "pages"))
def backup(memory: Memory, report: Progress | None, file: Annotated[str, argument("FILE", "A new file.")]) -> str:
    """Copy the store to a new file, while others read and write."""
    return memory.store.backup(file, on_progress=report)


@prints(print_number("embedded"), json=named("embedded"), bar=("embedding", "memories"))
def reembed(memory: Memory, report: Progress | None) -> int:
    """Embed memories with the configured embedder.

    Moves the store to another embedder, or embeds memories that have no vector. Can be interrupted and resumed.
    """
    return memory.store.reembed(on_progress=report)


def _print_encrypted(encrypted: bool) -> None:
    hint(f"the store is {'encrypted' if encrypted else 'not encrypted'} now")


@prints(_print_encrypted, json=named("encrypted"))
def rekey(
    context: typer.Context,
    new_key_file: Annotated[str | None, option("FILE", "A file with the new key. Default: RECALLITE_NEW_KEY.")] = None,
    decrypt: Annotated[bool, flag("Write the store without encryption instead.", "--decrypt")] = False,
) -> bool:
    """Encrypt the store with a new key.

    RECALLITE_KEY or RECALLITE_KEY_FILE gives the present key, if there is one. A key is never an argument: all users
    of the machine see the arguments of a process.
    """
    new = new_key(new_key_file, decrypt=decrypt)
    with open_memory(context) as memory:
        memory.store.rekey(new)
    return new is not None


def _print_warmup(done: dict[str, Any]) -> None:
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in done["seconds"].items()])
    hint(f"kernels: {done['kernels']}")


@prints(_print_warmup, create=True)
def warmup(memory: Memory) -> dict[str, Any]:
    """Compile the kernels, load the embedder and the index."""
    with progress("loading", "kernels") as report:
        seconds = memory.store.warmup(on_progress=report)
    return {"seconds": seconds, "kernels": memory.store.stats().kernels}
