"""A run that has everything that a reader has to read."""

from __future__ import annotations

from reasonblocks import ReasonBlocks
from reasonblocks.types import Step, Usage
from reasonblocks_testing import LoopHarness, Ran, Script, Turn, tool_call, tool_result
from tests.core.otel.world import Memory

TURNS = (
    Turn(
        text="I look at the parser.",
        tool_calls=(tool_call("a", "read_file", {"path": "src/parse.py"}),),
        results=(tool_result("a", "def parse(text): ...", is_error=False),),
        usage=Usage(input=100, output=10, cache_read=40, cache_write=5),
    ),
    Turn(
        text="Both callers, and the tests.",
        reasoning="Something else may call it.",
        tool_calls=(
            tool_call("b", "read_file", {"path": "src/a.py", "lines": [1, 2.5, None, True, "zażółć 🧪"]}),
            tool_call("c", "bash", {"command": "pytest -q"}),
        ),
        results=(tool_result("b", "parse(line)"), tool_result("c", "3 failed\n\nKeyError: 'naïve'", is_error=True)),
        usage=Usage(input=140, output=20),
    ),
    Turn(
        reasoning="No idea what that means.",
        tool_calls=(tool_call("d", "list_files"),),
        results=(tool_result("d", ""),),
        usage=Usage(input=180, output=5),
    ),
    Turn(text="The parser is fixed.", usage=Usage(input=200, output=6)),
)
SCRIPT = Script(turns=TURNS, task="Fix the parser – żółć.", run_id="recorded", agent_name="fixer")
STEPS: tuple[Step, ...] = tuple(turn.step for turn in TURNS)


def record(memory: Memory) -> Ran:
    """Run the script with a sink that emits calls."""
    rb = ReasonBlocks(sinks=[memory.sink(calls=True)], strict=True)
    (ran,) = LoopHarness().run(rb, SCRIPT, "sync")
    rb.close()
    return ran
