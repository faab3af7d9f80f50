"""Creates the attributes of spans and events from our own events. Imports nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TypeAlias

from ...events import RunFinish, StepEvent
from ...types import RunInfo, Step, ToolCall, ToolResult
from ...types.outcomes import kind_of
from ...util.json import MAX_INT, canonical
from ...util.text import clip, whole
from . import _names as names

Value: TypeAlias = "bool | int | float | str | Sequence[str]"
Attributes: TypeAlias = "dict[str, Value]"

NAME_CHARACTERS = 200
"""The most characters of a name, an id or a reason."""
MOST_EVALUATIONS = 16
"""Evaluations on one span, fired ones first: up to five attributes each, and the SDK keeps 128 a span by default."""
MOST_CALLS = 8
"""Tool calls that OpenInference's attributes of an answer have; `gen_ai.output.messages` has all."""
NOT_CALLED = "not called"
"""The error of a step whose call was never made."""


def cleaned(given: Mapping[str, object]) -> Attributes:
    """Return the values that OpenTelemetry accepts: without None, empty texts, and numbers that are not finite.

    Of a text over 16,000 characters, both ends are kept.
    """
    known = {key: _value(value) for key, value in given.items()}
    return {key: value for key, value in known.items() if value is not None and value != "" and value != ()}


def _value(value: object) -> Value | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return whole(clip(value))
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int) and abs(value) <= MAX_INT:
        return value
    return tuple([short(item) for item in value]) if isinstance(value, (list, tuple)) else as_json(value)


def as_json(value: object) -> str:
    """Return JSON in which every text is at most 16,000 characters long."""
    return whole(canonical(value))


def short(text: object) -> str:
    """Return a name or a reason, as text of at most 200 characters."""
    name = whole(text) if isinstance(text, str) else as_json(text)
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"


def error_type(error: str) -> str:
    """Return the name of an exception from "Name" or "Name: text"; "_OTHER" for anything else."""
    name = error.removeprefix("failure: ").partition(":")[0].strip()
    return short(name) if name.replace(".", "_").isidentifier() else names.OTHER_ERROR


# --- runs


def run_name(run: RunInfo | None) -> str:
    return f"{names.INVOKE_AGENT} {short(run.agent_name)}" if run and run.agent_name else names.INVOKE_AGENT


def run_attributes(run_id: str, run: RunInfo | None, *, content: bool) -> Attributes:
    """Return the attributes of a run's span; a run that began elsewhere has no `run`."""
    known: dict[str, object] = {names.OPERATION: names.INVOKE_AGENT, names.OI_KIND: "AGENT", names.RUN_ID: run_id}
    if run is not None:
        known |= {key: getattr(run, field) for key, field in names.RUN_FIELDS.items()}
    metadata = {"run_id": run_id, **(run.metadata if run is not None else {})}
    found = cleaned(known) | {names.OI_METADATA: as_json(metadata)}
    return found | _task(run.task) if content and run is not None and run.task else found


def _task(task: str) -> Attributes:
    message = {"role": "user", "parts": [{"type": "text", "content": task}]}
    return cleaned({names.OI_INPUT: task}) | {names.INPUT_MESSAGES: as_json([message])}


def outcome_attributes(finish: RunFinish) -> Attributes:
    known: dict[str, object] = {names.RUN_OUTCOME: short(finish.outcome)}
    return cleaned({**known, names.RUN_DOUBTS: [doubt.monitor for doubt in finish.doubts]})


def failure_of(outcome: str) -> str | None:
    """Return the `error.type` of a failure; None for any other outcome."""
    return error_type(outcome) if kind_of(outcome) == "failure" else None


# --- steps


def step_attributes(event: StepEvent) -> Attributes:
    """Return the attributes of a step's span: the decision before the call, and the call's tokens and model."""
    metadata = event.metadata
    own = cleaned(
        {key: getattr(event, field) for key, field in names.STEP_FIELDS.items()}
        | {key: metadata.get(field) for key, field in names.STEP_METADATA.items()}
        | {names.STEP_MODE: metadata.get("mode", "steer"), names.STEP_DOUBTS: _doubting(metadata.get("doubts"))}
    )
    described = {key.removeprefix(names.PREFIX): value for key, value in own.items()}
    model = event.step_model if names.ROUTE in own else None
    known = cleaned({names.RUN_ID: event.run_id, names.OI_KIND: "CHAIN", names.REQUEST_MODEL: model})
    return own | known | {names.OI_METADATA: as_json({"run_id": event.run_id, **described})}


def _doubting(doubts: object) -> list[str]:
    """Return the names of the monitors that raised doubts; their texts quote the agent."""
    listed = doubts if isinstance(doubts, Sequence) else ()
    return [short(doubt.get("monitor")) for doubt in listed if isinstance(doubt, Mapping)]


def injections(event: StepEvent, *, content: bool) -> list[Attributes]:
    """Return the attributes of each injection's event; of those that mode "observe" withheld as well."""
    found = [_injection(event, *shown, content) for shown in _paired(event.injection_sources, event.intervention_texts)]
    withheld = _paired(event.metadata.get("withheld_sources"), event.metadata.get("withheld_texts"))
    return found + [_injection(event, *one, content) | {names.INJECTION_WITHHELD: True} for one in withheld]


def _paired(sources: object, texts: object) -> list[tuple[str, str]]:
    listed = [list(items) if isinstance(items, (list, tuple)) else [] for items in (sources, texts)]
    return [(short(source), text if isinstance(text, str) else as_json(text)) for source, text in zip(*listed)]


