"""Mistakes that a later session repeats: python -m benchmarks.quality.mistakes [--part choose] [--show].

What `mistakes.toml` tells goes into one store for each part, as turns of sessions that the hooks keep or as memories of
a tool. Then each call of a tool is sent to the hook as Claude Code sends it, in a session of its own. "shown" is the
share of repeated mistakes of which the memory was shown, "beside" how many others were shown with them, "useless" the
share of the other calls for which anything was. The rules were made by `choose`, and `report` gives the figures.
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from benchmarks.tables import table
from recallite import Memory, Settings
from recallite_server.hooks.events import answer
from recallite_server.hooks.projects import project_of

__all__ = ["TABLE", "evaluate", "main"]

TABLE = Path(__file__).with_name("mistakes.toml")
_HOST = "gemini-cli"  # which gives its turns with the event


def main() -> None:
    """Print the figures, and on demand the calls that went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.mistakes", description=__doc__)
    parser.add_argument("--part", choices=("choose", "report"), default="report")
    parser.add_argument("--show", action="store_true", help="name the calls that went wrong")
    options = parser.parse_args()
    figures, wrong = evaluate(options.part)
    print(table(("", "figure"), [(name, f"{value:.3f}".rstrip("0").rstrip(".")) for name, value in figures.items()]))
    for line in wrong if options.show else ():
        print(line)


def evaluate(part: str) -> tuple[dict[str, float], list[str]]:
    """Figures by name, and what went wrong, a line each."""
    data = tomllib.loads(TABLE.read_text(encoding="utf-8"))[part]
    with tempfile.TemporaryDirectory() as folder, Memory(":memory:", settings=Settings(embedder="none")) as memory:
        project = _project(Path(folder, part), data["files"])
        told_first = [mistake["told"] for mistake in data["mistakes"]]
        for number, told in enumerate([*told_first, *data["said"]]):
            _tell(memory, project, f"past-{number}", *told)
        shown, beside, wrong, seconds = [], [], [], []
        for number, call in enumerate([*data["mistakes"], *data["quiet"]]):
            begin = perf_counter()
            text = answer(memory, "tool", _HOST, _payload(project, f"next-{number}", call), None)
            seconds.append(perf_counter() - begin)
            count = text.count('"id": ')
            if "told" not in call:
                wrong += [f"shown for {call}: {text}"] if text else []
                continue
            shown.append(call["told"][1].replace('"', r"\"") in text)
            beside.append(count - shown[-1])
            if not shown[-1] or beside[-1]:
                wrong.append(f"not alone: {call}: {text}")
    useless = sum(line.startswith("shown for") for line in wrong) / len(data["quiet"])
    return {
        "repeated mistakes": len(shown), "shown": fmean(shown), "beside": sum(beside),
        "other calls": len(data["quiet"]), "useless": useless, "milliseconds": 1_000 * median(seconds),
    }, wrong  # fmt: skip


def _project(folder: Path, files: list[str]) -> Path:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def _tell(memory: Memory, project: Path, session: str, who: str, text: str) -> None:
    if who == "remember":
        memory.remember(text, scope=project_of(str(project)).scope)
        return
    field = "prompt" if who == "user" else "prompt_response"
    payload = {"session_id": session, "cwd": str(project), "timestamp": session, field: text}
    answer(memory, "turn", _HOST, payload, None)


def _payload(project: Path, session: str, call: dict[str, Any]) -> dict[str, Any]:
    given = {"file_path": str(project / call["edit"])} if "edit" in call else {"command": call["run"]}
    fields = {"error": call["error"]} if "error" in call else {}
    return {
        "session_id": session, "cwd": str(project), "tool_name": "Edit" if "edit" in call else "Bash",
        "tool_input": given, **fields,
    }  # fmt: skip


if __name__ == "__main__":
    main()
