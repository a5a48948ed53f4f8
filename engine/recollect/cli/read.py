"""Commands that read memories: recall, explain, get, list, count, neighbors, history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.options import (
    AsJson,
    AsOf,
    Id,
    Kinds,
    MinConfidence,
    MinScore,
    Mode,
    Overrides,
    ProfileName,
    Scope,
    Since,
    Tags,
    Until,
    Vector,
    Where,
    open_memory,
    parse_json,
    recall_options,
)
from recollect.cli.output import hint, print_json, print_pairs, print_rows, stamp
from recollect.cli.streams import stdin_lines
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.records import Hit, Hits, Record

__all__ = ["count", "explain", "get", "history", "list_", "neighbors", "recall"]


def recall(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="The question; without it, one a line of --file or stdin.")
    ] = None,
    file: Annotated[str | None, typer.Option(metavar="FILE", help="Many questions, one a line; - is stdin.")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="At most so many hits; else the profile's.")
    ] = None,
    scope: Scope = None,
    kind: Kinds = None,
    tag: Tags = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    mode: Mode = "hybrid",
    profile: ProfileName = None,
    group_by: Annotated[str | None, typer.Option(metavar="source", help="One hit a source: its best.")] = None,
    token_budget: Annotated[int | None, typer.Option(help="Only hits that fit into so many tokens.")] = None,
    min_score: MinScore = None,
    min_confidence: MinConfidence = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show signals, and the time each stage took.")] = False,
    overrides: Overrides = None,
    vector: Vector = None,
    as_json: AsJson = False,
) -> None:
    """Find the memories that answer a question, best first.

    With --json: the hits of one question, an array; with --explain or many questions, an object a question.
    """
    options = recall_options(
        where=where, overrides=overrides, min_confidence=min_confidence, vector=vector, limit=limit, scope=scope,
        kinds=kind, tags=tag, since=since, until=until, as_of=as_of, mode=mode, profile=profile, group_by=group_by,
        token_budget=token_budget, min_score=min_score, explain=explain,
    )  # fmt: skip
    if query is not None and file is not None:
        raise InvalidInput("give a query or --file, not both")
    with open_memory(context) as memory:
        if query is not None:
            answers = [memory.recall(query, **options)]
        elif vector is not None:
            raise InvalidInput("--vector goes with one query as an argument")
        else:
            answers = memory.recall_many(stdin_lines(file), **options)
    many = query is None
    if as_json:
        shown = [_answer(hits) for hits in answers]
        print_json(shown if many else shown[0] if explain else answers[0])
    else:
        for hits in answers:
            _print_hits(hits, many=many, explained=explain)
    if not any(answers):
        raise typer.Exit(1)


def explain(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", show_default=False)],
    id: Id,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="The limit of the recall in question.")] = None,
    scope: Scope = None,
    kind: Kinds = None,
    tag: Tags = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    mode: Mode = "hybrid",
    profile: ProfileName = None,
    group_by: Annotated[str | None, typer.Option(metavar="source")] = None,
    token_budget: Annotated[int | None, typer.Option()] = None,
    min_score: MinScore = None,
    min_confidence: MinConfidence = None,
    overrides: Overrides = None,
    vector: Vector = None,
    as_json: AsJson = False,
) -> None:
    """Say why a memory is, or is not, among the hits of a question."""
    options = recall_options(
        where=where, overrides=overrides, min_confidence=min_confidence, vector=vector, limit=limit, scope=scope,
        kinds=kind, tags=tag, since=since, until=until, as_of=as_of, mode=mode, profile=profile, group_by=group_by,
        token_budget=token_budget, min_score=min_score,
    )  # fmt: skip
    with open_memory(context) as memory:
        found = memory.explain(query, id, **options)
    if as_json:
        print_json(found)
        return
    print_pairs(
        {"returned": found.returned, "stage": found.stage, "reason": found.reason, "confidence": found.confidence}
    )
    print_rows(
        ("signal", "value", "rank"),
        [(name, f"{value:.4f}", found.ranks.get(name)) for name, value in found.signals.items()],
    )


def get(context: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show one memory."""
    with open_memory(context) as memory:
        record = memory.get(id)
    if as_json:
        print_json(record)
    else:
        print_pairs({name: getattr(record, name) for name in record.__struct_fields__ if name != "outcome"})


