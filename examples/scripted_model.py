"""The demo's scripted language model: it pursues a wrong idea until it reads a monitor's finding.

Its answer depends only on the messages of the request, so it follows guidance only if the request contains it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broken_repo import passing
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

FRAME = "[REASONBLOCKS]"
FINDING = re.compile(r"^\d+ checks in a row, the last being run_tests\(\), have ended in the same way", re.MULTILINE)
"""The beginning of a monitor's text about tests that stay red. This model ignores everything else."""
CHARS_PER_TOKEN = 4
"""The script estimates its tokens by this rule of thumb."""

Call = tuple[str, dict[str, str]]
"""A tool and its arguments."""


def read(path: str) -> Call:
    return "read_file", {"path": path}


def edit(path: str, old: str, new: str) -> Call:
    return "edit_file", {"path": path, "old": old, "new": new}


TEST: Call = ("run_tests", {})

SUSPECT = "shop/orders.py"
OPENING = (
    ("I read README.md to see what shop/ and tests/ hold, and how the two belong together.", read("README.md")),
    ("A small shop with its tests. I run all of them to see which ones do not pass.", TEST),
    (f"Three tests fail, and each traceback ends in {SUSPECT}. It seems that settle is wrong.", read(SUSPECT)),
)
GUESSES = (
    "due = subtotal - subtotal * discount // 100",
    "due = round(subtotal * (100 - discount) / 100)",
    "due = subtotal - round(subtotal * discount / 100)",
)
"""The original line, and two with the same result."""
DOUBTS = (
    "The error is raised in settle. The discount might be rounded the wrong way, so maybe I should round the sum.",
    "Still failing with the same numbers. Perhaps only the discount is to be rounded, and the subtotal might stay.",
    "Strange, they fail with the same numbers again. I suspect that the line was right at first, so I put it back.",
)
CHECKS = (
    "That is probably the fix. I run the tests.",
    "I run the tests again. This could be it.",
    "Back at the start. Maybe the tests pass when they run once more.",
)
FIX = ("int(rest or 0)", 'int(rest.ljust(2, "0"))')


@dataclass(frozen=True, slots=True)
class Action:
    """One finished tool call of this run."""

    tool: str
    path: str
    result: str


class ScriptedModel(BaseChatModel):
    """Scripted LangChain chat model. `requests` holds the messages of each call."""

    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def next_turn(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the script's answer to a request."""
        return next_turn(messages)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(**kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self._requests.append(list(messages))
        answer = self.next_turn(messages)
        read, written = tokens(messages), tokens([answer])
        usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        answer.usage_metadata = usage
        return ChatResult(generations=[ChatGeneration(message=answer)])


def tokens(messages: Sequence[BaseMessage]) -> int:
    said = [message.text for message in messages]
    called = [str(call["args"]) for call in calls_of(messages)]
    return sum(map(len, [*said, *called])) // CHARS_PER_TOKEN


def calls_of(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    return [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


def guidance(messages: Sequence[BaseMessage]) -> str:
    """Return the guidance of a request, from our frame to the end; "" if it has none."""
    _, frame, text = messages[-1].text.partition(FRAME)
    return frame + text


# --- the script


def next_turn(messages: Sequence[BaseMessage]) -> AIMessage:
    done = history(messages)
    if done and done[-1].tool == "run_tests" and passing(done[-1].result):
        return AIMessage("All tests pass: a price with one decimal was read as cents, 12.5 as 1205.")
    finding = FINDING.search(guidance(messages))
    return next_on_course(done) or (heed(done) if finding else cling(done))


def history(messages: Sequence[BaseMessage]) -> list[Action]:
    results = {message.tool_call_id: message.text for message in messages if isinstance(message, ToolMessage)}
    return [
        Action(call["name"], call["args"].get("path", ""), results[call["id"] or ""]) for call in calls_of(messages)
    ]


def cling(done: Sequence[Action]) -> AIMessage:
    """Continue with the wrong idea that the bug is where the tracebacks end."""
    if len(done) < len(OPENING):
        thought, call = OPENING[len(done)]
        return turn(done, thought, call)
    guess = edits(done) % len(GUESSES)
    if done[-1].tool == "edit_file":
        return turn(done, CHECKS[guess - 1], TEST)
    return turn(done, DOUBTS[guess], edit(SUSPECT, GUESSES[guess], GUESSES[(guess + 1) % len(GUESSES)]))


def heed(done: Sequence[Action]) -> AIMessage:
    """Read the test module that the newest test report names."""
    reports = "\n".join(action.result for action in done if action.tool == "run_tests")
    path = re.findall(r'"(tests/\w+\.py)"', reports)[-1]
    thought = f"The same each time: so my edits of {SUSPECT} change nothing. That result names {path}; I read it."
    return turn(done, thought, read(path))


def next_on_course(done: Sequence[Action]) -> AIMessage | None:
    """Return the next answer once the tests have been read; None before."""
    last = done[-1] if done else Action("", "", "")
    if last.path.startswith("tests/"):
        path = unread_module(last.result, done)
        thought = f"Every failing test has a price with one decimal, the others have two. {path} reads prices."
        return turn(done, thought, read(path))
    if last.tool == "read_file" and FIX[0] in last.result:
        thought = "The decimals of 12.5 are read as 5 cents. I fill them up to two, and put my guess back."
        return turn(
            done, thought, edit(last.path, *FIX), edit(SUSPECT, GUESSES[edits(done) % len(GUESSES)], GUESSES[0])
        )
    if any(action.tool == "edit_file" and action.path != SUSPECT for action in done):
        return turn(done, "Both files are changed: the tests show whether that was it.", TEST)
    return None


def unread_module(test: str, done: Sequence[Action]) -> str:
    """Return the first module that a test module imports from the shop and the run has not read."""
    known = {action.path for action in done}
    used = [f"shop/{name}.py" for name in re.findall(r"from shop\.(\w+) import", test)]
    return next(path for path in used if path not in known)


def edits(done: Sequence[Action]) -> int:
    return sum(action.tool == "edit_file" for action in done)


def turn(done: Sequence[Action], thought: str, *calls: Call) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"call-{len(done) + at}"} for at, (name, args) in enumerate(calls)]
    return AIMessage(thought, tool_calls=made)
