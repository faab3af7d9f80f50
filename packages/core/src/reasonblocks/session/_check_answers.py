"""Validates the answers of backends and of a caller's callables, so that the state stays small and plain JSON."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from types import NoneType
from typing import Any

from ..concurrency.workers import contain_faults
from ..exceptions import BadAnswer
from ..patterns import NAME_BYTES
from ..ports import AsyncEvaluator, AsyncPatternStore, Evaluator, Mailbox, Monitor, PatternStore, SpeakingMonitor
from ..render.guidance import FIELDS, with_text
from ..render.sanitise import sanitise
from ..requests import Advance, Check, Collect, Evaluate, Observe, Retrieve, Review, Say, Score
from ..types import (
    JSON,
    Doubt,
    ETrace,
    Evaluation,
    FSMState,
    Injection,
    Memories,
    Note,
    Pattern,
    RunInfo,
    Step,
    Transition,
)
from ..types.steering import TIERS
from ..util.json import compact, storable
from ..util.text import clip, size, whole
from .guard import Faults
from .runs import RunView

MAX_PATTERNS = 1_000
"""The most patterns of a store's answer that are used."""
MAX_SCORES = 64
"""The most scores and the most doubts of one evaluation."""
TEXT_BYTES = 8_192
"""The longest text of an evaluation, as UTF-8: twice what an injection holds."""
MEMORY_BYTES = 3_072
"""The largest memory of a caller's monitor, as compact JSON."""
MEMORIES_BYTES = 16_384
"""The limit of an evaluator's memories together, as compact JSON, beside those of the caller's own monitors."""
REASON_CHARS = 500
"""Characters of a reason to end a run, at most."""
STORE, EVALUATOR, MAILBOX = "the pattern store", "the evaluator", "the mailbox"
MAX_NOTES = 64
"""The most notes of a mailbox's answer that are read."""
NOTE_ID_BYTES = 64
"""The longest id of a note: the trace state remembers 64 of them."""
NOTE_CHARS = 16_000
"""Characters of a note that are read; the shown ones are fewer."""
_NAMED = ("failure_type", "injection_path", "intervention_source", "pattern_id", "monitor", "kind")
"""Fields of an evaluation that hold a name or None."""


def difficulty_of(scorer: Callable[[Step], float], request: Score) -> float:
    """Ask the scorer. Raises `BadAnswer`."""
    return unit("the scorer", scorer(request.step))


def next_state_of(transition: Transition, request: Advance) -> FSMState:
    """Ask the transition. Raises `BadAnswer`."""
    state: object = transition(request.state, request.history)
    if not isinstance(state, FSMState):
        raise BadAnswer("the transition", state, "must be an FSMState")
    return state


def observation_of(monitor: Monitor, request: Observe, run: RunInfo) -> tuple[str, float, JSON, tuple[int, ...]]:
    """Ask a caller's monitor. Raises `BadAnswer`."""
    source = f"monitor {monitor.name}"
    answer: object = monitor.observe(request.step, request.memories.get(monitor.name), run)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise BadAnswer(source, answer, "must be (score, memory, evidence)")
    score, memory, evidence = answer
    if not isinstance(evidence, tuple) or not all(type(at) is int and 0 <= at <= request.index for at in evidence):
        raise BadAnswer(source, evidence, f"evidence must be a tuple of step numbers from 0 to {request.index}")
    return monitor.name, unit(source, score), _own_memory(source, memory), tuple(dict.fromkeys(evidence))


def review_of(review: Callable[[Injection, RunView], object], request: Review, view: RunView) -> Injection | None:
    """Ask the caller's `on_injection`. Raises `BadAnswer`."""
    answer = review(request.injection, view)
    if answer is None:
        return None
    text = answer.text if isinstance(answer, Injection) else answer
    if not isinstance(text, str):
        raise BadAnswer("on_injection", answer, "must return an Injection, its text, or None to drop it")
    return with_text(request.injection, whole(text))


def reason_of_condition(condition: Callable[[RunView], object], request: Check, view: RunView) -> str | None:
    """Ask the caller's `stop_when` or `interrupt_when`. Raises `BadAnswer`."""
    answer = condition(view)
    if not isinstance(answer, (str, NoneType)):
        raise BadAnswer(request.option, answer, "must return the reason as text, or None to go on")
    reason = sanitise(whole(answer or ""))[:REASON_CHARS].strip()
    return " ".join(reason.split()) or None


