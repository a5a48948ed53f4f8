"""What is hidden though it holds, and what is noticed of true changes: python -m benchmarks.truth [--show].

A statement that another changes in part may be contradicted, which is not counted there. `--rules` reads marks and
`list` alone, without a model. `--all` asks for every pair of the grids, not for the marked ones and a sample. The last
table has changes that the user told, after an agent repeated the older statement. `held` is for the final figure:
nobody makes rules by it, and `--show` refuses it.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from benchmarks.cached_embedder import cached
from benchmarks.tables import table
from benchmarks.truth.cases import KINDS, VOCABULARIES, Pair, every, grids
from benchmarks.truth.measure import AGES_DAYS, WAYS, Seen, among_all, bulk, echo_all, one_by_one
from recallite import Memory, Settings
from recallite.embedding import load

_SAMPLE = 400
_REPEATED = (0, 3, 10)
_WITHOUT_RECALL = ("superseded", "contradicted", "noticed", "not listed")
Column = tuple[str, Callable[[Seen], bool]]

_HOLDS: tuple[Column, ...] = (
    ("superseded", lambda seen: seen.supersedes is not None),
    ("contradicted", lambda seen: seen.contradicts is not None and not seen.pair.in_part),
    ("not listed", lambda seen: not seen.listed),
    ("asked", lambda seen: seen.answers is not None),
    ("not in top 3", lambda seen: seen.answers is not None and not seen.in_plain),
    ("not relevant", lambda seen: seen.answers is not None and not seen.in_relevant),
    (
        "of these, nor if unmarked",
        lambda seen: seen.answers is not None and not seen.in_relevant and not seen.in_relevant_unmarked,
    ),
)
_CHANGED: tuple[Column, ...] = (
    ("superseded", lambda seen: seen.supersedes is not None),
    ("contradicted", lambda seen: seen.contradicts is not None),
    ("noticed", lambda seen: seen.is_marked),
    ("asked", lambda seen: seen.answers is not None),
    ("newer first", lambda seen: seen.newer_first),
    ("newer first, relevant", lambda seen: seen.newer_first_of_relevant),
    ("each names the other", lambda seen: seen.answers is not None and seen.answers.name_each_other),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--vocabulary", choices=VOCABULARIES, default="dev")
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--rules", action="store_true", help="marks and `list` alone, without a model")
    parser.add_argument("--all", action="store_true", help="ask for every pair of the grids")
    parser.add_argument("--groups", action="store_true", help="a row for each group")
    parser.add_argument("--show", action="store_true", help="name the pairs that fail (dev only)")
    options = parser.parse_args(arguments)
    if options.show and options.vocabulary == "held":
        parser.error("held is not read: its failures are counted and not shown")
    pairs = [pair for pair in every(options.vocabulary) if pair.kind in options.kind]
    asked = None if options.rules else {*pairs} if options.all else _sampled(pairs)
    embedder = None if options.rules else cached(load("default"))
    open_memory = partial(Memory, ":memory:", embedder=embedder, settings=Settings(embedder="none"))
    seen = [
        each
        for age_days in AGES_DAYS
        for told in (one_by_one, bulk)
        for each in told(pairs, age_days, open_memory, asked=asked)
    ]
    for outcome, title, all_columns in (("both hold", "Both hold", _HOLDS), ("changed", "True changes", _CHANGED)):
        chosen = [each for each in seen if each.pair.outcome == outcome]
        if chosen:
            columns = [column for column in all_columns if not options.rules or column[0] in _WITHOUT_RECALL]
            print(f"\n{title}, {options.vocabulary}\n\n{_table(chosen, columns, by_group=options.groups)}")
    if "grid" in options.kind and not options.rules:
        print(f"\nAmong all of their subject, {options.vocabulary}\n\n{_among_table(options.vocabulary, open_memory)}")
    if "changes" in options.kind and not options.rules:
        print(f"\nRepeated by an agent, {options.vocabulary}\n\n{_echo_table(pairs, open_memory)}")
    if options.show:
        _show(seen)


def _sampled(pairs: Iterable[Pair]) -> set[Pair]:
    """All pairs but those of grids, and some of these."""
    pairs = list(pairs)
    of_grids = [pair for pair in pairs if pair.kind == "grid"]
    both_hold = [pair for pair in of_grids if pair.outcome == "both hold"]
    some = random.Random(49).sample(both_hold, min(_SAMPLE, len(both_hold)))
    return {*some, *(pair for pair in pairs if pair.kind != "grid" or pair.outcome == "changed")}


def _table(seen: Iterable[Seen], columns: Sequence[Column], *, by_group: bool) -> str:
    """A row for each kind, way and age; ways or ages with the same figures share a row."""
    told: dict[str, dict[tuple[str, str], list[Seen]]] = defaultdict(lambda: defaultdict(list))
    for each in seen:
        ages = " and ".join(map(str, each.age_days))
        told[_kind(each.pair, by_group=by_group)][each.way, ages].append(each)
    lines: list[list[str]] = []
    for kind, ways in told.items():
        rows: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
        for way, some in ways.items():
            rows[str(len(some)), *(str(sum(map(holds, some))) for _, holds in columns)].append(way)
        for cells, same in rows.items():
            names = (" / ".join(dict.fromkeys(parts)) for parts in zip(*same, strict=True))
            lines.append([kind, *names, *cells])
    return table(("kind", "told", "days ago", "pairs", *(name for name, _ in columns)), lines, left=("kind", "told"))


def _kind(pair: Pair, *, by_group: bool) -> str:
    group = pair.group.partition(":")[0]
    return f"{pair.kind}, {group}" if by_group or pair.kind == "grid" else pair.kind


def _among_table(vocabulary: str, open_memory: Callable[[], Memory]) -> str:
    """Facts that no change touches, by grid and age."""
    lines = []
    for grid in grids(vocabulary):
        for age_days in AGES_DAYS:
            among = list(among_all(grid, age_days, open_memory))
            missing = (sum(not getattr(each, way) for each in among) for way in ("listed", "in_plain", "in_relevant"))
            ages = " and ".join(map(str, age_days))
            lines.append([f"grid, {grid.group}", ages, str(len(among)), *map(str, missing)])
    header = ("kind", "days ago", "facts", "not listed", "not in top 3", "not relevant")
    return table(header, lines, left=("kind",))


def _echo_table(pairs: Iterable[Pair], open_memory: Callable[[], Memory]) -> str:
    """Changes that the user told, by how often an agent said the older statement afterwards."""
    echoed = list(echo_all([pair for pair in pairs if pair.kind == "changes"], _REPEATED, open_memory))
    lines = []
    for times in _REPEATED:
        some = [each for each in echoed if each.times == times]
        figures = (sum(getattr(each, name) for each in some) for name in ("first", "first_of_relevant", "in_plain"))
        lines.append([str(times), str(len(some)), *map(str, figures)])
    return table(("times", "changes", "newer first", "newer first, relevant", "newer in top 3"), lines)


def _show(seen: Iterable[Seen]) -> None:
    """The pairs that fail, each once, with the ways in which they do."""
    failing: dict[Pair, dict[str, list[str]]] = {}
    for each in seen:
        for fault in _faults(each):
            way = f"{each.way} {each.age_days[0]}/{each.age_days[1]}"
            failing.setdefault(each.pair, {}).setdefault(fault, []).append(way)
    for failed, faults in failing.items():
        print(f"\n{_kind(failed, by_group=True)}: {failed.older!r} <- {failed.newer!r}")
        for fault, told in faults.items():
            everywhere = len(told) == len(WAYS) * len(AGES_DAYS)
            print(f"    {fault}" if everywhere else f"    {fault} ({', '.join(told)})")


def _faults(seen: Seen) -> list[str]:
    if seen.pair.outcome == "both hold":
        marks = (("superseded", seen.supersedes), ("contradicted", None if seen.pair.in_part else seen.contradicts))
        return [
            *(f"{mark}: {reason}" for mark, reason in marks if reason is not None),
            *(["not listed"] if not seen.listed else []),
            *(["not in the top 3"] if seen.answers is not None and not seen.in_plain else []),
            *(
                ["not relevant"]
                if seen.answers is not None and not seen.in_relevant and seen.in_relevant_unmarked
                else []
            ),
        ]
    first = seen.answers.plain[:1] if seen.answers is not None else ()
    return [
        *([] if seen.is_marked else ["not noticed"]),
        *([f"first: {first[0] if first else None!r}"] if seen.answers is not None and not seen.newer_first else []),
    ]


if __name__ == "__main__":
    main()
