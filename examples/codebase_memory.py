"""An agent that notes what it found out about a codebase, and recalls it in its next run.

`python examples/codebase_memory.py` needs `reasonblocks-langchain` and the extra `memory`, and works offline: the agent
is real, but its model is a script, so the example shows what the tools do, and not how well a model uses them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from broken_repo import tools, write_to
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langsmith import tracing_context
from scripted_model import FIX, Call, ScriptedModel, read

from reasonblocks import CodebaseMemory
from reasonblocks_langchain import memory_tools

TASK = "Which function reads a price that is a text?"
FOUND = "shop/prices.py"
NOTE = "A price that is a text is read by cents(), which returns whole cents."
RECALL: Call = ("memory_recall", {"query": "which function reads a price text"})
SEARCH = (read("README.md"), read("shop/orders.py"), read(FOUND))
STORE: Call = ("memory_store", {"content": NOTE, "file_path": FOUND, "finding_type": "location"})


class Script(ScriptedModel):
    """Looks for a note first; without one, it reads three files and stores a note."""

    def next_turn(self, messages: Sequence[BaseMessage]) -> AIMessage:
        results = [message.text for message in messages if isinstance(message, ToolMessage)]
        plan = [RECALL] if results and NOTE in results[0] else [RECALL, *SEARCH, STORE]
        if len(results) == len(plan):
            return AIMessage("cents() in shop/prices.py.")
        tool, arguments = plan[len(results)]
        return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"call-{len(results)}"}])


def run(title: str, root: Path) -> None:
    """Run a new agent with a new memory on the same file, and print its tool calls."""
    with CodebaseMemory("example/shop", store=root.parent / "memory.db", root=root) as memory:
        agent = create_agent(Script(), [*tools(root), *memory_tools(memory)])
        messages = agent.invoke({"messages": [HumanMessage(TASK)]})["messages"]
    asked = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    print(f"{title}. Tool calls: {len(asked)}")
    for call, result in zip(asked, [message for message in messages if isinstance(message, ToolMessage)], strict=True):
        print(f"  {call['name']} {call['args'].get('path', '')}".rstrip())
        if call["name"].startswith("memory_"):
            print("\n".join(f"    | {line}" for line in result.text.splitlines()))
    print(f"  -> {messages[-1].text}\n")


def main() -> None:
    print(f"A scripted agent is asked: {TASK}\n")
    with tempfile.TemporaryDirectory() as folder, tracing_context(enabled=False):
        root = write_to(Path(folder).resolve() / "shop")
        run("First run", root)
        run("Second run, with the note of the first", root)
        (root / FOUND).write_text((root / FOUND).read_text(encoding="utf-8").replace(*FIX), encoding="utf-8")
        print(
            f"Now somebody fixes a bug in {FOUND}, so the note about it may be wrong, and is not recalled any more.\n"
        )
        run("Third run", root)


if __name__ == "__main__":
    main()