def notes_of(mailbox: Mailbox, request: Collect) -> tuple[Note, ...]:
    """Ask a mailbox for the notes of a run. Raises `BadAnswer`."""
    found: object = mailbox.waiting(request.run_id)
    if not isinstance(found, (tuple, list)):
        raise BadAnswer(MAILBOX, found, "must be a tuple of Note")
    return tuple([_note(given) for given in found[:MAX_NOTES]])


def _note(given: object) -> Note:
    if not isinstance(given, Note) or not isinstance(given.text, str):
        raise BadAnswer(MAILBOX, given, "must be a tuple of Note, each with an id and a text")
    note_id = name(MAILBOX, "the id of a note", given.id, NOTE_ID_BYTES)
    return Note(id=note_id, text=whole(given.text[:NOTE_CHARS]))


def own_text_of(monitor: Monitor, request: Say) -> str | None:
    """Ask a caller's monitor for its own text, if it has the method. Raises `BadAnswer`."""
    if not isinstance(monitor, SpeakingMonitor):
        return None
    text: object = monitor.say(request.evidence, request.rung)
    if not isinstance(text, (str, type(None))):
        raise BadAnswer(f"monitor {monitor.name}", text, "say must return a string, or None for the usual text")
    return whole(clip(str(text))) if text and text.strip() else None


def _own_memory(source: str, memory: JSON) -> JSON:
    try:
        plain = storable(memory, MEMORY_BYTES)
    except ValueError as exc:
        raise BadAnswer(source, memory, f"its memory must be JSON of at most {MEMORY_BYTES} bytes, but {exc}") from exc
    if (length := len(compact(plain).encode())) > MEMORY_BYTES:
        raise BadAnswer(source, f"{length} bytes", f"its memory must be JSON of at most {MEMORY_BYTES} bytes")
    return plain


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
    for error in bad:
        faults.report(STORE, error)
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
    kinds: object = pattern.kinds
    if not isinstance(kinds, tuple) or not all(type(kind) is str for kind in kinds):
        raise BadAnswer(STORE, kinds, "a pattern's kinds must be a tuple of plain strings")
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
        with contain_faults(STORE):
            read = {field: pattern.fields[field] for field in FIELDS[pattern.tier] if field in pattern.fields}
    except BadAnswer:
        raise
    except Exception as exc:
        raise BadAnswer(STORE, type(exc).__name__, "a pattern's fields must be readable") from exc
    texts = {field: str.__str__(text) for field, text in read.items() if isinstance(text, str)}
    return replace(given, pattern=replace(pattern, fields=texts))


def evaluation_of(evaluator: Evaluator, request: Evaluate) -> tuple[Evaluation, Memories]:
    """Ask the evaluator. Raises `BadAnswer`."""
    return _checked_answer(evaluator, evaluator.evaluate(request), request)


async def aevaluation_of(evaluator: AsyncEvaluator, request: Evaluate) -> tuple[Evaluation, Memories]:
    """Ask the evaluator on the running event loop. Raises `BadAnswer`."""
    return _checked_answer(evaluator, await evaluator.aevaluate(request), request)


def _checked_answer(evaluator: object, answer: object, request: Evaluate) -> tuple[Evaluation, Memories]:
    """Validate an evaluator's answer; that of an `inline` evaluator of this process is built from validated values."""
    if getattr(evaluator, "inline", False) is True and getattr(evaluator, "remote", False) is not True:
        return answer  # type: ignore[return-value]  # as our own is typed
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Evaluation):
        raise BadAnswer(EVALUATOR, answer, "must be (Evaluation, memories)")
    evaluation, memories = answer
    limit = MEMORIES_BYTES + MEMORY_BYTES * len(request.observed)
    return _checked_evaluation(evaluation), _checked_memories(memories, limit)


