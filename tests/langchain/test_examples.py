"""LangChain's example, and what docs/langchain.md shows, run as they stand."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.langchain.scripted import ScriptedModel, by_position, calls

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/langchain_agent.py"
PAGE = ROOT / "docs/langchain.md"
pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="examples and docs are no part of the wheels")

FINDING = "5 times (your last step, and 1, 2, 3 and 4 steps before it)"


def test_the_example_prints_what_the_agent_was_told() -> None:
    shown = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"call 5: NORMAL\n  | run_tests() has failed in the same way {FINDING}" in shown.stdout
    assert shown.stdout.endswith("success: 7 calls\n")


# --- the page


def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path} is empty"


def run_tests() -> str:
    """Runs the tests."""
    return "3 failed"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page's blocks leave, and what they printed."""
    looping = [calls("run_tests", "I run the tests.", id=f"c{at}") for at in range(6)]
    model = ScriptedModel(script=by_position(*looping, "Done.", "I could not fix them."))
    names: dict[str, Any] = {"model": model, "read_file": read_file, "run_tests": run_tests}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), names)
    return {**names, "printed": out.getvalue()}


def test_the_runs_of_the_page_are_steered(page: dict[str, Any]) -> None:
    read = [seen.messages[-1].text for seen in page["model"].seen]
    assert [FINDING in text for text in read] == [*[*[False] * 5, True, False] * 3, False]


def test_the_page_s_person_is_asked_and_answers(page: dict[str, Any]) -> None:
    keys = {"type", "reason", "run_id", "step", "state", "monitors_fired", "failure_type", "thought"}
    assert page["question"].keys() == keys
    assert all(f"`{key}`" in PAGE.read_text(encoding="utf-8") for key in keys)
    assert (page["question"]["reason"], page["question"]["step"]) == ("it repeats itself", 2)
    told = [seen.messages[-1].text.partition("\n\n")[2] for seen in page["model"].seen]
    assert any(text.startswith("[REASONBLOCKS]\nAn operator of this run says: Read the test") for text in told)


def test_the_page_s_last_run_has_a_second_look(page: dict[str, Any]) -> None:
    assert [message.text for message in page["result"]["messages"][-2:]] == ["Done.", "I could not fix them."]


def test_the_page_s_step_log_is_that_of_the_named_run(page: dict[str, Any]) -> None:
    assert [line.split()[:2] for line in page["printed"].splitlines()] == [
        ["0", "INIT"],
        ["1", "NORMAL"],
        ["2", "NORMAL"],
        ["3", "NORMAL"],
        ["4", "NORMAL"],
        ["5", "NORMAL"],
        ["6", "NORMAL"],
        ["success"],
    ]
