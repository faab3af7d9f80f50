"""Every golden run through a hand-written loop, sync and async: the shipped decisions, call by call."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks.session import SteeringSession
from reasonblocks.types import Step, StepInput, StepLogEntry
from tests.core.world import Golden, World, golden_files, load_golden, through_json

FILES = golden_files()
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def model_of(golden: Golden, route: str | None) -> str:
    """The model that the loop calls: the routed one, else its own."""
    settings = golden.header["settings"]
    routing = {**settings.get("model_routing", {}), "ESCALATE": settings.get("escalate", {}).get("model")}
    model: str = routing[route] if route else golden.header["model"]
    return model


def given(golden: Golden, number: int, completed: Step | None) -> StepInput:
    return StepInput(key=f"k{number}", completed=completed, default_model=golden.header["model"])


def differences(golden: Golden) -> list[str]:
    """The loop that a user writes by hand."""
    world = World(golden)
    rb = golden.client(world)
    session: SteeringSession = rb.session(run_id=golden.name, task=golden.header["task"])
    entries: list[StepLogEntry] = []
    completed: Step | None = None
    for number, turn in enumerate(golden.script.turns):
        if number in golden.resumes:
            entries += session.step_log
            session = rb.session(snapshot=through_json(session.trace.snapshot()), task=golden.header["task"])
        decision = session.begin_step(given(golden, number, completed))
        session.end_step(decision, turn.outcome(model_of(golden, decision.route)))
        completed = turn.step
    session.finish(completed=completed)
    return golden.differences(entries + session.step_log, session.final, world)


async def adifferences(golden: Golden) -> list[str]:
    """The same loop for asyncio."""
    world = World(golden)
    rb = golden.client(world)
    session: SteeringSession = rb.session(run_id=golden.name, task=golden.header["task"])
    entries: list[StepLogEntry] = []
    completed: Step | None = None
    for number, turn in enumerate(golden.script.turns):
        if number in golden.resumes:
            entries += session.step_log
            session = rb.session(snapshot=through_json(session.trace.snapshot()), task=golden.header["task"])
        decision = await session.abegin_step(given(golden, number, completed))
        session.end_step(decision, turn.outcome(model_of(golden, decision.route)))
        completed = turn.step
    await session.afinish(completed=completed)
    return golden.differences(entries + session.step_log, session.final, world)


def test_there_are_golden_runs() -> None:
    assert len(FILES) >= 18


@every_file
def test_a_hand_written_loop_decides_as_the_file_says(path: Path) -> None:
    assert differences(load_golden(path)) == []


@every_file
def test_a_hand_written_async_loop_decides_as_the_file_says(path: Path) -> None:
    assert asyncio.run(adifferences(load_golden(path))) == []


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("fsm_state", "SKIP"),
        ("gate_decision", "quiet"),
        ("injection_sources", ["E9"]),
        ("asked", ["e9"]),
        ("tokens", 1),
    ],
)
def test_an_expectation_that_was_changed_is_noticed(key: str, wrong: object) -> None:
    golden = load_golden(next(path for path in FILES if path.stem == "order"))
    line = golden.calls[1]
    changed = {**line, "expect": {**line["expect"], key: wrong}}
    assert len(differences(replace(golden, calls=(golden.calls[0], changed, *golden.calls[2:])))) == 1


def test_an_injected_text_that_was_changed_is_noticed() -> None:
    golden = load_golden(next(path for path in FILES if path.stem == "cooldown"))
    line = golden.calls[1]
    texts = ["another text"] * len(line["expect"]["injection_sources"])
    changed = {**line, "expect": {**line["expect"], "intervention_texts": texts}}
    assert differences(replace(golden, calls=(golden.calls[0], changed, *golden.calls[2:]))) != []


def test_a_final_entry_that_was_changed_is_noticed() -> None:
    golden = load_golden(next(path for path in FILES if path.stem == "slow"))
    assert differences(replace(golden, final={**golden.final, "fsm_state": "INIT"})) != []


def test_a_call_that_is_missing_is_noticed() -> None:
    golden = load_golden(next(path for path in FILES if path.stem == "slow"))
    extra = {**golden.calls[-1], "call": len(golden.calls)}
    world = World(golden)
    assert replace(golden, calls=(*golden.calls, extra)).differences([], None, world)[0].startswith("0 entries for")
