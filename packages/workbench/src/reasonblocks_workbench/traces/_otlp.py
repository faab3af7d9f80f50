"""Reads the runs of agents from OTLP/JSON: finds the spans of a trace that are runs, and those that are steps.

The attributes are those of OpenTelemetry's semantic conventions for generative AI, which are in development, and of
OpenInference, so a value may have several names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reasonblocks.adapters import new_user_text
from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage

from ._files import Record
from ._messages import Asked, arguments_of, recorded_output, value_of
from ._otlp_messages import Messages, messages_in
from ._otlp_spans import Span, Trace, is_other_signal, traces_of
from ._run import Header, RecordedRun, Runs, contained

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATION, KIND = "gen_ai.operation.name", "openinference.span.kind"
AGENTS, CALLS, TOOLS = "agent", "call", "tool"
ROLES = {
    "invoke_agent": AGENTS,
    "chat": CALLS,
    "text_completion": CALLS,
    "generate_content": CALLS,
    "execute_tool": TOOLS,
    "AGENT": AGENTS,
    "LLM": CALLS,
    "TOOL": TOOLS,
}
"""The role of a span, by its operation (OpenTelemetry) or else by its kind (OpenInference)."""


class OtlpSpans:
    """Reads a run from an agent's span and the model calls below it, or from a trace without such a span.

    Steps are the model calls with a recorded answer, in the order in which they began.
    """

    name = "otlp"
    title = "OTLP/JSON spans"

    def sniff(self, value: JSON) -> bool:
        return isinstance(value, dict) and "resourceSpans" in value

    def lacks(self, value: JSON) -> str | None:
        return "no 'resourceSpans', only logs or metrics" if is_other_signal(value) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        is_empty = True
        for trace in traces_of(file, records):
            for item in [trace] if isinstance(trace, RecordError) else runs_of(file, trace):
                is_empty = False
                yield item
        if is_empty:
            yield RecordError(file, None, f"has no span of a model call ({OPERATION} or {KIND})")


@dataclass(slots=True, kw_only=True)
class _Call:
    """A model call and the results of its tool calls; built while the spans are read."""

    span: Span
    messages: Messages
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def thought(self) -> str:
        return "\n".join(filter(None, (message.text for message in self.messages.returned)))

    @property
    def reasoning(self) -> str:
        return "\n".join(filter(None, (message.reasoning for message in self.messages.returned)))


@dataclass(slots=True, kw_only=True)
class _Found:
    """The spans of a run; `span` is None for a trace without an agent's span."""

    span: Span | None
    parent: Span | None = None
    calls: list[Span] = field(default_factory=list)
    tools: list[Span] = field(default_factory=list)


def runs_of(file: str, trace: Trace) -> Runs:
    """Yield the runs of a trace in the order in which they began; one without recorded texts is an error."""
    for found in _found(trace):
        yield contained(file, trace.line, partial(_run, file, trace, found))


def role_of(span: Span) -> str | None:
    """Return the role of a span: an agent, a model call, a tool call, or None."""
    return ROLES.get(span.text(OPERATION) or "") or ROLES.get(span.text(KIND) or "")


def _found(trace: Trace) -> Iterator[_Found]:
    """Yield the agents that made model calls, and a run for the calls without an agent."""
    spans = sorted(trace.spans.values(), key=lambda span: span.started)
    above, outer = nearest(trace, AGENTS), nearest(trace, CALLS)
    agents = {span.id: _Found(span=span, parent=above[span.id]) for span in spans if role_of(span) == AGENTS}
    alone = _Found(span=None)
    for span in spans:
        agent = above[span.id]
        owner = agents[agent.id] if agent else next(iter(agents.values())) if len(agents) == 1 else alone
        if role_of(span) == TOOLS:
            owner.tools.append(span)
        elif role_of(span) == CALLS and not _answers(outer[span.id]):
            owner.calls.append(span)
    yield from (found for found in (*agents.values(), alone) if found.calls)


def nearest(trace: Trace, role: str) -> Mapping[str, Span | None]:
    """Return, by the id of each span, the nearest span of that role above it. Spans may be lost, or form a ring."""
    found: dict[str, Span | None] = {}
    for span in trace.spans.values():
        path, at, answer = {span.id: None}, span, None
        while (up := trace.spans.get(at.parent or "")) is not None and up.id not in path:
            if role_of(up) == role or up.id in found:
                answer = up if role_of(up) == role else found[up.id]
                break
            path[up.id] = None
            at = up
        found.update(dict.fromkeys(path, answer))
    return found


def _answers(span: Span | None) -> bool:
    """Return True for a framework's span that has the answer: the client's span below it repeats it."""
    return span is not None and bool(messages_in(span.attributes, span.events).returned)


def _run(file: str, trace: Trace, found: _Found) -> RecordedRun | RecordError:
    calls = [_Call(span=span, messages=messages_in(span.attributes, span.events)) for span in found.calls]
    answered = [call for call in calls if call.messages.returned]
    if not answered:
        where = f"agent {found.span.name!r}" if found.span else f"trace {trace.id}"
        return RecordError(file, trace.line, f"{where} has no texts: record it with {VARIABLE}=true")
    for call in answered:
        call.calls = [made for message in call.messages.returned for made in message.calls]
    _add_results(answered, found.tools)
    _add_results_of_messages(calls)
    steps = tuple(
        Step(
            thought=call.thought,
            reasoning=call.reasoning,
            tool_calls=tuple(call.calls),
            tool_results=tuple(call.results),
            user_text=_new_text(call) if at else "",
        )
        for at, call in enumerate(answered)
    )
    header = _header(trace, found, calls)
    return header.recorded(file, trace.line, steps, tuple(_usage(call.span) for call in answered))


