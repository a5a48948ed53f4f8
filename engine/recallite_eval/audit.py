"""Audit: names records (duplicates, contradictions, secrets, ...), each with the method that repairs it.

Pairs that share a key of `text.statements` are judged by the rules that writing goes by. Writing with the default
policy has marked most of them already: the rest was written under another one, or is too unsure to mark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any, TypeVar

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import Conflict, InvalidInput, NotFound
from recallite.model.authority import rank_of
from recallite.model.checks import check_time, now_us, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import Link, Record
from recallite.model.reports import Audit, Finding
from recallite.model.settings import WritePolicy
from recallite.remember import change, relations
from recallite.remember.relations import Claim, find_row_id, of_two_days, on_one_subject, supersede, which_stands
from recallite.store.sql.derived import Sought
from recallite.store.sql.relations import Supersession
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.system.messages import shown
from recallite.text.junk import is_junk
from recallite.text.patterns import lazily
from recallite.text.secrets import find_secrets, redact, redact_all
from recallite.text.standing import addresses_model
from recallite.text.statements import judge, several_valued, statement_of
from recallite.text.statements.keys import record_keys

CHECKS: dict[str, str | None] = {
    "duplicates": "forget", "near-duplicates": "forget", "contradictions": "supersede", "stale": "expire",
    "expired": "purge_expired", "secrets": "redact", "instructions": "expire", "junk": "forget", "superseded": None,
    "replaced-by-rule": None, "unjudged": None, "diverged": None,
}  # fmt: skip
"""Each check with the method that repairs its findings; None where only a person can tell."""

REVIEWS = ("superseded", "replaced-by-rule", "unjudged", "diverged")
"""Checks of what is as it should be, for review: only by name."""

# Records of a file, or saved as a whole, must be changed there.
MADE_ELSEWHERE = ("chunk", "procedure")
_BATCH = 256
T = TypeVar("T")
_PASSING = lazily(
    r"(?i)\b(?:tomorrow|tonight|today|this (?:morning|afternoon|evening|week|weekend|month)|next (?:week|weekend|month"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|later today|in an hour"
    r"|in (?:a few|\d{1,2}) (?:minutes|hours|days)|right now|at the moment)\b"
)


def finding(check: str, record: Record, reason: str) -> Finding:
    """Make a finding about one memory."""
    verb = CHECKS[check]
    if (record.pinned and verb in ("forget", "expire")) or (record.kind in MADE_ELSEWHERE and verb == "redact"):
        verb = None
    return Finding(check=check, id=record.id, text=record.text, reason=reason, verb=verb)


def finding_of_pair(check: str, record: Record, other: Record, reason: str, verb: str | None) -> Finding:
    """Make a finding about a memory and another; `verb` is for the first."""
    return Finding(
        check=check, id=record.id, text=record.text, reason=reason, other=other.id, other_text=other.text, verb=verb
    )


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split row ids, or pairs of them."""
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


# Findings about one memory: secrets, orders to a model, small talk, what has passed.

# A text that says "next week" is stale after the first, one that was never recalled after the second.
_PASSED_DAYS = 30
_UNUSED_DAYS = 365


def of_texts(
    reader: Reader, ids: Sequence[int], names: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """Find secrets and orders in any text, small talk and what is stale in texts that are not superseded."""
    done, now = 0, now_us()
    for batch in batches(ids):
        for record in reader.records.get_many(batch):
            text = record.text if record.context is None else f"{record.context}\n{record.text}"
            if "secrets" in names and (kinds := _kinds_of_secrets([text, *_strings_of(record.metadata)])):
                yield finding("secrets", record, f"holds {kinds}")
            if "instructions" in names and (way := addresses_model(text)) is not None:
                yield finding("instructions", record, way)
            if record.superseded_by:
                continue
            if "junk" in names and record.kind != "chunk" and is_junk(record.text):
                yield finding("junk", record, "is only small talk or tool noise")
            if "stale" in names and (reason := _stale(record, now)) is not None:
                yield finding("stale", record, reason)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(ids))


