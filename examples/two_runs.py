"""Runs the demo's agent twice on the broken repository: plain, and steered by ReasonBlocks with its defaults."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broken_repo import passing, test_report, tools, verdict, write_to
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain.agents.middleware.model_call_limit import ModelCallLimitExceededError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, messages_to_dict
from langsmith import tracing_context
from scripted_model import FINDING, ScriptedModel, guidance

from reasonblocks import ReasonBlocks
from reasonblocks.types import StepLogEntry
from reasonblocks_workbench.cli import main as reasonblocks_command

MAX_CALLS = 16
"""The step limit of both runs, in model calls."""
SYSTEM_PROMPT = "You fix bugs. You can read files, edit them and run the tests."
TASK = "Fix the failing tests."
SETTING = re.compile(r"QDRANT_|REASONBLOCKS_(?!STRICT)")
"""Environment variables that would change the steered run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The state in which a step's call was made, and the difficulty and monitors of the completed step."""

    state: str
    difficulty: float | None
    fired: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One step: its tool calls (`did`) and their results (`came`), each in short."""

    did: Sequence[str]
    came: Sequence[str]
    judged: Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the agent. `guidance` is the guidance by call; `heard` are the calls with a monitor's finding."""

    steps: Sequence[Seen]
    guidance: Mapping[int, str]
    heard: Sequence[int]
    at_limit: bool
    tool_calls: int
    tokens_in: int
    tokens_out: int
    tests: str

    @property
    def verdict(self) -> str:
        return verdict(self.tests)

    @property
    def fixed(self) -> bool:
        return passing(self.tests) and not self.at_limit


def both_runs() -> tuple[Run, Run]:
    """Return the plain and the steered run.

    Settings in the environment and patterns that the user has added are ignored; nothing uses the network.
    """
    ours = {name: os.environ.pop(name) for name in list(os.environ) if SETTING.match(name)}
    try:
        with tracing_context(enabled=False), tempfile.TemporaryDirectory() as empty:
            os.environ["REASONBLOCKS_HOME"] = empty
            return plain_run(), steered_run()
    finally:
        os.environ.pop("REASONBLOCKS_HOME", None)
        os.environ.update(ours)


def plain_run() -> Run:
    with tempfile.TemporaryDirectory() as folder:
        root, model = write_to(Path(folder).resolve()), ScriptedModel()
        messages, at_limit = messages_of(model, root)
        return run_of(root, model, messages, replayed(messages), at_limit)


def steered_run() -> Run:
    with tempfile.TemporaryDirectory() as folder:
        root, model = write_to(Path(folder).resolve()), ScriptedModel()
        with ReasonBlocks().middleware(run_id="demo", agent_name="bugfixer") as steering:
            messages, at_limit = messages_of(model, root, steering)
        log: list[StepLogEntry] = steering.step_log
        judged = [
            Judged(state=call.fsm_state, difficulty=later.difficulty, fired=later.monitors_fired)
            for call, later in zip(log, [*log[1:], steering.final])
            if later is not None
        ]
        return run_of(root, model, messages, judged, at_limit)


def messages_of(model: ScriptedModel, root: Path, *steering: Any) -> tuple[list[BaseMessage], bool]:
    """Run the agent; return all messages, and whether the step limit ended the run."""
    limit = ModelCallLimitMiddleware(run_limit=MAX_CALLS, exit_behavior="error")
    agent = create_agent(model, tools=tools(root), system_prompt=SYSTEM_PROMPT, middleware=[limit, *steering])
    messages: list[BaseMessage] = []
    try:
        for state in agent.stream({"messages": [HumanMessage(TASK)]}, stream_mode="values"):
            messages = state["messages"]
    except ModelCallLimitExceededError:
        return messages, True
    return messages, False


def replayed(messages: Sequence[BaseMessage]) -> list[Judged]:
    """Return the judgements of an unsteered run, by `reasonblocks replay` over its messages."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "plain.json"
        record.write_text(json.dumps(messages_to_dict(messages)), encoding="utf-8")
        with redirect_stdout(io.StringIO()) as printed:
            reasonblocks_command(["replay", str(record), "--json"])
    report = json.loads(printed.getvalue())
    before = [report["start"], *report["steps"]]
    return [
        Judged(state=call["fsm_state"], difficulty=later["difficulty"], fired=tuple(later["fired"]))
        for call, later in zip(before, report["steps"])
    ]


def run_of(
    root: Path, model: ScriptedModel, messages: Sequence[BaseMessage], judged: Sequence[Judged], at_limit: bool
) -> Run:
    answers = [message for message in messages if isinstance(message, AIMessage)]
    results = {message.tool_call_id: message.text for message in messages if isinstance(message, ToolMessage)}
    usages = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    said = {call: text for call, request in enumerate(model.requests) if (text := guidance(request))}
    return Run(
        steps=[seen(answer, results, step) for answer, step in zip(answers, judged)],
        guidance=said,
        heard=[call for call, text in said.items() if FINDING.search(text)],
        at_limit=at_limit,
        tool_calls=len(results),
        tokens_in=sum(usage["input_tokens"] for usage in usages),
        tokens_out=sum(usage["output_tokens"] for usage in usages),
        tests=test_report(root),
    )


def seen(answer: AIMessage, results: Mapping[str, str], judged: Judged) -> Seen:
    did = [f"{call['name']} {call['args'].get('path', '')}".strip() for call in answer.tool_calls]
    came = [in_short(call["name"], results.get(call["id"] or "", "")) for call in answer.tool_calls]
    return Seen(did=did or ["answers"], came=came or [answer.text.partition(":")[0]], judged=judged)


def in_short(tool: str, result: str) -> str:
    if tool == "run_tests":
        return verdict(result)
    lines = len(result.splitlines())
    return f"{lines} line{'s' * (lines != 1)}" if tool == "read_file" else result
