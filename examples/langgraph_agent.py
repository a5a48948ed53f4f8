"""An agent in LangGraph that remembers across sessions: each session opens the file, in its own thread.

The model is a script: it calls the tool `save` for a statement, and answers a question from what the graph recalled.
Needs LangGraph and the extra `langgraph`.

Output:

    first session
      > I am allergic to peanuts
        Noted.
      > My dog is called Nero
        Noted.
    second session
      > What is my dog called?
        You told me: My dog is called Nero
      > Which food do I have to avoid?
        You told me: I am allergic to peanuts
    of another user
      > What is my dog called?
        I know nothing of that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from recallite_connect.langgraph import RecalliteStore

NOTHING = "nothing"


class ScriptedModel(BaseChatModel):
    """Stands for a chat model that can call tools."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        system, *_, last = messages
        if isinstance(last, ToolMessage):
            reply = AIMessage("Noted.")
        elif last.text.endswith("?"):
            known = system.text.removeprefix("Known of the user: ")
            reply = AIMessage("I know nothing of that." if known == NOTHING else f"You told me: {known}")
        else:
            call = {"name": "save", "args": {"text": last.text}, "id": f"call-{uuid4()}"}
            reply = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    @property
    def _llm_type(self) -> str:
        return "scripted"


def call_model(state: MessagesState, runtime: Runtime[str]) -> dict[str, Any]:
    """Recall memories for the last question, and ask the model."""
    assert runtime.store is not None
    question = next(message for message in reversed(state["messages"]) if isinstance(message, HumanMessage))
    items = runtime.store.search(("users", runtime.context), query=question.text, limit=1)
    known = items[0].value["text"] if items else NOTHING
    return {"messages": [ScriptedModel().invoke([SystemMessage(f"Known of the user: {known}"), *state["messages"]])]}


def call_tools(state: MessagesState, runtime: Runtime[str]) -> dict[str, Any]:
    """Run the tool calls of the model."""
    assert runtime.store is not None
    results = []
    for call in state["messages"][-1].tool_calls:
        runtime.store.put(("users", runtime.context), str(uuid4()), call["args"])
        results.append(ToolMessage("saved", tool_call_id=call["id"]))
    return {"messages": results}


def session(path: Path, user: str, questions: list[str]) -> None:
    """Open the file, and let the graph answer."""
    with RecalliteStore(path) as store:
        builder = StateGraph(MessagesState, context_schema=str)
        builder.add_node("model", call_model).add_node("tools", call_tools)
        builder.add_edge(START, "model").add_edge("tools", "model")
        builder.add_conditional_edges(
            "model", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__", ["tools", "__end__"]
        )
        graph = builder.compile(store=store)
        for question in questions:
            result = graph.invoke({"messages": [HumanMessage(question)]}, context=user)
            print(f"  > {question}\n    {result['messages'][-1].text}")


def main() -> None:
    """Two sessions of one user, and one of another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        print("first session")
        session(path, "ada", ["I am allergic to peanuts", "My dog is called Nero"])
        print("second session")
        session(path, "ada", ["What is my dog called?", "Which food do I have to avoid?"])
        print("of another user")
        session(path, "bob", ["What is my dog called?"])


if __name__ == "__main__":
    main()
