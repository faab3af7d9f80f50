"""Runs every example of docs/extending.md, and checks the page's numbers and its table of errors."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from reasonblocks import (
    FSMState,
    JsonlSink,
    ReasonBlocks,
    SteeringSession,
    Step,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
)
from reasonblocks.exceptions import BadAnswer, ConfigError
from reasonblocks.types import StepDecision
from reasonblocks_testing import ScriptedReasonBlocks
from reasonblocks_workbench.cli import main as reasonblocks_command

PAGE = (Path(__file__).parents[2] / "docs/extending.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

NO_OPTION = ["Evaluator", "A server for tests"]
"""Examples of parts that are no option of the client."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder, with an empty home for patterns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    return tmp_path


def example(name: str) -> ReasonBlocks:
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[name], f"docs/extending.md: {name}", "exec"), names)
    client: ReasonBlocks = names["rb"]
    return client


def step(tool: str = "run_tests", *, is_error: bool = False, output: str = "3 failed") -> Step:
    call = ToolCall(id="c1", name=tool)
    result = ToolResult(call_id="c1", output=output, is_error=is_error)
    return Step(thought="I try it.", tool_calls=(call,), tool_results=(result,))


def decisions(client: ReasonBlocks, steps: Sequence[Step]) -> list[StepDecision]:
    """Run the steps, then finish the run and close the client."""
    with client, client.session(task="Fix the failing tests.") as session:
        return decided(session, steps)


def decided(session: SteeringSession, steps: Sequence[Step]) -> list[StepDecision]:
    """Begin and end a call before the first step and after each; decision n + 1 is made from step n."""
    found = []
    for completed in (None, *steps):
        found.append(session.begin_step(StepInput(completed=completed)))
        session.end_step(found[-1], StepOutcome(model="my-model"))
    return found


# --- the examples


def test_the_scorer_is_used_unchanged() -> None:
    made = decisions(example("Scorer"), [step(), step(is_error=True)])
    assert [one.difficulty for one in made] == [None, 0.3, 0.9]


def test_the_transition_follows_the_difficulties() -> None:
    client = example("Transition")
    hard = [step(output=f"Traceback: ValueError in module {at}", is_error=True) for at in range(6)]
    states = {one.fsm_state for one in decisions(client, hard)}
    assert FSMState.NORMAL in states
    assert states <= {FSMState.INIT, FSMState.NORMAL, FSMState.SLOW}


def test_the_monitor_fires_at_the_third_sleep_and_is_quoted_as_the_page_says() -> None:
    made = decisions(example("Monitor"), [step("look"), *(step("sleep", output=str(at)) for at in range(3))])
    assert [one.monitors_fired for one in made] == [(), (), (), (), ("sleeping",)]
    assert made[-1].injections[0].text.startswith("The check sleeping points at your last step.")
    assert "The check sleeping points at your last step. Look at that again before you go on." in PAGE


def test_a_monitor_fires_as_early_as_the_page_says() -> None:
    scores = iter([0.59, 0.6, 0.59, 0.7, 0.0])
    made = decisions(ReasonBlocks(monitors=[monitor(lambda *_: (next(scores), None, ()))]), [step()] * 4)
    assert ["mine" in one.monitors_fired for one in made] == [False, False, True, False, True]
    assert "at a score of 0.6. " in PAGE


def test_the_store_s_rule_is_shown() -> None:
    (first,) = decisions(example("Pattern store"), [])
    assert [one.text for one in first.injections] == ["- Ask before you delete something."]


def test_the_embedder_embeds_what_is_searched() -> None:
    made = decisions(example("Embedder"), [step(output=str(at)) for at in range(5)])
    assert [one.skipped_reason for one in made] == [None] * 6
    assert any(tier in one.retrieved for one in made for tier in ("e1", "e2"))


def test_the_sink_prints_the_events_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    decisions(example("Sink"), [step()])
    *events, last = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in events] == ["run_start", "step", "step", "step", "run_finish"]
    assert last == "closed"


def test_redact_changes_what_sinks_receive(here: Path) -> None:
    decisions(example("Redact"), [step(output="card 1234567890123456")])
    text = (here / "events.jsonl").read_text(encoding="utf-8")
    assert "[card]" in text
    assert "1234567890123456" not in text


def test_the_evaluator_s_evaluation_is_used() -> None:
    made = decisions(example("Evaluator"), [step()] * 4)
    assert [dict(one.scores) for one in made] == [{}, *[{"semantic_loop": 0.1}] * 4]


@pytest.mark.parametrize("failure", ["raises", "is wrong"])
def test_a_step_without_an_evaluation_is_logged_as_the_page_says(failure: str) -> None:
    evaluator: Any = type("Mine", (), {"evaluate": staticmethod(FAILURES[failure])})()
    made = decisions(ScriptedReasonBlocks(evaluator=evaluator, strict=False), [step()])[-1]
    assert (made.skipped_reason, made.gate_decision) == ("unavailable", "unavailable")