def _checked_memories(given: object, limit: int) -> Memories:
    """Return a copy in plain JSON of at most `limit` bytes."""
    if not isinstance(given, Mapping):
        raise BadAnswer(EVALUATOR, given, "memories must be a mapping")
    memories: dict[str, JSON] = {}
    length = 1
    for key in given:
        monitor = name(EVALUATOR, "a name in memories", key)
        memories[monitor] = _memory(monitor, given[key], limit)
        length += len(compact({monitor: memories[monitor]}).encode()) - 1
        if length > limit:
            raise BadAnswer(EVALUATOR, f"over {limit} bytes", f"memories must be JSON of at most {limit} bytes in all")
    return memories


def _checked_evaluation(given: Evaluation) -> Evaluation:
    """Return a copy of plain values that shares nothing with the original."""
    scores = _checked_scores(given.scores)
    named = {kind: getattr(given, kind) for kind in _NAMED}
    texts: dict[str, Any] = {
        kind: None if value is None else name(EVALUATOR, kind, value) for kind, value in named.items()
    }
    return Evaluation(
        inject=given.inject is True,
        intervention_text=_text(given.intervention_text),
        fact=_text(given.fact, "fact") or "",
        hint=_text(given.hint, "hint") or "",
        fired=_checked_fired(given.fired, scores),
        scores=scores,
        composite=unit(EVALUATOR, given.composite),
        doubts=tuple(map(_doubt, given.doubts[:MAX_SCORES])),
        **texts,
    )


def _checked_scores(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping) or len(given) > MAX_SCORES:
        raise BadAnswer(EVALUATOR, given, f"scores must be a mapping of at most {MAX_SCORES} monitors")
    items = islice(given.items(), MAX_SCORES)  # a caller's own mapping may be longer than its `len`
    return {name(EVALUATOR, "a monitor", monitor): unit(EVALUATOR, score) for monitor, score in items}


def _checked_fired(given: object, scores: Mapping[str, float]) -> tuple[str, ...]:
    if not isinstance(given, (tuple, list)) or len(given) > len(scores):
        raise BadAnswer(EVALUATOR, given, "fired must be a tuple of monitors that have a score, each once")
    fired = tuple([name(EVALUATOR, "a monitor", monitor) for monitor in given])
    if len({*fired} & scores.keys()) < len(fired):
        raise BadAnswer(EVALUATOR, fired, "fired must be a tuple of monitors that have a score, each once")
    return fired


def _doubt(given: object) -> Doubt:
    if not isinstance(given, Doubt):
        raise BadAnswer(EVALUATOR, given, "doubts must be a tuple of Doubt")
    return Doubt(monitor=name(EVALUATOR, "the monitor of a doubt", given.monitor), text=_text(given.text) or "")


def _text(value: object, field: str = "intervention_text") -> str | None:
    if not isinstance(value, (str, type(None))):
        raise BadAnswer(EVALUATOR, value, f"{field} must be text or None")
    if value is None:
        return None
    text = whole(value[: TEXT_BYTES + 1])  # an extra character, so that a text that is too long is refused
    if len(text.encode()) > TEXT_BYTES:
        raise BadAnswer(EVALUATOR, text, f"its texts must have at most {TEXT_BYTES} bytes of UTF-8")
    return text


def _memory(monitor: str, memory: object, limit: int) -> JSON:
    try:
        return storable(memory, limit)
    except ValueError as exc:
        raise BadAnswer(EVALUATOR, memory, f"the memory of {monitor!r} must be JSON, but {exc}") from exc


def name(source: str, kind: str, value: object, limit: int = NAME_BYTES) -> str:
    """Return a short text, valid as UTF-8, as a plain string. Raises `BadAnswer`."""
    if isinstance(value, str):
        text = str.__str__(value)  # that of an enum's member is its value
        if text and size(text) <= limit and whole(text) == text:
            return text
    raise BadAnswer(source, value, f"{kind} must be a string of 1 to {limit} bytes of JSON, valid as UTF-8")


def _number(source: str, value: object) -> None:
    finite = isinstance(value, int) or (isinstance(value, numbers.Real) and math.isfinite(value))
    if not finite:
        raise BadAnswer(source, value, "similarity and gate_threshold must be finite numbers")


def unit(source: str, value: object) -> float:
    """Return a number in [0, 1] as a plain float. Raises `BadAnswer`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise BadAnswer(source, value, "must be a finite number")
    number: Any = value
    if not 0 <= number <= 1:  # NaN is not, either
        raise BadAnswer(source, value, "must be in [0, 1]")
    return float(number)
