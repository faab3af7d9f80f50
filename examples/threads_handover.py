"""A stuck agent is handed over to a person, and goes on with the answer: `./dev demo-threads`.

A scripted agent of LangChain's `create_agent` clings to a wrong idea, whatever monitors tell it. The sink opens a
thread, whose card is printed; the answer is part of exactly one call. `--ask` reads it from the terminal. Nothing uses
the network. It needs `reasonblocks-langchain` and `reasonblocks-threads`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from broken_repo import passing, tools, verdict, write_to
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langsmith import tracing_context
from scripted_model import ScriptedModel, cling, guidance, heed, history, next_on_course
from two_runs import SYSTEM_PROMPT, TASK

from reasonblocks import ReasonBlocks
from reasonblocks_threads import Actor, Card, Threads, render_text

MAX_CALLS = 40
PERSON = Actor.person("mara")
OPERATOR = "An operator of this run says:"
ADVICE = "shop/orders.py only reports the error. Read the failing tests, then the module whose values they pass to it."
Respond = Callable[[Card], str]


class StubbornModel(ScriptedModel):
    """Scripted chat model that ignores monitors and follows a person. `told` are the calls with a person's words."""

    @property
    def told(self) -> list[int]:
        return [call for call, messages in enumerate(self.requests) if OPERATOR in guidance(messages)]

    def next_turn(self, messages: Sequence[BaseMessage]) -> AIMessage:
        done = history(messages)
        if done and done[-1].tool == "run_tests" and passing(done[-1].result):
            return super().next_turn(messages)
        return next_on_course(done) or (heed(done) if OPERATOR in guidance(messages) else cling(done))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="A stuck agent is handed over to a person.")
    parser.add_argument("--ask", action="store_true", help="read the answer from the terminal")
    respond = from_terminal if parser.parse_args(arguments).ask else scripted
    with tempfile.TemporaryDirectory() as folder, tracing_context(enabled=False):
        root = Path(folder).resolve()
        with Threads(root / "threads.db") as threads:
            return run(threads, write_to(root / "repository"), respond)


def run(threads: Threads, root: Path, respond: Respond) -> int:
    """Run the agent and answer its cards between its steps; return 0 if it has fixed the tests."""
    model = StubbornModel()
    rb = ReasonBlocks(base_url="", sinks=[threads.sink()], mailbox=threads.mailbox())
    with rb.middleware(run_id="demo", agent_name="bugfixer", task=TASK) as steering:
        limit = ModelCallLimitMiddleware(run_limit=MAX_CALLS, exit_behavior="end")
        agent = create_agent(model, tools(root), system_prompt=SYSTEM_PROMPT, middleware=[limit, steering])
        tests = ""
        for update in agent.stream({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 10 * MAX_CALLS}):
            for message in messages_of(update):
                show(message)
                tests = message.text if isinstance(message, ToolMessage) and message.name == "run_tests" else tests
            answer_cards(threads, respond)
    rb.close()
    print(f"\nThe words of {PERSON.name} were part of the calls {model.told}, of {len(model.requests)} in all.")
    for listed in threads.list(live=False):
        thread = threads.get(listed.id)
        print(f"thread {thread.cause.title!r}: {thread.phase.value} {thread.reason}".rstrip())
    return 0 if passing(tests) and len(model.told) == 1 else 1


def messages_of(update: Any) -> list[BaseMessage]:
    return [message for node in update.values() if node for message in node.get("messages", ())]


def show(message: BaseMessage) -> None:
    if isinstance(message, AIMessage):
        calls = ", ".join(f"{call['name']} {call['args'].get('path', '')}".strip() for call in message.tool_calls)
        print(textwrap.shorten(f"agent: {message.text}", 100), f"-> {calls or 'answers'}", sep="\n  ")
    elif isinstance(message, ToolMessage) and message.name == "run_tests":
        print(f"  {verdict(message.text)}")


def answer_cards(threads: Threads, respond: Respond) -> None:
    """Do what is due, and let the person answer each open card: with other words, or as proposed."""
    threads.drain()
    for card in threads.cards():
        print(f"\n{render_text(card)}")
        if words := respond(card):
            threads.answer(card, "edit", by=PERSON, parameters={"text": words})
        (edited,) = [one for one in threads.cards() if one.thread_id == card.thread_id]
        threads.answer(edited, "approve", by=PERSON)
        threads.drain()


def scripted(card: Card) -> str:
    print(f"\n{PERSON.name}: {ADVICE}\n")
    return ADVICE


def from_terminal(card: Card) -> str:
    try:
        return input("\nYour words to the agent (empty: as proposed): ").strip()
    except EOFError:
        sys.exit("nobody answers")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
