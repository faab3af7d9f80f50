"""What an installed core has to do at the least; the wheel is tested with it, too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from reasonblocks import FSMState, ReasonBlocks, Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks.backends.embed import StaticEmbedder


def test_a_hand_written_loop_is_steered() -> None:
    with ReasonBlocks(strict=True).session(task="Fix the failing tests.") as session:
        decision = session.begin_step(StepInput())
        for call in range(6):
            session.end_step(decision, StepOutcome(model="some-model"))
            completed = Step(
                thought="I run the tests again.",
                tool_calls=(ToolCall(id=f"c{call}", name="run_tests"),),
                tool_results=(ToolResult(call_id=f"c{call}", output="3 failed"),),
            )
            decision = session.begin_step(StepInput(completed=completed))
    told = [entry.intervention_texts for entry in session.step_log[1:] if entry.intervention_texts]
    assert "run_tests" in told[0][0]


def test_the_shipped_embedding_model_comes_along() -> None:
    same, reworded, other = StaticEmbedder().embed_many(
        ["The unit tests fail again", "Once more the test suite is failing", "I book the cheapest flight to Oslo"]
    )
    assert same @ reworded > same @ other


def test_states_are_named_as_the_log_names_them() -> None:
    session = ReasonBlocks(strict=True).session()
    session.begin_step(StepInput())
    assert FSMState(session.step_log[0].fsm_state) is FSMState.INIT


def test_the_command_replays_a_file(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"steps": [{"thought": "I look.", "action": "ls", "observation": "a"}]}) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "reasonblocks", "replay", str(file), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [step["gate_decision"] for step in json.loads(done.stdout)["steps"]] == ["final"]
