"""Printers of values that are neither a table of attributes nor a number: hits, explanations, and others.

On a terminal confidences are bars and reasons are sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite_cli.output import (
    attributes,
    console,
    echo,
    hint,
    one_line,
    print_counts,
    print_pairs,
    print_rows,
    print_table,
    safe,
    short_ids,
    stamp,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from recallite.agents.bootstrap import Bootstrap
    from recallite.agents.consolidation import Cycle
    from recallite.agents.experience import Tip
    from recallite.agents.tiers import Procedure
    from recallite.documents.document import Ingested
    from recallite.model.records import Explanation, Hit, Hits, Record
    from recallite.model.reports import Audit, Forgotten, Remembered, Stats, Synced, Verification
    from recallite.transfer.memory_transfer import RestoreReport


_BAR_CELLS = 8
# Of each text, if not all is wanted.
_LINES = 3
_CHART_CELLS = 32
# What a person calls a signal.
_SIGNALS = {
    "cosine": "meaning", "bm25": "words", "rerank": "token reranking", "fused": "meaning and words",
    "spread": "with neighbours", "decay": "age", "score": "score",
}  # fmt: skip
_REASONS = {
    "semantic": "by meaning",
    "keyword": "shares words with the question",
    "rerank": "matches word by word",
    "session": "next to a match in its source",
    "link": "linked to a match",
    "recency": "recent",
    "importance": "important",
    "change": "holds at the time asked about, others of its kind do not",
    "step": "tells of what another hit states",
    "authority": "a lower authority speaks of the same",
    "standing": "a standing instruction or preference",
}
# What learned ranking goes by, and the least part of its output that is named.
_MOVED_BY = {
    "semantic": "its meaning", "keyword": "the words it shares", "rerank": "its match word by word",
    "speaker": "its speaker", "session": "its neighbours", "link": "its links", "score": "all of these together",
}  # fmt: skip
_LEAST_PART = 0.1
_NO_RERANKING = ("rerank", 0)


def print_hits(hits: Hits, *, many: bool, explained: bool, whole: bool = False) -> None:
    """The hits of one question, best first; `many` says that it is one of several questions.

    A terminal gets three lines of each text, and what is weak beside the best is counted, unless they are `whole`.
    """
    terminal = console()
    if terminal is not None:
        _draw_hits(terminal, hits, many=many, explained=explained, whole=whole or explained)
    else:
        rows = []
        for hit in hits:
            signals = " ".join(f"{name}={value:.3f}" for name, value in hit.signals.items())
            why = [f"{', '.join(hit.match_reasons)} ({signals})"] * explained
            figures = f"{hit.score:.3f}", f"{hit.confidence:.3f}", hit.id
            rows.append((*[hits.query] * many, *figures, *why, _text(hit), *changes(hit)))
        print_rows((), rows)
    if hits.diversify_by is not None and len(hits) > 1:
        hint("in order of time, not of score")
    for part in hits.sub_queries:
        hint(f"searched too: {part}")
    for gap in hits.evidence_gaps:
        hint(f"gap: {gap}")
    if hits.left_out:
        hint(f"{hits.left_out:,} more did not fit the token budget")
    if explained and hits.stages:
        hint(_stage_times(hits))


def print_figures(hits: Hits) -> None:
    """The hits of one question with every figure, as lines for people who read a pipe."""
    for hit in hits:
        echo(f"  {hit.score:.2f}  confidence {hit.confidence:.2f}  {one_line(_text(hit))}")
        echo(f"        {reasons(hit, hits.query)}{_by(hit)}")
        echo(f"        {_figures(hit.signals)}")
    echo(f"  {_stage_times(hits)}")


def _stage_times(hits: Hits) -> str:
    """The milliseconds of each stage, on one line."""
    return ", ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in hits.stages.items())


def reasons(hit: Hit, query: str) -> str:
    """Name the match reasons of a hit in words."""
    from recallite.recall.snippets import highlight

    sentences = dict(zip(hit.match_reasons, (_REASONS.get(name, name) for name in hit.match_reasons), strict=True))
    if "semantic" in sentences and hit.signals.get("cosine_rank") == 1:
        sentences["semantic"] = "closest in meaning"
    words = list(dict.fromkeys(hit.text[start:stop] for start, stop in highlight(hit.text, query)))
    if "keyword" in sentences and words:
        sentences["keyword"] = f"shares {', '.join(map(repr, words))}"
    return one_line("; ".join(sentences.values()) or "next to a match")


def marked(text: str, spans: list[tuple[int, int]], style: str = "bold") -> Text:
    """A text with its spans in a style."""
    from rich.text import Text

    styled, end = Text(), 0
    for start, stop in spans:
        styled.append(safe(text[end:start])).append(safe(text[start:stop]), style)
        end = stop
    return styled.append(safe(text[end:]))


def print_explanation(account: Explanation) -> None:
    """Print why a memory is, or is not, among the hits: sentences and a chart on a terminal, lines elsewhere."""
    terminal = console()
    if terminal is not None:
        for sentence in _sentences(account):
            terminal.print(safe(sentence), markup=False, soft_wrap=True)
        _draw_signals(terminal, account)
        return
    print_pairs({name: getattr(account, name) for name in ("returned", "stage", "reason", "confidence", "authority")})
    rows = [(name, f"{value:.4f}", account.ranks.get(name)) for name, value in account.signals.items()]
    print_rows(("signal", "value", "rank"), rows)


def _draw_hits(terminal: Console, hits: Hits, *, many: bool, explained: bool, whole: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from recallite.recall.request import ANSWER_SHARE
    from recallite.recall.snippets import highlight

    if many:
        terminal.print(Text(one_line(hits.query), "bold"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    least = 0.0 if whole else ANSWER_SHARE * max((hit.confidence for hit in hits), default=0.0)
    room = _LINES * max(terminal.width - _BAR_CELLS - 8, 20)
    for hit, id in zip(hits, short_ids([hit.id for hit in hits]), strict=True):
        if hit.confidence < least:
            continue
        text = _text(hit)
        if not whole:
            text = _few_lines(text, hits.query, room)
        cell = marked(text, highlight(text, hits.query))
        source = "" if hit.source is None else f"  {one_line(hit.source.path or hit.source.id)}"
        for line in changes(hit):
            cell.append(f"\n{safe(line)}", "yellow")
        cell.append(f"\n{id}", "cyan").append(f"  {hit.scope}{source}{_by(hit)}  score {hit.score:.2f}", "dim")
        if explained:
            cell.append(f"\n{reasons(hit, hits.query)}\n{_figures(hit.signals)}", "dim")
        table.add_row(Text(f"{hit.confidence:.2f} ").append(_bar(hit.confidence, _BAR_CELLS), "green"), cell)
    terminal.print(table)
    if weaker := sum(hit.confidence < least for hit in hits):
        hint(f"{weaker:,} weaker: --all shows {'it' if weaker == 1 else 'them'}")


def _few_lines(text: str, query: str, chars: int) -> str:
    """Cut a text to a number of lines and characters around what matches, with marks where it is cut."""
    from recallite.recall.snippets import cut_snippet

    whole = part = text.strip()
    room = chars - 4
    while len(part) > chars or (part.count("\n") >= _LINES and room > 1):
        part, room = cut_snippet(text, query, room).text, room * 3 // 4
    return "… " * (not whole.startswith(part)) + part + " …" * (not whole.endswith(part))


def _figures(signals: dict[str, float]) -> str:
    """Signals with their ranks, on one line."""
    figures = []
    for name, value in signals.items():
        if not name.endswith("_rank") and (name, value) != _NO_RERANKING:
            rank = signals.get(f"{name}_rank")
            figures.append(f"{_SIGNALS.get(name, name)} {value:.3g}" + (f" (#{rank:.0f})" if rank else ""))
    return ", ".join(figures)


def _draw_signals(terminal: Console, account: Explanation) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("signal", "value", "", "rank"):
        table.add_column(name, justify="right" if name in ("value", "rank") else "left")
    for name, value in account.signals.items():
        if (name, value) == _NO_RERANKING:
            continue
        bar = "" if name == "bm25" else _bar(value, _CHART_CELLS)  # BM25 has no upper end
        table.add_row(_SIGNALS.get(name, name), f"{value:.3f}", Text(bar, "green"), str(account.ranks.get(name, "")))
    terminal.print(table)


def _sentences(account: Explanation) -> Iterator[str]:
    """An explanation in words, a sentence each."""
    if account.returned:
        score, confidence = account.score, account.confidence
        yield f"It is hit {account.rank}, with a score of {score:.2f} and a confidence of {confidence:.2f}."
    else:
        yield f"It is not among the hits: {account.reason}."
    signals, ranks = account.signals, account.ranks
    rank_texts = [f"{ranks[name]:,} by {_SIGNALS[name]}" for name in ("cosine", "bm25") if signals.get(name)]
    if rank_texts:
        yield f"Among all memories that pass the filters its rank is {' and '.join(rank_texts)}."
    if signals and not signals.get("bm25"):
        yield "It has no word of the question."
    change = signals.get("spread", 0.0) - signals.get("fused", 0.0)
    if abs(change) >= 0.01:
        verb = "raise" if change > 0 else "lower"
        yield f"Its neighbours and links {verb} its score from {signals['fused']:.2f} to {signals['spread']:.2f}."
    if signals.get("decay", 1.0) < 0.995:
        yield f"Its age leaves {signals['decay']:.0%} of its score."
    yield from _learned(account)


def _learned(account: Explanation) -> Iterator[str]:
    """Tell what learned ranking did with the memory, and by what."""
    if not account.learned:
        return
    before, after = account.ranks["formula"], account.ranks["score"]
    verb = "leaves it at rank" if before == after else f"moves it from rank {before:,} to"
    yield f"Learned ranking {verb} {after:,}."
    parts = sorted(account.learned.items(), key=lambda part: -abs(part[1]))
    for word, sign in (("for", 1), ("against", -1)):
        if named := [_MOVED_BY.get(name, name) for name, part in parts if part * sign >= _LEAST_PART]:
            yield f"What speaks {word} it: {', '.join(named)}."


def _bar(value: float, cells: int) -> str:
    filled = round(min(max(value, 0.0), 1.0) * cells)
    return "█" * filled + "░" * (cells - filled)


def changes(hit: Hit) -> Iterator[str]:
    """Tell what a hit took the place of and until when that held, what takes its own, and what contradicts it."""
    for former in hit.supersedes:
        until = "" if former.held_until is None else f" until {former.held_until:%Y-%m-%d}"
        yield one_line(f"was{until}: {former.text}")
    if hit.superseded_by:
        until = "" if hit.held_until is None else f" on {hit.held_until:%Y-%m-%d}"
        yield f"superseded{until} by {', '.join(short_ids(hit.superseded_by))}"
    if hit.contradicts:
        yield f"contradicts {', '.join(short_ids(hit.contradicts))}"


def _by(hit: Hit) -> str:
    """Name who said it, if not the user."""
    if hit.authority == "user":
        return ""
    from recallite.model.authority import said_by

    return one_line(f"  said by: {said_by(hit.authority, None if hit.source is None else hit.source.id)}")


def _text(hit: Hit) -> str:
    return f"[{hit.context}] {hit.text}" if hit.context else hit.text


# The command that does what a finding proposes.
_REMEDIES = {
    "forget": "forget", "link": "link --type contradicts", "supersede": "supersede", "expire": "update --expires-at",
    "redact": "audit secrets --mend", "purge_expired": "purge-expired",
}  # fmt: skip


print_id = print_table("id")
"""Print the id of what was stored."""
print_versions = print_table(
    "id since until text",
    lambda version: (version.id, stamp(version.held[0]), stamp(version.held[1]) or "now", version.text),
)
"""Print a history, and from when until when each version held."""
print_episodes = print_table(
    "id at type importance text",
    lambda episode: (
        episode.id, stamp(episode.valid_from or episode.created_at), episode.metadata.get("event_type"),
        f"{episode.importance:.2f}", episode.text,
    ),
    under=("at", "type", "importance"),
)  # fmt: skip
"""Print episodes with their times and types."""
print_snapshots = print_table(
    "session ended messages summary",
    lambda ended: (ended.session_id or ended.id, stamp(ended.ended_at), len(ended.messages), ended.summary),
)
"""Print snapshots of sessions."""
print_tips = print_table("tip", lambda tip: (str(tip),))
"""Print tips, a sentence a line."""


print_deleted = print_table(
    "id deleted source", lambda deleted: (deleted.id, f"deleted with {deleted.chunks:,} chunks", deleted.source)
)
"""Print the documents that were deleted."""


def records_as_json(records: Sequence[Record]) -> object:
    """One record as it is, several as a list."""
    return records[0] if len(records) == 1 else records


def print_records(records: Sequence[Record]) -> None:
    """Print the fields of records."""
    for i, record in enumerate(records):
        if i:
            echo()
        print_pairs({name: getattr(record, name) for name in record.__struct_fields__ if name != "outcome"})


def _row(record: Record) -> tuple[object, ...]:
    """The cells of a memory in a list; `holds` are its valid time, if known, and how often it was remembered."""
    since, until = (
        "" if moment is None else f"{moment:%Y-%m-%d}"
        for moment in (record.valid_from, record.held_until or record.valid_until)
    )
    times = f"said {record.occurrences:,} times" if record.occurrences > 1 else ""
    holds = (f"{since}..{until}" if until else since, times, superseded_by(record))
    return record.id, record.scope, record.kind, stamp(record.created_at), ", ".join(filter(None, holds)), record.text


print_list = print_table("id scope kind created holds text", _row, under=("scope", "kind", "created", "holds"))
"""Print memories, a line each."""


def print_bootstrap(briefing: Bootstrap) -> None:
    """Print a briefing, and what it leaves out."""
    if briefing.text:
        echo(safe(briefing.text))
    if briefing.elsewhere:
        there = "1 memory is" if briefing.elsewhere == 1 else f"{briefing.elsewhere:,} memories are"
        hint(f"nothing is stored below /agents/AGENT; {there} elsewhere: without AGENT the briefing draws on all")
    if briefing.tips:
        from recallite.agents.bootstrap import TIPS_FOUND

        hint(f"[experience] {len(briefing.tips)} {TIPS_FOUND}")
    if briefing.left_out:
        hint(f"{briefing.left_out:,} more did not fit the budget")
    hint_of_replaced(briefing.replaced, "list --include-superseded shows them")


def superseded_by(record: Record) -> str:
    """Tell what supersedes a memory, and by what rule; nothing if it is current."""
    if not record.superseded_by:
        return ""
    reason = record.superseded_by_rule
    rule = "" if reason is None else f", by rule ({reason})" if reason else ", by rule"
    return one_line(f"superseded by {', '.join(short_ids(record.superseded_by))}{rule}")


def hint_of_replaced(count: int, remedy: str) -> None:
    """Tell how many memories were left out because others have surely replaced them."""
    if count:
        hint(f"{count:,} replaced {'memory is' if count == 1 else 'memories are'} left out: {remedy}")


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


def print_messages(messages: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None) -> None:
    """Print the messages of a session, or one if there is one."""
    from recallite.agents.sessions import plain_text

    messages = [messages] if isinstance(messages, Mapping) else messages or []
    print_rows(("role", "content"), [(entry.get("role"), plain_text(entry.get("content"))) for entry in messages])


def print_outcome(procedure: Procedure) -> None:
    """Print how often a procedure worked."""
    print_pairs({"name": procedure.name, "success rate": procedure.success_rate, "uses": procedure.use_count})


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
    rows = [(entry.count, entry.name, " ".join(entry.examples), entry.remedy) for entry in verification.problems]
    print_rows(("count", "problem", "examples", "remedy"), rows)
    outcome = "clean" if verification.ok else f"{len(verification.problems)} problems"
    hint(f"{verification.records:,} records and {verification.vectors:,} vectors: {outcome}")


def verification_as_json(verification: Verification) -> object:
    """The problems of a store, without what every store has."""
    return attributes(verification, "ok records vectors problems")


def print_audit(audit: Audit) -> None:
    """Print findings and their remedies."""
    rows = []
    for entry in audit.findings:
        remedy = "mended" if entry.mended else _REMEDIES.get(entry.verb or "", "")
        other = "" if entry.other is None else f"{entry.other} {entry.other_text or ''}"
        rows.append((entry.check, remedy, entry.id, entry.reason, other, entry.text))
    print_rows(("check", "remedy", "id", "reason", "other", "text"), rows, under=("reason", "other"))
    if not rows:
        hint(f"{audit.records:,} memories were checked: nothing was found")
    if (others := audit.superseded + audit.may_hold) and all(entry.at is None for entry in audit.findings):
        hint(
            f"{others:,} of them {'is' if others == 1 else 'are'} superseded: audit superseded shows by what, "
            "audit replaced-by-rule those of rules"
        )


def print_revoked(arguments: Mapping[str, Any]) -> None:
    """Print what was revoked."""
    hint(f"revoked {next(iter(arguments.values()))}")


# Of commands that are more than one call.


def print_remembered(stored: Record | list[Record] | Remembered) -> None:
    """Print the ids of what was stored, and what it changed; of files, the numbers."""
    from recallite.model.reports import Remembered

    if isinstance(stored, Remembered):
        print_counts("stored:records; already in the store:known; left out as junk:junk")(stored)
        return
    for record in stored if isinstance(stored, list) else [stored]:
        print_stored(record)


_NOUNS = {
    "record": "memories and versions", "vector": "vectors", "term": "words", "tag": "tags", "source": "sources",
    "scope": "scopes", "link": "links", "supersession": "supersessions", "occurrence": "repeated statements",
    "document": "documents", "session": "sessions",
    "session_message": "messages", "session_snapshot": "session snapshots", "tool_pattern": "tool patterns",
    "error_recovery": "error recoveries", "procedure_use": "uses of procedures", "working_state": "working memories",
    "consolidation": "consolidation cycles", "embedding_cache": "cached vectors",
}  # fmt: skip


def print_forgotten(gone: Forgotten) -> None:
    """Print how many were forgotten, and the receipt."""
    print_counts("forgotten:records")(gone)
    if (receipt := gone.receipt) is None:
        return
    removed, elsewhere = _by_noun(receipt.removed), _by_noun(receipt.elsewhere)
    lines = [
        *((f"{noun} removed", f"{rows:,}") for noun, rows in removed.items()),
        *((f"searched {name}", f"{size:,} bytes") for name, size in receipt.files.items()),
        ("byte sequences searched for", f"{receipt.searched:,}"),
        *((f"{noun} not forgotten that hold some of the same text", f"{rows:,}") for noun, rows in elsewhere.items()),
        ("erased completely", "yes" if receipt.complete else "no"),
    ]
    print_rows(("", ""), lines)
    for problem in receipt.problems:
        hint(problem)


def _by_noun(rows: dict[str, int]) -> Counter[str]:
    """Rows by what people call them, from rows by table or by table and column."""
    counts: Counter[str] = Counter()
    for table, count in rows.items():
        counts[_NOUNS.get(table.partition(".")[0], "index entries")] += count
    return counts


class Answers(NamedTuple):
    """Hits of each question, and whether the store has no memories."""

    hits: list[Hits]
    many: bool
    explained: bool
    empty: bool
    relevant: bool
    whole: bool

    @property
    def failed(self) -> bool:
        """Whether no question has a hit."""
        return not any(self.hits)


def answers_as_json(answers: Answers) -> object:
    """The hits of one question; an object a question where there are many, or more than hits is asked for."""
    objects = [hits.fields() for hits in answers.hits]
    return objects if answers.many else objects[0] if answers.explained or answers.relevant else answers.hits[0]


def print_answers(answers: Answers) -> None:
    """Print the hits of each question."""
    if answers.empty:
        hint("the store is empty")
        return
    for hits in answers.hits:
        print_hits(hits, many=answers.many, explained=answers.explained, whole=answers.whole)


def print_superseded(done: dict[str, Any]) -> None:
    """Print what took the place of what."""
    print_rows(("old", "new"), [(old, new) for old in done["old"] for new in done["new"]])


def print_restored(done: Record | RestoreReport) -> None:
    """Print the memory, or what became of a backup."""
    from recallite.model.records import Record

    if isinstance(done, Record):
        print_table("id text")(done)
        return
    print_rows(("", ""), [(f"{done.records:,}", f"memories, with their versions and chunks, are in {done.path}")])
    if done.replaced is not None:
        hint(f"the file that was there is {done.replaced}: restore it to undo this, or remove it")
    for problem in done.problems:
        hint(f"{problem.name}: {problem.count:,}. {problem.remedy}")


def print_ended(ended: dict[str, Any]) -> None:
    """Print that a session has ended, and its snapshot."""
    snapshot = ended["snapshot"]
    outcome = "ended" if snapshot is None else f"ended, kept as snapshot {snapshot.id}"
    print_rows(("session", ""), [(ended["ended"], outcome)])


_SNIPPET_CHARS = 300


class Ingestion(NamedTuple):
    """The result of an ingest, and whether it could not read a source that was named."""

    done: Ingested
    failed: bool


def print_ingestion(ingestion: Ingestion) -> None:
    """Print the documents that were read, and what was not."""
    done = ingestion.done
    print_table("id outcome chunks source")(done.documents)
    for document in done.documents:
        for warning in document.warnings:
            hint(f"{document.source}: {warning}")
    for skipped in done.skipped:
        hint(f"skipped {skipped.source}: {skipped.reason}")
    if not done.documents:
        hint("nothing was ingested: no document that can be read was found")


def ingestion_as_json(ingestion: Ingestion) -> object:
    """The documents, those that were skipped, and the counts, as JSON shows them."""
    return attributes(ingestion.done, "documents skipped counts seconds")


def _passage_row(hit: Hit) -> tuple[object, ...]:
    """The cells of a passage; its place is as an editor opens it: path:line, or the page of what has no lines."""
    place = ""
    if hit.source is not None:
        place = hit.source.path or hit.source.id
        if hit.source.lines is not None:
            place += f":{hit.source.lines[0]}"
        elif "page" in hit.metadata:
            place += f" p. {hit.metadata['page']}"
    line = " ".join(hit.text.split())
    snippet = line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…"
    return f"{hit.score:.2f}", f"{hit.confidence:.2f}", place, hit.context, snippet


def print_passages(passages: Hits | str) -> None:
    """Print passages, or the Markdown of them."""
    if isinstance(passages, str):
        echo(passages)
    else:
        print_table("score confidence place context text", _passage_row, under=("context",))(passages)


def passages_as_json(passages: Hits | str) -> object:
    """Passages, or an object with the Markdown of them."""
    return {"context": passages} if isinstance(passages, str) else passages


def print_cycles(ran: Cycle | list[Cycle]) -> None:
    """Print one cycle, or some."""
    cycles = ran if isinstance(ran, list) else [ran]
    columns = ("at", "compressed", "pruned", "replayed", "promoted")
    rows = [
        (stamp(entry.created_at) or "nothing to do", entry.compressed, entry.pruned, entry.replayed, entry.promoted)
        for entry in cycles
    ]
    print_rows(columns, rows) if isinstance(ran, list) else print_pairs(dict(zip(columns, rows[0], strict=True)))


def print_warmup(done: dict[str, Any]) -> None:
    """Print the time that each part took."""
    print_rows(("seconds", ""), [(f"{value:.3f}", name) for name, value in done["seconds"].items()])
    hint(f"kernels: {done['kernels']}")


def print_rekeyed(encrypted: bool) -> None:
    """Print whether the store is encrypted now."""
    hint(f"the store is {'encrypted' if encrypted else 'not encrypted'} now")
