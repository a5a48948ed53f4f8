"""Ask your past coding sessions: the transcripts of Claude Code, as memories.

The program writes two short sessions itself. For your own, leave the path out to read ~/.claude/projects:
`recallite import --from claude-code`, with `--watch` to follow running sessions too.

Output:

    6 messages of 2 sessions, 2 calls of tools left out
    > Why did the nightly import hang?
      billing, 2026-03-02, user: The nightly import hangs at 40 percent. Why?
      billing, 2026-03-02, assistant: It waits for the lock of the ledger, which the report job holds until six.
    > How did we round prices?
      shop, 2026-04-20, user: Write the function that rounds prices
      shop, 2026-04-20, assistant: Prices are rounded half to even, in cents, before tax is added.
    > What did the agent find in April?
      shop, 2026-04-20, assistant: Prices are rounded half to even, in cents, before tax is added.
    A second import takes what is new: 0
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from recallite import Memory
from recallite.recall.request import recall_arguments
from recallite_connect.importers import import_from

SESSIONS = {
    "billing": [
        ("2026-03-02T09:12:00Z", "user", "The nightly import hangs at 40 percent. Why?"),
        ("2026-03-02T09:14:00Z", "tool", "lsof ledger.db"),
        (
            "2026-03-02T09:15:00Z",
            "assistant",
            "It waits for the lock of the ledger, which the report job holds until six.",
        ),
        ("2026-03-02T09:16:00Z", "user", "Move the report job to seven then"),
    ],
    "shop": [
        ("2026-04-20T14:00:00Z", "user", "Write the function that rounds prices"),
        ("2026-04-20T14:01:00Z", "tool", "cat prices.py"),
        ("2026-04-20T14:02:00Z", "assistant", "Prices are rounded half to even, in cents, before tax is added."),
        ("2026-04-20T14:05:00Z", "user", "Good, and add a test with 2.675"),
    ],
}


def write_sessions(folder: Path) -> None:
    """Write files as Claude Code does: a folder for each project, a JSON line for each entry."""
    for project, entries in SESSIONS.items():
        path = folder / f"-home-ada-{project}" / f"{project}-session.jsonl"
        path.parent.mkdir()
        lines = []
        for number, (at, who, text) in enumerate(entries):
            block: dict[str, object] = {"type": "text", "text": text}
            if who == "tool":
                block = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": text}}
            role = "user" if who == "user" else "assistant"
            lines.append(
                {
                    "type": role,
                    "uuid": f"{project}-{number}",
                    "sessionId": f"{project}-session",
                    "cwd": f"/home/ada/{project}",
                    "timestamp": at,
                    "message": {"role": role, "content": [block]},
                }
            )
        path.write_text("\n".join(map(json.dumps, lines)), "utf-8")


def ask(memory: Memory, question: str, **only: Any) -> None:
    """Print the messages that answer a question; `only` has the fields of a filter."""
    print(f"> {question}")
    for hit in memory.recall(question, limit=2, **recall_arguments(only)):
        print(f"  {hit.scope.strip('/')}, {hit.created_at.date()}, {hit.context}: {hit.text}")


def main() -> None:
    """Import the sessions, and ask."""
    with tempfile.TemporaryDirectory() as folder, Memory(":memory:") as memory:
        write_sessions(Path(folder))
        done = import_from(memory, "claude-code", folder)
        left_out = sum(done.left_out.values())
        print(f"{done.created} messages of {len(SESSIONS)} sessions, {left_out} calls of tools left out")
        ask(memory, "Why did the nightly import hang?")
        ask(memory, "How did we round prices?")
        april = {"since": "2026-04-01", "until": "2026-04-30", "where": {"metadata.role": "assistant"}}
        ask(memory, "What did the agent find in April?", **april)
        print("A second import takes what is new:", import_from(memory, "claude-code", folder).created)


if __name__ == "__main__":
    main()
