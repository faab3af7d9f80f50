"""Work that looks like trouble and is none: no monitor fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reasonblocks.types import Step
from tests.core.monitors.conftest import act, play

DETOUR = "Before that I have to install version {} of a package, because nothing else runs without it."
LOOK = "The date parser rejects leap years, so that is where I look now."
NO_ERRORS = ("0 errors, 12 files checked", "No exception was raised", "error: none", "errors: 0")
WORK: Mapping[str, Sequence[Step]] = {
    "polling that makes progress": [
        act("job_status", f'{{"done": {percent}}}', job="42") for percent in range(0, 100, 10)
    ],
    "polling a job that still runs": [act("job_status", "RUNNING", job="42")] * 7,
    "edits, and the same test with changing failures": [
        step
        for left in range(6, 0, -1)
        for step in (
            act("edit_file", "ok", path="parser.py", old=f"a{left}", new=f"b{left}"),
            act("run_tests", f"{left} failed: test_leap_{left}", is_error=True, path="tests"),
        )
    ],
    "the same edit over twelve files": [
        act("edit_file", "File updated.", path=f"src/module_{n}.py", old="foo", new="bar") for n in range(12)
    ],
    "a file that is read in chunks": [
        act("read_file", f"lines from {at}", path="big.py", offset=at) for at in range(0, 4000, 200)
    ],
    "a list of similar items": [act("get_order", '{"status": "delivered"}', order=f"#W{n}") for n in range(30)],
    "one retry after an error": [
        act("fetch", "connection reset", is_error=True, url="u"), act("fetch", "<html>", is_error=False, url="u"),
    ],
    "reading a file again after it changed": [
        step
        for version in range(6)
        for step in (
            act("read_file", f"version {version}", path="parser.py"),
            act("edit_file", "ok", path="parser.py", new=f"version {version + 1}"),
        )
    ],
    "reports of no errors": [
        act("deploy", text, thought="It was successful.", part=n) for n, text in enumerate(NO_ERRORS * 3)
    ],
    "declaring done after a test run": [
        act("edit_file", "ok", path="parser.py", new="x"), act("bash", "3 passed", command="pytest -q"),
        Step(thought="The task is complete."),
    ],
    "a detour that is announced": [
        act("read_file", "text", path="p", thought=LOOK),
        *[act("bash", f"installed {n}", command=f"pip install thing=={n}", thought=DETOUR.format(n)) for n in range(9)],
    ],
    "an agent that only talks": [Step(thought=f"Which of the {n} flights would you like?") for n in range(20)],
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_legitimate_work_is_quiet(name: str) -> None:
    assert {fired for found in play(WORK[name]) for fired in found.fired} == set()


def test_one_retry_that_fails_like_before_is_told_nothing() -> None:
    steps = [act("fetch", "connection reset", is_error=True, url="u")] * 2 + [act("search", "a hit", query="q")]
    assert not any(found.inject for found in play(steps))
