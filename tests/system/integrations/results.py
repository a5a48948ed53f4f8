"""The matrix of frameworks: the version that each was last tested with, and the results of its tests."""

from __future__ import annotations

from typing import Any

from benchmarks.tables import table
from tests.system.integrations.frameworks import FRAMEWORKS


def markdown(run: dict[str, Any]) -> str:
    """A line for each framework."""
    lines = []
    for name, framework in FRAMEWORKS.items():
        if (found := run.get(name)) is None:
            continue
        lines.append(
            (
                f"[{framework.title}]({name}.md)",
                framework.interfaces,
                "" if framework.package is None else f"`{framework.package}` {found['version']}",
                _counts(found["ours"]),
                _counts(found.get("theirs")),
                f"{found['theirs']['reached']}" if "theirs" in found else "",
            )
        )
    matrix = table(
        ("framework", "what", "tried with", "our tests", "tests of theirs", "reach Recallite"),
        lines,
        left=("framework", "what", "tried with"),
    )
    return f"{matrix}\n\nPython {run[next(iter(run))]['python']}, {_span(run)}."


def left_out(run: dict[str, Any]) -> str:
    """The tests of theirs that do not run, by framework and reason."""
    lines = []
    for framework in (FRAMEWORKS[name] for name in FRAMEWORKS if name in run):
        by_reason: dict[str, list[str]] = {}
        for theirs in framework.theirs:
            for test, reason in theirs.left_out.items():
                by_reason.setdefault(reason, []).append(f"`{test}`")
        lines += [f"- {framework.title}, since {reason}: {', '.join(each)}" for reason, each in by_reason.items()]
    return "\n".join(lines)


def _span(run: dict[str, Any]) -> str:
    dates = sorted({found["date"] for found in run.values()})
    return dates[0] if len(dates) < 2 else f"{dates[0]} to {dates[-1]}"


def _counts(found: dict[str, int] | None) -> str:
    if found is None:
        return ""
    wrong = found["failed"] + found["errors"]
    parts = [
        f"{found['passed']} passed",
        f"{wrong} failed" if wrong else "",
        f"{found['left_out']} left out" if found["left_out"] else "",
        f"{found['skipped']} skipped" if found["skipped"] else "",
    ]
    return ", ".join(part for part in parts if part)
