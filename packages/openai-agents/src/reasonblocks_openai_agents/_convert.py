"""Converts the SDK's items and reports into our values; `_request` converts decisions back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agents import default_tool_error_function
from agents.run_context import RunContextWrapper
from agents.tool import default_tool_timeout_error_message

from reasonblocks.adapters import Newest
from reasonblocks.messages import get
from reasonblocks.messages.content import is_content, output_of, text_of
from reasonblocks.messages.openai import (
    MAX_LOOKED_AT,
    Item,
    answer_of,
    call_id_of,
    is_call,
    is_message,
    is_output,
    newest_answer,
    result_of,
)
from reasonblocks.types import Step, StepOutcome, ToolResult, Usage

TOOL_FAILED = default_tool_error_function(RunContextWrapper(None), Exception("")).split(" Error:")[0]
"""The beginning of the SDK's message for a tool that raised, as the installed version words it."""
MAX_CALLS = 1_024
"""Calls of one step that are remembered."""


def completed_step(
    items: Sequence[Item], answer: Step | None, ended: Mapping[str, ToolResult], failed: Iterable[str]
) -> Step:
    """Return the step that `answer` began, with its results.

    `answer` is None if another process received it: then the newest one in `items` is used, or, if the server keeps the
    conversation, only the results are known. `ended` are results as the tools returned them, in case a filter removed
    them from the items; `failed` are ids of calls that the SDK reported as failed.
    """
    step = answer or answer_of(newest_answer(items))
    names = {call.id: call.name for call in step.tool_calls}
    outputs = _outputs(items, set(names) if names or answer else None)
    known = {**{key: result for key, result in ended.items() if key in names}, **outputs}
    results = {result.call_id: result for result in step.tool_results}
    for call_id in names or outputs:
        if call_id in known:
            results[call_id] = _named(known[call_id], names.get(call_id, ""), ended.get(call_id), call_id in failed)
    return replace(step, tool_results=tuple(results.values()))


def failed_calls(done: Step | None) -> frozenset[str]:
    return frozenset(result.call_id for result in (done.tool_results if done else ()) if result.is_error)


def _named(result: ToolResult, name: str, ended: ToolResult | None, failed: bool) -> ToolResult:
    failed = failed or result.output.startswith((TOOL_FAILED, _timed_out(name)))
    return replace(
        result,
        name=result.name or name,
        is_error=True if failed else result.is_error,
        duration_ms=ended.duration_ms if ended else None,
    )


def _timed_out(name: str) -> str:
    """Return the beginning of the SDK's message for a tool that timed out, up to its number of seconds."""
    return default_tool_timeout_error_message(tool_name=name, timeout_seconds=1).split(" 1 ")[0]


def _outputs(items: Sequence[Item], wanted: set[str] | None) -> dict[str, ToolResult]:
    """Return the results by call id: those of the wanted calls, or else the ones at the end."""
    found: dict[str, ToolResult] = {}
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if not is_output(item):
            if wanted is None or wanted <= found.keys():
                break
        elif wanted is None or call_id_of(item) in wanted:
            found.setdefault(call_id_of(item), result_of(item))
    return dict(reversed(found.items()))


def task_of(request: str | Sequence[Item]) -> str:
    """Return a run's task: the first user message after the items of earlier runs, else the first of all."""
    if isinstance(request, str):
        return request
    last = max((at for at, item in enumerate(request, 1) if is_message(item) or is_output(item)), default=0)
    users = (item for part in (request[last:], request) for item in part if get(item, "role") == "user")
    return next((text_of(get(item, "content")) for item in users), "")


def is_question(items: Sequence[Item]) -> bool:
    """Return True if a request ends with a user message, as a run's first one does."""
    return bool(items) and get(items[-1], "role") == "user"


def newest_call_id(items: Sequence[Item]) -> str | None:
    """Return the id of the newest call or result, which identifies the run; None after an answer without a call."""
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if is_call(item) or is_output(item):
            return call_id_of(item)
        if is_message(item):
            return None
    return None


def outcome_of(
    answer: Step, usage: Usage, *, model: str, latency_ms: float | None, ttft_ms: float | None
) -> StepOutcome:
    """Return the outcome of a call that `answer` came from."""
    return StepOutcome(
        model=model,
        usage=usage,
        latency_ms=latency_ms,
        ttft_ms=ttft_ms,
        text=answer.thought,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
    )


class ToolCalls:
    """The SDK's reports of one run's tool calls, by call id: start, result, failure."""

    def __init__(self) -> None:
        self.ended: Newest[str, ToolResult] = Newest(MAX_CALLS)
        """Results as the tools returned them; the next request holds them as the model reads them, if it does."""
        self.failed: Newest[str, bool] = Newest(MAX_CALLS)
        self._began: Newest[str, float] = Newest(MAX_CALLS)

    def begin(self, call_id: str) -> None:
        self._began.keep(call_id, time.perf_counter())

    def end(self, call_id: str, result: object) -> None:
        began = self._began.get(call_id)
        took = None if began is None else round((time.perf_counter() - began) * 1000, 3)
        text = output_of(result) if is_content(result) else str(result)  # as the SDK shows it to the model
        self.ended.keep(call_id, ToolResult(call_id=call_id, name="", output=text, duration_ms=took))

    def fail(self, call_id: str) -> None:
        self.failed.keep(call_id, True)

    def forget(self) -> None:
        """Forget the step's calls. Failures stay: the SDK reports them by id alone, also those of other runs."""
        self.ended.clear()
        self._began.clear()
