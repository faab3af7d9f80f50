"""Checks what an evaluator that is not our own answers: all of it enters the trace state."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from ..exceptions import BadAnswer
from ..ports import Evaluator
from ..requests import Evaluate
from ..types import Evaluation, Memories, storable

EVALUATOR = "the evaluator"
_TEXTS = ("intervention_text", "failure_type", "injection_path", "intervention_source", "pattern_id", "monitor")
"""Fields of an evaluation that are text or None."""


def evaluation_of(evaluator: Evaluator, request: Evaluate) -> tuple[Evaluation, Memories]:
    """Ask the evaluator. Raises `BadAnswer`; one that says `inline = True` is our own, and trusted."""
    answer: object = evaluator.evaluate(request)
    if getattr(evaluator, "inline", False) is True:
        return answer  # type: ignore[return-value]  # as our own is typed
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Evaluation):
        raise BadAnswer(EVALUATOR, answer, "must be (Evaluation, memories)")
    evaluation, memories = answer
    if not isinstance(memories, Mapping):
        raise BadAnswer(EVALUATOR, memories, "memories must be a mapping")
    return _evaluation(evaluation), {_name("memories", name): _memory(name, memories[name]) for name in memories}


def unit(source: str, value: object) -> float:
    """A number in [0, 1]. Raises `BadAnswer`."""
    if type(value) is float and 0.0 <= value <= 1.0:  # the usual case, quickly
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise BadAnswer(source, value, "must be a finite number")
    number = float(value)
    if not 0 <= number <= 1:
        raise BadAnswer(source, value, "must be in [0, 1]")
    return number


def _evaluation(given: Evaluation) -> Evaluation:
    texts: dict[str, Any] = {name: _text(name, getattr(given, name)) for name in _TEXTS}
    return Evaluation(
        inject=given.inject is True,
        fired=tuple([_name("fired", name) for name in given.fired]),
        scores={_name("scores", name): unit(EVALUATOR, score) for name, score in given.scores.items()},
        composite=unit(EVALUATOR, given.composite),
        **texts,
    )


def _memory(name: object, memory: object) -> Any:
    try:
        return storable(memory)
    except ValueError as exc:
        raise BadAnswer(EVALUATOR, memory, f"the memory of {name!r} must be JSON, but {exc}") from exc


def _text(field: str, value: object) -> str | None:
    return None if value is None else _name(field, value, "text or None")


def _name(field: str, value: object, rule: str = "text") -> str:
    try:
        text = storable(value)
    except ValueError as exc:
        raise BadAnswer(EVALUATOR, value, f"{field} must be {rule}, but {exc}") from exc
    if not isinstance(text, str):
        raise BadAnswer(EVALUATOR, value, f"{field} must be {rule}")
    return text
