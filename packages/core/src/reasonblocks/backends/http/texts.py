"""Prepares the texts of a request: applies the caller's `redact`, and cuts the parts that no monitor reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from ...concurrency.workers import contain_faults
from ...exceptions import BadAnswer, Unavailable
from ...monitors.sightings import OWN_MEMORY
from ...ports import Evaluate, Retrieve
from ...types import JSON, Step, ToolCall, ToolResult
from ...util.json import DEEPEST, MAX_ITEMS
from ...util.secret import UNREDACTED
from ...util.text import clip, ends, whole

logger = logging.getLogger("reasonblocks")

T = TypeVar("T")
Change = Callable[[str], str]
MOST_CALLS = 32
"""The first and the last calls of a step that are sent, and results; monitors compare the first and last 16."""


class Guest(Protocol):
    """Calls a caller's code with a deadline."""

    def call(self, work: Callable[[], T], seconds: float) -> T: ...
    async def acall(self, work: Callable[[], T], seconds: float) -> T: ...


class Redaction:
    """Applies the caller's `redact` to every text of a request, in at most half of the time that is left.

    A text for which it fails is replaced as a whole. If it does not finish in time, all texts of the request are.
    """

    def __init__(self, redact: Change, guest: Guest) -> None:
        self._redact, self._guest = redact, guest
        self._said: set[str] = set()

    def applied(self, change: Callable[[Change], T], seconds: float) -> T:
        """Return the result of `change`, called with the redacting function."""
        try:
            return self._guest.call(partial(change, self._text), seconds / 2)
        except Unavailable as exc:
            return change(self._replaced(exc))

    async def aapplied(self, change: Callable[[Change], T], seconds: float) -> T:
        """Return the same without blocking the event loop."""
        try:
            return await self._guest.acall(partial(change, self._text), seconds / 2)
        except Unavailable as exc:
            return change(self._replaced(exc))

    def _text(self, text: str) -> str:
        try:
            with contain_faults("redact"):
                redacted: object = self._redact(text)
            if isinstance(redacted, str):
                return str(redacted)
            raise BadAnswer("redact", redacted, "must be text")
        except Exception as exc:  # noqa: BLE001 - a caller's function raises anything
            return self._replaced(exc)(text)

    def _replaced(self, exc: Exception) -> Change:
        kind = type(exc).__name__
        if kind not in self._said:
            self._said.add(kind)
            logger.warning(
                "redact failed (%s); the server receives %r in place of the text (logged once)", kind, UNREDACTED
            )
        return _unredacted


def _unredacted(text: str) -> str:
    return UNREDACTED if text else text


def evaluate_with(request: Evaluate, change: Change) -> Evaluate:
    """Return the request with `change` applied to the texts of its task and step, and without the names in lists."""
    memories = {name: memory for name, memory in request.memories.items() if name != OWN_MEMORY}
    return replace(request, task=change(request.task), step=step_with(request.step, change), memories=memories)


def retrieve_with(request: Retrieve, change: Change) -> Retrieve:
    """Return the request with `change` applied to its texts."""
    return replace(request, texts=tuple(map(change, request.texts)), words=None, memo=None)


def step_with(step: Step, change: Change) -> Step:
    """Return the step with `change` applied to its texts, and to those in the arguments of its calls.

    It has the first and last calls and results, and the first entries of arguments: a step may have any number.
    """
    calls, results = ends(step.tool_calls, MOST_CALLS), ends(step.tool_results, MOST_CALLS)
    return Step(
        thought=change(step.thought),
        reasoning=change(step.reasoning),
        tool_calls=tuple([replace(call, arguments=_within(call.arguments, change, 0)) for call in calls]),
        tool_results=tuple([replace(result, output=change(result.output)) for result in results]),
        user_text=change(step.user_text),
    )


def bounded_step(step: Step) -> Step:
    """Return the step in valid UTF-8, with the first and last 8,000 characters of each text: monitors read no more."""
    cut = step_with(step, _bounded)
    return replace(
        cut,
        tool_calls=tuple(map(_named_call, cut.tool_calls)),
        tool_results=tuple(map(_named_result, cut.tool_results)),
    )


def _bounded(text: str) -> str:
    cut = clip(text)
    if cut is not text and cut.isspace() and not text.isspace():
        return whole(text)  # a blank text is judged by the whole text
    return whole(cut)


def _named_call(call: ToolCall) -> ToolCall:
    return replace(call, id=_name(call.id), name=_name(call.name))


def _named_result(result: ToolResult) -> ToolResult:
    return replace(result, call_id=_name(result.call_id), name=_name(result.name))


def _name(value: object) -> str:
    return whole(clip(str(value)))


def _within(value: JSON, change: Change, depth: int) -> JSON:
    """Return JSON with `change` applied to its texts and names; any other value becomes text."""
    if isinstance(value, str):
        return change(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {change(_name(key)): _within(item, change, depth + 1) for key, item in islice(value.items(), MAX_ITEMS)}
    if isinstance(value, (list, tuple)):
        return [_within(item, change, depth + 1) for item in value[:MAX_ITEMS]]
    return change(_shown(value))


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - whatever a foreign object's __str__ raises
        return type(value).__name__