def test_replay_takes_the_examples(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = {"thought": "I wait.", "action": "sleep", "action_input": "", "observation": "still red"}
    (here / "runs.jsonl").write_text(json.dumps({"run_id": "run-1", "steps": [step] * 5}), encoding="utf-8")
    (here / "mymodule.py").write_text(EXAMPLES["Scorer"] + EXAMPLES["Monitor"], encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command in commands.splitlines():
        assert reasonblocks_command(shlex.split(command)[1:]) == 0
    assert "sleeping" in capsys.readouterr().out


def test_every_option_of_replay_that_takes_a_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert reasonblocks_command(["replay", "--help"]) == 0
    options = re.findall(r"^ +(--[\w-]+) MODULE:NAME", capsys.readouterr().out, re.MULTILINE)
    assert [option for option in options if option not in PAGE] == []
    on_other_pages = {"--on-injection", "--advisor"}
    assert len(options) == len(EXAMPLES) - len(NO_OPTION) + len(on_other_pages)


def test_every_part_has_an_example() -> None:
    parts = re.findall(r"^\| \[([a-z ]+)\]\(#", PAGE, re.MULTILINE)
    assert [*map(str.capitalize, parts), *NO_OPTION] == list(EXAMPLES)


def test_the_server_for_tests_runs_and_is_asked_nothing_before_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    example("A server for tests")
    assert capsys.readouterr().out == "[] []\n"


# --- the limits that the page names


def monitor(observe: Callable[..., Any], name: str = "mine") -> Any:
    return type("Mine", (), {"name": name, "failure_type": "mine", "observe": staticmethod(observe)})()


def test_a_client_takes_four_monitors() -> None:
    monitors = [monitor(lambda *_: (0.0, None, ()), f"mine-{at}") for at in range(5)]
    ReasonBlocks(monitors=monitors[:4]).close()
    with pytest.raises(ConfigError, match="at most 4"):
        ReasonBlocks(monitors=monitors)


@pytest.mark.parametrize(("size", "kept"), [(3_072, True), (3_073, False)])
def test_a_monitor_s_memory_has_at_most_3072_bytes(size: int, kept: bool) -> None:
    memories: list[Any] = []

    def observe(step: Step, memory: Any, run: Any) -> tuple[float, str, tuple[int, ...]]:
        memories.append(memory)
        return 0.0, "x" * (size - 2), ()  # two bytes are its quotes

    decisions(ReasonBlocks(monitors=[monitor(observe)], strict=False), [step(), step()])
    assert [memory is not None for memory in memories[:2]] == [False, kept]
    assert "3,072 bytes" in PAGE


@pytest.mark.parametrize("limit", [None, 1, 100])
def test_a_transition_receives_as_many_difficulties_as_it_asks_for(limit: int | None) -> None:
    longest = 0

    def transition(state: FSMState, history: tuple[float, ...]) -> FSMState:
        nonlocal longest
        longest = max(longest, len(history))
        return FSMState.NORMAL

    if limit is not None:
        transition.history_limit = limit  # type: ignore[attr-defined]  # as the page says
    decisions(ReasonBlocks(transition=transition), [step()] * 101)
    assert longest == (limit or 64)


@pytest.mark.parametrize("limit", [0, 1_001, True])
def test_a_history_limit_out_of_bounds_is_refused(limit: int) -> None:
    def transition(state: FSMState, history: tuple[float, ...]) -> FSMState:
        return state

    transition.history_limit = limit  # type: ignore[attr-defined]  # as the page says
    with pytest.raises(ConfigError, match="from 1 to 1000"):
        ReasonBlocks(transition=transition)


# --- errors


def raises(*_: Any) -> Any:
    raise LookupError("of mine")


class Hanging:
    """A call that returns when the test is over, and then something wrong."""

    def __init__(self) -> None:
        self.over = Event()

    def __call__(self, *_: Any) -> Any:
        self.over.wait(10)


FAILURES: dict[str, Any] = {"raises": raises, "is wrong": lambda *_: "nonsense", "hangs": None}
PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "the scorer": lambda call: {"scorer": call},
    "the transition": lambda call: {"transition": call},
    "monitor mine": lambda call: {"monitors": [monitor(call)]},
    "the pattern store": lambda call: {"pattern_store": type("Mine", (), {"search": staticmethod(call)})()},
}
SKIPPED = {"the scorer": "fault", "the transition": "fault", "monitor mine": None, "the pattern store": "unavailable"}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_fails_costs_what_the_table_says(part: str, failure: str, caplog: pytest.LogCaptureFixture) -> None:
    hanging = Hanging()
    options = PARTS[part](FAILURES[failure] or hanging)
    client = ReasonBlocks(**options, strict=False, step_deadline_ms=50 if failure == "hangs" else 800)
    with caplog.at_level(logging.WARNING, "reasonblocks"), client, client.session(task="Go.") as session:
        made = decided(session, [step()])[-1]
        hanging.over.set()
    assert (made.skipped_reason, made.difficulty is None) == (SKIPPED[part], SKIPPED[part] == "fault")
    counted = not (part == "the pattern store" and failure == "hangs")
    assert (part in session.faults) == counted
    assert [record.getMessage().count(f"{part} failed") for record in caplog.records] == [1] * counted


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("failure", "error"), [("raises", LookupError), ("is wrong", BadAnswer)])
def test_strict_raises_your_own_error_and_bad_answers(part: str, failure: str, error: type[Exception]) -> None:
    session = ReasonBlocks(**PARTS[part](FAILURES[failure]), strict=True).session(task="Go.")
    with pytest.raises(error):
        decided(session, [step()])


def test_a_sink_and_redact_that_raise_are_not_raised_with_strict(here: Path) -> None:
    failing = type("Failing", (), {"emit": raises, "close": lambda self: None})()
    client = ReasonBlocks(sinks=[failing, JsonlSink("events.jsonl")], redact=raises, strict=True)
    decisions(client, [step()])
    events = [json.loads(line) for line in (here / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["event"] for event in events] == ["run_start", "step", "step", "step", "run_finish"]
    assert {event["thought"] for event in events if event["event"] == "step"} == {"[redaction failed]"}
