"""Defines the events, creates the event of a call from its log entry, and reads events back from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from ..exceptions import EventError
from ..types import JSON, Doubt, RunInfo, Step, StepLogEntry, ToolCall, ToolResult
from ..util.codec import MISSING, Codec, Unreadable
from ..util.json import MAX_ITEMS, canonical, replace_surrogates, retrieved_json, storable_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The start of a run, before call 0. `timestamp` is seconds since the epoch."""

    run: RunInfo
    timestamp: float

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def as_dict(self) -> dict[str, JSON]:
        return {"event": "run_start", "timestamp": self.timestamp, **asdict(self.run)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """Call n: its model and tokens, with thought, action and observation of completed step n-1.

    `reasoning`, `tool_calls` and `tool_results` are those of the step as well, and empty if the flat fields before them
    hold the same: then `as_dict` leaves them out. It leaves out an empty `user_text`, too. `completed_of` reads either
    form.
    """

    run_id: str
    step_index: int
    timestamp: float
    thought: str = ""
    action: str = ""
    action_input: str = ""
    observation: str = ""
    is_error: bool | None = None
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    user_text: str = ""
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    step_model: str | None = None
    injections: tuple[str, ...] = ()
    injection_sources: tuple[str, ...] = ()
    intervention_texts: tuple[str, ...] = ()
    monitors_fired: tuple[str, ...] = ()
    failure_type: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    composite: float | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        """True for the event of a run's last completed step, which has no call."""
        return self.metadata.get("final") is True

    def as_dict(self) -> dict[str, JSON]:
        body = {name: getattr(self, name) for name in _FLAT_FIELDS}
        for name, value in body.items():
            if isinstance(value, tuple):
                body[name] = list(value)
            elif isinstance(value, Mapping):
                body[name] = dict(value)
        body.update({name: text for name in _IF_ANY if (text := getattr(self, name))})
        if self.tool_calls or self.tool_results:
            body["tool_calls"] = [_call_json(call) for call in self.tool_calls]
            body["tool_results"] = [asdict(result) for result in self.tool_results]
        return {"event": "step", **body}


_IF_ANY = ("reasoning", "user_text")
"""Texts that most steps do not have."""
_FLAT_FIELDS = tuple(
    name for name in StepEvent.__dataclass_fields__ if name not in (*_IF_ANY, "tool_calls", "tool_results")
)


def _call_json(call: ToolCall) -> dict[str, JSON]:
    return {"id": call.id, "name": call.name, "arguments": plain_arguments(call)}


def plain_arguments(call: ToolCall) -> JSON:
    """Return a call's arguments in JSON types, cut as in `action_input`, in their order."""
    arguments = storable_json(canonical(call.arguments))
    if isinstance(call.arguments, Mapping):
        return _ordered(arguments, [str(name) for name in islice(call.arguments, MAX_ITEMS)])
    return arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinish:
    """The end of a run: "success", "failure: ExcType", "failure: reason", "stopped: reason" or "unknown".

    A second event replaces a success.

    `doubts` were raised by the final step and may contradict the outcome.
    """

    run_id: str
    outcome: str
    timestamp: float
    doubts: tuple[Doubt, ...] = ()

    def as_dict(self) -> dict[str, JSON]:
        return {"event": "run_finish", **asdict(self), "doubts": [asdict(doubt) for doubt in self.doubts]}


Event: TypeAlias = RunStart | StepEvent | RunFinish
_CODECS: Mapping[object, Codec[Any]] = {
    "run_start": Codec(RunStart, least=0),
    "step": Codec(StepEvent, least=0),
    "run_finish": Codec(RunFinish, least=0),
}


def event_of(body: Mapping[str, Any]) -> Event:
    """Return the event that `as_dict` wrote. Unknown fields are ignored; missing ones get their defaults.

    Raises `EventError` with the field, its value and the rule.
    """
    kind = body.get("event")
    if not isinstance(kind, str) or kind not in _CODECS:
        raise EventError("event", kind, "must be run_start, step or run_finish")
    try:
        event: Event = _CODECS[kind].read({**body, "run": body} if kind == "run_start" else body)
    except Unreadable as exc:
        raise EventError(exc.path[-1], None if exc.value is MISSING else exc.value, exc.rule) from exc
    if isinstance(event, StepEvent):
        _check_shares(event)
    return event


def _check_shares(event: StepEvent) -> None:
    shares = [("composite", event.composite), *[("scores", score) for score in event.scores.values()]]
    for name, share in shares:
        if share is not None and not 0 <= share <= 1:
            raise EventError(name, share, "must be a number from 0 to 1")


def step_event(run_id: str, entry: StepLogEntry, step: Step | None, scores: Mapping[str, float]) -> StepEvent:
    """Return the event of a log entry; `step` is the completed step from which it was decided."""
    done = step or Step()
    calls, results = ((), ()) if _is_flat(done) else (done.tool_calls, done.tool_results)
    return StepEvent(
        run_id=run_id,
        step_index=entry.step,
        timestamp=entry.timestamp,
        thought=done.thought or done.reasoning,
        action=done.action,
        action_input=done.action_input,
        observation=done.observation,
        is_error=done.is_error,
        reasoning=done.reasoning,
        tool_calls=calls,
        tool_results=results,
        user_text=done.user_text,
        tokens=entry.tokens,
        input_tokens=entry.input_tokens,
        output_tokens=entry.output_tokens,
        cache_read_tokens=entry.cache_read_tokens,
        step_model=entry.model_id,
        injections=entry.injections,
        injection_sources=entry.injection_sources,
        intervention_texts=entry.intervention_texts,
        monitors_fired=entry.monitors_fired,
        failure_type=entry.failure_type,
        scores=scores,
        composite=entry.composite,
        metadata={**_metadata(entry), **_order(done)},
    )


def _order(step: Step) -> dict[str, JSON]:
    """Return the order of a flat step's arguments, unless it is that of `action_input`."""
    arguments = step.tool_calls[0].arguments if step.tool_calls and _is_flat(step) else None
    if not isinstance(arguments, Mapping):
        return {}
    names = [str(name) for name in islice(arguments, MAX_ITEMS)]
    return {} if names == sorted(names) else {"argument_order": names}


def _is_flat(step: Step) -> bool:
    """Return True if the flat fields hold the step's calls and results, but for ids and times."""
    calls, results = step.tool_calls, step.tool_results
    if len(calls) != 1 or not calls[0].name:
        return not calls and not results
    if not results:
        return True
    result = results[0]
    known = result.output != "" or result.is_error is not None
    return len(results) == 1 and known and result.name in ("", calls[0].name)


def completed_of(event: StepEvent) -> Step:
    """Return the completed step that an event contains. Ids of a flat event's calls are made from its number."""
    thought = "" if event.reasoning and event.reasoning == event.thought else event.thought
    calls, results = event.tool_calls, event.tool_results
    if not calls and not results:
        calls, results = _flat(event)
    return Step(
        thought=thought,
        reasoning=event.reasoning,
        tool_calls=calls,
        tool_results=results,
        user_text=event.user_text,
    )


def _flat(event: StepEvent) -> tuple[tuple[ToolCall, ...], tuple[ToolResult, ...]]:
    """Return the only call of a flat event, and its result."""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    call_id = f"call-{event.step_index}"
    if event.action:
        arguments = _ordered(_arguments(event.action_input), event.metadata.get("argument_order"))
        calls = (ToolCall(id=call_id, name=event.action, arguments=arguments),)
    if event.observation or event.is_error is not None:
        results = (ToolResult(call_id=call_id, name=event.action, output=event.observation, is_error=event.is_error),)
    return calls, results


def _ordered(arguments: JSON, order: JSON) -> JSON:
    """Return the arguments in their first order, as far as it is known."""
    if not isinstance(arguments, dict) or not isinstance(order, list):
        return arguments
    names = [name for name in order if isinstance(name, str) and name in arguments]
    return {name: arguments[name] for name in dict.fromkeys([*names, *arguments])}


def _arguments(text: str) -> JSON:
    """Return the arguments of an `action_input`; text that is not JSON, as after redaction, under the key `input`."""
    if not text:
        return {}
    with suppress(ValueError, RecursionError):
        value: JSON = json.loads(text)
        return replace_surrogates(value) if "\\u" in text else value
    return {"input": text}


_ENTRY = Codec(StepLogEntry)
_OWN_FIELDS = """timestamp composite monitors_fired failure_type injections injection_sources intervention_texts
    tokens input_tokens output_tokens cache_read_tokens""".split()
"""The fields of an entry that an event has under the same name."""
_UNKNOWN: Mapping[str, Any] = {"step": 0, "timestamp": 0.0, "fsm_state": ""}


def entry_of(event: StepEvent) -> StepLogEntry:
    """Return the log entry that an event was made from.

    Metadata is anybody's: a value that is not of its field's type is ignored. The state is then "", which no machine
    has.
    """
    own = ((name, getattr(event, name)) for name in _OWN_FIELDS)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in own}
    given: Any = replace_surrogates(
        {**_UNKNOWN, **event.metadata, **plain, "step": event.step_index, "model_id": event.step_model}
    )
    while True:
        try:
            return _ENTRY.read(given)
        except Unreadable as exc:
            name = exc.path[0]
            del given[name]
            if name in _UNKNOWN:
                given[name] = _UNKNOWN[name]