def _new_text(call: _Call) -> str:
    """Return what the user said after the newest answer in the messages that the call was given; "" without one."""
    given = reversed(call.messages.given)
    return new_user_text({"role": message.role, "content": message.text} for message in given)


def _add_results(calls: Sequence[_Call], tools: Sequence[Span]) -> None:
    """Add the results of tool spans to the calls that asked for them: by id, else by name and time.

    A tool that no call asked for is a call of the newest answer before it.
    """
    asked = Asked(call.calls for call in calls)
    named: dict[tuple[int, str], deque[ToolCall]] = {}
    for at, call in enumerate(calls):
        for made in call.calls:
            named.setdefault((at, made.name), deque()).append(made)
    starts = [call.span.started for call in calls]
    for tool in tools:
        call_id, name = tool.text(*TOOL_IDS) or "", tool.text("gen_ai.tool.name", "tool.name") or ""
        newest = max(0, bisect_right(starts, tool.started) - 1)
        waiting = named.get((newest, name)) if not call_id else None
        if (found := asked.find(call_id, newest)) is not None:
            owner, made = calls[found[0]], found[1]
        elif waiting:
            owner, made = calls[newest], waiting.popleft()
        else:
            owner, made = calls[newest], _unasked(tool, call_id, name)
            owner.calls.append(made)
        owner.results.append(_result(tool, made))


TOOL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")


def _unasked(tool: Span, call_id: str, name: str) -> ToolCall:
    given = tool.text("gen_ai.tool.call.arguments", "input.value")
    return ToolCall(id=call_id or tool.id, name=name, arguments=arguments_of(given))


def _result(tool: Span, made: ToolCall) -> ToolResult:
    failed = tool.attributes.get("reasonblocks.tool.is_error")
    is_error = True if tool.failed else failed if isinstance(failed, bool) else None
    return ToolResult(call_id=made.id, name=made.name, output=_output(tool), is_error=is_error)


def _output(tool: Span) -> str:
    for name in ("gen_ai.tool.call.result", "output.value"):
        if name in tool.attributes:
            return recorded_output(tool.attributes[name])
    returned = messages_in(tool.attributes, tool.events).returned
    return "\n".join(filter(None, (message.text for message in returned))) or tool.failure


def _add_results_of_messages(calls: Sequence[_Call]) -> None:
    """Add results whose spans are missing or have no text, from the messages that the next call was given, or a later.

    Some models use the same ids in each answer: the last result of an id that the next call was given is that of the
    newest answer.
    """
    told: dict[str, str] = {}
    for call in reversed(calls):
        call.results = [
            result if result.output or not told.get(result.call_id) else replace(result, output=told[result.call_id])
            for result in call.results
        ]
        done = {"", *(result.call_id for result in call.results)}
        waiting = [made for made in call.calls if made.id in told and made.id not in done]
        call.results += [ToolResult(call_id=made.id, name=made.name, output=told[made.id]) for made in waiting]
        told.update([result for message in call.messages.given for result in message.results])


def _usage(span: Span) -> Usage:
    return Usage(
        input=span.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        output=span.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        cache_read=span.count(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
        cache_write=span.count(
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
        reasoning=span.count("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"),
    )


MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model_name")


def _header(trace: Trace, found: _Found, calls: Sequence[_Call]) -> Header:
    span = found.span
    top = span or next((other for other in trace.spans.values() if not other.parent), None)
    return Header(
        run_id=_run_id(span) if span else trace.id,
        source=span.text("gen_ai.agent.name", "agent.name") if span else calls[0].span.service or None,
        outcome=_outcome(top),
        task=_task(span, calls),
        task_profile=span.text("reasonblocks.run.task_profile") if span else None,
        model=next((model for call in calls if (model := call.span.text(*MODEL))), None),
        parent_run_id=_run_id(found.parent) if found.parent else None,
    )


def _run_id(span: Span) -> str:
    return span.text("reasonblocks.run.id") or f"{span.trace}-{span.id}"


def _outcome(span: Span | None) -> str | None:
    """Return our own outcome, or a failure if the status is an error; any other status does not show success."""
    if span is None:
        return None
    failure = f"failure: {span.failure}" if span.failure else "failure"
    return span.text("reasonblocks.run.outcome") or (failure if span.failed else None)


def _task(span: Span | None, calls: Sequence[_Call]) -> str:
    """Return the first text of a user, from the agent's span or the first calls."""
    of_agent = messages_in(span.attributes, span.events).given if span else ()
    given = (*of_agent, *(message for call in calls for message in call.messages.given))
    said = (message.text for message in given if message.role == "user")
    return next(filter(None, said), "") or _input(span)


def _input(span: Span | None) -> str:
    value = value_of(span.text("input.value")) if span else None
    if isinstance(value, Mapping):
        value = next((held for key in ("input", "task", "query") if isinstance(held := value.get(key), str)), None)
    return value if isinstance(value, str) else ""
