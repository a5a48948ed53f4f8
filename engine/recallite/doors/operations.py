"""The operations: each is declared here, once, and every door is made from the declaration.

A new operation is a method of `Memory` or of a service of it, and one `Operation` here.
"""

from __future__ import annotations

from functools import cache

from recallite.doors.operation import ARGUMENTS, REQUIRED, SERVER, Argument, Command, Operation, OperationSet, Tool
from recallite.system import plugins

PREFIX = "/v1"
"""Prefix of the path of every operation."""
SCOPE_HEADER = "Recallite-Scope"
"""The header that narrows a request to a scope of what it may see, percent-encoded."""

GROUPS = {
    "memories": "Memories", "recall": "Recall", "links": "Links and changes", "sessions": "Sessions",
    "documents": "Documents", "agents": "Agents", "store": "The store", "servers": "Servers and models",
}  # fmt: skip
"""The groups of operations, as help and references show them."""

COMMAND_GROUPS = {
    "episodes": "Episodes: what happened, and snapshots of sessions.",
    "procedures": "Procedures: how things are done, and how often it worked.",
    "sessions": "Sessions: conversations, message by message.",
    "experience": "Tools that worked for a task, and remedies for errors.",
    "knowledge": "Documents: PDF, Word, HTML, Markdown and text.",
}
"""First words of commands that have two, and the help of these groups."""

TOOL_GROUPS = {
    "memory": (
        "Long-term memory: what is written is found again in later conversations.",
        "write search recall replace remove list",
    ),
    "experience": ("What worked before: tools by type of task, and recoveries from errors.", ""),
    "knowledge": ("Documents: PDF, Word, web pages, Markdown and text, searched by passage.", ""),
    "session": ("Conversations, kept message by message.", "open append end"),
}
"""The tools of several actions: what models are told of them, and the actions that they are shown first."""
SERVER_FIRST = "recall remember update forget list_memories search_documents ingest_document search"
"""The tools that hosts are shown first."""

_CALLS = "recallite.doors.calls:"
# What models may give, with the defaults.
_WRITTEN = {
    "text": REQUIRED, "tags": [], "importance": 0.5, "topic": None, "pinned": False, "expires_at": None,
    "supersedes": [],
}  # fmt: skip
_ASKED = {
    "query": REQUIRED, "limit": 5, "tags": None, "since": None, "until": None, "valid_at": None, "diversify_by": None
}  # fmt: skip
_LISTED = {"limit": 20, "offset": 0, "tags": None}
_OF_ONE, _INGESTED = {"id": REQUIRED}, {"source": REQUIRED, "metadata": None}
# Names that other systems have.
_AS_TEXT, _AS_QUERY = {"content": "text"}, {"content": "query"}
_LINK = {
    "source": Argument("The id of a memory.", "FROM", kind="memory"),
    "target": Argument("The id of a memory.", "TO", kind="memory"),
}
_SESSION = {"id": ARGUMENTS["id_of_session"]}
_LIMIT = ARGUMENTS["limit"]
_SUCCESS = Argument("How it went.", flags="--success/--failure", kind="option")
_TAG = Argument("A tag; repeat for more.", "TAG", "--tag")
_FIELDS = {
    "tags": Argument("A tag; repeat for more. They replace those it has.", "TAG", "--tag"),
    "kind": Argument("What it is.", "KIND"),
    "policy": Argument("", kind="hidden"),
    "indexed": Argument("Keep it out of recall: get and list show it.", flags=" /--not-indexed"),
}
_TASK = Argument("The task it belongs to.", "ID", "--task")
# As in recallite_eval.audit, which is loaded when it is used.
_CHECKS = (
    "duplicates", "near-duplicates", "contradictions", "stale", "expired", "secrets", "instructions", "junk",
    "superseded", "replaced-by-rule", "unjudged", "diverged",
)  # fmt: skip
_VERIFICATION = Command(
    show="print_verification", json="verification_as_json", fails="not ok", bar=("checking", "memories"),
)  # fmt: skip

