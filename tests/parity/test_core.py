"""The core's own ways into a run decide alike: a loop by hand, sync and async, and replay."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.render import place
from reasonblocks.session.log import entry_of_decision
from reasonblocks.types import StepDecision
from reasonblocks_testing import Golden, LoopHarness, Ran, Script, Seen, World, load_golden
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun
from tests.parity.compare import LIVE_ONLY, entry_differences
from tests.parity.conftest import Tally
from tests.parity.reference import core, entries
from tests.parity.runs import GOLDEN, NAMES

each_run = pytest.mark.parametrize("name", NAMES)


class Replay:
    """A script as a recorded run, replayed: whole, since a recording does not know of other processes."""

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        report = replay(rb, recorded(script))
        calls = [report.start, *report.decisions[:-1]]
        return [
            Ran(
                run_id=script.run_id,
                seen=tuple(request(script, decision) for decision in calls),
                log=[entry_of_decision(decision, 0.0, 0.0, "shipped") for decision in calls],
                final=entry_of_decision(report.decisions[-1], 0.0, 0.0, "shipped"),
                outcome="success",
            )
        ]


def recorded(script: Script) -> RecordedRun:
    return RecordedRun(
        run_id=script.run_id,
        steps=tuple(turn.step for turn in script.turns),
        usages=tuple(turn.usage for turn in script.turns),
        file="script",
        line=1,
        task=script.task,
        model=script.model,
    )


def request(script: Script, decision: StepDecision) -> Seen:
    """What the model would have read."""
    tail = decision.guidance if decision.placement == "tail" else ""
    block = "" if tail else decision.guidance
    system = place(script.system_prompt, block, decision.standing_rules, cache_control=False)
    return Seen(model=script.model, system=str(system or ""), texts=(tail,))


@each_run
def test_the_async_loop_decides_as_the_sync_one(name: str, tally: Tally) -> None:
    pairs = list(zip(entries(LoopHarness(), name, "async"), core(name), strict=True))
    found = [text for one, other in pairs for text in entry_differences(one, other)]
    tally.add("the hand-written loop, async", len(pairs), len(found))
    assert not found, "\n".join(found)


@each_run
def test_replay_decides_as_the_loop(name: str, tally: Tally) -> None:
    pairs = list(zip(entries(Replay(), name, "replay"), core(name), strict=True))
    found = [text for one, other in pairs for text in entry_differences(one, other, leave=LIVE_ONLY)]
    tally.add("replay", len(pairs), len(found))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "golden", [load_golden(path) for path in sorted(GOLDEN.glob("*.jsonl"))], ids=lambda one: one.name
)
def test_a_golden_run_replays_as_written(golden: Golden) -> None:
    world = World(golden)
    (ran,) = Replay().run(golden.client(world), golden.script, "replay")
    differences = golden.differences(ran.log, ran.final, world)
    assert [text for text in differences if not any(f"{key} is" in text for key in LIVE_ONLY)] == []


@pytest.mark.parametrize("state", ["FAST", "NORMAL", "SLOW"])
def test_the_long_run_goes_through_the_states(state: str) -> None:
    assert state in {line["fsm_state"] for line in core("long system")}


def test_the_long_run_is_told_something_of_every_kind() -> None:
    sources = {source for line in core("long system") for source in line["injection_sources"]}
    assert sources == {"MonitorSteeringInjection", "E1Injection", "E2Injection", "E3Injection"}
