"""The operations of the services of a memory: sessions, documents and the tiers for agents."""

from __future__ import annotations

from recallite.doors.arguments import SESSION, SUCCESS, TAG, TASK, Argument
from recallite.doors.operation import REQUIRED, Command, Operation, Tool

_CALLS, _SHOW, _WRITE = "recallite.doors.calls:", "recallite.doors.cli.showing:", "recallite.doors.cli.write:"

SERVICE_OPERATIONS: tuple[Operation, ...] = (
    # ── sessions ───────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "sessions.list", "Show sessions, last used first.\n\nWithout --agent, those of all agents.",
        group="sessions", http="GET /sessions",
        tool=Tool("session", about="show sessions, the one used last first", arguments={"limit": 20, "agent": None}),
        command=Command(
            "sessions list", "session:id agent provider messages used:updated_at", fails="empty", within=True,
            arguments={"limit": Argument("The most to show.", flags="--limit,-n", default=100)},
        ),
    ),
    Operation(
        "sessions.open", "Open the session with this id, or create it; without an id it gets a UUID.",
        group="sessions", http="POST /sessions", effect="writes", call=_CALLS + "open_session", status=201,
    ),
    Operation(
        "sessions.get", "The existing session with this id.",
        group="sessions", http="GET /sessions/{id}", call=_CALLS + "get_session",
    ),
    Operation(
        "sessions.search", "Find messages by their words, best first.",
        group="sessions", http="POST /sessions/search",
        tool=Tool("session", about="find messages of any session by their words"),
        command=Command("sessions search", "score session position role content", fails="empty", within=True),
    ),
    Operation(
        "sessions.cleanup", "Remove sessions that were not used for a time. Unless --yes is given it asks first.",
        group="sessions", http="POST /sessions/cleanup", effect="destroys",
        command=Command(
            "sessions clean", "# removed", "sessions", "empty", within=True,
            confirm="Remove every session that was not used for {older_than.days} days?", arguments={
                "older_than": Argument("Remove what was not used for this many days.", "DAYS", "--days", "option")
            },
        ),
    ),
    Operation(
        "session.messages", "Show the messages of a session in order.",
        group="sessions", http="GET /sessions/{id}/messages",
        tool=Tool("session", about="read the last messages of a session", arguments={
            "id": REQUIRED, "limit": 50, "agent": None
        }),
        command=Command("sessions show", _SHOW + "print_messages", within=True, arguments=SESSION | {
            "limit": Argument("The most messages, the last ones.", flags="--limit,-n")
        }),
    ),
    Operation(
        "session.extend", "Store messages at the end of a session, all or none; returns the position of the first.",
        group="sessions", http="POST /sessions/{id}/messages", effect="writes", status=201,
    ),
    Operation(
        "session.pop", "Remove the last message of a session, and show it.",
        group="sessions", http="POST /sessions/{id}/pop", effect="destroys",
        command=Command("sessions pop", _SHOW + "print_messages", fails="empty", within=True, arguments=SESSION | {
            "skip_damaged": Argument("Remove what cannot be read, too.")
        }),
    ),
    Operation(
        "session.clear", "Remove every message of a session, which stays.",
        group="sessions", http="DELETE /sessions/{id}/messages", effect="destroys",
        command=Command(
            "sessions clear", "# removed", "messages", within=True, arguments=SESSION,
            confirm="Remove every message of the session {id}?",
        ),
    ),
    Operation(
        "session.end", "Remove a session.\n\nWith --summary or --decision a snapshot of it is kept.",
        group="sessions", http="POST /sessions/{id}/end", effect="destroys",
        command=Command("sessions end", run=_WRITE + "end_session"),
    ),
    # ── documents ──────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "knowledge.ingest",
        "Read documents, and store what is new or has changed. What was left out is reported on standard error.",
        group="documents", http="POST /documents", effect="writes", call=_CALLS + "ingest", status=201, raw=True,
        command=Command("knowledge ingest", run="recallite.doors.cli.knowledge:ingest"),
    ),
    Operation(
        "knowledge.search", "Find passages, best first, with path:line or page.",
        group="documents", http="POST /documents/search",
        command=Command("knowledge search", run="recallite.doors.cli.knowledge:search"),
    ),
    Operation(
        "knowledge.context", "Passages that answer a question, as Markdown for a prompt, within a budget of tokens.",
        group="documents", http="POST /documents/context",
    ),
    Operation(
        "knowledge.list", "Show the documents, in the order of their sources.",
        group="documents", http="GET /documents",
        command=Command(
            "knowledge list", "id chunks updated:updated_at title source", fails="empty",
            arguments={"limit": Argument("The most to show.", flags="--limit,-n", default=1000)},
        ),
    ),
    Operation(
        "knowledge.get", "The document with this id, or with this source in a scope.",
        group="documents", http="GET /documents/{id}",
    ),
    Operation(
        "knowledge.delete", "Delete documents with all their passages.",
        group="documents", http="DELETE /documents/{id}", effect="destroys",
        command=Command("knowledge delete", run="recallite.doors.cli.knowledge:delete"),
    ),
    # ── agents ─────────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "episodes.log", "Store an episode; prints its id.", group="agents", effect="writes",
        command=Command("episodes log", _SHOW + "print_id", within=True, create=True, arguments={
            "event_type": Argument("task-started, decision-made, tool-call, ...", "TYPE", "--type"),
            "task_id": TASK, "tags": TAG, "cost": Argument("What it cost."),
            "duration_ms": Argument("How long it took, in milliseconds."),
        }),
    ),
    Operation(
        "episodes.list", "Show episodes in order.", group="agents",
        command=Command("episodes list", _SHOW + "print_episodes", fails="empty", within=True, arguments={
            "task_id": Argument("Only those of this task.", "ID", "--task"),
            "event_type": Argument("Only those of this type.", "TYPE", "--type"),
            "on": Argument("Only those of this day of UTC.", "DAY"),
            "order": Argument("oldest, newest or importance.", "ORDER", default="newest"),
            "limit": Argument("The most to show.", flags="--limit,-n", default=100),
        }),
    ),
    Operation(
        "episodes.snapshots", "Show the snapshots of sessions that ended, the last first.", group="agents",
        command=Command(
            "episodes snapshots", _SHOW + "print_snapshots", fails="empty", within=True,
            arguments={"limit": Argument("The most to show.", flags="--limit,-n")},
        ),
    ),
    Operation(
        "procedures.list", "Show procedures, those that succeed most first.", group="agents",
        command=Command(
            "procedures list", "name success:success_rate:.0% uses:use_count description", fails="empty", within=True,
        ),
    ),
    Operation(
        "procedures.save", "Store a procedure, or change the one of this name; prints its id.",
        group="agents", effect="writes",
        command=Command("procedures save", _SHOW + "print_id", within=True, create=True, arguments={
            "name": Argument("Its name.", "NAME"), "description": Argument("What it is for.", "DESCRIPTION"),
            "pattern": Argument("The steps, in any form."), "tags": TAG,
        }),
    ),
    Operation(
        "procedures.record_outcome", "Count a use of a procedure.", group="agents", effect="writes",
        command=Command("procedures outcome", _SHOW + "print_outcome", within=True, arguments={
            "procedure": Argument("Its name or id.", "NAME"), "success": SUCCESS,
        }),
    ),
    Operation(
        "experience.tips", "Show what worked before, a sentence a line.", group="agents",
        command=Command(
            "experience tips", _SHOW + "print_tips", _SHOW + "tips_as_json", "empty", within=True, arguments={
                "task_type": Argument("Only for this type of task.", "TYPE", kind="option", default=None),
                "tool": Argument("The tool that failed; with --error.", "NAME"),
                "error": Argument("Its error message; with --tool.", "TEXT"),
            },
        ),
    ),
    Operation(
        "experience.record", "Note how a task went.\n\nWithout --agent for all agents.",
        tool=Tool("experience", about="note how a task went", outcome="recorded", arguments={
            "task_type": REQUIRED, "tools": REQUIRED, "success": REQUIRED, "steps": None, "tokens": None
        }),
        group="agents", effect="writes",
        command=Command("experience record", _SHOW + "print_recorded", within=True, create=True, arguments={
            "task_type": Argument("The type of the task.", "TYPE"),
            "tools": Argument("A tool that was used; repeat in order.", "NAME", "--tool"),
            "success": SUCCESS, "steps": Argument("The number of steps it took."),
            "tokens": Argument("The number of tokens it took."),
        }),
    ),
    Operation(
        "experience.record_recovery", "Note what helped when a tool failed.\n\nWithout --agent for all agents.",
        tool=Tool("experience", about="note what helped against an error of a tool", outcome="recorded", arguments={
            "tool": REQUIRED, "error": REQUIRED, "recovery": REQUIRED
        }),
        group="agents", effect="writes",
        command=Command(
            "experience recovery", _SHOW + "print_recorded", within=True, create=True, arguments={
                "tool": Argument("The tool that failed.", "NAME"), "error": Argument("Its error message.", "TEXT"),
                "recovery": Argument("What helped.", "TEXT", "--helped"),
            },
        ),
    ),
    Operation(
        "consolidator.run",
        "Run one consolidation cycle on the episodes of an agent.\n\nIt lowers the importance of episodes, prunes "
        "those that have become unimportant, and counts the new ones.",
        group="agents", effect="destroys", command=Command("consolidate", run=_WRITE + "consolidate"),
    ),
)  # fmt: skip