def _stale(record: Record, now: int) -> str | None:
    """Return why a record is stale, if it is."""
    age_days = (to_datetime(now) - (record.valid_from or record.created_at)).days
    if record.kind in MADE_ELSEWHERE or age_days <= _PASSED_DAYS:
        return None
    if (when := _passing_time(record.text)) is not None:
        return f"says {when!r} and is {age_days} days old"
    if record.access_count == 0 and age_days > _UNUSED_DAYS and record.importance < 0.5:
        return f"was never recalled in {age_days} days, importance {record.importance:g}"
    return None


def diverged(reader: Reader, ids: Collection[int], base: str) -> Iterator[Finding]:
    """Find memories with a text that two devices had changed, until it is changed again."""
    for public_id, other, current in reader.synced.diverged():
        row_id = reader.records.find_ids([public_id], "/").get(public_id)
        if row_id is None or row_id not in ids:
            continue
        history = reader.records.history(public_id, base)
        versions = {check_time(version.recorded_from, "time"): version for version in history}
        newest = reader.records.get(row_id)
        if other in versions and current == check_time(newest.recorded_from, "time"):
            i = [*versions].index(other)
            reason = f"was changed on two devices, and the later text is current; restore --to {i} undoes that"
            yield Finding(
                check="diverged", id=public_id, text=newest.text, reason=reason, other=public_id,
                other_text=versions[other].text, verb=None,
            )  # fmt: skip


def _passing_time(text: str) -> str | None:
    """The first expression for a time that soon passes: "next week"."""
    match = _PASSING.search(text)
    return None if match is None else match[0]


def _strings_of(value: object) -> Iterator[str]:
    """Every string of a JSON value except its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_of(item)


def _kinds_of_secrets(texts: Iterable[str]) -> str:
    return ", ".join(sorted({secret.kind for text in texts for secret in find_secrets(text)}))


# Findings about pairs of memories.

# The newest records that share a key with one: "I live in" may begin thousands.
_MOST = 32
# With such a link, a person has said how they stand: both hold.
_BOTH_HOLD = ("elaborates", "supports", "sequential", "causal")
_CHOICE = "one supersedes the other, both hold (link them as elaborates), or one is wrong (forget)"


def duplicates(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Find memories with the same text in one scope and kind: all except the one that stays."""
    same: defaultdict[tuple[str, str, bytes], list[int]] = defaultdict(list)
    for row in reader.records.current(ids, now_us()):
        if row.kind not in MADE_ELSEWHERE:
            same[row.scope, row.kind, row.content_hash].append(row.row_id)
    for group in same.values():
        if len(group) > 1:
            remaining, *others = sorted(_records(reader, group).values(), key=_spared)
            for spare in others:
                yield _spare("duplicates", spare, remaining, "has the same text as an earlier memory")


def compared(
    engine: Engine, reader: Reader, ids: Sequence[int], names: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """Find near-duplicates and contradictions, by the links that writing made and by the rules."""
    comparison, done = _Comparison(engine, reader, ids, names), 0
    if "contradictions" in names:
        yield from comparison.linked()
    for batch in batches(ids):
        yield from comparison.judged(batch)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(ids))


def superseded(reader: Reader, rows: Sequence[Supersession], check: str) -> Iterator[Finding]:
    """Find superseded memories, each with the one that stands in its place, in the order of these rows."""
    for batch in batches(rows):
        records = _records(reader, {row_id for row in batch for row_id in (row.old_id, row.new_id)})
        for row in batch:
            how = "is superseded" if row.certain else "may still hold, and is superseded"
            detail = "" if row.reason is None else f", {row.reason}"
            since, known = f"{to_datetime(row.holds_from):%Y-%m-%d}", to_datetime(row.known_from)
            found = "" if f"{known:%Y-%m-%d}" == since else f", found on {known:%Y-%m-%d}"
            reason = f"{how} since {since} ({row.strength:.2f}{detail}){found}; restore undoes it"
            pair = finding_of_pair(check, records[row.old_id], records[row.new_id], reason, None)
            yield structs.replace(pair, at=known)


