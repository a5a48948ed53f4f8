"""Frames: what a host puts around or into a prompt, and the words that a person typed.

A host writes what is not typed between tags (`<bash-stdout>...</bash-stdout>`), at the beginning of a block of a
prompt or on a line of its own. What stands in a frame can come from anyone, and may hold the frame's end tag: a frame
reaches to the last end of its name. Beside a frame that was cut, no word is surely the user's: such a turn is an
agent's at most, so no standing instruction comes from it. So is one that has a tag at the beginning of a line that no
host is known to write, or a known one within a line, but nothing of these is cut: people quote code.

Names as found on 29 November 2026 in Claude Code 2.1.332 (string table of the npm package's binary), Codex 0.171
(codex-rs/core/src/context) and Gemini CLI 0.61 (packages/core/src/hooks/types.ts, which escapes "<" within
hook_context; packages/cli/src/ui/hooks/atCommandProcessor.ts). Names in capitals or with attributes are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# What commands print, reminders, editors, hooks, notices and messages of other agents. Names that mark-up has as well,
# such as "image" and "browser", are left out: what they hold is then kept, as an agent's.
_HOSTS = (
    # Claude Code
    "bash-input", "bash-stdout", "bash-stderr", "bash-exit-code", "local-command-stdout", "local-command-stderr",
    "local-command-caveat", "system-reminder", "system_reminder", "user-prompt-submit-hook", "post-tool-use-hook",
    "ide_selection", "ide_opened_file", "ide_diagnostics", "terminal", "browser_instruction",
    "task-notification", "teammate-message", "cross-session-message", "agent-message", "coordinator-relay",
    "fork-boilerplate", "fetched-web-content", "untrusted-widget-state", "mcp-resource-update", "mcp-polling-update",
    "persisted-output", "function_results", "tool_use_error", "sandbox_violations", "total_tokens", "tick",
    "remote-review", "remote-review-progress", "forked-skill-launch", "artifact-origin-notes",
    # Codex
    "environment_context", "user_instructions", "INSTRUCTIONS", "skill", "user_shell_command", "turn_aborted",
    "subagent_notification", "user_action", "hook_prompt", "goal_context",
    "codex_internal_context", "recommended_plugins", "apps_instructions", "skills_instructions",
    "plugins_instructions", "collaboration_mode", "multi_agent_mode", "realtime_conversation", "model_switch",
    "personality_spec",
    # Gemini CLI
    "hook_context", "session_context",
)  # fmt: skip
# Frames around what a person typed: a command with its arguments, a note. Arguments stand last.
_COMMAND = ("command-message", "command-name", "command-contents", "skill-format")
_ARGS, _NOTE = "command-args", "user-memory-input"
_KNOWN = frozenset(name.lower() for name in (*_HOSTS, *_COMMAND, _ARGS, _NOTE))

_BLANK = r"[^\S\n]*"
# At the beginning of a line: a tag, the files that Gemini CLI adds for an @path, the context that Codex's clients add.
_OPENS = (
    rf"{_BLANK}(?:</?(?P<tag>[a-z][\w-]*)(?=[\s/>]|\Z)[^<>]*>?"
    rf"|(?P<files>--- Content from referenced [^\n]* ---){_BLANK}$"
    r"|(?P<context># (?:Context from my IDE setup|Files mentioned by the user):)"
    r"|(?P<agents># AGENTS\.md instructions[^\n]*\n\s*<INSTRUCTIONS>)"
    r"|(?P<request>## My request for Codex:))"
)
_OPENING = re.compile(f"^{_OPENS}", re.IGNORECASE | re.MULTILINE)
_NEXT = re.compile(_OPENS, re.IGNORECASE | re.MULTILINE)  # after a frame
_END = re.compile(
    rf"</[^\S\n]*(?P<tag>[a-z][\w-]*)\s*>|^{_BLANK}(?:(?P<files>--- End of content ---){_BLANK}$"
    r"|(?P<context>## My request for Codex:))",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(r"</?([a-z][\w-]*)(?=[\s/>]|\Z)", re.IGNORECASE)
_COMMAND_FRAME = re.compile(rf"\s*<({'|'.join(_COMMAND)})>(.*?)</\1>", re.DOTALL)
_ARGUMENTS = re.compile(rf"\s*<{_ARGS}>(.*)</{_ARGS}>\s*\Z", re.DOTALL)
_NOTED = re.compile(rf"\s*<{_NOTE}>(.*)</{_NOTE}>\s*\Z", re.DOTALL)
# In Gemini CLI, which escapes "<" and ">" within it: its end is certain.
_ESCAPED = re.compile(r"\s*<hook_context>[^<>]*</hook_context>")
# Sentences that Claude Code writes without tags: the last two stand before a whole block of its own.
_SENTENCE = re.compile(
    r"\s*(?:\[Request interrupted by user[^\]\n]*\]\s*\Z|Caveat: The messages below were generated "
    r"|This session is being continued from a previous conversation that ran out of context)"
)
# Every frame has one of these.
_MARKS = ("<", "#", "---")
# Marks that nobody sees; texts need some of them, tags none.
_INVISIBLE = re.compile(r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


class Typed(NamedTuple):
    """The words of a prompt that may be typed, whether they are surely the user's, and whether a frame stood beside
    them.
    """

    text: str
    by_user: bool
    cut: bool


class _Block(NamedTuple):
    """A block of a prompt without its frames. `cut`: some stood beside its words; `framed`: it has or had any tag;
    `begins`: it begins with one that is not cut.
    """

    text: str
    cut: bool = False
    framed: bool = False
    begins: bool = False


def typed(blocks: Iterable[str], *, stated: bool = False, escapes: bool = False) -> Typed:
    """The words in a prompt's blocks of text that may be typed.

    `stated`: the host says that a person typed them. Then a doubt is left only if a frame was cut from a block, or a
    block begins with a tag: no text can forge the end of a block, and other tags are quoted. `escapes`: as Gemini CLI,
    the host escapes tags within the frames of hooks.
    """
    read = [_read(text, escapes) for text in blocks]
    cut = any(block.cut for block in read)
    by_user = not cut and not any(block.begins if stated else block.framed for block in read)
    return Typed("\n\n".join(block.text for block in read if block.text), by_user, cut)


def _read(text: str, escapes: bool) -> _Block:
    if _SENTENCE.match(text):
        return _Block("", framed=True)
    if not any(map(text.__contains__, _MARKS)):  # as most: a fifth of the time
        return _Block(text.strip())
    while escapes and (exact := _ESCAPED.match(text)):
        text = text[exact.end() :]
    visible = _INVISIBLE.sub("", text)
    read = _own_words(visible) or _without_frames(visible)
    return read if read.framed or read.cut or visible == text else _Block(text.strip())


def _own_words(text: str) -> _Block | None:
    """The typed words of a block that is only frames around them; a command without arguments has none."""
    if noted := _NOTED.match(text):
        return _Block(noted[1].strip(), framed=_has_tags(noted[1]))
    position, name = 0, ""
    while frame := _COMMAND_FRAME.match(text, position):
        position = frame.end()
        name = frame[2].strip() if frame[1] == "command-name" else name
    arguments = _ARGUMENTS.match(text, position)
    if not name or not (arguments or not text[position:].strip()):
        return None
    words = arguments[1].strip() if arguments else ""
    return _Block(f"{name} {words}" if words else "", framed=_has_tags(words))


def _has_tags(text: str) -> bool:
    """Whether a text has a tag at the beginning of a line, or anywhere one that hosts write."""
    return _OPENING.search(text) is not None or any(tag[1].lower() in _KNOWN for tag in _TAG.finditer(text))


def _without_frames(text: str) -> _Block:
    """A block without its frames. Each character is read a few times, also if thousands of tags have no end."""
    ends = {_name_of(end): end.end() for end in _END.finditer(text)}
    parts: list[str] = []
    position = done = 0
    framed, begins, begins_with_tag = False, True, False
    while opening := (_NEXT.match(text, position) if position and position == done else None) or _OPENING.search(
        text, position
    ):
        begins = begins and not text[position : opening.start()].strip()
        name, position, framed = _name_of(opening), opening.end(), True
        end = _end_of(opening, name, ends, text, begins)
        if end is None:
            begins_with_tag |= begins
            begins = False
            continue
        parts.append(text[done : opening.start()])
        if name in (_ARGS, _NOTE):
            parts.append(text[opening.end() : end].rpartition("</")[0])
            begins = False
        position = done = end
    rest = "".join((*parts, text[done:])).strip()
    return _Block(rest, bool(rest) and done > 0, framed or _has_tags(rest), begins_with_tag)


def _name_of(match: re.Match[str]) -> str:
    """The name of a tag in lower case; of other marks that open or end a frame, their kind."""
    return match["tag"].lower() if match["tag"] else f"#{match.lastgroup}"


def _end_of(opening: re.Match[str], name: str, ends: Mapping[str, int], text: str, begins: bool) -> int | None:
    """The end of a frame; None for a tag that is quoted or unknown."""
    if opening["tag"] is None:
        if not begins and name != "#files":
            return None
        if name == "#request":
            return opening.end()
        name = "instructions" if name == "#agents" else name
    elif name not in _KNOWN or opening[0].lstrip().startswith("</"):
        return None
    if (end := ends.get(name, 0)) > opening.start():
        return end
    if opening[0].endswith("/>"):
        return opening.end()
    # Hosts end their frames: within a prompt, a tag without an end is a quoted one.
    return len(text) if begins else None