OPERATIONS: tuple[Operation, ...] = (
    # ── memories ───────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "remember", "Store memories, and print their ids.",
        group="memories", http="POST /memories", effect="writes", call=_CALLS + "remember", status=201,
        command=Command(call="remember", show="print_remembered", arguments=_FIELDS | {
            "text": Argument(
                "The text of a memory; repeat for more. Without it, standard input is read as one memory.", "TEXT"
            ),
            "supersedes": Argument("A memory that it supersedes; repeat for more.", "ID"),
            "workers": Argument("The arguments are files, embedded by this number of processes: see below.", "N"),
            "scope": Argument("Where it belongs.", "/A/B"), "pinned": Argument("Never prune it."),
            "id": Argument("An id of your own, by which it is replaced later.", "ID"),
            "on_existing": Argument(
                "What becomes of a memory that has this id: error, replace, or version (with history).", "CHOICE"
            ),
        }),
        tools=(
            Tool("memory", "write", _WRITTEN, "write", _AS_TEXT),
            Tool(SERVER, "remember", _WRITTEN | {"id": None}, "remember", _AS_TEXT, title="Remember something"),
        ),
    ),
    Operation(
        "remember_many", "Store memories, each a text or the fields of a `NewRecord`, all or none; returns their ids.",
        group="memories", http="POST /memories/batch", effect="writes", call=_CALLS + "remember_many", status=201,
    ),
    Operation(
        "get", "Show memories. With --json one is an object, several are an array.",
        group="memories", http="GET /memories/{id}", call=_CALLS + "get",
        command=Command(each="id", show="print_records", json="records_as_json"),
        tools=Tool(SERVER, "fetch", _OF_ONE, "fetch", title="Fetch", hints="plain"),
    ),
    Operation(
        "get_many", "The memories with these ids, in their order; those that are not visible here are absent.",
        group="memories", http="POST /memories/get", call=_CALLS + "get_many",
    ),
    Operation(
        "list", "Show memories in order, filtered as recall filters.",
        group="memories", http="GET /memories",
        command=Command(call="list_", show="print_list", fails="empty"),
        tools=(
            Tool("memory", "list", _LISTED, "list_"),
            Tool(SERVER, "list_memories", _LISTED, "list_memories", title="List memories"),
        ),
    ),
    Operation(
        "count", "Count memories, filtered as recall filters.",
        group="memories", http="GET /count", command=Command(call="count", json="count"),
    ),
    Operation(
        "update", "Change fields of a memory. `history` keeps its old texts.",
        group="memories", http="PATCH /memories/{id}", effect="writes", call=_CALLS + "update",
        command=Command(call="update", show="print_id", arguments=_FIELDS | {
            "clear": Argument(
                "Empty a field: context, topic, source, position, valid_from, valid_until, expires_at, tags, metadata.",
                "FIELD",
            ),
            "text": Argument("The new text; - reads standard input.", "TEXT"),
            "scope": Argument("Move it there.", "/A/B"),
            "pinned": Argument("Whether it is never pruned.", flags="--pinned/--unpinned"),
            "indexed": Argument("Whether recall finds it.", flags="--indexed/--not-indexed"),
        }),
        tools=(
            Tool("memory", "replace", {"text": REQUIRED, "old_text": None, "id": None}, "replace", _AS_TEXT),
            Tool(
                SERVER, "update", {**_OF_ONE, "text": None, "tags": None, "importance": None, "expires_at": None},
                "update", title="Correct a memory", hints="idempotent",
            ),
        ),
    ),
    Operation(
        "forget", "Purge memories by id or by filter. Unless --yes is given it asks before it removes several.",
        group="memories", http="POST /memories/forget", effect="destroys",
        command=Command(call="forget", show="print_forgotten", fails="failed", arguments={
            "missing_ok": Argument("Pass over ids that are not there."),
            "receipt": Argument("Compact the file, search it for the removed text, report."),
            "chain": Argument("Forget what they surely superseded too; else it holds again."),
        }),
        tools=(
            Tool("memory", "remove", {"old_text": None, "id": None, "chain": False}, "remove"),
            Tool(SERVER, "forget", _OF_ONE | {"chain": False}, "forget", title="Forget a memory", hints="idempotent"),
        ),
    ),
    Operation(
        "forget_one", "Purge a memory, with its versions, vectors and words. `holds_again` is what it superseded.",
        group="memories", http="DELETE /memories/{id}", effect="destroys", call=_CALLS + "forget_one",
    ),
    Operation(
        "touch",
        "Let memories live longer, or expire at another time.\n\nThose stored with a length of life begin anew; "
        "with --expires-at or --never all of them expire then, or not. Nothing else about them changes.",
        group="memories", http="POST /memories/touch", effect="writes", call=_CALLS + "touch",
        command=Command(show="# touched", json="touched", fails="empty", arguments={
            "expires_at": Argument("When they expire now.", "TIME"), "never": Argument("They do not expire."),
        }),
    ),
    Operation(
        "store.purge_expired", "Purge expired memories. Recall does not find them, but they are still in the file.",
        group="memories", http="POST /memories/purge-expired", effect="destroys",
        command=Command(show="# purged:records"),
    ),
    Operation(
        "vectors", "The vectors of memories by id, a unit vector for each part of a long text.",
        group="memories", http="POST /memories/vectors", returns="dict[str, list[list[float]]]",
    ),
    Operation(
        "scopes", "Show the scopes that hold memories, with their numbers.",
        group="memories", http="GET /scopes",
        command=Command(show="scope memories", fails="empty", arguments={
            "scope": Argument("This scope and those below it. Default: all.", "/A/B", kind="argument"),
            "depth": Argument("The most levels below; the rest counts above."),
        }),
    ),
    Operation(
        "tags", "Show the tags of memories, with their numbers.",
        group="memories", http="GET /tags",
        command=Command(show="tag memories", fails="empty", arguments={
            "scope": Argument("Of this scope and those below it. Default: all.", "/A/B", kind="argument")
        }),
    ),
    # ── recall ─────────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "recall", "Find the memories that answer a question, best first.",
        group="recall", http="POST /recall", command=Command(
            call="recall", show="print_answers", json="answers_as_json", fails="failed", arguments={
                "query": Argument(
                    "The question. Without it, each line of standard input or of --file is one.", "QUERY"
                ),
                "file": Argument("A file with a question on each line; - is standard input.", "FILE"),
                "explain": Argument("Show signals, and the time each stage took."),
                "whole": Argument("Show the weaker hits on a terminal too, and whole texts.", flags="--all"),
            },
        ),
        tools=(
            Tool("memory", "search", {"query": REQUIRED, "limit": 5, "tags": None}, "search"),
            Tool("memory", "recall", _ASKED, "recall", _AS_QUERY),
            Tool(SERVER, "recall", _ASKED | {"limit": 8}, "recall", _AS_QUERY, title="Recall memories"),
            Tool(SERVER, "search", {"query": REQUIRED}, "search", title="Search", hints="plain"),
        ),
    ),
    Operation(
        "recall_many", "`recall` for many questions at once.", group="recall", http="POST /recall/batch",
    ),
    Operation(
        "review.explain", "Say why a memory is or is not among the hits.",
        group="recall", http="POST /explain",
        command=Command(call="explain", show="print_explanation", arguments={"purpose": Argument("", kind="hidden")}),
    ),
    Operation(
        "bootstrap", "Print a briefing for an agent's task, as Markdown.",
        group="recall", http="POST /bootstrap", call=_CALLS + "bootstrap",
        # A store is made at an agent's first start.
        command=Command(call="bootstrap", show="print_bootstrap", within=True, create=True, arguments={
            "task": Argument("What is to be done.", "TEXT", kind="option"),
            "agent": Argument("The agent that the briefing is for. Default: no agent.", "AGENT", kind="argument"),
            "budget_tokens": Argument("The most tokens.", "TOKENS", "--budget"),
            "task_type": Argument("Tips for this type of task only.", "TYPE"),
        }),
    ),
    # ── links and changes ──────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "link", "Link two memories, so that recall of one reaches the other.",
        group="links", http="POST /links", effect="writes",
        command=Command(show="from:source to:target type", arguments=_LINK | {
            "type": Argument("similar, sequential, causal, contradicts, supports or elaborates.")
        }),
    ),
    Operation(
        "unlink", "Remove the links from one memory to another. Links in the other direction stay.",
        group="links", http="DELETE /links", effect="destroys",
        command=Command(show="# removed", json="links", fails="empty", arguments=_LINK | {
            "type": Argument("Only the link of this type.", "TYPE")
        }),
    ),
    Operation(
        "neighbors", "Show the links of a memory, strongest first.",
        group="links", http="GET /memories/{id}/neighbors", call=_CALLS + "neighbors",
        command=Command(show="from:source to:target type strength:strength:g", fails="empty"),
    ),
    Operation(
        "traverse", "Show the memories that links lead to, nearest first.",
        group="links", http="GET /memories/{id}/traverse", call=_CALLS + "traverse",
        command=Command("links", "distance strength id:record.id text:record.text", fails="empty", arguments={
            "depth": Argument("The most links on the way.")
        }),
    ),
    Operation(
        "history",
        "Show what was said before and since, oldest first.\n\n"
        "These are the versions of the memory, of those that it supersedes and of those that supersede it.",
        group="links", http="GET /memories/{id}/history",
        command=Command(show="print_versions", arguments={
            "chain": Argument("Only its own versions, whose places restore --to takes.", flags=" /--own")
        }),
        tools=Tool("memory", arguments=_OF_ONE, run="history"),
    ),
    Operation(
        "supersede",
        "Put memories in the place of others.\n\nThe old ones stay in history; restore undoes it.",
        group="links", http="POST /memories/supersede", effect="writes",
        command=Command(call="supersede", show="print_superseded", arguments={
            "old": Argument("The memory that no longer holds.", "OLD", kind="memory"),
            "new": Argument("The memory that holds in its place; repeat for more.", "NEW", kind="memory"),
            "also": Argument("Another that no longer holds; repeat for more.", "ID", "--also", "memory"),
            "reason": Argument("Why.", "TEXT"), "strength": Argument("From 0 to 1: how sure it is."),
            "at": Argument("When the new one began to hold. Default: its own time.", "TIME"),
        }),
        tools=Tool("memory", arguments=_OF_ONE | {"supersedes": REQUIRED}, run="supersede"),
    ),
    Operation(
        "restore",
        "Undo a supersession, or restore an earlier text.\n\n"
        "Without --to a superseded memory holds again; with it, an earlier text becomes its newest version. "
        "Nothing is lost.",
        group="links", http="POST /memories/{id}/restore", effect="writes",
        command=Command(call="restore", show="print_restored", arguments={
            "id": Argument("A memory that was superseded or changed, or the file of a backup.", "ID|BACKUP"),
            "discard": Argument("Of a backup: remove the file that it replaces."),
            "version": Argument(
                "Of its own versions, from 0; -2 is the one before now; or a time.", "VERSION", "--to"
            )
        }),
        tools=Tool("memory", arguments=_OF_ONE, run="restore"),
    ),
    # ── sessions ───────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "sessions.list", "Show sessions, last used first.\n\nWithout --agent, those of all agents.",
        group="sessions", http="GET /sessions",
        tools=Tool("session", arguments={"agent": None, "limit": 20}, about="show sessions, the one used last first"),
        command=Command(
            "sessions list", "session:id scope agent provider messages used:updated_at", fails="empty", within=True,
            arguments={"limit": _LIMIT._replace(default=100)},
        ),
    ),
    Operation(
        "sessions.open", "Open the session with this id, or create it; without an id it gets a UUID.",
        group="sessions", http="POST /sessions", effect="writes", call=_CALLS + "open_session", status=201,
        tools=Tool("session", arguments={"id": None, "agent": None, "provider": None}, run="open_session"),
    ),
    Operation(
        "sessions.get", "The existing session with this id.",
        group="sessions", http="GET /sessions/{id}", call=_CALLS + "get_session",
    ),
    Operation(
        "sessions.search", "Find messages by meaning and words, best first.",
        group="sessions", http="POST /sessions/search",
        tools=Tool(
            "session", arguments={"query": REQUIRED, "agent": None, "limit": 10, "relevant": True},
            about="find messages of any session by meaning and words",
        ),
        command=Command("sessions search", "confidence session position role content", fails="empty", within=True),
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
        tools=Tool(
            "session", arguments=_OF_ONE | {"limit": 50, "agent": None},
            about="read the last messages of a session",
        ),
        command=Command("sessions show", "print_messages", within=True, arguments=_SESSION | {
            "limit": Argument("The most messages, the last ones.", flags="--limit,-n")
        }),
    ),
    Operation(
        "session.extend", "Store messages at the end of a session, all or none; returns the position of the first.",
        group="sessions", http="POST /sessions/{id}/messages", effect="writes", status=201,
        tools=Tool(
            "session", "append", _OF_ONE | {"role": REQUIRED, "content": REQUIRED, "agent": None}, "append",
        ),
    ),
    Operation(
        "session.pop", "Remove the last message of a session, and show it.",
        group="sessions", http="POST /sessions/{id}/pop", effect="destroys",
        command=Command("sessions pop", "print_messages", fails="empty", within=True, arguments=_SESSION | {
            "skip_damaged": Argument("Remove what cannot be read, too.")
        }),
    ),
    Operation(
        "session.clear", "Remove every message of a session, which stays.",
        group="sessions", http="DELETE /sessions/{id}/messages", effect="destroys",
        command=Command(
            "sessions clear", "# removed", "messages", within=True, arguments=_SESSION,
            confirm="Remove every message of the session {id}?",
        ),
    ),
    Operation(
        "session.end", "Remove a session.\n\nWith --summary or --decision a snapshot of it is kept.",
        group="sessions", http="POST /sessions/{id}/end", effect="destroys",
        command=Command("sessions end", "print_ended", call="end_session", within=True, arguments=_SESSION | {
            "summary": Argument("Keep a snapshot with this summary.", "TEXT"),
            "key_decisions": Argument("A key decision for the snapshot; repeat for more.", "TEXT", "--decision"),
        }),
        tools=Tool("session", arguments=_OF_ONE | {"summary": None, "agent": None}, run="end_session"),
    ),
    # ── documents ──────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "knowledge.ingest",
        "Read documents, and store what is new or has changed. What was left out is reported on standard error.",
        group="documents", http="POST /documents", effect="writes", call=_CALLS + "ingest", status=201, raw=True,
        command=Command(
            "knowledge ingest", "print_ingestion", "ingestion_as_json", "failed",
            call="ingest", of="recallite.documents.knowledge:Knowledge.ingest", within=True, create=True,
            bar=("ingesting", "documents"), arguments={
                "sources": Argument("Files, folders and http(s) URLs; - is standard input.", "SOURCE", kind="argument"),
                "source": Argument("", kind="hidden"),
                "metadata": Argument("Kept with each document, to search by with --where.", "JSON"),
                "name": Argument("The name of a single document.", "NAME"),
                "title": Argument("The title of a single document.", "TEXT"),
                "include": Argument("In folders only what matches, as in .gitignore.", "PATTERN"),
                "exclude": Argument("Not what matches; repeat for more.", "PATTERN"),
                "password": Argument("Opens encrypted PDFs.", "TEXT"),
                "recursive": Argument("Look into folders of folders."),
                "allow_private_addresses": Argument("Allow URLs in private networks."),
                "max_bytes": Argument("Leave larger documents out.", "BYTES"),
                "max_chars": Argument("Leave documents with more text out.", "CHARS"),
                "memory_mb": Argument("Memory of the process that parses a PDF, DOCX or HTML document.", "MB"),
                "seconds": Argument("Time of that process.", "SECONDS"),
            },
        ),
        tools=(
            Tool("knowledge", arguments=_INGESTED, run="ingest"),
            Tool(
                SERVER, "ingest_document", _INGESTED, "ingest_document", title="Ingest documents",
                hints="idempotent open",
            ),
        ),
    ),
    Operation(
        "knowledge.search", "Find passages, best first, with path:line or page.",
        group="documents", http="POST /documents/search",
        command=Command(
            "knowledge search", "print_passages", "passages_as_json", "empty", call="search", within=True,
            arguments={"budget": Argument("Print Markdown for a prompt of at most this many tokens.", "TOKENS")},
        ),
        tools=(
            Tool("knowledge", arguments={"query": REQUIRED, "limit": 5}, run="search"),
            Tool(
                SERVER, "search_documents", {"query": REQUIRED, "limit": 5}, "search_documents",
                title="Search documents",
            ),
        ),
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
            arguments={"limit": _LIMIT._replace(default=1000)},
        ),
        tools=Tool("knowledge", arguments={"limit": 100}, run="list_documents"),
    ),
    Operation(
        "knowledge.get", "The document with this id, or with this source in a scope.",
        group="documents", http="GET /documents/{id}",
    ),
    Operation(
        "knowledge.delete",
        "Delete documents with all their passages. Unless --yes is given it asks before it deletes several.",
        group="documents", http="DELETE /documents/{id}", effect="destroys",
        command=Command(
            "knowledge delete", "print_deleted", each="id", within=True,
            confirm="Delete {count:,} documents with all their passages?", arguments={
                "id": Argument("A source, an id, or an unambiguous start or end of an id.", "ID", kind="document"),
                "scope": Argument("", kind="hidden"),
            },
        ),
        tools=Tool("knowledge", arguments={"documentId": REQUIRED}, run="delete"),
    ),
    # ── agents ─────────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "episodes.log", "Store an episode; prints its id.", group="agents", effect="writes",
        command=Command("episodes log", "print_id", within=True, create=True, arguments={
            "event_type": Argument("task-started, decision-made, tool-call, ...", "TYPE", "--type"),
            "task_id": _TASK, "tags": _TAG, "cost": Argument("What it cost."),
            "duration_ms": Argument("How long it took, in milliseconds."),
        }),
    ),
    Operation(
        "episodes.list", "Show episodes in order.", group="agents",
        command=Command("episodes list", "print_episodes", fails="empty", within=True, arguments={
            "task_id": Argument("Only those of this task.", "ID", "--task"),
            "event_type": Argument("Only those of this type.", "TYPE", "--type"),
            "on": Argument("Only those of this day of UTC.", "DAY"),
            "order": Argument("oldest, newest or importance.", "ORDER", default="newest"),
            "limit": _LIMIT._replace(default=100),
        }),
    ),
    Operation(
        "episodes.snapshots", "Show the snapshots of sessions that ended, the last first.", group="agents",
        command=Command(
            "episodes snapshots", "print_snapshots", fails="empty", within=True,
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
        command=Command("procedures save", "print_id", within=True, create=True, arguments={
            "name": Argument("Its name.", "NAME"), "description": Argument("What it is for.", "DESCRIPTION"),
            "pattern": Argument("The steps, in any form."), "tags": _TAG,
        }),
    ),
    Operation(
        "procedures.record_outcome", "Count a use of a procedure.", group="agents", effect="writes",
        command=Command("procedures outcome", "print_outcome", within=True, arguments={
            "procedure": Argument("Its name or id.", "NAME"), "success": _SUCCESS,
        }),
    ),
    Operation(
        "experience.tips", "Show what worked before, a sentence a line.", group="agents",
        command=Command(
            "experience tips", "print_tips", "tips_as_json", "empty", within=True, arguments={
                "task_type": Argument("Only for this type of task.", "TYPE", kind="option", default=None),
                "tool": Argument("The tool that failed; with --error.", "NAME"),
                "error": Argument("Its error message; with --tool.", "TEXT"),
            },
        ),
        tools=Tool("experience", arguments={"task_type": None, "tool": None, "error": None}, run="tips"),
    ),
    Operation(
        "experience.record", "Note how a task went.\n\nWithout --agent for all agents.",
        tools=Tool(
            "experience", about="note how a task went", outcome="recorded", arguments={
                "task_type": REQUIRED, "tools": REQUIRED, "success": REQUIRED, "steps": None, "tokens": None
            },
        ),
        group="agents", effect="writes",
        command=Command("experience record", "print_recorded", within=True, create=True, arguments={
            "task_type": Argument("The type of the task.", "TYPE"),
            "tools": Argument("A tool that was used; repeat in order.", "NAME", "--tool"),
            "success": _SUCCESS, "steps": Argument("The number of steps it took."),
            "tokens": Argument("The number of tokens it took."),
        }),
    ),
    Operation(
        "experience.record_recovery", "Note what helped when a tool failed.\n\nWithout --agent for all agents.",
        tools=Tool(
            "experience", arguments={"tool": REQUIRED, "error": REQUIRED, "recovery": REQUIRED},
            about="note what helped against an error of a tool", outcome="recorded",
        ),
        group="agents", effect="writes",
        command=Command(
            "experience recovery", "print_recorded", within=True, create=True, arguments={
                "tool": Argument("The tool that failed.", "NAME"), "error": Argument("Its error message.", "TEXT"),
                "recovery": Argument("What helped.", "TEXT", "--helped"),
            },
        ),
    ),
    Operation(
        "consolidator.run",
        "Run one consolidation cycle on the episodes of an agent.\n\nIt lowers the importance of episodes, prunes "
        "those that have become unimportant, and counts the new ones.",
        group="agents", effect="destroys", command=Command(
            "consolidate", "print_cycles", call="consolidate", within=True, arguments={
                "agent": Argument(
                    "The agent whose episodes are consolidated. Default: episodes without an agent.", "AGENT",
                    kind="argument",
                ),
                "extract": Argument("Have the language model find lasting facts in new episodes."),
                "cycles": Argument("Show the last N cycles, and run none.", "N"),
            },
        ),
    ),
    # ── the store ──────────────────────────────────────────────────────────────────────────────────────────────
    Operation(
        "store.stats", "Show the state of the store, embedder, index and kernels.",
        group="store", http="GET /stats", command=Command(show="print_stats"),
    ),
    Operation(
        "store.verify", "Check the file and all derived data. Changes nothing.", group="store",
        command=_VERIFICATION,
    ),
    Operation(
        "store.rebuild", "Rebuild all derived data from the memories, and verify.", group="store", effect="writes",
        command=_VERIFICATION,
    ),
    Operation(
        "review.audit",
        "Find memories that should not be there, with a remedy.\n\nOf two that contradict each other, one supersedes "
        "the other (supersede), both hold (link --type elaborates), or one is wrong (forget). Changes nothing without "
        "--mend. The exit status is 1 if something was found and not mended.",
        group="store", http="POST /audit", writes_if="mend",
        command=Command(
            show="print_audit", fails="is_open", bar=("auditing", "memories"),
            confirm="Carry out what the findings propose?",
            arguments={
                "checks": Argument(f"{', '.join(_CHECKS)}. Default: all but the last four.", "CHECK", kind="argument"),
                "mend": Argument("Carry out what the findings propose."),
            },
        ),
    ),
    Operation(
        "review.judge",
        "Have the language model judge what the rules left open.\n\nThese are pairs of memories of which the newer may "
        "supersede the older; audit unjudged lists them.",
        group="store", effect="writes",
        command=Command(
            "judge-changes", "# superseded; contradicting; independent; still waiting:waiting",
            arguments={"limit": Argument("The most pairs. Default: all.", "N", "--limit")},
        ),
    ),
    Operation(
        "store.vacuum", "Give unused space back to the file system.", group="store", effect="writes",
        command=Command(show="# bytes freed", json="bytes_freed", bar=("compacting", "files")),
    ),
    Operation(
        "store.backup", "Copy the store to a new file, while others read and write.", group="store",
        command=Command(json="path", bar=("copying", "pages"), arguments={"target": Argument("A new file.", "FILE")}),
    ),
    Operation(
        "transfer.export", "Write memories as JSON lines, CSV or text.",
        group="store", http="GET /export", call=_CALLS + "check_export", returns="bytes",
    ),
    Operation(
        "transfer.import_", "Read memories, all or none; those whose id exists are skipped.",
        group="store", http="POST /import", effect="writes", call=_CALLS + "import_", raw=True,
    ),
    Operation(
        "transfer.sync",
        "Exchange changes with the other devices of a folder.\n\nSyncthing, Dropbox, git or a stick carries it. "
        "Each device writes to files of its own there and merges those of the others.",
        group="store", effect="writes",
        command=Command(show="print_synced", create=True, arguments={
            "folder": Argument("The folder, which must exist.", "FOLDER", kind="argument"),
            "status": Argument("Change nothing; show how far each device is."),
        }),
    ),
    Operation(
        "store.reembed",
        "Embed memories with the configured embedder.\n\nMoves the store to another embedder, or embeds memories that "
        "have no vector. Can be interrupted and resumed.",
        group="store", effect="writes",
        command=Command(show="# embedded", json="embedded", call="reembed", arguments={
            "to": Argument("The embedder to move to. Default: the configured one.", "MODEL")
        }),
    ),
    Operation(
        "store.rekey",
        "Encrypt the store with a new key.\n\nRECALLITE_KEY or RECALLITE_KEY_FILE gives the present key, if there is "
        "one. A key is never an argument: all users of the machine see the arguments of a process.",
        group="store", effect="writes",
        command=Command(show="print_rekeyed", json="encrypted", call="rekey", arguments={
            "new_key_file": Argument("A file with the new key. Default: RECALLITE_NEW_KEY.", "FILE"),
            "decrypt": Argument("Write the store without encryption instead."),
        }),
    ),
    Operation(
        "store.warmup", "Compile the kernels, load the embedder and the index.", group="store",
        command=Command(show="print_warmup", call="warmup", create=True, bar=("loading", "kernels")),
    ),
)  # fmt: skip
"""The operations of the core; `every_operation` has those of other packages too."""


@cache
def every_operation() -> tuple[Operation, ...]:
    """The operations of the core, and the ones that packages register."""
    return (*OPERATIONS, *(operation for others in _registered() for operation in others.operations))


def operation_named(name: str) -> Operation:
    """The operation of this name. For one of the core no other package is imported."""
    own = [operation for operation in OPERATIONS if operation.name == name]
    return own[0] if own else next(operation for operation in every_operation() if operation.name == name)


@cache
def served() -> tuple[Operation, ...]:
    """The operations of the HTTP API."""
    return tuple(operation for operation in every_operation() if operation.path)


def every_command_group() -> dict[str, str]:
    """The first words of commands that have two, and the help of these groups, of all packages."""
    groups = dict(COMMAND_GROUPS)
    for others in _registered():
        groups |= others.command_groups
    return groups


def every_tool_group() -> dict[str, tuple[str, str]]:
    """The tools of several actions, of all packages, as `TOOL_GROUPS`."""
    return TOOL_GROUPS | {name: (about, "") for others in _registered() for name, about in others.tools.items()}


def _registered() -> list[OperationSet]:
    return [*plugins.load_all("operations").values()]
