"""What the adapter says to someone who holds it wrong, and what it shows to someone who looks at it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing
from copy import copy, deepcopy
from typing import Any
from uuid import UUID

import pytest
from agents import RunResult, SQLiteSession

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import openai_hooks, openai_model, openai_run_sync, steering_of
from tests.openai_agents.world import call, fixer, in_turn, looks, one_by_one, place, said
from tests.steered import steering

# ------------------------------------------------------------ wrong options


def by_run(**wrong: Any) -> object:
    return openai_run_sync(ReasonBlocks(), fixer(), "Go on.", **wrong)


def by_hooks(**wrong: Any) -> object:
    return openai_hooks(ReasonBlocks(), **wrong)


def by_model(**wrong: Any) -> object:
    return openai_model(ReasonBlocks(), "own", **wrong)


@pytest.mark.parametrize("door", [by_run, by_hooks, by_model])
@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"run_id": UUID(int=7)}, "run_id"), ({"placement": "context"}, "placement"), ({"runid": "x"}, "run_id")],
)
def test_a_wrong_option_is_refused_where_it_is_given(
    door: Callable[..., object], wrong: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        door(**wrong)


def test_a_run_id_beside_the_snapshot_of_another_run_is_refused() -> None:
    rb = steering()
    with place(in_turn(*looks(1))) as here:
        kept = steering_of(here.run(rb, fixer(), run_id="first")).snapshot()
    with pytest.raises(ConfigError, match="run_id='second': the snapshot is of run 'first'"):
        openai_run_sync(rb, fixer(), "Go on.", run_id="second", snapshot=kept)


def test_a_session_whose_id_is_no_string_is_known_by_its_text() -> None:
    with closing(SQLiteSession("s")) as memory, place(in_turn(said())) as here:
        memory.session_id = 7  # type: ignore[assignment]  # as sessions of somebody's own have it
        run = steering_of(here.run(steering(), fixer(), session=memory))
    assert run.session.run.session_id == "7"


# ------------------------------------------------------------ which model `openai_model` calls


def test_a_model_that_is_only_named_for_the_record_is_refused_with_where_it_goes() -> None:
    with pytest.raises(ConfigError, match=r"^model='big'.*rb\.openai_model\('big'\) calls it$"):
        openai_model(ReasonBlocks(), model="big")


def test_a_name_for_the_record_goes_with_a_factory_that_chooses_the_model() -> None:
    with place(in_turn(said())) as here:
        steered = openai_model(steering(), None, lambda name: here.model("own"), model="big")
        here.plain(fixer(model=steered))
        assert [asked.model for asked in here.requests] == ["own"]


@pytest.mark.parametrize("wrong", [3, "", ["own"], object()])
def test_what_is_no_model_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"^default_model="):
        openai_model(ReasonBlocks(), wrong)


def test_a_factory_that_cannot_be_called_is_refused() -> None:
    factory: Any = "own"
    with pytest.raises(ConfigError, match=r"^model_factory="):
        openai_model(ReasonBlocks(), "own", factory)


def test_a_model_of_another_client_goes_where_the_run_is_routed(caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*looks(1))) as here:
        mapped, own = here.model("mapped"), here.model("own")
        agent = fixer(model=openai_model(steering(), own))
        run = steering_of(here.run(steering(model_routing={"NORMAL": mapped}), agent))
    assert [entry.model_id for entry in run.step_log] == ["own", "mapped"]
    assert caplog.messages == []


def test_a_call_whose_mapped_model_cannot_be_built_is_logged_as_the_agents_own() -> None:
    def factory(name: str) -> Any:
        return here.model(name) if name == "own" else None

    with place(in_turn(*looks(1))) as here:
        rb = steering(model_routing={"NORMAL": "missing"}, strict=False)
        run = steering_of(here.run(rb, fixer(model=openai_model(rb, "own", factory))))
    assert [(entry.route, entry.model_id) for entry in run.step_log] == [(None, "own")] * 2


# ------------------------------------------------------------ what is to be seen of a run


def finished(**options: Any) -> RunResult:
    with place(in_turn(*looks(1))) as here:
        result = here.run(steering(), fixer(), **options)
    assert isinstance(result, RunResult)
    return result


def test_a_run_has_its_trace() -> None:
    run = steering_of(finished(run_id="r"))
    assert (run.trace.state.trace_id, run.trace.state.calls) == ("r", 2)


def test_what_is_of_no_run_is_refused_by_its_type_alone() -> None:
    with pytest.raises(LookupError, match=r"^this dict is of no steered run"):
        steering_of({"a": "secret"})  # type: ignore[arg-type]  # on purpose


def test_the_agent_of_a_run_within_a_tool_is_the_tools() -> None:
    turns = (call("ask_reader", "c0", input="Read."), said("Read."), said())
    reader = fixer(name="reader").as_tool("ask_reader", "Reads.")
    with place(one_by_one(*turns)) as here:
        (child,) = steering_of(here.run(steering(), fixer(tools=[reader]))).children
    assert child.agent_name == "reader"


# ------------------------------------------------------------ results and errors are copied and sent


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_the_copy_of_a_result_is_of_the_same_run(copied: Callable[[RunResult], RunResult]) -> None:
    result = finished()
    assert steering_of(copied(result)) is steering_of(result)


def raising(data: object) -> Any:
    raise LookupError("the caller's own")


def test_an_error_of_the_callers_can_be_sent_to_another_process() -> None:
    with place(in_turn(said())) as here, pytest.raises(LookupError) as caught:
        here.run(steering(), fixer(), run_config=here.config(call_model_input_filter=raising))
    assert steering_of(caught.value).calls == 0
    assert repr(pickle.loads(pickle.dumps(caught.value))) == repr(caught.value)
