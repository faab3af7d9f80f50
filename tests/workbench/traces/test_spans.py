"""Spans of real agents under real instrumentations, made by `tools/span_fixtures.py`, are read as the runs they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks.types import Step
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import FIXTURES
from tests.workbench.traces.test_recordings import RUN, in_common


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The differences of a recording from the others: the text of the failed tool, and what its spans lack."""

    output: str
    error: bool = True
    reasoning: str = "Both files may matter."
    source: str | None = "fixer"
    runs: int = 2


SPANS = {
    "strands.json": Expected(output="Error: FileNotFoundError - b.py"),
    "strands_latest.json": Expected(output="Error: FileNotFoundError - b.py"),
    "openinference_anthropic.json": Expected(output="FileNotFoundError: b.py", error=False, source=None, runs=1),
    "openinference_langchain.json": Expected(output="FileNotFoundError: b.py", source=None),
    "openllmetry_langchain.json": Expected(output="FileNotFoundError: b.py", reasoning=""),
    "autogen_openai.json": Expected(output="b.py"),
    "autogen_openinference.json": Expected(output="b.py", reasoning=""),
    "langfuse_langchain.json": Expected(output="FileNotFoundError: b.py"),
    "langfuse_openai.json": Expected(output="FileNotFoundError: b.py", reasoning=""),
}
each = pytest.mark.parametrize("name", SPANS)


def runs(name: str) -> list[RecordedRun]:
    return [run for run in read_runs(str(FIXTURES / name)) if isinstance(run, RecordedRun)]


@each
def test_the_steps_of_the_run_are_read(name: str) -> None:
    found = [step for run in runs(name) for step in run.steps]
    *others, last = RUN
    last = last if SPANS[name].runs == 1 else replace(last, user_text="")
    assert tuple(map(without_errors, found)) == (*others, last)


def without_errors(step: Step) -> Step:
    return in_common(replace(step, thought=step.thought.strip()))


@each
def test_the_failed_tool_has_the_text_that_the_model_read(name: str) -> None:
    (failed,) = [result for result in runs(name)[0].steps[0].tool_results if result.call_id == "c2"]
    assert (failed.output, failed.is_error) == (SPANS[name].output, SPANS[name].error or None)


@each
def test_each_prompt_is_the_task_of_its_run(name: str) -> None:
    found = runs(name)
    tasks = ["Fix the failing tests.", "And now the linter."][: SPANS[name].runs]
    assert [run.task for run in found] == tasks
    assert {run.source for run in found} == {SPANS[name].source}
    assert {run.model for run in found} == {"scripted-model"}
    assert {run.outcome for run in found} == {None}


@each
def test_no_run_names_a_parent_that_is_no_run(name: str) -> None:
    found = runs(name)
    assert {run.parent_run_id for run in found} <= {None, *(run.run_id for run in found)}


@each
def test_reasoning_and_tokens_are_read_where_they_are_recorded(name: str) -> None:
    first = runs(name)[0]
    assert first.steps[0].reasoning == SPANS[name].reasoning
    assert [(one.input, one.output) for run in runs(name) for one in run.usages] == [
        (100, 10), (200, 20), (300, 30), (400, 40),
    ]  # fmt: skip


def test_model_calls_without_texts_beside_runs_are_one_error() -> None:
    found = list(read_runs(str(FIXTURES / "openinference_langchain.json")))
    (error,) = [item for item in found if isinstance(item, RecordError)]
    assert "4 traces" in error.reason
