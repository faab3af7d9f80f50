"""Converts LangChain's messages into our values. Pure; `_request` converts decisions back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reasonblocks.adapters import new_user_text
from reasonblocks.messages import langchain
from reasonblocks.messages.content import text_of
from reasonblocks.types import Step, StepInput, StepOutcome

from ._channel import step_key


def step_input(
    messages: Sequence[BaseMessage],
    *,
    before_run: str | None,
    seen: str | None,
    last_key: str | None,
    model: str,
    agent_name: str | None,
    guard: Callable[[str], AbstractContextManager[None]],
) -> StepInput:
    """Return the input of the next call's decision. The same answer gives the same key, so that it is decided once.

    `before_run` and `seen` are ids of answers, as in `newest_answer`; `last_key` is that of the last decision.
    """
    answer = newest_answer(messages, before_run, seen)
    completed: Step | None = None
    with guard("reading the messages"):
        completed = completed_step(messages, answer, before_run)
    return StepInput(key=step_key(answer, last_key), completed=completed, default_model=model, agent_name=agent_name)


def last_answer(messages: Sequence[BaseMessage], before_run: str | None) -> AIMessage | None:
    """Return this run's newest answer; `before_run` is the id of the newest one that an earlier run left."""
    newest = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return None if newest is None or (before_run is not None and newest.id == before_run) else newest


def newest_answer(messages: Sequence[BaseMessage], before_run: str | None, seen: str | None) -> str | None:
    """Return the id of the run's last answer, None before there is one: it names the next call.

    `seen` is the id of the answer to the run's last call. It remains valid if summarisation has removed that answer; an
    answer that was added after it without a call takes precedence.
    """
    answer = last_answer(messages, before_run)
    newest = answer.id if answer else None
    if seen is None or newest is None or newest == seen:
        return seen or newest
    return newest if any(message.id == seen for message in reversed(messages)) else seen


def is_models_own_end(messages: Sequence[BaseMessage], before_run: str | None, seen: str | None) -> bool:
    """Return True if the answer to the run's last call ends it, rather than a tool or another middleware."""
    answer = last_answer(messages, before_run)
    return answer is not None and answer.id == seen and not answer.tool_calls


def completed_step(
    messages: Sequence[BaseMessage], answer_id: str | None, before_run: str | None = None
) -> Step | None:
    """Return the step that this answer began, with all results so far; None before the first answer.

    If the answer was removed from the messages, the step has its results only: steering knows the rest, but not what
    the user said.
    """
    if answer_id is None:
        return None
    at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id == answer_id), None)
    if at is None:
        return Step(tool_results=tuple(langchain.result_of(message, {}) for message in _trailing_results(messages)))
    answer = messages[at]
    call_ids = langchain.call_ids_of(answer)
    later = (message for message in messages[at + 1 :] if isinstance(message, ToolMessage))
    # LangGraph puts an answer with a repeated id into the first one's place: results of other answers may follow it.
    step = langchain.answer_of(answer, (message for message in later if message.tool_call_id in call_ids))
    return replace(step, user_text=_user_text(messages, at, before_run))


def _user_text(messages: Sequence[BaseMessage], at: int, before_run: str | None) -> str:
    """Return what the user said in this run between the answer before the one at this place, and that one."""
    before = next((place for place in range(at - 1, -1, -1) if isinstance(messages[place], AIMessage)), None)
    if before is None or (before_run is not None and messages[before].id == before_run):
        return ""  # the run begins here: it is the task
    return new_user_text(reversed(messages[before:at]))


def task_of(messages: Sequence[BaseMessage], before_run: str | None) -> str:
    """Return this run's task: the first human message after those of earlier runs, else the first of all."""
    start = next((at for at, message in enumerate(messages, 1) if before_run and message.id == before_run), 0)
    humans = (message for part in (messages[start:], messages) for message in part if isinstance(message, HumanMessage))
    return next((text_of(message.content) for message in humans), "")


def _trailing_results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        found.append(message)
    return found[::-1]


def outcome_of(answer: AIMessage, *, model: str, latency_ms: float) -> StepOutcome:
    """Return the outcome of one call; `model` is used if the answer names none."""
    step = langchain.answer_of(answer)
    return StepOutcome(
        model=langchain.model_of(answer) or model,
        usage=langchain.usage_of(answer),
        latency_ms=latency_ms,
        text=step.thought,
        reasoning=step.reasoning,
        tool_calls=step.tool_calls,
        stop_reason=langchain.stop_reason_of(answer),
    )
