"""A scripted coding agent with a bit of everything: an easy start, a hard middle and a recovery."""

from __future__ import annotations

from collections.abc import Iterator

from ..types import ToolCall, ToolResult, Usage
from ._script import Script, Turn, tool_call, tool_result

STEPS = 60
HARD = range(16, 40)
"""Steps in which the tests fail and the agent doubts and repeats itself."""

EASY_TURNS = (
    ("I read the parser.", "", ("read_file",), "def parse(text): ..."),
    ("I make the change.", "", ("edit_file",), "ok"),
    ("I run the tests.", "", ("bash",), "12 passed in 0.3s"),
    ("I look at both callers.", "", ("read_file", "search"), "parse(line)"),
    ("", "The parser next.", ("read_file",), "zażółć gęślą 日本語 🧪 \u202e x"),
    ("", "", ("bash", "bash", "read_file"), "ok"),
)
HARD_TURNS = (
    ("Maybe the date is wrong; perhaps I should assume UTC, but I am unsure.", "", ("bash",), "Error: 3 failed"),
    ("Same again: the test fails with an unexpected error, I run the tests of the parser.", "", ("bash",), "3 failed"),
    ("", "Hmm, strange: it might be the cache, or it could be the clock. I cannot tell.", ("edit_file",), "denied"),
    ("Same again: the test fails with an unexpected error, I run the tests of the parser.", "", ("bash",), "3 failed"),
    ("", "", ("bash", "read_file"), "Traceback: KeyError: 'naïve'"),
    ("The change is complete, although the tests failed.", "", ("edit_file",), "ok"),
)


def long_script() -> Script:
    """Return a script of sixty steps and an answer."""
    last = Turn(text="All tests pass now: 12 passed, 0 failed.", usage=Usage(input=5_000, output=12))
    return Script(turns=(*_turns(), last), task="Fix the failing tests in src/app.py – żółć.", run_id="long")


def _turns() -> Iterator[Turn]:
    for at in range(STEPS):
        kinds = HARD_TURNS if at in HARD else EASY_TURNS
        text, reasoning, tools, output = kinds[at % len(kinds)]
        yield Turn(
            text=text,
            reasoning=reasoning,
            tool_calls=tuple(_call(at, number, name) for number, name in enumerate(tools)),
            results=tuple(_result(at, number, output) for number in range(len(tools))),
            usage=Usage(input=100 + at, output=20, cache_read=50 + at, cache_write=at % 7),
        )


def _call(at: int, number: int, name: str) -> ToolCall:
    repeated = 0 if at in HARD else at % 5
    arguments = {"command": f"run {repeated}", "path": "src/app.py", "deep": {"lines": [1, 2.5, None, True, "ü"]}}
    return tool_call(f"call-{at}-{number}", name, arguments)


def _result(at: int, number: int, output: str) -> ToolResult:
    """Return a call's result; in hard steps call `at % 3` is marked as an error. No call is marked as a success."""
    return tool_result(f"call-{at}-{number}", output, is_error=True if at in HARD and at % 3 == number else None)
