"""The files by which a host calls the hooks and the server, and the plugin of OpenCode.

Our entries are added beside the user's own, and removed again without a trace.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.system.folders import read_regular
from recallite_server.hooks.events import EVENTS
from recallite_server.hooks.projects import PROJECT, project_of
from recallite_server.hooks.turns import HOST
from recallite_server.mcp.hosts import HOSTS, FileChange, configured, edited, entry, file_of, put_server, within
from recallite_server.warm.asking import Call, Unanswered
from recallite_server.warm.quick import is_quick_start, quick_start

_TIMEOUT_SECONDS = 10
_Edit = Callable[[dict[str, Any]], None]


class Hooked(NamedTuple):
    """A host with hooks: the file of a user and within a project, and our events for each of the host's.

    Its handlers are in groups, unless they are `flat`. `tools` are those that our event of a tool is for. `timeout` is
    in the unit of the host. If it does not start servers `in_folder`, that of the project, it gets one only with a
    scope. With `script` the file is a plugin that is wholly ours. `trust` says what a person has to do before the host
    runs them.
    """

    file: Callable[[], Path]
    project: str
    events: Mapping[str, str]
    tools: str = ""
    flat: bool = False
    timeout: int = _TIMEOUT_SECONDS
    in_folder: bool = True
    script: bool = False
    trust: str = ""


def _home(variable: str, folder: str, name: str) -> Callable[[], Path]:
    return lambda: Path(os.environ.get(variable) or Path.home() / folder) / name


HOOKED: dict[str, Hooked] = {
    # https://code.claude.com/docs/en/hooks
    "claude-code": Hooked(
        _home("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), ".claude/settings.local.json",
        {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreToolUse": "tool",
         "PostToolUseFailure": "tool", "Stop": "turn", "PreCompact": "turn", "SessionEnd": "turn"},
        tools="Bash|Read|Edit|MultiEdit|Write|NotebookEdit",
    ),
    # https://developers.openai.com/codex/hooks
    "codex": Hooked(
        _home("CODEX_HOME", ".codex", "hooks.json"), ".codex/hooks.json",
        {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreToolUse": "tool", "Stop": "turn",
         "PreCompact": "turn"},
        tools="Bash|apply_patch",
        trust="Codex runs these hooks only once you trust them: type /hooks there",
    ),
    # https://github.com/google-gemini/gemini-cli/blob/main/docs/hooks/reference.md: only what follows a tool adds to it
    "gemini-cli": Hooked(
        _home("", ".gemini", "settings.json"), ".gemini/settings.json",
        {"SessionStart": "session-start", "BeforeAgent": "prompt", "AfterTool": "tool", "AfterAgent": "turn",
         "SessionEnd": "turn"},
        tools="run_shell_command|read_file|replace|write_file",
        timeout=1000 * _TIMEOUT_SECONDS,
    ),
    # https://github.com/QwenLM/qwen-code/blob/main/docs/users/features/hooks.md
    "qwen-code": Hooked(
        _home("", ".qwen", "settings.json"), ".qwen/settings.json",
        {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PostToolUse": "tool", "Stop": "turn",
         "SessionEnd": "turn"},
        tools="run_shell_command|read_file|edit|write_file",
        timeout=1000 * _TIMEOUT_SECONDS,
    ),
    # https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-hooks-reference
    "copilot-cli": Hooked(
        _home("COPILOT_HOME", ".copilot", "hooks/recallite.json"), ".github/copilot/settings.local.json",
        {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreToolUse": "tool",
         "PostToolUseFailure": "tool", "Stop": "turn"},
        tools="Bash|Read|Edit|Write",
    ),
    # https://cursor.com/docs/agent/hooks: a prompt's hook cannot add to it, nor can one before a tool
    "cursor": Hooked(
        _home("", ".cursor", "hooks.json"), ".cursor/hooks.json",
        {"sessionStart": "session-start", "beforeSubmitPrompt": "turn", "postToolUse": "tool",
         "afterAgentResponse": "turn"},
        tools="Shell|Read|Write", flat=True, in_folder=False,
    ),
    "opencode": Hooked(
        lambda: HOSTS["opencode"].file().parent / "plugins" / "recallite.js", ".opencode/plugins/recallite.js",
        {}, script=True,
    ),
}  # fmt: skip
"""The hosts that can be connected, by their names among the hosts of the server."""


def connected(
    name: str, project: Path | None, arguments: Sequence[str], scope: str | None, *, memories: bool = False
) -> list[FileChange]:
    """The files of a host with hooks and server. `arguments` are those of the command before `hook` and `mcp`.

    Without a `scope` that projects share, each has its own. With `memories` the host's own memory files are read.
    Raises InvalidInput if it has none, or if a file cannot be changed without losing something in it.
    """
    if memories and name != HOST:
        raise InvalidInput(f"memory files are read of {HOST}, not of {name}: leave --memories out")
    hooked, shared = HOOKED[name], [] if scope is None else ["--scope", scope]
    shared += ["--memories"] if memories else []
    words = [*quick_start(), *arguments, "hook"]
    shell = subprocess.list2cmdline if sys.platform == "win32" else shlex.join
    commands = {event: shell([*words, our, "--host", name, *shared]) for event, our in hooked.events.items()}
    if scope is None and project is not None:
        scope = project_of(str(project)).scope
    server = None
    if scope is not None or hooked.in_folder:
        server = entry(HOSTS[name], [*arguments, "mcp", "--scope", scope or PROJECT])
    changes = _changes(name, project, server, commands)
    return [*changes, _script(name, project, script(words, ["--host", name, *shared]))] if hooked.script else changes


def disconnected(name: str, project: Path | None) -> list[FileChange]:
    """The files of a host without hooks and server."""
    changes = _changes(name, project, None, {})
    return [*changes, _script(name, project, None)] if HOOKED[name].script else changes


def hook_commands(name: str, project: Path | None) -> list[str]:
    """The commands by which a host calls our hooks now."""
    if HOOKED[name].script:
        return [name] if _is_our_script(_text(_file(name, project))) else []
    ours: list[str] = []

    def look(configuration: dict[str, Any]) -> None:
        hooks = configuration.get("hooks")
        for groups in hooks.values() if isinstance(hooks, dict) else ():
            ours.extend(command for group in groups for command in _commands(group) if _is_ours(command))

    edited(_file(name, project), look)
    return ours


def program_of(command: str) -> str:
    """The program that a command of a hook runs."""
    return shlex.split(command, posix=sys.platform != "win32")[0].strip('"')


def _changes(
    name: str, project: Path | None, server: Mapping[str, Any] | None, commands: Mapping[str, str]
) -> list[FileChange]:
    host, hooked = HOSTS[name], HOOKED[name]
    handlers: dict[str, Any] = {}
    for event, command in commands.items():
        matcher = {"matcher": hooked.tools} if hooked.events[event] == "tool" else {}
        handler = {"command": command, "timeout": hooked.timeout}
        handlers[event] = {**matcher, **(handler if hooked.flat else {"hooks": [{"type": "command", **handler}]})}
    edits: dict[Path, list[_Edit]] = {}
    changes = []
    if project is not None and host.project is None:
        pass  # its server is for all projects, and knows each by its folder
    elif (path := file_of(host, project)).suffix == ".toml":
        changes.append(configured(host, project, server))
    else:
        edits[path] = [lambda configuration: put_server(path, configuration, host.key, server)]
    place = _file(name, project)
    if not hooked.script:
        edits.setdefault(place, []).append(lambda configuration: _put_hooks(place, configuration, hooked, handlers))
    for path, together in edits.items():
        changes.append(edited(path, _all(together)))
    return [change for change in changes if change.before is not None or change.after]


def _script(name: str, project: Path | None, text: str | None) -> FileChange:
    path = _file(name, project)
    before = _text(path)
    if before is not None and not _is_our_script(before):
        if text is not None:
            raise InvalidInput(f"{path} is not of Recallite: give it another name")
        return FileChange(path, before, before)
    return FileChange(path, before, text)


def _text(path: Path) -> str | None:
    try:
        return read_regular(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read ({fault.strerror})") from None


def _is_our_script(text: str | None) -> bool:
    return text is not None and text.startswith(MARK)


def _file(name: str, project: Path | None) -> Path:
    hooked = HOOKED[name]
    return hooked.file() if project is None else within(project, hooked.project)


def _all(edits: Sequence[_Edit]) -> _Edit:
    def edit(configuration: dict[str, Any]) -> None:
        for change in edits:
            change(configuration)

    return edit


def _put_hooks(path: Path, configuration: dict[str, Any], hooked: Hooked, handlers: Mapping[str, Any]) -> None:
    """Put our handlers beside others, or take them out; a handler that is as it should be stays where it is."""
    if hooked.flat and handlers:
        configuration.setdefault("version", 1)
    hooks = configuration.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InvalidInput(f"{path} holds something else under 'hooks': change it by hand")
    after = {}
    for event in dict.fromkeys((*hooks, *handlers)):
        before, ours = hooks.get(event, []), handlers.get(event)
        groups = [group for group in (_without_ours(group, ours) for group in before) if group is not None]
        if ours is not None and ours not in groups:
            groups.append(ours)
        if groups or not before:
            after[event] = groups
    if after or not hooks:
        configuration |= {"hooks": after} if after else {}
    else:
        del configuration["hooks"]
    if hooked.flat and configuration == {"version": 1}:
        configuration.clear()


def _without_ours(group: Any, ours: Any) -> Any:
    """A group of handlers without ours, unless it is as it should be; None if it then has none."""
    if group == ours or not any(map(_is_ours, _commands(group))):
        return group
    if "hooks" not in group:
        return None
    rest = [handler for handler in group["hooks"] if not any(map(_is_ours, _commands(handler)))]
    return {**group, "hooks": rest} if rest else None


def _is_ours(command: str) -> bool:
    """Whether a command is one that `connect` has written, for whatever Python, store and options, and nothing else.

    A person's own may run Recallite too, or name it.
    """
    try:
        words = [word.strip('"') for word in shlex.split(command, posix=sys.platform != "win32")]
        call = Call(words[len(quick_start()) :])
    except (ValueError, Unanswered):
        return False
    is_hook = call.name == "hook" and "host" in call.options and len(call.texts) == 1 and call.texts[0] in EVENTS
    return is_quick_start(words) and is_hook


def _commands(group: Any) -> list[str]:
    """The commands of a group, or of a handler."""
    if not isinstance(group, dict):
        return []
    handlers = group["hooks"] if isinstance(group.get("hooks"), list) else [group]
    return [str(handler.get("command", "")) for handler in handlers if isinstance(handler, dict)]


MARK = "// Written by `recallite connect opencode`; `recallite disconnect opencode` removes it."
"""The first line of the plugin."""
_SCRIPT = """\
MARK
import { spawn } from "node:child_process"

