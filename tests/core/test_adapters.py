"""What every adapter takes from its caller, and what it says alike of calls and models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, StepOutcome, adapters
from reasonblocks.adapters import RunOptions, failure_of, same_model
from reasonblocks.exceptions import ConfigError, ForeignDistribution
from tests.core.world import client, run


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = adapters.Nothing


# ------------------------------------------------------------ the caller's options


def test_what_the_caller_says_goes_before_what_the_adapter_found() -> None:
    options = RunOptions(agent_name="mine", task="Mine.", model="my-model")
    told = options.session(client(), framework="f", agent_name="found", task="Found.", model="found-model").run
    assert (told.agent_name, told.task, told.model) == ("mine", "Mine.", "my-model")


def test_what_the_caller_does_not_say_the_adapter_finds() -> None:
    told = RunOptions().session(client(), framework="f", agent_name="found", task="Found.", model="found-model").run
    assert (told.agent_name, told.task, told.model) == ("found", "Found.", "found-model")


def test_the_id_that_the_adapter_has_numbered_goes_before_the_callers() -> None:
    assert RunOptions(run_id="r").session(client(), framework="f", run_id="r.2").run.run_id == "r.2"


def test_the_callers_id_is_used_where_the_adapter_has_none() -> None:
    assert RunOptions(run_id="r").session(client(), framework="f").run.run_id == "r"


def test_the_placement_that_the_adapter_has_narrowed_goes_before_the_callers() -> None:
    session = RunOptions(placement="tail").session(client(), framework="f", placement="system")
    assert run(session, 1)[0].placement == "system"


def test_the_callers_placement_is_used_where_the_adapter_has_none() -> None:
    session = RunOptions(placement="tail").session(client(), framework="f")
    assert run(session, 1)[0].placement == "tail"


def test_every_other_option_reaches_the_run() -> None:
    options = RunOptions(
        codebase_id="code", org_id="org", project_id="project", task_profile="qa", metadata={"pull_request": 7}
    )
    told = options.session(client(), framework="f", parent_run_id="p", parent_call_id="c", session_id="s").run
    assert (told.framework, told.codebase_id, told.org_id, told.project_id) == ("f", "code", "org", "project")
    assert (told.task_profile, told.metadata) == ("qa", {"pull_request": 7})
    assert (told.parent_run_id, told.parent_call_id, told.session_id) == ("p", "c", "s")


def test_a_session_goes_on_from_a_snapshot() -> None:
    rb = client()
    before = rb.session(run_id="r")
    run(before, 2)
    assert RunOptions().session(rb, framework="f", snapshot=before.trace.snapshot()).trace.state.calls == 2


@pytest.mark.parametrize("wrong", [{"placement": "nowhere"}, {"task_profile": "cooking"}])
def test_a_wrong_option_is_refused_when_it_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RunOptions(**wrong).check(ReasonBlocks())


def test_a_product_that_overwrites_our_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tmp_path / "reasonblocks-1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: reasonblocks\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ForeignDistribution):
        RunOptions().check(ReasonBlocks())


# ------------------------------------------------------------ calls and models


def test_a_failed_call_names_its_error() -> None:
    failed = failure_of(TimeoutError("30 s"), model="m", latency_ms=1)
    assert failed == StepOutcome(model="m", latency_ms=1, error="TimeoutError: 30 s")


def test_an_error_without_a_text_is_named_alone() -> None:
    assert failure_of(KeyboardInterrupt(), model="m", latency_ms=1).error == "KeyboardInterrupt"


def test_an_error_that_cannot_say_what_it_is_is_named_alone() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failure_of(Mute(), model="m", latency_ms=1).error == "Mute"


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
