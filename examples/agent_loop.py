"""An agent that uses memory as a tool: the model decides what to store and what to look up.

The model is a script, so the program runs offline. With a real model, pass `tools.schemas("openai")` or
`tools.schemas("anthropic")` to its API, and the calls it answers with to `tools.call`; the loop stays the same.

Output:

    > Our staging cluster runs MySQL 8.4
      Noted.
    > Ada is on call for the billing service this week
      Noted.
    > Deploys are frozen from December 20
      Noted.
    > What does the staging cluster run?
      You told me: Our staging cluster runs MySQL 8.4
    > Who is on call for billing?
      You told me: Ada is on call for the billing service this week
    > What does a ticket to Lisbon cost?
      I don't know.
"""

from __future__ import annotations

from typing import Any

from recallite import Memory, tools

Call = tuple[str, dict[str, Any]]


class ScriptedModel:
    """Stores statements and looks questions up."""

    def decide(self, message: str) -> Call:
        """Choose the tool call for a message."""
        if message.endswith("?"):
            return "memory", {"action": "recall", "query": message}
        return "memory", {"action": "write", "text": message}

    def answer(self, message: str, result: dict[str, Any]) -> str:
        """Answer with the tool's result."""
        if "error" in result:
            return f"I used the tool wrongly: {result['error']['message']}"
        if not message.endswith("?"):
            return "Noted."
        best = result["results"][0] if result["results"] else None
        if best is None or best["confidence"] < 0.3:
            return "I don't know."
        return f"You told me: {best['text']}"


def main() -> None:
    """Run a conversation."""
    model = ScriptedModel()
    with Memory(":memory:") as memory:
        for message in (
            "Our staging cluster runs MySQL 8.4",
            "Ada is on call for the billing service this week",
            "Deploys are frozen from December 20",
            "What does the staging cluster run?",
            "Who is on call for billing?",
            "What does a ticket to Lisbon cost?",
        ):
            name, arguments = model.decide(message)
            # The scope confines the call, whatever the model asks for.
            result = tools.call(name, arguments, memory=memory, scope="/users/bob")
            print(f"> {message}\n  {model.answer(message, result)}")


if __name__ == "__main__":
    main()
