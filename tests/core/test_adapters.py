"""What every adapter takes from its caller, and what it says alike of calls and models."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, get_type_hints
from uuid import UUID

import pytest

from reasonblocks import Budget, ReasonBlocks, StepOutcome
from reasonblocks.adapters import RunKeywords, RunOptions, failure_of, same_model
from reasonblocks.exceptions import ConfigError, UnknownKeyword
from reasonblocks.types import JSON
from tests.core.world import client, run

# ------------------------------------------------------------ the caller's options


@pytest.mark.parametrize("said", [{"agent_name": "mine", "task": "Mine.", "model": "my-model"}, {}])
def test_what_the_caller_says_goes_before_what_the_adapter_found(said: dict[str, Any]) -> None:
    found = {"agent_name": "found", "task": "Found.", "model": "found-model"}
    told = RunOptions(**said).session(client(), framework="f", **found).run  # type: ignore[arg-type]
    assert {name: getattr(told, name) for name in found} == {**found, **said}


@pytest.mark.parametrize(("numbered", "used"), [("r.2", "r.2"), (None, "r")])
def test_the_id_that_the_adapter_has_numbered_goes_before_the_callers(numbered: str | None, used: str) -> None:
    assert RunOptions(run_id="r").session(client(), framework="f", run_id=numbered).run.run_id == used


@pytest.mark.parametrize(("narrowed", "used"), [("system", "system"), (None, "tail")])
def test_the_placement_that_the_adapter_has_narrowed_goes_before_the_callers(narrowed: Any, used: str) -> None:
    session = RunOptions(placement="tail").session(client(), framework="f", placement=narrowed)
    assert run(session, 1)[0].placement == used


def test_every_other_option_reaches_the_run() -> None:
    options = RunOptions(
        codebase_id="code", org_id="org", project_id="project", task_profile="qa", metadata={"pull_request": 7}
    )
    told = options.session(client(), framework="f", parent_run_id="p", parent_call_id="c", session_id="s").run
    assert (told.framework, told.codebase_id, told.org_id, told.project_id) == ("f", "code", "org", "project")
    assert (told.task_profile, told.metadata) == ("qa", {"pull_request": 7})
    assert (told.parent_run_id, told.parent_call_id, told.session_id) == ("p", "c", "s")


def test_the_keywords_are_the_options() -> None:
    assert get_type_hints(RunKeywords) == get_type_hints(RunOptions)


def test_the_client_takes_options_as_one_value_and_as_keywords_which_replace_its_fields() -> None:
    told = client().session(RunOptions(run_id="r", agent_name="mine"), agent_name="another", model="m").run
    assert (told.run_id, told.agent_name, told.model) == ("r", "another", "m")


def test_what_is_no_run_options_is_refused() -> None:
    with pytest.raises(ConfigError, match="options='r': must be RunOptions"):
        client().session("r")  # type: ignore[arg-type]  # on purpose


def test_a_keyword_that_is_no_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownKeyword, match="did you mean 'agent_name'"):
        client().session(agent_nam="x")  # type: ignore[call-arg]  # on purpose
    with pytest.raises(UnknownKeyword, match="did you mean 'snapshot'"):
        client().session(RunOptions(), snapshop={})  # type: ignore[call-arg]  # on purpose


def test_an_unknown_keyword_is_also_the_type_error_that_python_raises() -> None:
    with pytest.raises(TypeError, match="agent"):
        client().session(agent="x")  # type: ignore[call-arg]  # on purpose


def test_a_session_goes_on_from_a_snapshot() -> None:
    rb = client()
    before = rb.session(run_id="r")
    run(before, 2)
    assert RunOptions().session(rb, framework="f", snapshot=before.trace.snapshot()).trace.state.calls == 2


def test_a_run_that_goes_on_from_a_snapshot_keeps_its_id_whatever_the_adapter_has_numbered() -> None:
    rb = client()
    kept = rb.session(run_id="r").trace.snapshot()
    assert RunOptions(run_id="s").session(rb, framework="f", run_id="s.2", snapshot=kept).run.run_id == "r"


WRONG: list[dict[str, Any]] = [
    {"placement": "nowhere"},
    {"placement": ["tail"]},
    {"mode": "watch"},
    {"mode": ["observe"]},
    {"budget": 40},
    {"budget": Budget()},
    {"task_profile": "cooking"},
    {"task_profile": ["qa"]},
    {"run_id": UUID(int=7)},
    {"agent_name": 5},
    {"task": 3},
    {"model": object()},
    {"codebase_id": 5},
    {"org_id": 5},
    {"project_id": b"x"},
    {"traceparent": 5},
    {"traceparent": "00-0-0-00"},
    {"traceparent": f"ff-{1:032x}-{1:016x}-01"},
    *[{"experiment_id": value} for value in (5, "", "x" * 201, "\ud800")],
    *[{"unit_id": value, "experiment_id": "e"} for value in (5, "", "x" * 201, "\ud800")],
    {"unit_id": "without an experiment"},
    *[{"on_fraction": value, "experiment_id": "e"} for value in (-0.1, 1.1, math.nan, math.inf, "0.5", True)],
    {"on_fraction": 0.5},
    {"mode": "steer", "experiment_id": "e"},
    {"metadata": {"arm": "on"}, "experiment_id": "e"},
    *[{"metadata": value} for value in ("x", [1], {1: "x"}, {"k": {1, 2}}, {"k": math.nan}, {"k": {"in": object()}})],
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:50])
def test_a_wrong_option_is_refused_when_it_is_checked_and_by_the_session_that_gets_it(wrong: dict[str, Any]) -> None:
    for refuse in (lambda: RunOptions(**wrong).check(ReasonBlocks()), lambda: ReasonBlocks().session(**wrong)):
        with pytest.raises(ConfigError, match=rf"^{next(iter(wrong))}"):
            refuse()


def test_every_option_has_a_wrong_value_above() -> None:
    assert {field.name for field in fields(RunOptions)} == {name for wrong in WRONG for name in wrong}


def test_a_text_of_another_type_comes_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"run_id=UUID\(.*\): must be a string, or None: give str\(run_id\)"):
        RunOptions(run_id=UUID(int=7)).check(ReasonBlocks())  # type: ignore[arg-type]  # on purpose


def test_metadata_that_holds_itself_is_refused() -> None:
    metadata: dict[str, Any] = {}
    metadata["me"] = metadata
    with pytest.raises(ConfigError, match=r"metadata\['me'\]"):
        RunOptions(metadata=metadata).check(ReasonBlocks())


def test_metadata_may_be_any_json() -> None:
    metadata: dict[str, JSON] = {"list": [1, 2.5, None, True], "deep": {"a": {"b": ("c",)}}}
    assert ReasonBlocks().session(metadata=metadata).run.metadata == metadata


def test_a_snapshot_of_another_run_than_the_callers_is_refused_when_it_is_checked() -> None:
    rb = client()
    kept = rb.session(run_id="first").trace.snapshot()
    with pytest.raises(ConfigError, match="run_id='second': the snapshot is of run 'first'"):
        RunOptions(run_id="second").check(rb, kept)


# ------------------------------------------------------------ calls and models


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [(TimeoutError("30 s"), "TimeoutError: 30 s"), (KeyboardInterrupt(), "KeyboardInterrupt"), (Mute(), "Mute")],
)
def test_a_failed_call_names_its_error_with_its_text_if_it_has_one(error: BaseException, said: str) -> None:
    assert failure_of(error, model="m", latency_ms=1) == StepOutcome(model="m", latency_ms=1, error=said)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("claude-x", "claude-x-20250101", True),
        ("anthropic:claude-x", "claude-x-latest", True),
        ("gpt-5-2025-08-07", "openai/gpt-5", True),
        ("claude-x", "claude-y", False),
        ("anthropic.claude-x-v1:0", "anthropic.claude-y-v1:0", False),
    ],
)
def test_two_names_of_one_model_are_the_same(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same
