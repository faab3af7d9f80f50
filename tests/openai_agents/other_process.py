"""Runs parts of an agent's run in a process of their own: `python -m tests.openai_agents.other_process FILE WAY KIND`.

The first part asks; later ones approve what a human was asked, from what the part before left in FILE. Prints a line
for each part: the step logs, the run's outcome, and what the model was sent. A process ends after `PARTS` parts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agents import Agent, RunState, function_tool

from reasonblocks_openai_agents import SteeredRun, steering_of
from reasonblocks_testing.server import Answer
from tests.openai_agents.world import TASK, Place, by_model, call, fixer, looks, place, said
from tests.steered import steering

CALLS = 3
PARTS = 2
"""Parts of a process. A new one spends seconds on imports, and each part makes all its objects anew."""


@function_tool(name_override="look", needs_approval=True)
def look_if_allowed(path: str) -> str:
    """Looks at a file, when a human says so."""
    return f"{path} is empty"


def alone() -> Agent[Any]:
    return fixer(tools=[look_if_allowed])


def with_inner() -> Agent[Any]:
    """What needs an approval is what an agent of its tool wants to do."""
    inner = fixer(name="inner", model="inner", tools=[look_if_allowed])
    return fixer(tools=[inner.as_tool("ask_inner", "Asks it.")])


def deep() -> Agent[Any]:
    middle = fixer(name="middle", model="middle", tools=with_inner().tools)
    return fixer(tools=[middle.as_tool("ask_middle", "Asks it.")])


KINDS = {"alone": alone, "with_inner": with_inner, "deep": deep}
ANSWERS: dict[str, Answer] = {
    "alone": by_model(own=looks(CALLS)),
    "with_inner": by_model(own=[call("ask_inner", "a0", input="Look."), said()], inner=looks(CALLS)),
    "deep": by_model(
        own=[call("ask_middle", "a0", input="Ask."), said()],
        middle=[call("ask_inner", "b0", input="Look."), said()],
        inner=looks(CALLS),
    ),
}


def part(here: Place, kind: str, kept: dict[str, Any] | None) -> tuple[SteeredRun, dict[str, Any] | None]:
    """One part of the run, and what the next one needs: None once it is over."""
    agent = KINDS[kind]()
    asked, snapshot = (TASK, None) if kept is None else (here.until(approved(agent, kept["state"])), kept["snapshot"])
    options = {"run_id": "run"} if kept is None else {"snapshot": snapshot}
    result = here.run(steering(), agent, asked, **options)
    run = steering_of(result)
    if not result.interruptions:
        return run, None
    return run, {"state": result.to_state().to_json(), "snapshot": run.snapshot()}


async def approved(agent: Agent[Any], kept: Any) -> RunState[Any, Any]:
    state = await RunState.from_json(agent, kept)
    for one in state.get_interruptions():
        state.approve(one)
    return state


def told(run: SteeredRun) -> list[Any]:
    """The run's id, outcome and step log, then those of the runs within it."""
    log = [entry.as_dict() for entry in run.step_log]
    return [[run.run_id, run.outcome, log], *(one for child in run.children for one in told(child))]


def is_over(file: Path) -> bool:
    return file.exists() and json.loads(file.read_text()) is None


def main(file: Path, way: str, kind: str) -> None:
    for _ in range(PARTS):
        if is_over(file):
            return
        kept = json.loads(file.read_text()) if file.exists() else None
        with place(ANSWERS[kind], way) as here:
            run, left = part(here, kind, kept)
            file.write_text(json.dumps(left))
            print(json.dumps({"runs": told(run), "guided": here.guided}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
