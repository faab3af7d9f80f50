"""Small runs written by hand whose lesson is known, and what is learned from them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reasonblocks import HashEmbedder, ReasonBlocks, Step, ToolCall, ToolResult, Usage
from reasonblocks.types import JSON, Pattern
from reasonblocks_workbench.learning import Distil, Proposal, learn
from reasonblocks_workbench.traces import RecordedRun

NO_SEATS = "Error: not enough seats on flight HAT290"


def step(tool: str, output: str, thought: str = "", **arguments: JSON) -> Step:
    """A call and what came back; an output that begins with "Error" is an error."""
    call = ToolCall(id="c", name=tool, arguments=arguments)
    result = ToolResult(call_id="c", name=tool, output=output, is_error=output.startswith("Error"))
    return Step(thought=thought or f"I call {tool} for the customer.", tool_calls=(call,), tool_results=(result,))


def answer(text: str = "Here is what I found.") -> Step:
    return Step(thought=text)


def run(run_id: str, outcome: str | None, *steps: Step, task: str = "t1", source: str = "airline") -> RecordedRun:
    return RecordedRun(
        run_id=run_id,
        steps=steps,
        usages=(Usage(),) * len(steps),
        file="runs.jsonl",
        line=1,
        source=source,
        outcome=outcome,
        task=f"Rebook the flight of task {task}.",
        task_key=task,
    )


def look(flight: str = "r1") -> Step:
    return step("get_reservation", f"reservation with two flights and one passenger, {flight}", reservation=flight)


def update(output: str, **arguments: JSON) -> Step:
    return step("update_flights", output, "I move the passenger to the other flight.", **arguments)


def failing(run_id: str = "bad", task: str = "t1", source: str = "airline") -> RecordedRun:
    """The same tool fails three times; the run never looks for seats."""
    stuck = [update(NO_SEATS, flight=f"HAT29{n}", payment="gift_card_1234567") for n in range(3)]
    return run(run_id, "failure", look(), *stuck, answer("I could not do it."), task=task, source=source)


def succeeding(run_id: str = "good", task: str = "t1", source: str = "airline") -> RecordedRun:
    """Looks for seats first, then updates."""
    seats = step("search_flights", "a list of the flights that have seats left", date="2024-05-20")
    done = update("the reservation was updated", flight="HAT300", payment="gift_card_1234567")
    return run(run_id, "success", look(), seats, done, answer("It is done."), task=task, source=source)


def learned(runs: Iterable[RecordedRun], *, org_id: str = "acme", distil: Distil | None = None) -> tuple[Proposal, ...]:
    """What the library learns, with the embedder that needs no model."""
    with ReasonBlocks(e_traces_enabled=False, strict=True) as rb:
        return learn(runs, rb=rb, org_id=org_id, embedder=HashEmbedder(), distil=distil)


def action(proposal: Proposal) -> str:
    """What it tells the agent to do."""
    fields = proposal.pattern.fields
    return str(fields.get("recommended_action") or fields.get("intervention"))


def told(pattern: Pattern) -> str:
    """All that an agent may read of it."""
    return " ".join(str(text) for name, text in pattern.fields.items() if not re.search("text|trigger", name))
