"""The model is switched between the requests of a run, and comes back: `set_model`, as the real CLI takes it."""

from __future__ import annotations

import asyncio
from typing import Any

import claude_agent_sdk
import pytest

from reasonblocks.types import Step
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked, ProviderError
from tests.claude_agent.world import TASK, Place, ask, by_opening, cli, in_time, in_turn, looks, one_run, place, session
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")


def models(here: Place, word: str = TASK) -> list[str]:
    return [asked.model for asked in here.asked(word)]


def hard_until(at: int) -> Any:
    """Steps are hard before this one."""

    def scorer(step: Step) -> float:
        return 0.1 if step.tool_calls and step.tool_calls[0].id == f"c{at}" else 0.7

    return scorer


def test_a_new_run_begins_with_the_agents_own_model() -> None:
    with place(in_turn(*looks(6), *looks(0))) as here:
        one_run(here, steering(scorer=lambda step: 0.7, model_routing={"SLOW": "strong-model"}), (TASK, "Go on."))
        assert models(here)[5:8] == ["strong-model", "strong-model", "agent-model"]


@pytest.mark.xfail(
    claude_agent_sdk.__version__ == "0.2.143", reason="this CLI takes any name, and fails when it asks that model"
)
def test_the_session_goes_on_where_the_provider_has_no_such_model() -> None:
    script = in_turn(*looks(6))

    def answer(asked: Asked) -> Turn:
        if asked.model == "no-such-model":
            raise ProviderError("model: no-such-model", status=404, code="not_found_error")
        return script(asked)

    with place(answer) as here:
        rb = steering(scorer=lambda step: 0.7, model_routing={"SLOW": "no-such-model"})
        client = one_run(here, rb)
        assert (set(models(here)), client.steering.runs["run"].outcome) == ({"agent-model"}, "success")
        assert [entry.model_id for entry in client.steering.step_log] == models(here)


def test_what_the_caller_switches_to_is_the_agents_own_model_from_then_on() -> None:
    with place(in_turn(*looks(8))) as here:

        async def run() -> None:
            rb = steering(scorer=hard_until(6), model_routing={"SLOW": "strong-model"})
            async with session(here, rb) as client:
                await client.set_model("another-model")
                await ask(client)

        in_time(run())
        assert models(here) == ["another-model"] * 5 + ["strong-model"] * 2 + ["another-model"] * 2


def test_an_agent_without_a_model_of_its_own_has_the_one_that_the_session_says() -> None:
    with place(in_turn(*looks(1))) as here:
        steered = one_run(here, steering(), model=None).steering
        assert {entry.model_id for entry in steered.step_log} == set(models(here))


def test_two_sessions_at_once_are_routed_each_on_its_own() -> None:
    hard, easy = "A hard task.", "An easy task."
    with place(by_opening({hard: in_turn(*looks(6))}, in_turn(*looks(6, "easy ")))) as here:
        rb = steering(
            scorer=lambda step: 0.1 if "easy" in step.thought else 0.7, model_routing={"SLOW": "strong-model"}
        )

        async def one(prompt: str) -> None:
            async with session(here, rb) as client:
                await ask(client, prompt)

        async def both() -> None:
            await asyncio.gather(one(hard), one(easy))

        in_time(both())
        assert models(here, hard) == ["agent-model"] * 5 + ["strong-model"] * 2
        assert set(models(here, easy)) == {"agent-model"}
