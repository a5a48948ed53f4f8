"""The plugin of OpenCode, a script in the folder of the user or the project, which calls the hooks.

https://opencode.ai/docs/plugins, and `Hooks` of the npm package @opencode-ai/plugin (1.18). A plugin adds to a session
by its system prompt, which is made anew for each call of a model: what was shown is put in again until a compaction.
Titles and compactions are asked for in the same session, often of another model: they are told nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

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
      await asks("turn", id, { prompt, prompt_response: last ? said(last.parts) : "", generation_id: moment })
    },
  }
}
"""


def script(words: Sequence[str], options: Sequence[str]) -> str:
    """The plugin that calls the hooks by a command: these words, the event, and these options."""
    named = _SCRIPT.replace("MARK", MARK, 1).replace("COMMAND_WORDS", json.dumps([*words]), 1)
    return named.replace("COMMAND_OPTIONS", json.dumps([*options]), 1)
