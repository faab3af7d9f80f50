"""The suite catches a middleware that breaks its contract in a way that only a framework's messages can show."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain.agents.middleware import ModelRequest
from langchain_core.messages import HumanMessage, ToolMessage

from reasonblocks.render import FRAME
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import ConformanceSuite
from tests.langchain.harness import LangChainHarness


class AddsAMessage(SteeringMiddleware):
    """Guidance becomes a message of its own after a tool's output."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return super().wrap_model_call(request, lambda steered: handler(_parted(steered)))


def _parted(request: ModelRequest[Any]) -> ModelRequest[Any]:
    *before, last = request.messages
    output, frame, guidance = last.text.partition(f"\n\n{FRAME}")
    if not (isinstance(last, ToolMessage) and frame):
        return request
    own = HumanMessage(content=f"{FRAME}{guidance}")
    return request.override(messages=[*before, last.model_copy(update={"content": output}), own])


class AddsASetting(SteeringMiddleware):
    """Sends a keyword with each call that the agent's own calls do not have."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return super().wrap_model_call(request, lambda steered: handler(_set(steered)))


def _set(request: ModelRequest[Any]) -> ModelRequest[Any]:
    return request.override(model_settings={"temperature": 0})


class StartsAThreadPerCall(SteeringMiddleware):
    """Decides each step in a thread made for it."""

    def before_model(self, *given: Any, **named: Any) -> Any:
        decided: list[Any] = []
        thread = threading.Thread(
            target=lambda: decided.append(super(StartsAThreadPerCall, self).before_model(*given, **named))
        )
        thread.start()
        thread.join()
        return decided[0]


def suite_of(kind: type[SteeringMiddleware]) -> Any:
    harness = LangChainHarness(lambda *given, **options: kind(middleware(*given, **options)._lifecycle))
    return type("Suite", (ConformanceSuite,), {"harness": harness, "__test__": False})()


def test_a_message_of_ours_after_a_tools_output_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(AddsAMessage).test_the_tail_adds_no_message("invoke")


def test_a_setting_of_an_observed_call_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(AddsASetting).test_an_observed_run_sends_the_requests_of_an_unsteered_one("invoke")


def test_a_thread_per_call_is_caught() -> None:
    with pytest.raises(AssertionError):
        suite_of(StartsAThreadPerCall).test_a_call_starts_no_thread()


def test_none_is_found_in_the_middleware_as_it_is() -> None:
    suite = suite_of(SteeringMiddleware)
    suite.test_the_tail_adds_no_message("invoke")
    suite.test_an_observed_run_sends_the_requests_of_an_unsteered_one("invoke")
    suite.test_a_call_starts_no_thread()