def unjudged(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Find pairs where the rules leave open whether one supersedes the other."""
    within = {*ids}
    for batch in batches(reader.comparisons.pairs(reader.comparisons.count_pairs())):
        pairs = [pair for pair in batch if within.issuperset((pair.old_id, pair.new_id))]
        records = _records(reader, {row_id for pair in pairs for row_id in (pair.old_id, pair.new_id)})
        for pair in pairs:
            reason = f"may be superseded ({pair.confidence:.2f}, {pair.reason}): a language model can judge it"
            yield finding_of_pair("unjudged", records[pair.old_id], records[pair.new_id], reason, None)


class _Comparison:
    """The pairs of one audit, each once."""

    def __init__(self, engine: Engine, reader: Reader, ids: Sequence[int], names: Sequence[str]) -> None:
        policy, usual = engine.write_policy, WritePolicy()
        self._reader, self._ids, self._checks, self._now = reader, {*ids}, names, now_us()
        self._several = several_valued(policy.several_values)
        self._supersedes = policy.supersede_confidence or usual.supersede_confidence or 1.0
        self._contradicts = policy.contradict_confidence or usual.contradict_confidence or 1.0
        self._seen: set[tuple[int, int]] = set()
        # Near-duplicates so far: no other is one of them.
        self._gone: set[str] = set()

    def linked(self) -> Iterator[Finding]:
        """Find contradictions that were linked when they were written."""
        linked = [pair for pair in sorted(self._reader.links.contradicting()) if self._ids.issuperset(pair)]
        self._seen.update(linked)
        for pairs in batches(linked):
            records = _records(self._reader, {row_id for pair in pairs for row_id in pair})
            for pair in pairs:
                old, new = sorted((records[row_id] for row_id in pair), key=_begins)
                if not old.superseded_by and not new.superseded_by and not self._links(pair, _BOTH_HOLD):
                    link = next(iter(self._links(pair, ("contradicts",))), None)
                    why = "" if link is None else f" ({link.strength:.2f}{f', {link.reason}' if link.reason else ''})"
                    reason = f"and a later one contradict each other{why}: {_CHOICE}"
                    yield finding_of_pair("contradictions", old, new, reason, None)

    def judged(self, ids: Sequence[int]) -> Iterator[Finding]:
        """Find what the rules say of these records and the ones that share a key with them."""
        records = _records(self._reader, ids)
        sought = [
            Sought(record_keys(record.text, record.context).sought, record.scope, record.kind)
            for record in records.values()
        ]
        shared = self._reader.statements.candidates(sought, now_us(), _MOST)
        near = (
            (row_id, other.row_id)
            for row_id, others in zip(records, shared, strict=True)
            for other in others
            if other.row_id != row_id and other.row_id in self._ids
        )
        pairs = [pair for pair in dict.fromkeys((min(pair), max(pair)) for pair in near) if pair not in self._seen]
        self._seen.update(pairs)
        row_ids = {row_id for pair in pairs for row_id in pair}
        records |= _records(self._reader, row_ids - records.keys())
        findings = (self._of_pair(pair, records) for pair in pairs)
        yield from (finding for finding in findings if finding is not None)

    def _of_pair(self, pair: tuple[int, int], records: dict[int, Record]) -> Finding | None:
        again = self._reader.comparisons.occurrences(pair)
        claims = {
            row_id: Claim.of_record(self._reader, row_id, records[row_id], again.get(row_id, ()), self._now)
            for row_id in pair
        }
        old_id, new_id = sorted(pair, key=lambda row_id: (claims[row_id].told_at[-1], _begins(records[row_id])))
        old, new = records[old_id], records[new_id]
        verdict = judge(
            statement_of(new.text, new.context), statement_of(old.text, old.context), later=True, several=self._several
        )
        if verdict.outcome == "same":
            return self._same(old, new)
        if "contradictions" not in self._checks or verdict.outcome == "independent":
            return None
        if not on_one_subject((old.topic, new.topic), old.metadata, new.metadata):
            return None
        if verdict.outcome == "contradicts" and of_two_days(old, new):
            return None
        detail = f"{verdict.confidence:.2f}, {verdict.reason}"
        sure = verdict.outcome == "supersedes" and verdict.confidence >= self._supersedes
        if sure and which_stands(claims[old_id], claims[new_id]) is claims[new_id]:
            reason = f"is out of date by a later one ({detail})"
            return finding_of_pair("contradictions", old, new, reason, "supersede")
        if verdict.confidence < self._contradicts or self._links(pair, _BOTH_HOLD):
            return None
        reason = f"and a later one may contradict each other ({detail})"
        return finding_of_pair("contradictions", old, new, reason, "link")

    def _same(self, old: Record, new: Record) -> Finding | None:
        """Find a near-duplicate; the same text is a duplicate instead, and a turn of a transcript is neither."""
        apart = (old.text, old.context) == (new.text, new.context) or None not in (old.position, new.position)
        if "near-duplicates" not in self._checks or apart or self._gone & {old.id, new.id}:
            return None
        remaining, spare = sorted((old, new), key=_spared)
        self._gone.add(spare.id)
        return _spare("near-duplicates", spare, remaining, "says what another memory says")

    def _links(self, pair: tuple[int, int], types: Sequence[str]) -> list[Link]:
        ends = {record.id for record in _records(self._reader, pair).values()}
        return [
            link
            for incoming in (False, True)
            for link in self._reader.links.of(pair[0], incoming=incoming, types=types)
            if {link.source, link.target} == ends
        ]


def _records(reader: Reader, ids: Collection[int]) -> dict[int, Record]:
    return reader.records.by_row_ids(sorted(ids))


def _begins(record: Record) -> tuple[datetime, datetime, str]:
    """Order memories by the time from which they say what they do."""
    stated = None if record.valid_resolved else record.valid_from
    return stated or record.created_at, record.created_at, record.id


def _spared(record: Record) -> tuple[bool, int, bool, datetime, str]:
    """Order equal memories by which one stays: pinned, of the highest authority, that supersedes others, the first."""
    return not record.pinned, -rank_of(record.authority), not record.supersedes, record.created_at, record.id


def _spare(check: str, spare: Record, remaining: Record, reason: str) -> Finding:
    # Forgetting it would make what it supersedes current again; a lower authority repeats nothing of a higher one.
    stays = spare.pinned or spare.supersedes or spare.authority != remaining.authority
    verb = None if stays else "forget"
    return finding_of_pair(check, spare, remaining, reason, verb)


# Repairs, as findings propose them.


def last_changes(reader: Reader, findings: Iterable[Finding]) -> dict[str, datetime]:
    """Return when the memories of findings were last changed, by id."""
    public_ids = {id for finding in findings for id in (finding.id, finding.other) if id is not None}
    ids = sorted(reader.records.find_ids(sorted(public_ids), "/").values())
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
            engine, item.id, item.other, reason="found by audit", strength=1.0, at=None, base=base
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
            spare_id, remaining_id = find_row_id(writer, finding.id, base), find_row_id(writer, finding.other, base)
            spare, remaining = writer.records.get(spare_id), writer.records.get(remaining_id)
            text = None if spare.text == remaining.text else spare.text
            times = writer.comparisons.occurrences([spare_id]).get(spare_id, [])
            rows = [(remaining_id, check_time(spare.created_at, "created_at") or 0, text)]
            rows += [(remaining_id, time.at, text if time.text is None else time.text) for time in times]
            writer.comparisons.add_occurrences(rows)
    change.forget(engine, [finding.id], None, base=base)


def _redact(engine: Engine, id: str, base: str) -> None:
    with engine.store.read() as reader:
        record = reader.records.get(find_row_id(reader, id, base))
    context = None if record.context is None else redact(record.context)
    fields = {"text": redact(record.text), "context": context, "metadata": redact_all(record.metadata)}
    changes = {name: value for name, value in fields.items() if value != getattr(record, name)}
    if changes:
        change.update(engine, id, changes, base=base, keep_version=False)
    change.purge_versions(engine, id, base=base)


# The audit.

_MOST_CHARS = 200


def audit(
    engine: Engine, checks: Sequence[str] | None, filter: Filter, *, mend: bool, on_progress: Progress | None
) -> Audit:
    """Run these checks (None: all but `REVIEWS`) on the memories that `filter` matches, superseded or not.

    `mend` repairs the findings. Raises InvalidInput for an unknown check, and for `mend` without checks.
    """
    names = list(dict.fromkeys([check for check in CHECKS if check not in REVIEWS] if checks is None else checks))
    if unknown := [name for name in names if name not in CHECKS]:
        raise InvalidInput(f"there is no check {shown(unknown[0])}: use {', '.join(CHECKS)}")
    if mend and not checks:
        raise InvalidInput("mend needs the names of the checks whose findings are to be mended, e.g. duplicates")
    filter = filter.replaced(include_superseded=True)
    with engine.store.read() as reader:
        ids = reader.records.matching_ids(filter, now_us())
        listed = reader.records.matching_ids(filter.replaced(include_superseded=False), now_us())
        standing = [row for batch in batches(ids) for row in reader.supersessions.of_old(batch)]
        uncertain = {*listed} & {row.old_id for row in standing if not row.certain}
        current = [row_id for row_id in listed if row_id not in uncertain]
        findings = [*of_texts(reader, ids, names, on_progress)]
        if "expired" in names:
            findings += [
                finding("expired", record, f"expired at {record.expires_at:%Y-%m-%d %H:%M} UTC")
                for record in reader.records.find(filter, now_us(), versions="expired")
            ]
        if "secrets" in names:
            closed = reader.records.find(filter, now_us(), versions="closed")
            kinds_of = ((record, _kinds_of_secrets([record.text, record.context or ""])) for record in closed)
            findings += [
                finding("secrets", record, f"an earlier version holds {kinds}") for record, kinds in kinds_of if kinds
            ]
        if "duplicates" in names:
            findings += duplicates(reader, current)
        if {"near-duplicates", "contradictions"} & {*names}:
            findings += compared(engine, reader, current, names, on_progress)
        if "superseded" in names:
            findings += superseded(reader, standing, "superseded")
        if "replaced-by-rule" in names:
            by_rule = [row for row in standing if row.by_rule]
            by_rule.sort(key=lambda row: (row.known_from, row.old_id, row.new_id), reverse=True)
            findings += superseded(reader, by_rule, "replaced-by-rule")
        if "unjudged" in names:
            findings += unjudged(reader, current)
        if "diverged" in names and engine.store.confined_to is None:  # devices synchronise no server
            findings += diverged(reader, {*ids}, filter.base)
        seen = last_changes(reader, findings) if mend else {}
    shortened = ((entry, entry.other_text and redact(entry.other_text)[:_MOST_CHARS]) for entry in findings)
    findings = [
        structs.replace(entry, text=redact(entry.text)[:_MOST_CHARS], other_text=other) for entry, other in shortened
    ]
    if mend:
        findings = [*mended(engine, findings, seen, filter.base)]
    order = list(CHECKS)
    findings.sort(key=lambda entry: (order.index(entry.check), "" if entry.check == "replaced-by-rule" else entry.id))
    return Audit(records=len(ids), superseded=len(ids) - len(listed), may_hold=len(uncertain), findings=tuple(findings))
