"""A run lives in its checkpoint: it goes on in another process, and from any point of its past."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from reasonblocks.types import StepLogEntry
from reasonblocks_langchain import middleware
from tests.langchain.other_process import CALLS
from tests.langchain.world import QUESTION, agent, scripted, thread
from tests.steered import steering
from tests.whole import in_whole

DECIDED = ("step", "difficulty", "fsm_state", "gate_decision", "injection_sources", "intervention_texts")


def decided(log: Sequence[StepLogEntry]) -> list[dict[str, Any]]:
    """What steering decided, as JSON has it."""
    return [json.loads(json.dumps({key: entry.as_dict()[key] for key in DECIDED})) for entry in log]


def whole_run() -> list[dict[str, Any]]:
    mw = middleware(steering())
    agent(scripted(CALLS), mw).invoke(QUESTION)
    return decided(mw.step_log)


def process(database: Path, parts: range) -> list[Any]:
    """Return the output of each part. All run in one process, because imports take seconds; each makes new objects."""
    command = [sys.executable, "-m", "tests.langchain.other_process", str(database), *map(str, parts)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines()]


@in_whole
def test_a_run_that_waits_for_a_human_goes_on_in_another_process(tmp_path: Path) -> None:
    halves = (range(2), range(2, CALLS + 1))  # the second process begins within a cooldown
    parts = [said for half in halves for said in process(tmp_path / "agent.db", half)]
    assert {part["run"] for part in parts} == {"run"}
    assert [part["outcome"] for part in parts] == [None] * CALLS + ["success"]
    entries = [{key: entry[key] for key in DECIDED} for part in parts for entry in part["log"]]
    assert entries == whole_run()
    assert [entry["gate_decision"] for entry in entries[1:]] == ["inject", "cooldown", "cooldown", "inject"]


def before_call(steered: Any, call: int) -> Any:
    """The checkpoint's config from which call `call` is decided."""
    states = [state for state in steered.get_state_history(thread()) if "SteeringMiddleware.before_model" in state.next]
    return states[-1 - call].config


def test_from_its_past_a_run_decides_as_it_did() -> None:
    mw = middleware(steering(), run_id="run")
    steered = agent(scripted(CALLS), mw, checkpointer=InMemorySaver())
    steered.invoke(QUESTION, thread())
    first = decided(mw.step_log)
    steered.invoke(None, before_call(steered, 3))
    assert decided(mw.step_log) == first == whole_run()
    assert list(mw.runs) == ["run"]
    assert mw.runs["run"].outcome == "success"


def test_another_branch_does_not_see_what_this_one_did() -> None:
    mw = middleware(steering(), run_id="run")
    model = scripted(CALLS)
    steered = agent(model, mw, checkpointer=InMemorySaver())
    steered.invoke(QUESTION, thread())
    past = before_call(steered, 2)
    for _ in range(3):
        model.seen.clear()
        steered.invoke(None, past)
        assert [entry.step for entry in mw.step_log] == list(range(CALLS + 1))
        assert ["[REASONBLOCKS]" in seen.messages[-1].text for seen in model.seen[:3]] == [False, False, True]
        assert "Step 3 looked again" in model.seen[2].messages[-1].text


def test_a_second_middleware_takes_a_thread_over_where_the_first_left_it() -> None:
    saver, model = InMemorySaver(), scripted(CALLS)
    one, two = middleware(steering(), run_id="run"), middleware(steering(), run_id="run")
    options: dict[str, Any] = {"checkpointer": saver, "interrupt_before": ["model"]}
    for at in range(CALLS + 2):
        mw = (one, two)[at % 2]
        agent(model, mw, **options).invoke(QUESTION if at == 0 else None, thread())
    entries = {entry.step: entry for mw in (one, two) for entry in mw.step_log if entry.attempts}
    assert decided([entries[at] for at in sorted(entries)]) == whole_run()
