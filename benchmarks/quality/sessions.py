"""Sessions of coding as the hooks keep them: python -m benchmarks.quality.sessions [--embedder NAME].

The ten sessions of `sessions.toml`, in three projects, are written as transcripts of Claude Code line by line, and each
event's payload goes to the hooks as the host sends it. Then each of forty questions is the first prompt of a session of
its own. "shown" is what the hook of that prompt adds to it, "shown or briefed" counts the briefing at the session's
begin too, and recall is asked for ten. A memory answers a question if it has one of the question's gold passages.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.environment import embed_each_question
from benchmarks.tables import table
from recallite import Memory, Settings
from recallite_server.hooks.events import answer
from recallite_server.hooks.projects import project_of

__all__ = ["TABLE", "evaluate", "main", "read"]

TABLE = Path(__file__).with_name("sessions.toml")
_HOST, _REMOTE = "claude-code", "git@example.org:acme"


def read() -> dict[str, Any]:
    """Sessions, questions, turns that say nothing to later sessions, and secrets."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def main() -> None:
    """Print the figures, and the questions whose answer no prompt was shown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.sessions", description=__doc__)
    parser.add_argument("--embedder", default="default", help="an embedder's name, or a folder with an ONNX model")
    options = parser.parse_args()
    with Memory(":memory:", settings=Settings(embedder=options.embedder)) as memory:
        figures, missed = evaluate(memory)
    print(table(("", "figure"), [(name, f"{value:.3f}".rstrip("0").rstrip(".")) for name, value in figures.items()]))
    for line in missed:
        print(line)


def evaluate(memory: Memory) -> tuple[dict[str, float], list[str]]:
    """Figures by name, and what went wrong, a line each."""
    data = read()
    with tempfile.TemporaryDirectory() as folder:
        for number, session in enumerate(data["sessions"]):
            _Session(memory, Path(folder), session["project"], f"past-{number}").replay(session)
        records = memory.list(limit=None, include_superseded=True)
        figures = _kept(data, [record.text for record in records])
        questions = [
            (group["project"], question, gold) for group in data["questions"] for question, *gold in group["ask"]
        ]
        rows, missed = [], []
        for number, (project, question, gold) in enumerate(questions):
            session = _Session(memory, Path(folder), project, f"next-{number}")
            row, line = _asked(session, question, gold)
            rows.append(row)
            missed += [line] if line else []
    names = dict.fromkeys(name for row in rows for name in row)
    return {**figures, **{name: fmean(row[name] for row in rows if name in row) for name in names}}, missed


def _kept(data: dict[str, Any], texts: list[str]) -> dict[str, float]:
    """Figures on what the sessions have left."""
    unwanted = [turn[1] for session in data["sessions"] for turn in session["turns"] if turn[0] in ("says", "tool")]
    return {
        "memories a session": len(texts) / len(data["sessions"]),
        "share that says nothing": sum(text in data["empty"] for text in texts) / len(texts),
        "of tools or between them": sum(text in unwanted for text in texts),
        "secrets": sum(secret in text for secret in data["secrets"] for text in texts),
    }


def _asked(session: _Session, question: str, gold: list[str]) -> tuple[dict[str, float], str]:
    """The figures of a question, and what was shown if its answer was not."""
    briefed = session.fire("SessionStart", "session-start", source="startup")
    shown = session.fire("UserPromptSubmit", "prompt", prompt=question)
    count = shown.count('"id": ')
    if not gold:
        return {"shown without an answer": float(bool(shown))}, f"{question!r} was shown {shown}" if shown else ""

    def answers(text: str) -> bool:
        return any(passage in text for passage in gold)

    hits = session.memory.recall(question, limit=10, scope=session.scopes)
    places = [place for place, hit in enumerate(hits, 1) if answers(hit.text)]
    row = {
        "recall@5": float(bool(places) and places[0] <= 5), "MRR": 1 / places[0] if places else 0.0,
        "shown": float(answers(shown)), "shown or briefed": float(answers(shown + briefed)), "memories shown": count,
    }  # fmt: skip
    return row, "" if row["shown"] else f"{question!r} is at {places[:1]} of recall; {count} others were shown"


class _Session:
    """A session of Claude Code in a project, which has a repository."""

    def __init__(self, memory: Memory, root: Path, project: str, name: str) -> None:
        self.memory, self._name, self._lines = memory, name, 0
        self._folder, self._transcript = root / project, root / f"{name}.jsonl"
        git = self._folder / ".git"
        git.mkdir(parents=True, exist_ok=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(f'[remote "origin"]\n\turl = {_REMOTE}/{project}.git\n')
        self.scopes = project_of(str(self._folder)).scopes

    def replay(self, session: dict[str, Any]) -> None:
        """Write the turns of a session, and fire the events between them."""
        self.fire("SessionStart", "session-start", source="startup")
        for place, (who, text) in enumerate(session["turns"]):
            if who == "user":
                self.fire("UserPromptSubmit", "prompt", prompt=text)
            self._write(who, text, session["began"] + timedelta(seconds=30 * place))
            if who == "ends":
                self.fire("Stop", "turn", stop_hook_active=False)
        self.fire("SessionEnd", "turn", reason="exit")

    def fire(self, event: str, ours: str, **fields: Any) -> str:
        """The answer of our hook to an event of the host."""
        payload = {
            "session_id": self._name, "transcript_path": str(self._transcript), "cwd": str(self._folder),
            "hook_event_name": event, **fields,
        }  # fmt: skip
        return answer(self.memory, ours, _HOST, payload, None)

    def _write(self, who: str, text: str, moment: datetime) -> None:
        with self._transcript.open("a", encoding="utf-8") as file:
            for role, content in _messages(who, text):
                self._lines += 1
                line = {
                    "type": role, "message": {"role": role, "content": content}, "isSidechain": False,
                    "sessionId": self._name, "uuid": f"{self._name}-{self._lines}", "cwd": str(self._folder),
                    "gitBranch": "main", "version": "2.1.63", "timestamp": moment.isoformat(),
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")


def _messages(who: str, text: str) -> Iterator[tuple[str, Any]]:
    """The messages of a turn, as Claude Code writes them."""
    if who == "user":
        yield "user", text
    elif who == "tool":
        yield "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "…"}}]
        yield "user", [{"type": "tool_result", "tool_use_id": "t", "content": text}]
    else:
        yield "assistant", [{"type": "text", "text": text}]


if __name__ == "__main__":
    embed_each_question()
    main()
