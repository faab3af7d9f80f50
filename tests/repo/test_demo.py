"""The demo shows what it says, and the picture in docs/ is that of its runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from two_runs import Run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PICTURE = ROOT / "docs/steered-run.svg"


def python(script: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module", autouse=True)
def _examples() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield


@pytest.fixture(scope="module")
def runs(_examples: None) -> tuple[Run, Run]:
    from two_runs import both_runs

    return both_runs()


@pytest.fixture(scope="module")
def plain(runs: tuple[Run, Run]) -> Run:
    return runs[0]


@pytest.fixture(scope="module")
def steered(runs: tuple[Run, Run]) -> Run:
    return runs[1]


# --- the runs


def test_the_plain_run_loops_to_its_limit_and_fixes_nothing(plain: Run) -> None:
    from two_runs import MAX_CALLS

    assert (plain.at_limit, len(plain.steps), plain.verdict) == (True, MAX_CALLS, "FAILED (errors=3)")


def test_the_plain_run_reads_no_guidance(plain: Run) -> None:
    assert plain.guidance == {}


def test_the_steered_run_ends_by_itself_with_the_tests_passing(steered: Run) -> None:
    assert (steered.at_limit, steered.verdict, steered.fixed) == (False, "OK", True)


def test_both_runs_are_the_same_until_a_finding_is_read(plain: Run, steered: Run) -> None:
    heard = steered.heard[0]
    assert plain.steps[:heard] == steered.steps[:heard]
    assert plain.steps[heard].did != steered.steps[heard].did


def test_the_finding_counts_the_checks_that_it_is_about(steered: Run) -> None:
    heard = steered.heard[0]
    tested = [at for at, step in enumerate(steered.steps[:heard]) if step.did == ["run_tests"]]
    assert tested[-1] == heard - 1
    said = f"{len(tested)} checks in a row, the last being run_tests(), have ended in the same way, "
    assert said in steered.guidance[heard]


# --- the script


def test_the_model_heeds_the_text_of_a_finding_at_any_step(steered: Run) -> None:
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from scripted_model import TEST, next_turn, turn

    done = [turn([], "I run the tests.", TEST), ToolMessage('File "tests/test_orders.py"', tool_call_id="call-0")]

    def path(*tail: str) -> str:
        request: list[BaseMessage] = [*done, *map(HumanMessage, tail)]
        answer: AIMessage = next_turn(request)
        return str(answer.tool_calls[0]["args"].get("path"))

    finding, rules = steered.guidance[steered.heard[0]], steered.guidance[0]
    assert path(finding) == "tests/test_orders.py"
    assert path(rules) == path() != "tests/test_orders.py"


# --- the command


def test_the_demo_prints_the_guidance_as_it_was_read_and_succeeds(steered: Run) -> None:
    shown = python("demo.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    for text in steered.guidance.values():
        assert all(f"| {line}\n" in shown.stdout for line in text.splitlines())
    assert "The model is scripted" in shown.stdout


def test_the_demo_with_files_replays_them(tmp_path: Path) -> None:
    step = {"thought": "I look.", "action": "look", "action_input": "{}", "observation": "nothing"}
    (tmp_path / "mine.jsonl").write_text(json.dumps({"run_id": "my-own-run", "steps": [step]}), encoding="utf-8")
    shown = python("demo.py", "mine.jsonl", "--json", cwd=tmp_path)
    assert (shown.returncode, json.loads(shown.stdout)["run_id"]) == (0, "my-own-run")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_without_rich_the_columns_keep_within_the_terminal(runs: tuple[Run, Run], width: int) -> None:
    from side_by_side import cells_of, plain_table

    cells = [list(map(str, row)) for row in zip(range(99), *map(cells_of, runs))]
    assert max(map(len, plain_table(["step", "plain", "steered"], cells, width))) <= width


# --- the picture


def test_the_picture_is_that_of_the_runs(runs: tuple[Run, Run]) -> None:
    from picture import picture

    made = picture(*runs) + "\n"
    assert PICTURE.read_text(encoding="utf-8") == made, "python examples/picture.py > docs/steered-run.svg"


def test_the_picture_holds_the_states_and_the_guidance(steered: Run) -> None:
    words = " ".join(" ".join(ElementTree.parse(PICTURE).getroot().itertext()).split())
    assert {step.judged.state for step in steered.steps} <= set(words.split())
    assert " ".join(steered.guidance[steered.heard[0]].split()) in words


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    root = ElementTree.parse(PICTURE).getroot()
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "line", "path", "text"}