def _metadata(entry: StepLogEntry) -> dict[str, JSON]:
    """Return the values without a field of their own on the wire, if not empty; `final` marks the last step."""
    known: dict[str, JSON] = {
        "fsm_state": entry.fsm_state,
        "difficulty": entry.difficulty,
        "difficulty_parts": None if entry.difficulty_parts is None else asdict(entry.difficulty_parts),
        "latency_ms": entry.latency_ms,
        "overhead_ms": entry.overhead_ms,
        "model_id": entry.model_id,
        "tool_calls": list(entry.tool_calls) or None,
        "attempts": entry.attempts or None,
        "cache_write_tokens": entry.cache_write_tokens,
        "cost_usd": entry.cost_usd,
        "run_cost_usd": entry.run_cost_usd,
        "cache_tokens_at_risk": entry.cache_tokens_at_risk or None,
        "finding_kind": entry.finding_kind,
        "note_ids": list(entry.note_ids) if entry.note_ids and entry.error is None else None,
        "skipped_reason": entry.skipped_reason,
        "gate_decision": entry.gate_decision,
        "route": entry.route,
        "effort": entry.effort,
        "advisor_ms": entry.advisor_ms,
        "advisor_tokens": entry.advisor_tokens,
        "judged_by": None if entry.judged_by == "shipped" else entry.judged_by,
        "placement": entry.placement,
        "error": entry.error,
        "retrieved": retrieved_json(entry.retrieved) or None,
        "pattern_ids": list(entry.pattern_ids) or None,
        "doubts": [asdict(doubt) for doubt in entry.doubts] or None,
        "injections_dropped": list(entry.injections_dropped) or None,
        "mode": None if entry.mode == "steer" else entry.mode,
        "withheld_sources": list(entry.withheld_sources) or None,
        "withheld_texts": list(entry.withheld_texts) or None,
        "withheld_route": entry.withheld_route,
        "withheld_effort": entry.withheld_effort,
        "withheld_stop": entry.withheld_stop,
        "withheld_interrupt": entry.withheld_interrupt,
        "interrupt": entry.interrupt,
        "stop": entry.stop,
        "final": True if entry.gate_decision == "final" else None,
    }
    return {key: value for key, value in known.items() if value is not None}
