"""Tables of a run in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.quality import languages, requests, truth_tables, written
from benchmarks.quality.columns import COLUMNS
from benchmarks.saving import NotMeasured
from benchmarks.tables import table

__all__ = ["TITLES", "caption", "markdown", "reliability_markdown", "truth_markdown"]

TITLES = {
    "locomo": "LoCoMo, turns",
    "longmemeval": "LongMemEval-S, sessions",
    "realmem": "RealMem, statements",
    "scifact": "SciFact, abstracts",
    "confidence": "Confidence, answerable or not",
    "beam": "BEAM 100K, messages",
    "realtalk": "REALTALK, turns",
    "first_tries": "First tries, small stores",
    "left_out": "Left out, facts on a topic",
    "named": "Named, stores with tags",
    "scripts": "Scripts, ten that the model does not read",
    "languages": "Languages, ten stores",
    "written": "Written stores held out, ten languages",
    "contrasts": "Contrasts, six stores",
    "requests": "Requests, eight stores",
    "precision": "PrecisionMemBench",
    **truth_tables.TITLES,
}
_MAIN = {
    "locomo": ("recall@20", "hit@20", "MRR"),
    "longmemeval": ("recall_any@5", "recall_all@5", "recall_any@1", "recall_all@5, asked today"),
    "realmem": ("recall@20", "MRR"),
    "scifact": ("nDCG@10",),
    "confidence": (
        "ROC AUC",
        "ROC AUC, first hit",
        "calibration error, first hit",
        "calibration error, all hits",
        "right first hits kept",
        "answers kept",
        "unanswerable passed",
    ),
    "beam": ("recall@40", "all@40", "MRR", "abstention: ROC AUC", "abstention: ROC AUC, first hit"),
    "realtalk": ("recall@20", "hit@20", "MRR"),
    "first_tries": ("answered first", "first and confident"),
    "left_out": ("answered", "first", "hits", "refused", "ROC AUC"),
    "named": ("exact", "precision", "recall", "refused", "first"),
    "scripts": ("kept", "first", "refused", "quiet"),
    "languages": languages.METRICS,
    "written": written.METRICS,
    "contrasts": ("first", "kept", "left out"),
    "requests": requests.METRICS,
}
_BY_CATEGORY = {"locomo": "LoCoMo by category, default", "beam": "BEAM by type of question, default"}
_LEFT = ("category", "set", "metric", "expected", "language", "grain", "class")
_HEADER = ("set", "questions", "metric", *COLUMNS, "code bytes a record")


def markdown(run: dict[str, Any]) -> str:
    """The tables of a run in Markdown, without headings."""
    return _joined(run, (_HEADER, list(_rows(run))), _categories(run))


def truth_markdown(run: dict[str, Any]) -> str:
    """The tables of truth over time in Markdown, without headings; NotMeasured if none of its sets was run."""
    if not any(name in run["sets"] for name in truth_tables.TITLES):
        raise NotMeasured("no set of truth over time is saved")
    return _joined(run, (truth_tables.HEADER, list(truth_tables.rows(run))), truth_tables.tables(run))


def reliability_markdown(run: dict[str, Any]) -> str:
    """The table of how often hits are right, by tenths of their confidence."""
    tenths = run["sets"]["confidence"]["reliability"]["all hits"]
    rows = [(f"{tenth['confidence']:.2f}", f"{tenth['right']:.2f}", f"{tenth['count']:,}") for tenth in tenths]
    return table(("mean confidence", "share of right hits", "hits"), rows)


def _joined(run: dict[str, Any], first: tuple[Any, Any], others: Iterator[truth_tables.Table]) -> str:
    parts = [table(*first, left=_LEFT)]
    for title, header, rows in others:
        parts += [f"{title}:", table(header, rows, left=_LEFT)]
    return "\n\n".join([*parts, f"{caption(run)}."])


def _rows(run: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, metrics in _MAIN.items():
        if (result := run["sets"].get(name)) is None:
            continue
        for place, metric in enumerate(metrics):
            figures = [result["figures"].get(column, {}).get(metric) for column in COLUMNS]
            yield (
                TITLES[name] if place == 0 else "",
                f"{result['questions']:,}" if place == 0 else "",
                metric,
                *("" if figure is None else f"{figure:.3f}" for figure in figures),
                f"{result['code_bytes_per_record']:,}" if place == 0 and result.get("code_bytes_per_record") else "",
            )


def _categories(run: dict[str, Any]) -> Iterator[truth_tables.Table]:
    """Title, header and rows of each set that is shown by category."""
    for name, title in _BY_CATEGORY.items():
        categories = run["sets"].get(name, {}).get("categories", {})
        metrics = _MAIN[name][:3]
        rows = [
            (
                category,
                f"{result['questions']:,}",
                *(f"{result['figures']['default'][metric]:.3f}" for metric in metrics),
            )
            for category, result in categories.items()
        ]
        if rows:
            yield title, ("category", "questions", *metrics), rows
    if by_language := run["sets"].get("languages", {}).get("categories"):
        for column, stores in (("default", "a store each"), ("mixed", "one store of all")):
            figures = {name: one["figures"][column] for name, one in by_language.items()}
            figures["all"] = run["sets"]["languages"]["figures"][column]
            measured = [name for name in languages.METRICS if name in figures["all"]]
            rows = [(name, *(f"{one[metric]:.2f}" for metric in measured)) for name, one in figures.items()]
            yield f"Languages, {run['sets']['languages']['part']}, {stores}", ("language", *measured), rows
    if stories := run["sets"].get("beam", {}).get("whole_story"):
        columns = list(next(iter(stories.values()))["figures"])
        rows = [
            (kind, f"{result['questions']:,}", *(f"{result['figures'][column]['recall@40']:.3f}" for column in columns))
            for kind, result in stories.items()
        ]
        yield "BEAM, questions about a whole story: recall@40", ("category", "questions", *columns), rows


def caption(run: dict[str, Any]) -> str:
    """The embedder, the commits, the day and the machine of a run."""
    seconds = sum(sum(result["seconds"].values()) for result in run["sets"].values())
    machine = f"{run['date']}, {seconds:.0f} s on {run['cores']} cores"
    return "; ".join([f"Embedder {run['embedder']}, commit {run['commit']}, {machine}", *_earlier(run)])


def _earlier(run: dict[str, Any]) -> Iterator[str]:
    """The sets that were last measured at another commit."""
    names: dict[str, list[str]] = {}
    for name, result in run["sets"].items():
        if (commit := result.get("commit", run["commit"])) != run["commit"]:
            names.setdefault(commit, []).append(TITLES[name])
    yield from (f"{', '.join(titles)} at commit {commit}" for commit, titles in names.items())
