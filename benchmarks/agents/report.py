"""The tables of a run in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.tables import milliseconds, table

__all__ = ["markdown"]


def markdown(saved: dict[str, Any]) -> str:
    """What was measured, and with what."""
    shown = [show(saved[part]) for part, show in (("life", _life), ("scale", _scale)) if part in saved]
    return "\n\n".join(shown) or "Nothing is saved."


def _life(run: dict[str, Any]) -> str:
    lives = run["lives"]
    metrics = list(run["figures"]["plain"])
    groups_named = [f"old, {name}" for name in next(iter(lives.values()))["kept_by_group"]]
    header = ("", *metrics, "episodes kept", "links", "cycles", *groups_named)
    lines = [("plain store", *_figures(run, "plain"), f"{run['turns']:,}", *[""] * (2 + len(groups_named)))]
    for name, life in lives.items():
        groups = [_share(life["kept_by_group"][each], life["logged_by_group"][each]) for each in life["kept_by_group"]]
        counts = (f"{life[each]:,}" for each in ("kept", "links", "cycles"))
        lines.append((name, *_figures(run, name), *counts, *groups))
    facts = next(iter(lives.values()))
    clean = all(life["verify_clean"] for life in lives.values())
    same = all(life["reopened_identical"] for life in lives.values())
    return (
        f"{table(header, lines, left=('',))}\n\n"
        f"{run['questions']} questions of LoCoMo; old episodes are those that have lived through 32 cycles. "
        f"{facts['bootstraps']} bootstraps a life within "
        f"{run['budget_tokens']} tokens: median {facts['bootstrap_tokens_median']:.0f}, at most "
        f"{max(life['bootstrap_tokens_max'] for life in lives.values())}. After each life `verify` is "
        f"{'clean' if clean else 'NOT clean'}, and a new process gives {'the same' if same else 'OTHER'} hits and "
        f"scores.\n\n{_made_with(run)}"
    )


def _scale(run: dict[str, Any]) -> str:
    lines = [(name, value) for name, value in _facts(run)]
    return f"{table(('', ''), lines, left=('',))}\n\n{run['records']:,} records. {_made_with(run)}"


def _facts(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    links, linking, cycles = run["links"], run["linking"], run["consolidation"]
    yield f"recall among {links['count']:,} links, p50 / p95 ms", _both(links["spread"])
    yield "the same without spreading", _both(links["no spread"])
    yield "with spreading, before there were links", _both(links["before"])
    yield "times as long with spreading", f"{links['spread']['p50_ms'] / links['no spread']['p50_ms']:.2f}"
    for where, writes in linking.items():
        yield f"a durable write in {where}, p50 / p95 ms", _both(writes["plain"])
        yield f"one that links ({writes['links']} links made)", _both(writes["linking"])
    for name in (each for each in cycles if isinstance(cycles[each], dict) and "compressed" in cycles[each]):
        cycle = cycles[name]
        counts = f"{cycle['compressed']:,}, {cycle['pruned']:,}"
        yield f"a cycle of {name}: s (faded, pruned)", f"{cycle['seconds']:.2f} ({counts})"
        yield (
            "recall meanwhile, p50 ms / longest",
            (f"{milliseconds(cycle['reader_during']['p50_ms'])} / {milliseconds(cycle['longest_read_ms'])}"),
        )
        yield "the recall after it, ms", milliseconds(cycle["next_recall_ms"])
    yield "recall with no cycle, p50 / p95 ms", _both(cycles["reader_idle"])


def _both(times: dict[str, float]) -> str:
    return f"{milliseconds(times['p50_ms'])} / {milliseconds(times['p95_ms'])}"


def _figures(run: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(f"{value:.3f}" for value in run["figures"][name].values())


def _share(kept: int, logged: int) -> str:
    return f"{kept / logged:.0%}" if logged else ""


def _made_with(run: dict[str, Any]) -> str:
    return f"{run['processor']}, {run['cores']} cores, Python {run['python']}, commit {run['commit']}, {run['date']}."
