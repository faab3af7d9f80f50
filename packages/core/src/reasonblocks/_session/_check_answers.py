"""Validates the answers of a store and an evaluator, so that what enters the state stays small and plain JSON."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, cast

from .._json import evolve, storable
from .._patterns import NAME_BYTES
from .._render import FIELDS
from .._requests import Evaluate, Retrieve
from .._text import size, whole
from ..exceptions import BadAnswer
from ..ports import AsyncPatternStore, Evaluator, PatternStore
from ..types import JSON, Doubt, ETrace, Evaluation, Memories, Pattern
from ..types._steering import TIERS
from ._guard import Faults, tamed

MAX_PATTERNS = 1_000
"""The most patterns of a store's answer that are used."""
MAX_NAMES = 32
"""The most monitors in one evaluation: ours, and the four that a client may add."""
STORE, EVALUATOR = "the pattern store", "the evaluator"
_NAMED = ("failure_type", "injection_path", "intervention_source", "pattern_id", "monitor")
"""Fields of an evaluation that hold a name or None."""


def traces(store: PatternStore, request: Retrieve, faults: Faults) -> tuple[ETrace, ...]:
    """Ask the store. Raises `BadAnswer`."""
    return _checked_traces(store.search(request), faults)


async def atraces(store: AsyncPatternStore, request: Retrieve, faults: Faults) -> tuple[ETrace, ...]:
    """Ask the store on the running event loop. Raises `BadAnswer`."""
    return _checked_traces(await store.asearch(request), faults)


def _checked_traces(found: Iterable[ETrace], faults: Faults) -> tuple[ETrace, ...]:
    """Return the usable ones; the others are skipped, as a fault. Raises `BadAnswer` if none is left."""
    usable: list[ETrace] = []
    bad: list[BadAnswer] = []
    for given in islice(found, MAX_PATTERNS):
        try:
            _check_trace(given)
            usable.append(_read(given))
        except BadAnswer as exc:
            bad.append(exc)
    if bad and not usable:
        raise bad[0]
    for one in bad:
        faults.report(STORE, one)
    return tuple(usable)


def _check_trace(given: object) -> None:
    if not isinstance(given, ETrace):
        raise BadAnswer(STORE, given, "must be ETrace values")
    pattern: object = given.pattern
    if not isinstance(pattern, Pattern):
        raise BadAnswer(STORE, pattern, "an ETrace must hold a Pattern")
    _number(STORE, given.similarity)
    if type(pattern.id) is not str:
        raise BadAnswer(STORE, pattern.id, "a pattern's id must be a plain string")
    name(STORE, "a pattern's id", pattern.id)
    tier: object = pattern.tier
    if not isinstance(tier, str) or tier not in TIERS:
        raise BadAnswer(STORE, tier, f"a pattern's tier must be one of {', '.join(TIERS)}")
    for kind, value in (("org_id", pattern.org_id), ("failure_type", pattern.failure_type)):
        if value is not None:
            name(STORE, f"a pattern's {kind}", value)
    if pattern.gate_threshold is not None:
        _number(STORE, pattern.gate_threshold)
    tables: tuple[tuple[str, object], ...] = (("fields", pattern.fields), ("stats", pattern.stats))
    for kind, table in tables:
        if not isinstance(table, Mapping):
            raise BadAnswer(STORE, table, f"a pattern's {kind} must be a mapping")
    for count in (pattern.revision, *pattern.stats.values()):
        if type(count) is not int:
            raise BadAnswer(STORE, count, "a pattern's revision and counts must be ints")


def _read(given: ETrace) -> ETrace:
    """Return the trace with plain field texts: a mapping of the store's own may hang, or raise on any read."""
    pattern = given.pattern
    if type(pattern.fields) is dict and all(type(text) is str for text in pattern.fields.values()):
        return given
    try:
        with tamed(STORE):
            read = {field: pattern.fields[field] for field in FIELDS[pattern.tier] if field in pattern.fields}
    except BadAnswer:
        raise
    except Exception as exc:
        raise BadAnswer(STORE, type(exc).__name__, "a pattern's fields must be readable") from exc
    texts = {field: str.__str__(text) for field, text in read.items() if issubclass(type(text), str)}
    return evolve(given, pattern=evolve(pattern, fields=texts))


