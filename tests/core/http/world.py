"""The clients and runs of these tests, and a server that never answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from typing import Any

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.requests import Evaluate
from reasonblocks.types import (
    Account,
    Patience,
    Step,
    StepDecision,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
    Usage,
)
from reasonblocks_testing.rb_api import Received, ScriptedRbApi

EVALUATE, RETRIEVE, EVENTS = "/monitors/evaluate", "/traces/retrieve", "/monitor/events"
PATIENT_MS = 20_000
"""A deadline that a busy machine keeps."""
SHORT_MS = 150
"""A deadline that passes in these tests."""


def client(api: ScriptedRbApi, **options: Any) -> ReasonBlocks:
    """A client of the server that asks it for evaluations alone, unless the options say otherwise."""
    given: dict[str, Any] = {
        "base_url": api.url,
        "api_key": api.key,
        "e_traces_enabled": False,
        "live_streaming_enabled": False,
        "step_deadline_ms": PATIENT_MS,
    }
    return ReasonBlocks(**{**given, **options})


def completed(number: int, output: str = "1 failed") -> Step:
    """The completed step `number`: the same failing call each time."""
    call = ToolCall(id=f"c{number}", name="bash", arguments={"command": "pytest", "timeout": None})
    return Step(
        thought="I run the tests.",
        tool_calls=(call,),
        tool_results=(ToolResult(call_id=call.id, output=output, name="bash"),),
    )


def given(number: int) -> StepInput:
    return StepInput(key=str(number), completed=completed(number - 1) if number else None, default_model="agent")


def answered(number: int) -> StepOutcome:
    return StepOutcome(tool_calls=completed(number).tool_calls, usage=Usage(input=9, output=1))


def run(session: SteeringSession, calls: int, start: int = 0) -> list[StepDecision]:
    """Make calls of a run, and return their decisions."""
    decisions = []
    for number in range(start, start + calls):
        decisions.append(session.begin_step(given(number)))
        session.end_step(decisions[-1], answered(number))
    return decisions


async def arun(session: SteeringSession, calls: int) -> list[StepDecision]:
    decisions = []
    for number in range(calls):
        decisions.append(await session.abegin_step(given(number)))
        session.end_step(decisions[-1], answered(number))
    return decisions


def gates(decisions: Sequence[StepDecision]) -> list[str | None]:
    return [decision.gate_decision for decision in decisions]


def at(api: ScriptedRbApi, path: str) -> list[Received]:
    """The requests to one route."""
    return [received for received in api.requests if received.path == path]


def asked(**changes: Any) -> Evaluate:
    """A request of the engine for the evaluation of a run's first step."""
    fields: dict[str, Any] = {
        "step": completed(0), "index": 0, "memories": {}, "injected": (), "task": "", "profile": "coding",
        "weights": {}, "account": Account(), "patience": Patience(), "run_id": "r",
    }  # fmt: skip
    return Evaluate(**{**fields, **changes})


class Silent:
    """A server that accepts connections, answers none, and knows when clients close them."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked, self.closed = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            while connection.recv(65_536):
                self.asked.set()
        self.closed.set()

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
