"""What an import brings, and that no step brings anything more."""

from __future__ import annotations

from tests.core.world import printed

FOREIGN = set(
    "httpx numpy sklearn qdrant_client grpc langchain langchain_core langgraph agents openai anthropic "
    "claude_agent_sdk opentelemetry rich pytest pydantic asyncio".split()
)
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
FIRST_STEP = """
import sys
from reasonblocks import ReasonBlocks, Step, StepInput
session = ReasonBlocks().session()
before = set(sys.modules)
session.begin_step(StepInput())
session.begin_step(StepInput(completed=Step(thought="maybe an error")))
session.finish()
print(*(set(sys.modules) - before))
"""


def loaded(code: str) -> set[str]:
    """The modules of a process after some code."""
    return {*printed(f"{code}\nimport sys; print(*sys.modules)").split()}


def test_an_import_brings_no_framework_and_no_network() -> None:
    assert loaded("import reasonblocks") & {*FOREIGN, "sqlite3"} == set()
    client = loaded("from reasonblocks import ReasonBlocks")
    assert client & {*FOREIGN, "reasonblocks.monitors.calibration"} == set()
    memory = loaded("from reasonblocks.memory import CodebaseMemory, recalled_text")
    assert memory & {*FOREIGN, "sqlite3", "detect_secrets"} == set()


def test_a_client_reads_the_calibration_and_brings_what_it_searches_with() -> None:
    made = loaded("from reasonblocks import ReasonBlocks; ReasonBlocks()")
    assert made & {*FOREIGN, "reasonblocks.monitors.calibration"} == {"numpy", "reasonblocks.monitors.calibration"}
    assert loaded("from reasonblocks import ReasonBlocks; ReasonBlocks(e_traces_enabled=False)") & FOREIGN == set()


def test_no_step_loads_a_module() -> None:
    assert (printed(A_RUN).split(), printed(FIRST_STEP).split()) == ([], [])


def test_what_examples_and_parity_take_from_testing_needs_no_pytest() -> None:
    wanted = "from reasonblocks_testing import Script, __main__, server"
    assert printed(f"import sys; sys.modules['pytest'] = None; {wanted}; print('there')") == "there\n"