def evaluation_of(evaluator: Evaluator, request: Evaluate) -> tuple[Evaluation, Memories]:
    """Ask the evaluator. Raises `BadAnswer`. An evaluator with `inline = True` is our own and trusted."""
    answer: object = evaluator.evaluate(request)
    if getattr(evaluator, "inline", False) is True:
        return answer  # type: ignore[return-value]  # as our own is typed
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Evaluation):
        raise BadAnswer(EVALUATOR, answer, "must be (Evaluation, memories)")
    evaluation, memories = answer
    if not isinstance(memories, Mapping):
        raise BadAnswer(EVALUATOR, memories, "memories must be a mapping")
    kept = {name(EVALUATOR, "a name in memories", key): _memory(key, memories[key]) for key in memories}
    return _checked_evaluation(evaluation), kept


def _checked_evaluation(given: Evaluation) -> Evaluation:
    """Return a copy of plain values that shares nothing with the original."""
    scores: Any = given.scores
    fired: Any = given.fired
    if not isinstance(scores, Mapping) or not isinstance(fired, (tuple, list)) or len(scores) + len(fired) > MAX_NAMES:
        raise BadAnswer(EVALUATOR, fired, f"needs scores by monitor and a tuple of fired ones: at most {MAX_NAMES}")
    named = {kind: getattr(given, kind) for kind in _NAMED}
    texts: dict[str, Any] = {
        kind: None if value is None else name(EVALUATOR, kind, value) for kind, value in named.items()
    }
    return Evaluation(
        inject=given.inject is True,
        intervention_text=_text(given.intervention_text),
        fired=tuple([name(EVALUATOR, "a monitor", monitor) for monitor in fired]),
        scores={name(EVALUATOR, "a monitor", monitor): unit(EVALUATOR, score) for monitor, score in scores.items()},
        composite=unit(EVALUATOR, given.composite),
        doubts=tuple(map(_doubt, given.doubts[:MAX_NAMES])),
        **texts,
    )


def _doubt(given: object) -> Doubt:
    if not isinstance(given, Doubt):
        raise BadAnswer(EVALUATOR, given, "doubts must be a tuple of Doubt")
    return Doubt(monitor=name(EVALUATOR, "the monitor of a doubt", given.monitor), text=_text(given.text) or "")


def _text(value: object) -> str | None:
    if not isinstance(value, (str, type(None))):
        raise BadAnswer(EVALUATOR, value, "intervention_text must be text or None")
    return None if value is None else whole(str.__str__(value))


def _memory(key: object, memory: object) -> JSON:
    try:
        return storable(memory)
    except ValueError as exc:
        raise BadAnswer(EVALUATOR, memory, f"the memory of {key!r} must be JSON, but {exc}") from exc


def name(source: str, kind: str, value: object) -> str:
    """Return a short text, valid as UTF-8, as a plain string. Raises `BadAnswer`."""
    if issubclass(type(value), str):
        text = str.__str__(cast("str", value))  # a subclass may return anything
        if 0 < len(text) <= NAME_BYTES:
            if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:  # nearly all
                return text
            if size(text) <= NAME_BYTES and not any("\ud800" <= char <= "\udfff" for char in text):
                return text
    raise BadAnswer(source, value, f"{kind} must be a string of 1 to {NAME_BYTES} bytes of JSON, valid as UTF-8")


def _number(source: str, value: object) -> None:
    finite = isinstance(value, int) or (isinstance(value, numbers.Real) and math.isfinite(value))
    if not finite:
        raise BadAnswer(source, value, "similarity and gate_threshold must be finite numbers")


def unit(source: str, value: object) -> float:
    """Return a number in [0, 1] as a plain float. Raises `BadAnswer`."""
    if type(value) is float and 0.0 <= value <= 1.0:  # fast path
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise BadAnswer(source, value, "must be a finite number")
    number: Any = value
    if not 0 <= number <= 1:  # NaN is not, either
        raise BadAnswer(source, value, "must be in [0, 1]")
    return float(number)