def _injection(event: StepEvent, source: str, text: str, content: bool) -> Attributes:
    metadata = event.metadata
    known: dict[str, object] = {names.INJECTION_SOURCE: source, names.INJECTION_PLACEMENT: metadata.get("placement")}
    if source.startswith("E"):
        known[names.INJECTION_PATTERN_IDS] = metadata.get("pattern_ids")
    elif source == "OperatorInjection":
        known[names.INJECTION_NOTE_IDS] = metadata.get("note_ids")
    return cleaned({**known, names.INJECTION_TEXT: text if content else None})


# --- evaluations


def evaluations(event: StepEvent, *, content: bool) -> list[Attributes]:
    """Return the attributes of each monitor's evaluation, the fired ones first."""
    fired = set(event.monitors_fired)
    said = _monitor_text(event) if content else None
    return [
        cleaned({
            names.EVALUATION_NAME: name,
            names.EVALUATION_SCORE: event.scores[name],
            names.EVALUATION_LABEL: "fired" if name in fired else "quiet",
            names.EVALUATION_EXPLANATION: said if name in fired else None,
        })
        for name in sorted(event.scores, key=lambda name: name not in fired)
    ]  # fmt: skip


def _monitor_text(event: StepEvent) -> str | None:
    shown = _paired(event.injection_sources, event.intervention_texts)
    shown += _paired(event.metadata.get("withheld_sources"), event.metadata.get("withheld_texts"))
    return next((text for source, text in shown if source == "MonitorSteeringInjection"), None)


def span_evaluations(found: Sequence[Attributes]) -> Attributes:
    """Return the evaluations as attributes of the judged step's span, in the form of OpenInference."""
    known: Attributes = {}
    for at, one in enumerate(found[:MOST_EVALUATIONS]):
        start = f"{names.OI_EVALUATIONS}.{at}"
        known |= {f"{start}.{key}": one[ours] for key, ours in names.OI_EVALUATION_FIELDS.items() if ours in one}
        known[f"{start}.{names.OI_ANNOTATOR}"] = names.OI_CODE
    return known


# --- calls and tools


def call_attributes(event: StepEvent, done: Step, *, content: bool) -> Attributes:
    """Return the attributes of a call's span; with `content`, its answer as well."""
    known: dict[str, object] = {names.OPERATION: names.CHAT, names.OI_KIND: "LLM", names.RUN_ID: event.run_id}
    known |= {key: getattr(event, field) for key, field in names.CALL_FIELDS.items()}
    known |= {key: event.metadata.get(field) for key, field in names.CALL_METADATA.items()}
    if "route" in event.metadata:
        known[names.REQUEST_MODEL] = event.step_model
    return cleaned(known) | (_answer(done) if content else {})


def _answer(done: Step) -> Attributes:
    """Return the model's answer in both conventions; nothing for an answer that is not known."""
    texts = [{"type": "reasoning", "content": done.reasoning}, {"type": "text", "content": done.thought}]
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in done.tool_calls
    ]
    parts = [part for part in texts if part["content"]] + calls
    if not parts:
        return {}
    message = {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if calls else "stop"}
    known: dict[str, object] = {
        names.OI_ANSWER_ROLE: "assistant",
        names.OI_ANSWER_TEXT: done.thought,
        names.OI_OUTPUT: done.thought or done.reasoning,
    }
    for at, call in enumerate(done.tool_calls[:MOST_CALLS]):
        start = f"{names.OI_CALLS}.{at}"
        known |= {f"{start}.{names.OI_CALL_ID}": call.id, f"{start}.{names.OI_CALL_NAME}": call.name}
        known[f"{start}.{names.OI_CALL_ARGUMENTS}"] = as_json(call.arguments)
    return cleaned(known) | {names.OUTPUT_MESSAGES: as_json([message])}


def tool_name(call: ToolCall) -> str:
    return f"{names.EXECUTE_TOOL} {short(call.name)}" if call.name else names.EXECUTE_TOOL


def tool_attributes(event: StepEvent, call: ToolCall, result: ToolResult, *, content: bool) -> Attributes:
    """Return the attributes of a tool call's span; with `content`, its arguments and result as well."""
    known: dict[str, object] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.OI_KIND: "TOOL",
        names.RUN_ID: event.run_id,
        names.STEP_INDEX: event.step_index,
        names.TOOL_NAME: call.name,
        names.OI_TOOL_NAME: call.name,
        names.TOOL_CALL_ID: call.id,
        names.OI_TOOL_ID: call.id,
        names.TOOL_IS_ERROR: result.is_error,
        names.ERROR_TYPE: names.TOOL_ERROR if result.is_error else None,
    }
    if not content:
        return cleaned(known)
    arguments, output = as_json(call.arguments), whole(clip(result.output))
    given = {names.TOOL_ARGUMENTS: arguments, names.OI_INPUT: arguments}
    return cleaned(known) | given | {names.TOOL_RESULT: output, names.OI_OUTPUT: output}


def executed(done: Step) -> list[tuple[ToolCall, ToolResult]]:
    """Return the tool calls that have a result, in order, and an empty call for each result without one."""
    left = list(done.tool_results)
    found: list[tuple[ToolCall, ToolResult]] = []
    for call in done.tool_calls:
        result = next((result for result in left if result.call_id == call.id), None)
        if result is not None:
            left.remove(result)
            found.append((call, result))
    return found + [(ToolCall(id=result.call_id, name=result.name), result) for result in left]
