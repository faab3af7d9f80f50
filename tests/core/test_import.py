"""What an import brings, and that no step brings anything more."""

from __future__ import annotations

import subprocess
import sys

FOREIGN = {
    "httpx",
    "numpy",
    "sklearn",
    "qdrant_client",
    "grpc",
    "langchain",
    "langchain_core",
    "langgraph",
    "pydantic",
    "asyncio",
}
A_RUN = """
import sys
from reasonblocks import LocalStore, Pattern, ReasonBlocks, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
lesson = Pattern(id="a", tier="e2", fields={"diagnosis": "It loops.", "intervention": "Stop."}, exemplars=("I look",))
rb = ReasonBlocks(pattern_store=LocalStore(patterns=[lesson]), model_routing={"SLOW": "strong"}, strict=True)
with rb.session() as other:
    other.trace.restore(other.trace.snapshot())  # the first snapshot loads pydantic
loaded = set(sys.modules)
with rb.session(task="Find the bug.") as session:
    completed = None
    for n in range(6):
        decision = session.begin_step(StepInput(key=str(n), completed=completed, default_model="claude-x"))
        calls = (ToolCall(id="c", name="bash", arguments={"command": "pytest"}),)
        session.end_step(decision, StepOutcome(text="I look", tool_calls=calls, usage=Usage(input=9, output=1)))
        completed = Step(thought="I look", tool_calls=calls, tool_results=(ToolResult(call_id="c", output="1 failed"),))
    session.trace.restore(session.trace.snapshot())
    assert [entry for entry in session.step_log if entry.injections]
print(*(set(sys.modules) - loaded))
"""


def printed(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_import_brings_no_framework_and_no_network() -> None:
    assert printed("import sys; from reasonblocks import ReasonBlocks; print(*sys.modules)") & FOREIGN == set()


def test_the_shipped_calibration_is_read_when_a_client_is_made() -> None:
    code = "import sys; from reasonblocks import ReasonBlocks; {} print(*sys.modules)"
    read = [printed(code.format(made)) & {"reasonblocks.monitors.calibration"} for made in ("", "ReasonBlocks();")]
    assert read == [set(), {"reasonblocks.monitors.calibration"}]


def test_a_client_brings_no_framework_and_no_network() -> None:
    made = printed("import sys; from reasonblocks import ReasonBlocks; ReasonBlocks(); print(*sys.modules)")
    assert made & FOREIGN == {"numpy"}  # with which the starter library is searched: no step waits for it


def test_a_client_that_searches_nothing_brings_no_numpy() -> None:
    code = "import sys; from reasonblocks import ReasonBlocks; {}; print(*sys.modules)"
    assert printed(code.format("ReasonBlocks(e_traces_enabled=False)")) & FOREIGN == set()


def test_no_step_loads_a_module() -> None:
    assert printed(A_RUN) == set()


def test_what_examples_and_parity_take_from_testing_needs_no_pytest() -> None:
    wanted = "from reasonblocks_testing import Script, __main__, server"
    assert printed(f"import sys; sys.modules['pytest'] = None; {wanted}; print('there')") == {"there"}
