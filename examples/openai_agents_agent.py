"""An agent of the OpenAI Agents SDK that remembers across sessions and continues a conversation.

Long-term memory is a tool, and memories that fit the question are in the instructions. The conversation is a session in
the same file. The model is a script. Needs the extra `openai-agents`.

Output:

    monday
      > I prefer aisle seats
        Noted.
    friday, a new conversation
      > Which seat should you book for me?
        You said: I prefer aisle seats
    friday, a new process goes on with it
      > What did I ask first?
        You asked: Which seat should you book for me?
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from recallite import Memory
from recallite_connect.openai_agents import RecalliteSession, memory_tool, recalling


class Rules(ScriptedModel):
    """Replaces a model: rules decide what a real one would decide."""

    async def get_response(self, system_instructions: str | None, input: Any, *rest: Any, **options: Any) -> Any:
        """Return the next message, or a call of the tool."""
        self.enqueue([self._decided(system_instructions or "", input)])
        return await super().get_response(system_instructions, input, *rest, **options)

    def _decided(self, instructions: str, items: list[dict[str, Any]]) -> Any:
        user_texts = [item["content"] for item in items if item.get("role") == "user"]
        if items[-1].get("type") == "function_call_output":
            return assistant_message("Noted.")
        if not user_texts[-1].endswith("?"):
            return function_call("memory", {"action": "write", "text": user_texts[-1]}, call_id=f"call-{uuid4()}")
        if "first" in user_texts[-1]:
            return assistant_message(f"You asked: {user_texts[0]}")
        known = re.search(r'I [^"]* seats', instructions)
        return assistant_message(f"You said: {known[0]}" if known else "I do not know.")


def talk(path: Path, conversation: str, message: str) -> None:
    """Run one process: open the file, answer one message, and end."""
    with Memory(path) as memory:
        agent = Agent(
            name="assistant",
            model=Rules(),
            tools=[memory_tool(memory, scope="/users/ada")],
            instructions=recalling("You book flights.", memory, scope="/users/ada"),
        )
        session = RecalliteSession(conversation, memory, scope="/users/ada")
        print(f"  > {message}\n    {Runner.run_sync(agent, message, session=session).final_output}")


def main() -> None:
    """Run two conversations, the second one in two processes."""
    set_tracing_disabled(True)  # the SDK sends traces to OpenAI otherwise
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        print("monday")
        talk(path, "monday", "I prefer aisle seats")
        print("friday, a new conversation")
        talk(path, "friday", "Which seat should you book for me?")
        print("friday, a new process goes on with it")
        talk(path, "friday", "What did I ask first?")


if __name__ == "__main__":
    main()
