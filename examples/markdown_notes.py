"""A folder of Markdown notes as memory: the files are the source of truth, and the index follows them.

Output:

    memory/stack.md:5  Valkey replaced Redis in March.
    memory/2026-11-20.md:1  Met Bob: the exporter ships on Monday.
    memory/2026-11-20.md:1  Met Bob: the exporter ships on Tuesday.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from recallite import Workspace

STACK = "# Stack\n\nWe use FastAPI and MySQL 8.4.\n\n## Caching\n\nValkey replaced Redis in March.\n"
DAY = "# Friday\n\nMet Bob: the exporter ships on Monday.\n"


def show(workspace: Workspace, question: str) -> None:
    """Print the best passage as path:line."""
    for result in workspace.search(question, max_results=1):
        print(f"{result.path}:{result.start_line}  {result.snippet.splitlines()[-1]}")


def main() -> None:
    """Search, edit a file with any editor, search again."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder)
        (notes / "memory").mkdir()
        (notes / "memory" / "stack.md").write_text(STACK, "utf-8")
        (notes / "memory" / "2026-11-20.md").write_text(DAY, "utf-8")

        with Workspace(notes) as workspace:
            show(workspace, "What replaced Redis?")
            show(workspace, "When does the exporter ship?")

            # Each search first indexes what has changed on disk.
            (notes / "memory" / "2026-11-20.md").write_text(DAY.replace("Monday", "Tuesday"), "utf-8")
            show(workspace, "When does the exporter ship?")


if __name__ == "__main__":
    main()
