"""A `MemoryProvider` of the Hermes agent: it recalls before each turn, keeps each turn, and gives the agent a tool.

`python -m recallite_connect.hermes install` puts the plugin into HERMES_HOME, and `uninstall` takes it out.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import recallite_tools as tools
from recallite.errors import InvalidInput, RecalliteError
from recallite.memory import Memory
from recallite.model.authority import speaking_as
from recallite.model.checks import MAX_QUERY_CHARS
from recallite.model.records import NewRecord
from recallite_connect.common import needed, scope_segment, to_embed
from recallite_connect.importers.reading import cleaned

with needed("hermes"):
    from agent.memory_provider import MemoryProvider
    from hermes_constants import get_hermes_home

__all__ = ["RecalliteProvider", "install", "register", "uninstall"]

_NAME = "recallite"
_TOOL = "recallite_memory"  # `memory` is Hermes' own
_CONFIG = "recallite.json"
_MOST_HITS = 6
_PROMPT = (
    "# Recallite\nYou have a long-term memory. What it knows about a message comes with the message. "
    f"`{_TOOL}` writes, recalls, changes and removes memories."
)
_PLUGIN = '''"""The MemoryProvider of Recallite."""

from recallite_connect.hermes import register

__all__ = ["register"]
'''
_MANIFEST = """name: recallite
version: 1.0.0
description: "Recallite: long-term memory in one SQLite file, on this machine."
"""


class RecalliteProvider(MemoryProvider):
    """The memory of a Hermes profile: `recallite.db` in HERMES_HOME, or `path` of `recallite.json` there.

    A profile and a user are a scope, as `/hermes/default/users/telegram/7`. A chat without a user has one too, as
    `/hermes/default/chats/telegram/7`; a session without either is in `/hermes/default`, and sees what is below it. A
    session is a session of the memory, with the messages of its turns; what the user said is also a memory. Subagents
    and cron jobs read, and write nothing. The tool `recallite_memory` is `memory` of `recallite.tools`.
    """

    def __init__(self) -> None:
        self._memory: Memory | None = None
        self._scope = "/"
        self._session_id = ""
        self._writes = True

    @property
    def name(self) -> str:
        """`recallite`."""
        return _NAME

    def is_available(self) -> bool:
        """True: it needs no key and no service."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Open the memory of the profile."""
        self.shutdown()
        home = Path(kwargs.get("hermes_home") or get_hermes_home())
        self._memory = Memory(_path(home))
        self._scope = f"/hermes/{scope_segment(kwargs.get('agent_identity') or 'default')}"
        platform = scope_segment(kwargs.get("platform") or "unknown")  # an id may be another user's elsewhere
        if user := kwargs.get("user_id"):
            self._scope += f"/users/{platform}/{scope_segment(str(user))}"
        elif chat := kwargs.get("chat_id"):  # of a gateway that does not know the user
            self._scope += f"/chats/{platform}/{scope_segment(str(chat))}"
        self._session_id = session_id
        self._writes = kwargs.get("agent_context", "primary") == "primary"

    def system_prompt_block(self) -> str:
        """Tell the model about the memory."""
        return _PROMPT if self._memory is not None else ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """The memories that answer a message; empty if there are none."""
        memory = self._memory  # `shutdown` may come from another thread
        if memory is None or not query.strip():
            return ""
        hits = memory.recall(query[:MAX_QUERY_CHARS], limit=_MOST_HITS, scope=self._scope, relevant=True)
        lines = []
        for hit in hits:
            speaker = "" if hit.context is None else f"{hit.context}: "
            since = " (replaced since)" if hit.superseded_by else ""
            lines.append(f"- {(hit.valid_from or hit.created_at):%Y-%m-%d} {speaker}{hit.text}{since}")
        return "\n".join(["Memories, the best first:", *lines]) if lines else ""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
    ) -> None:
        """Keep a turn: both texts in the session, and what the user said as a memory. Hermes calls it in a thread."""
        memory = self._memory
        if memory is None or not self._writes:
            return
        name = session_id or self._session_id
        texts = [("user", user_content), ("assistant", assistant_content)]
        turn = [{"role": role, "content": cleaned(text)} for role, text in texts if text and text.strip()]
        scoped = memory.scoped(self._scope)
        spoken = NewRecord(cleaned(user_content or ""), context="user", source=name or None)
        remembered = [spoken] if spoken.text.strip() else []
        with scoped.transaction(embed=[*remembered, *to_embed(turn)]):
            if turn and name:
                scoped.sessions.open(name, provider="hermes").extend(turn)
            for record in remembered:
                scoped.remember(record)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tool `recallite_memory`."""
        return [{**tools.schemas()["memory"], "name": _TOOL}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """The result of a call of the tool, as JSON."""
        if tool_name != _TOOL:
            raise NotImplementedError(f"Provider {_NAME} does not handle tool {tool_name}")
        if self._memory is None:
            return _fault("the memory is closed")
        if not self._writes and args.get("action") not in ("search", "recall", "list", "history"):
            return _fault("subagents and cron jobs cannot change the memory")
        return msgspec.json.encode(tools.call("memory", args, memory=self._memory, scope=self._scope)).decode()

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep further turns in another session."""
        self._session_id = new_session_id

    def on_memory_write(self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Remember what the built-in memory tool notes."""
        if self._memory is not None and self._writes and action in ("add", "replace") and content.strip():
            with speaking_as("agent"):
                self._memory.remember(content, scope=self._scope, tags=[f"hermes-{target}"], importance=0.7)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        """Remember what a subagent found."""
        if self._memory is not None and self._writes and result.strip():
            with speaking_as("agent"):
                self._memory.remember(result, scope=self._scope, context=task[:200], source=child_session_id or None)

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The path of the file."""
        return [{"key": "path", "description": "Path of the memory", "default": "recallite.db in HERMES_HOME"}]

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Write `recallite.json`."""
        path = values.get("path")
        settings = {"path": path} if path and path != self.get_config_schema()[0]["default"] else {}
        (Path(hermes_home) / _CONFIG).write_bytes(msgspec.json.encode(settings))

    def backup_paths(self) -> list[str]:
        """The file, where it is outside of HERMES_HOME."""
        home = Path(get_hermes_home())
        path = _path(home)
        return [] if path.startswith("postgresql:") or Path(path).is_relative_to(home) else [path]

    def shutdown(self) -> None:
        """Close the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None


def register(context: Any) -> None:
    """Register the provider; Hermes calls it as it loads the plugin."""
    context.register_memory_provider(RecalliteProvider())


def install(home: str | os.PathLike[str] | None = None) -> Path:
    """Write the plugin into HERMES_HOME; returns its folder."""
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(_PLUGIN, "utf-8")
    (folder / "plugin.yaml").write_text(_MANIFEST, "utf-8")
    return folder


def uninstall(home: str | os.PathLike[str] | None = None) -> Path:
    """Remove the plugin from HERMES_HOME, and nothing of the memory."""
    folder = _folder(home)
    if folder.is_dir():
        if (folder / "__init__.py").read_text("utf-8") != _PLUGIN:
            raise InvalidInput(f"{folder} is not as it was installed: remove it yourself")
        shutil.rmtree(folder)
    return folder


def _folder(home: str | os.PathLike[str] | None) -> Path:
    return Path(get_hermes_home() if home is None else home) / "plugins" / _NAME


def _path(home: Path) -> str:
    """The memory of a HERMES_HOME."""
    try:
        settings = msgspec.json.decode((home / _CONFIG).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        settings = {}
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise InvalidInput(f'{home / _CONFIG} is not {{"path": "..."}}: {fault}') from None
    path = settings.get("path", "recallite.db")
    return path if path.startswith("postgresql:") else str(home / Path(path).expanduser())


def _fault(reason: str) -> str:
    return msgspec.json.encode({"error": reason}).decode()


def _main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m recallite_connect.hermes", description=__doc__)
    parser.add_argument("command", choices=("install", "uninstall"))
    parsed = parser.parse_args(arguments)
    commands: Mapping[str, Any] = {"install": install, "uninstall": uninstall}
    try:
        print(commands[parsed.command]())
    except (RecalliteError, OSError) as fault:
        print(f"hermes: {fault}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(_main())
