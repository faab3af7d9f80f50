"""Calls the caller's scorer, transition and monitors, and validates what they return."""

from __future__ import annotations

from collections.abc import Callable

from ..exceptions import BadAnswer
from ..ports import Monitor, SpeakingMonitor
from ..requests import Advance, Observe, Say, Score
from ..text import clip, whole
from ..types import JSON, FSMState, RunInfo, Step, Transition, compact, storable
from ._check_answers import unit

MEMORY_BYTES = 3_072
"""The largest memory of a monitor, as compact JSON."""


def difficulty(scorer: Callable[[Step], float], request: Score) -> float:
    return unit("the scorer", scorer(request.step))


def next_state(transition: Transition, request: Advance) -> FSMState:
    state: object = transition(request.state, request.history)
    if type(state) is not FSMState:  # `isinstance` trusts an object's own `__class__`
        raise BadAnswer("the transition", state, "must be an FSMState")
    return state


def seen(monitor: Monitor, request: Observe, run: RunInfo) -> tuple[str, float, JSON, tuple[int, ...]]:
    name = f"monitor {monitor.name}"
    answer: object = monitor.observe(request.step, request.memories.get(monitor.name), run)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise BadAnswer(name, answer, "must be (score, memory, evidence)")
    score, memory, evidence = answer
    if not isinstance(evidence, tuple) or not all(type(at) is int and 0 <= at <= request.index for at in evidence):
        raise BadAnswer(name, evidence, f"evidence must be a tuple of step numbers from 0 to {request.index}")
    return monitor.name, unit(name, score), _memory(name, memory), tuple(dict.fromkeys(evidence))


def said(monitor: Monitor, request: Say) -> str | None:
    if not isinstance(monitor, SpeakingMonitor):
        return None
    text: object = monitor.say(request.evidence, request.rung)
    if not isinstance(text, (str, type(None))):
        raise BadAnswer(f"monitor {monitor.name}", text, "say must return a string, or None for the usual text")
    return whole(clip(str(text))) if text and text.strip() else None


def _memory(name: str, memory: JSON) -> JSON:
    try:
        plain = storable(memory, MEMORY_BYTES)
    except ValueError as exc:
        raise BadAnswer(name, memory, f"its memory must be JSON of at most {MEMORY_BYTES} bytes, but {exc}") from exc
    if (size := len(compact(plain).encode())) > MEMORY_BYTES:
        raise BadAnswer(name, f"{size} bytes", f"its memory must be JSON of at most {MEMORY_BYTES} bytes")
    return plain