const [PROGRAM, ...WORDS] = COMMAND_WORDS
const OPTIONS = COMMAND_OPTIONS

function hook(event, payload) {
  return new Promise((resolve) => {
    const child = spawn(PROGRAM, [...WORDS, event, ...OPTIONS], { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 })
    let text = ""
    child.stdout.on("data", (data) => (text += data))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(text ? JSON.parse(text).additional_context : "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

const TOOLS = ["bash", "read", "edit", "multiedit", "write", "patch", "apply_patch"]

function said(parts) {
  const own = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return own.map((part) => part.text).join("\\n")
}

export const Recallite = async ({ client, directory }) => {
  const sessions = new Map()
  const commands = new Map()
  const asks = (event, id, fields) => hook(event, { session_id: id, cwd: directory, ...fields })

  // A session with a parent hears an agent, not the user.
  async function isSubagent(id) {
    try {
      return Boolean((await client.session.get({ path: { id } })).data.parentID)
    } catch {
      return true
    }
  }

  // Agents that no person talks to make titles, summaries and compactions; each is known by its own prompt.
  let prompts
  async function isOfHiddenAgent(system) {
    const isHidden = ({ hidden, name }) => hidden || ["title", "summary", "compaction"].includes(name)
    prompts ??= (async () => (await client.app.agents()).data.filter(isHidden))().catch(() => [])
    return (await prompts).some(({ prompt }) => prompt && system[0]?.startsWith(prompt))
  }

  const isOther = (model, chosen) =>
    Boolean(model && chosen) && (model.providerID !== chosen.providerID || model.id !== chosen.modelID)

  return {
    // A command's template is its author's; the person typed its name and arguments.
    "command.execute.before": async ({ command, sessionID, arguments: words }, { parts }) => {
      commands.set(sessionID, { expanded: said(parts), typed: words.trim() ? `/${command} ${words.trim()}` : "" })
    },
    "chat.message": async ({ sessionID, model }, { message, parts }) => {
      if (!sessions.has(sessionID)) {
        const begins = { source: "startup" }
        const shown = (await isSubagent(sessionID)) ? null : [await asks("session-start", sessionID, begins)]
        sessions.set(sessionID, { shown })
      }
      const session = sessions.get(sessionID)
      if (!session.shown) return
      const command = commands.get(sessionID)
      commands.delete(sessionID)
      const prompt = command && command.expanded === said(parts) ? command.typed : said(parts)
      Object.assign(session, { prompt, moment: message.id, model: message.model ?? model })
      session.shown.push(await asks("prompt", sessionID, { prompt: session.prompt }))
    },
    "experimental.chat.system.transform": async ({ sessionID, model }, { system }) => {
      const session = sessions.get(sessionID)
      if (!session?.shown || isOther(model, session.model) || (await isOfHiddenAgent(system))) return
      system.push(...session.shown.filter(Boolean))
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      if (!sessions.get(sessionID)?.shown || !TOOLS.includes(tool) || typeof output.output !== "string") return
      const tool_input = { ...args, command: args?.command ?? args?.patchText }
      const error = output.metadata?.exit ? output.output : undefined
      const text = await asks("tool", sessionID, { tool_name: tool, tool_input, error })
      if (text) output.output += `\\n\\n${text}`
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID
      const session = sessions.get(id)
      if (!session?.shown) return
      if (event.type === "session.compacted") session.shown = [await asks("session-start", id, { source: "compact" })]
      if (event.type !== "session.idle" || !session.prompt) return
      const { prompt, moment } = session
      session.prompt = ""
      const messages = (await client.session.messages({ path: { id } })).data ?? []
      const last = messages.filter(({ info }) => info.role === "assistant").pop()
      const message_ids = [moment, last?.info.id ?? ""]
      await asks("turn", id, { prompt, prompt_response: last ? said(last.parts) : "", message_ids })
    },
  }
}
"""


def script(words: Sequence[str], options: Sequence[str]) -> str:
    """The plugin that calls the hooks by a command: these words, the event, and these options."""
    named = _SCRIPT.replace("MARK", MARK, 1).replace("COMMAND_WORDS", json.dumps([*words]), 1)
    return named.replace("COMMAND_OPTIONS", json.dumps([*options]), 1)
