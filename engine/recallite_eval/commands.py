"""The command eval: a person's own questions, what was found of what they expect, and where the rest was lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from recallite.errors import InvalidInput
from recallite_cli.command import Overrides, argument, flag, number, option, parse_overrides, parse_pairs, prints
from recallite_cli.output import hint, one_line, print_json, stdin_stream

if TYPE_CHECKING:
    from rich.console import Console

    from recallite.memory import Memory
    from recallite.model.reports import AnsweredQuestion, Evaluation, UndonePair
    from recallite.store.store import Progress


_PIPE_COLUMNS = 100
_SHOWN_CHARS = 160
_NO_PAIR = ("filter", "limit")
_FIGURES = {"recall": "recall@{k}", "hit": "hit@{k}", "hit_at_1": "hit@1", "mrr": "MRR", "ndcg": "nDCG@{k}"}
# What helps against the losses of a stage.
_REMEDIES = {
    "filter": "the question's filter, a scope or a time hides it",
    "superseded": "another memory stands in its place: include_superseded or valid_at shows it",
    "candidates": "neither meaning nor words found it: more candidates, or another embedder",
    "threshold": "lower min_confidence or min_score",
    "diversify": "raise mmr_lambda",
    **dict.fromkeys(("group", "spread"), "leave diversify_by out, or ask for more hits"),
    "authority": "it only repeats a hit of a higher authority: ask for more hits",
    "limit": "change the weights, or ask for more hits",
    "token_budget": "raise token_budget",
}


class ShownEvaluation(NamedTuple):
    """An evaluation, how many missed questions to show of it, and the earlier report that it is compared with."""

    evaluation: Evaluation
    missed: int
    earlier: str | None


def _asked(evaluation: Evaluation) -> int:
    return evaluation.counted + evaluation.confidence.unanswerable


def _print_evaluation(shown: ShownEvaluation | list[UndonePair]) -> None:
    if isinstance(shown, list):
        for pair in shown:
            print_json(pair)
        return
    from rich.console import Console

    evaluation = shown.evaluation
    terminal = Console(highlight=False)
    if not terminal.is_terminal:
        terminal = Console(highlight=False, width=_PIPE_COLUMNS)
    runs = [evaluation] if evaluation.against is None else [evaluation, evaluation.against]
    names = _names(runs, shown.earlier)
    without = evaluation.confidence.unanswerable
    counted = f"{evaluation.counted:,} question{'s' * (evaluation.counted != 1)} with an answer"
    also = f" and {without:,} without" if without else ""
    _say(terminal, f"{counted}{also}; the first {evaluation.k} hits of each")
    _print_figures(terminal, runs, names)
    _print_comparisons(terminal, evaluation, names)
    _print_changed(terminal, runs, names, shown.missed)
    _print_lost(terminal, runs, names)
    _print_missed(terminal, evaluation, names[0] if len(runs) > 1 else None, shown.missed)
    _print_not_stored(terminal, evaluation)
    _print_confidence(terminal, runs, names)
    if not _asked(evaluation):
        hint("no question could be counted: no memory that they expect is in the store")


@prints(
    _print_evaluation,
    json=lambda shown: shown if isinstance(shown, list) else shown.evaluation,
    fails=lambda shown: not (shown if isinstance(shown, list) else _asked(shown.evaluation)),
    bar=("asking", "questions"),
    operation="review.explain",
    without=("query", "id", "limit", "vector", "purpose"),
)
def eval_(
    memory: Memory,
    report: Progress | None,
    file: Annotated[str | None, argument("FILE", "JSON lines with the questions; - is standard input.")] = None,
    k: Annotated[int, number("How many hits of a question count.", "--hits", "-k")] = 10,
    against: Annotated[
        list[str] | None,
        option("NAME=VALUE", "Compare with this option of recall, as mode=keyword; repeat for more."),
    ] = None,
    against_report: Annotated[
        str | None, option("FILE", "Compare with a report that --out wrote, as of another store or embedder.")
    ] = None,
    missed: Annotated[
        int, option("<int range>", "The most missed questions to show.", type=click.IntRange(min=0))
    ] = 20,
    out: Annotated[str | None, option("FILE", "Write the whole report to this file, as JSON.")] = None,
    undone: Annotated[
        bool, flag("Ask nothing: print what rules had superseded and restore undid, as JSON lines.", "--undone")
    ] = False,
    overrides: Overrides = None,
    **fields: Any,
) -> ShownEvaluation | list[UndonePair]:
    """Measure recall on questions of your own.

    Each line of FILE is a question with the memories to be found, by text, part of a text, or id:

    {"question": "Where does Ada live?", "expected": ["Ada moved to Bergen"]}

    An empty list says that the store has no answer. A line may have an "id", and a filter: "scope", "kinds", "tags",
    "where", "since", "until", "as_of". Nothing in the store changes.

    Shown are recall@k, hit@k, MRR and nDCG; what was missed, with the stage of recall that lost it; and what
    min_confidence would keep. With --against the questions are asked again with other options, and both runs are
    compared question by question; --against-report compares with an earlier run.
    """
    if undone:
        if file is not None:
            raise InvalidInput("--undone asks no questions: leave the file out")
        return memory.review.undone()
    if file is None:
        raise InvalidInput("give a file of questions, - for standard input, or --undone")
    fields |= parse_overrides(overrides)
    other: dict[str, Any] | Evaluation | None = _against(against) or None
    if against_report is not None:
        if other is not None:
            raise InvalidInput("give --against or --against-report, not both")
        other = _earlier(against_report)
    evaluation = memory.review.evaluate(
        stdin_stream() if file == "-" else file, k=k, against=other, on_progress=report, **fields
    )
    if out is not None:
        from recallite.transfer.lines import writing

        with writing(out, store=memory.path) as stream:
            stream.write(evaluation.to_json() + "\n")
    return ShownEvaluation(evaluation, missed, None if against_report is None else Path(against_report).name)


def _earlier(path: str) -> Evaluation:
    import msgspec

    from recallite.model.reports import Evaluation

    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Evaluation)
    except (OSError, ValueError) as fault:
        raise InvalidInput(f"{path} is no report that eval --out wrote: {fault}") from None


def _against(pairs: list[str] | None) -> dict[str, Any]:
    from recallite.model.filters import FIELD_NAMES
    from recallite.model.settings import OPTIONS
    from recallite.recall.request import RecallOptions

    names = dict.fromkeys((*RecallOptions.__annotations__, *FIELD_NAMES, *OPTIONS))
    return parse_pairs(pairs, "--against", [name for name in names if name not in _NO_PAIR])


def _names(runs: Sequence[Evaluation], earlier: str | None) -> list[str]:
    """Names of the runs: the options of the first, and the file of the second or what it has otherwise."""
    first, *more = (run.options for run in runs)
    names = [_label(first) or "settings"]
    if earlier is not None:
        return [*names, earlier]
    for options in more:
        differing = {name: value for name, value in options.items() if name not in first or first[name] != value}
        names.append(_label(differing) or "the same")
    return names


def _label(options: dict[str, Any]) -> str:
    return " ".join(f"{name}={one_line(value)}" for name, value in options.items())


def _print_figures(terminal: Console, runs: Sequence[Evaluation], names: Sequence[str]) -> None:
    if runs[0].figures is None:
        return
    rows = []
    for field, name in _FIGURES.items():
        values = ("" if run.figures is None else f"{getattr(run.figures, field):.3f}" for run in runs)
        rows.append((name.format(k=runs[0].k), *values))
    terminal.print()
    _table(terminal, ("", *names), rows)


def _print_comparisons(terminal: Console, evaluation: Evaluation, names: Sequence[str]) -> None:
    if evaluation.comparisons:
        _say(terminal, f"\n{names[1]}, question by question", style="bold")
    for test in evaluation.comparisons:
        figure = _FIGURES[test.figure].format(k=evaluation.k)
        if not test.better and not test.worse:
            _say(terminal, f"{figure}: equal at all {test.equal:,}")
            continue
        verdict = "more than chance" if test.clear else "this may be chance"
        _say(
            terminal,
            f"{figure}: better at {len(test.better):,}, worse at {len(test.worse):,}, equal at {test.equal:,}; "
            f"{test.difference:+.3f} (95 % interval {test.low:+.3f} to {test.high:+.3f}, sign test p = {test.p:.2g}): "
            f"{verdict}",
        )


def _print_changed(terminal: Console, runs: Sequence[Evaluation], names: Sequence[str], most: int) -> None:
    """The questions where the first right hit moved, with its rank in both runs."""
    if len(runs) == 1:
        return
    answers = {(answer.id, answer.question): answer for answer in runs[1].results}
    pairs = [(answer, answers.get((answer.id, answer.question))) for answer in runs[0].results]
    rows = [
        (first.id, _first_right(first), _first_right(second), _short(first.question))
        for first, second in pairs
        if second is not None and first.figures != second.figures
    ]
    if rows and most:
        _say(terminal, "\nrank of the first right hit", style="bold")
        _table(terminal, ("", *names, "question"), rows[:most], last_is_text=True)
    if len(rows) > most:
        hint(f"{len(rows) - most:,} more questions have other ranks: --missed shows them")


def _first_right(answer: AnsweredQuestion) -> str:
    return str(min((one.rank for one in answer.expected if one.rank is not None), default="-"))


def _print_lost(terminal: Console, runs: Sequence[Evaluation], names: Sequence[str]) -> None:
    stages = list(dict.fromkeys(stage for run in runs for stage in run.lost))
    if stages:
        rows = [(stage, *(f"{run.lost.get(stage, 0):,}" for run in runs), _REMEDIES.get(stage, "")) for stage in stages]
        heads = names if len(runs) > 1 else ("memories",)
        terminal.print()
        _table(terminal, ("lost at", *heads, "what may help"), rows, last_is_text=True)


def _print_missed(terminal: Console, evaluation: Evaluation, name: str | None, most: int) -> None:
    missed = evaluation.missed
    if not missed or not most:
        return
    _say(terminal, "\nmissed" if name is None else f"\nmissed with {name}", style="bold")
    for answer in missed[:most]:
        _say(terminal, f"{answer.id}  {_short(answer.question)}")
        for one in answer.expected:
            if one.rank is None:
                _say(terminal, f"    expected: {_short(one.text)}")
                certain = "" if one.confidence is None else f" (confidence {one.confidence:.2f})"
                _say(terminal, f"    {one.stage}: {one.reason}{certain}", style="yellow")
        if answer.best_text is not None and all(one.rank != 1 for one in answer.expected):
            _say(terminal, f"    first hit: {_short(answer.best_text)}", style="dim")
    if len(missed) > most:
        hint(f"{len(missed) - most:,} more missed questions: --missed shows them, and --json or --out the whole report")


def _print_not_stored(terminal: Console, evaluation: Evaluation) -> None:
    if evaluation.not_stored:
        _say(terminal, "\nnot in the store, so counted nowhere", style="bold")
    for absent in evaluation.not_stored:
        _say(terminal, f"{absent.question}  {_short(absent.expected)}: {absent.reason}")
        if absent.nearest_text is not None:
            _say(terminal, f"    most similar: {_short(absent.nearest_text)} ({absent.nearest})", style="dim")


def _print_confidence(terminal: Console, runs: Sequence[Evaluation], names: Sequence[str]) -> None:
    reports = [run.confidence for run in runs]
    if not any(item.right for item in reports):
        return
    heads = names if len(runs) > 1 else ("kept",)
    columns = []  # shares of hits that pass each threshold, in words
    for report in reports:
        without = f", {{}} of {report.unanswerable:,}" if report.unanswerable else ""
        columns.append([
            f"{least.right:,} of {report.right:,}{without.format(f'{least.unanswerable:,}')}"
            for least in report.thresholds
        ])  # fmt: skip
    rows = zip(*columns, strict=True)
    thresholds = (f"{item.min_confidence:g}" for item in reports[0].thresholds)
    others = " and questions without an answer" * bool(reports[0].unanswerable)
    _say(terminal, f"\nright hits{others} that each min_confidence lets through", style="bold")
    _table(terminal, ("min_confidence", *heads), [(least, *row) for least, row in zip(thresholds, rows, strict=True)])
    for report, name in zip(reports, names, strict=True):
        if report.keeps_95 is not None:
            least = int(report.keeps_95 * 1000) / 1000
            with_name = f" with {name}" if len(runs) > 1 else ""
            _say(terminal, f"min_confidence={least:g} keeps 95 % of the right hits{with_name}")


def _table(
    terminal: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, last_is_text: bool = False
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for i, name in enumerate(columns):
        is_text = i == 0 or (last_is_text and i == len(columns) - 1)
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    terminal.print(table)


def _say(terminal: Console, text: str, *, style: str = "") -> None:
    from rich.text import Text

    terminal.print(Text(text, style), soft_wrap=True)


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
