"""Facts that change: the current fact comes first, earlier ones stay, and a mistaken change is undone.

Output:

    2026-01-10  Dana lives in Oslo
    2026-01-12  The deploy runs on port 8080
    2026-03-02  The deploy runs on port 9090 now
                instead of: The deploy runs on port 8080
    2026-06-10  Dana lives in Bergen now
                instead of: Dana lives in Oslo
    2026-08-01  Dana lives in Rome now
                instead of: Dana lives in Bergen now

    Where does Dana live? Dana lives in Rome now
    And on May 1st? Dana lives in Oslo
    Rome was only a holiday. Dana lives in Bergen now
    What changed: Dana lives in Oslo -> Dana lives in Bergen now
"""

from __future__ import annotations

from recallite import Memory

SAID = {
    "2026-01-10": "Dana lives in Oslo",
    "2026-01-12": "The deploy runs on port 8080",
    "2026-03-02": "The deploy runs on port 9090 now",
    "2026-06-10": "Dana lives in Bergen now",
    "2026-08-01": "Dana lives in Rome now",
}
QUESTION = "Where does Dana live?"


def main() -> None:
    """Remember what was said, ask, and undo one change."""
    with Memory(":memory:") as memory:
        for day, text in SAID.items():
            record = memory.remember(text, created_at=day)
            print(f"{day}  {text}")
            for id in record.supersedes:
                print(f"{'':12}instead of: {memory.get(id).text}")

        (rome,) = memory.recall(QUESTION, limit=1)
        print(f"\n{QUESTION} {rome.text}")
        print(f"And on May 1st? {memory.recall(QUESTION, limit=1, valid_at='2026-05-01')[0].text}")

        # Forgetting what superseded it would do as well.
        bergen = memory.restore(rome.supersedes[0].id)
        memory.supersede(rome.id, bergen.id, at="2026-08-15", reason="a holiday is no move")
        print(f"Rome was only a holiday. {memory.recall(QUESTION, limit=1)[0].text}")
        oslo, *_ = memory.history(bergen.id)
        print(f"What changed: {oslo.text} -> {bergen.text}")


if __name__ == "__main__":
    main()
