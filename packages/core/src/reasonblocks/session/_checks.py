"""Calls what answers a request and checks what comes back, once, where it enters."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from ..exceptions import BadAnswer
from ..ports import AsyncPatternStore, Evaluator, Monitor, PatternStore, SpeakingMonitor
from ..requests import Advance, Evaluate, Observe, Retrieve, Say, Score
from ..text import clip
from ..types import JSON, ETrace, Evaluation, FSMState, Memories, Pattern, RunInfo, Step, Transition

MEMORY_BYTES = 3_072
"""The most that a monitor may remember, as compact JSON."""
MOST_PATTERNS = 1_000
"""Of a store's answer that are looked at."""


def difficulty(scorer: Callable[[Step], float], request: Score) -> float:
    return _unit("the scorer", scorer(request.step))


def next_state(transition: Transition, request: Advance) -> FSMState:
    state: object = transition(request.state, request.history)
    if not isinstance(state, FSMState):
        raise BadAnswer("the transition", state, "must be an FSMState")
    return state


def seen(monitor: Monitor, request: Observe, run: RunInfo) -> tuple[str, float, JSON, tuple[int, ...]]:
    name = f"monitor {monitor.name}"
    answer: object = monitor.observe(request.step, request.memories.get(monitor.name), run)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise BadAnswer(name, answer, "must be (score, memory, evidence)")
    score, memory, evidence = answer
    if not isinstance(evidence, tuple) or not all(isinstance(at, int) and 0 <= at <= request.index for at in evidence):
        raise BadAnswer(name, evidence, f"evidence is step numbers from 0 to {request.index}")
    return monitor.name, _unit(name, score), _memory(name, memory), tuple(evidence)


def said(monitor: Monitor, request: Say) -> str | None:
    if not isinstance(monitor, SpeakingMonitor):
        return None
    text: object = monitor.say(request.evidence, request.rung)
    if not isinstance(text, (str, type(None))):
        raise BadAnswer(f"monitor {monitor.name}", text, "say gives text, or None for the usual one")
    return clip(text) if text and text.strip() else None


def _memory(name: str, memory: JSON) -> JSON:
    try:
        plain: JSON = json.loads(text := json.dumps(memory, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
        size = len(text.encode())
    except (TypeError, ValueError) as exc:
        raise BadAnswer(name, memory, f"its memory must be JSON ({exc})") from exc
    if size > MEMORY_BYTES:
        raise BadAnswer(name, f"{size} bytes", f"its memory may be {MEMORY_BYTES} bytes of JSON")
    return plain


def evaluation(evaluator: Evaluator, request: Evaluate) -> tuple[Evaluation, Memories]:
    answer: object = evaluator.evaluate(request)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Evaluation):
        raise BadAnswer("the evaluator", answer, "must be (Evaluation, memories)")
    judged, memories = answer
    if not isinstance(memories, Mapping):
        raise BadAnswer("the evaluator", memories, "memories must be a mapping")
    for value in (*judged.scores.values(), judged.composite):
        _unit("the evaluator", value)
    if not isinstance(judged.intervention_text, (str, type(None))):
        raise BadAnswer("the evaluator", judged.intervention_text, "intervention_text must be text or None")
    return judged, memories


def traces(store: PatternStore, request: Retrieve) -> tuple[ETrace, ...]:
    return _checked_traces(store.search(request))


async def atraces(store: AsyncPatternStore, request: Retrieve) -> tuple[ETrace, ...]:
    return _checked_traces(await store.asearch(request))


def _checked_traces(found: Iterable[ETrace]) -> tuple[ETrace, ...]:
    answer = tuple(islice(found, MOST_PATTERNS))
    for given in answer:
        _check_trace(given)
    return answer


def _check_trace(given: object) -> None:
    if not isinstance(given, ETrace):
        raise BadAnswer("the pattern store", given, "must give ETrace values")
    pattern: object = given.pattern
    similarity: object = given.similarity
    if not isinstance(pattern, Pattern):
        raise BadAnswer("the pattern store", pattern, "an ETrace holds a Pattern")
    if not isinstance(similarity, numbers.Real) or not math.isfinite(similarity):
        raise BadAnswer("the pattern store", similarity, "similarity must be a finite number")


def _unit(source: str, value: object) -> float:
    if type(value) is float and 0.0 <= value <= 1.0:  # the usual case, quickly
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise BadAnswer(source, value, "must be a finite number")
    number = float(value)
    if not 0 <= number <= 1:
        raise BadAnswer(source, value, "must be in [0, 1]")
    return number