def list_(
    context: typer.Context,
    scope: Scope = None,
    kind: Kinds = None,
    tag: Tags = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    order: Annotated[str, typer.Option(metavar="ORDER", help="newest, oldest or importance.")] = "newest",
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 100,
    offset: Annotated[int, typer.Option(help="Leave out so many first.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show memories in order, filtered as recall filters."""
    with open_memory(context) as memory:
        records = memory.list(
            **_filters(scope, kind, tag, where, since, until, as_of), order=order, limit=limit, offset=offset
        )
    _print_records(records, as_json=as_json)


def count(
    context: typer.Context,
    scope: Scope = None,
    kind: Kinds = None,
    tag: Tags = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Say how many memories there are, filtered as recall filters."""
    with open_memory(context) as memory:
        number = memory.count(**_filters(scope, kind, tag, where, since, until, as_of))
    print_json({"count": number}) if as_json else typer.echo(number)


def neighbors(
    context: typer.Context,
    id: Id,
    type: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Only links of this type; repeat for more.")
    ] = None,
    direction: Annotated[str, typer.Option(help="out, in or both.")] = "both",
    as_json: AsJson = False,
) -> None:
    """Show the links of a memory, strongest first."""
    with open_memory(context) as memory:
        links = memory.neighbors(id, types=type or (), direction=direction)
    if as_json:
        print_json(links)
    else:
        rows = [(link.source, link.target, link.type, f"{link.strength:g}") for link in links]
        print_rows(("from", "to", "type", "strength"), rows)
    if not links:
        raise typer.Exit(1)


def history(context: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show every version of a memory, oldest first."""
    with open_memory(context) as memory:
        versions = memory.history(id)
    if as_json:
        print_json(versions)
    else:
        rows = [(stamp(each.valid_from), stamp(each.valid_to) or "now", each.text) for each in versions]
        print_rows(("from", "to", "text"), rows)


def _filters(
    scope: str | None,
    kind: list[str] | None,
    tag: list[str] | None,
    where: str | None,
    since: str | None,
    until: str | None,
    as_of: str | None,
) -> dict[str, Any]:
    return {
        "scope": scope, "kinds": kind or None, "tags": tag or None, "where": parse_json(where, "--where"),
        "since": since, "until": until, "as_of": as_of,
    }  # fmt: skip


def _answer(hits: Hits) -> dict[str, Any]:
    return {
        "query": hits.query,
        "hits": list(hits),
        "evidence_gaps": hits.evidence_gaps,
        "sub_queries": hits.sub_queries,
        "scopes": hits.scopes,
        "left_out": hits.left_out,
        "stages": hits.stages,
    }


def _print_hits(hits: Hits, *, many: bool, explained: bool) -> None:
    columns = [*(("query",) if many else ()), "score", "id", *(("why",) if explained else ()), "text"]
    print_rows(
        columns,
        [
            [
                *((hits.query,) if many else ()),
                f"{hit.score:.3f}",
                hit.id,
                *((why(hit),) if explained else ()),
                _text(hit),
            ]
            for hit in hits
        ],
        under=("query", "why"),
    )
    for part in hits.sub_queries:
        hint(f"searched too: {part}")
    for gap in hits.evidence_gaps:
        hint(f"gap: {gap}")
    if hits.left_out:
        hint(f"{hits.left_out:,} more did not fit the token budget")
    if explained and hits.stages:
        hint(stage_times(hits.stages))


def why(hit: Hit) -> str:
    """The reasons and signals of a hit, on one line."""
    signals = " ".join(f"{name}={value:.3f}" for name, value in hit.signals.items())
    return f"{', '.join(hit.match_reasons)} ({signals})"


def stage_times(stages: dict[str, float]) -> str:
    """The milliseconds of each stage, on one line."""
    return ", ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in stages.items())


def _text(hit: Hit) -> str:
    return f"[{hit.context}] {hit.text}" if hit.context else hit.text


def _print_records(records: list[Record], *, as_json: bool) -> None:
    if as_json:
        print_json(records)
    else:
        rows = [(each.id, each.scope, each.kind, stamp(each.created_at), each.text) for each in records]
        print_rows(("id", "scope", "kind", "created", "text"), rows, under=("scope", "kind", "created"))
    if not records:
        raise typer.Exit(1)
