"""Reads the runs of agents from OTLP/JSON: finds the spans of a trace that are runs, and those that are steps.

The attributes are those of OpenTelemetry's semantic conventions for generative AI, which are in development, and of
OpenInference, so a value may have several names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from reasonblocks.adapters import new_user_text
from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_text
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage

from ._files import Record
from ._messages import Asked, Message, arguments_of, recorded_output, tool_message, value_of
from ._otlp_messages import Messages, messages_in
from ._otlp_spans import Span, Trace, is_other_signal, traces_of
from ._run import Header, RecordedRun, Runs, run_or_error

NO_TEXTS = "no texts: record them with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
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
        is_empty, unreadable = True, list[_NoTexts]()
        for trace in traces_of(file, records):
            for item in [trace] if isinstance(trace, RecordError) else runs_of(file, trace):
                is_empty = False
                if isinstance(item, _NoTexts):
                    unreadable.append(item)
                else:
                    yield item
        if len(unreadable) > 1:
            yield RecordError(file, unreadable[0].line, f"{len(unreadable)} traces have no agent and {NO_TEXTS}")
        elif unreadable:
            yield unreadable[0]
        elif is_empty:
            yield RecordError(file, None, f"has no span of a model call ({OPERATION} or {KIND})")


class _NoTexts(RecordError):
    """A trace whose model calls belong to no agent, and have no texts: clients trace each call, too."""


@dataclass(slots=True, kw_only=True)
class _Call:
    """A model call and the results of its tool calls; built while the spans are read."""

    span: Span
    messages: Messages
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    """The failures of tools, by the id of the call."""

    @property
    def thought(self) -> str:
        return "\n".join(filter(None, (message.text for message in self.messages.returned)))

    @property
    def reasoning(self) -> str:
        return "\n".join(filter(None, (message.reasoning for message in self.messages.returned)))


@dataclass(slots=True, kw_only=True)
class _Found:
    """The spans of a run; `span` is None for a trace without an agent's span.

    Some frameworks and their instrumentations both have a span for an agent, or for a tool's call: `wrappers` are the
    agents around this one alone that made no calls, and `repeats` the spans of a tool below another of the same tool,
    by the id of the latter.
    """

    span: Span | None
    parent: Span | None = None
    wrappers: list[Span] = field(default_factory=list)
    calls: list[Span] = field(default_factory=list)
    tools: list[Span] = field(default_factory=list)
    repeats: dict[str, Span] = field(default_factory=dict)


def runs_of(file: str, trace: Trace) -> Runs:
    """Yield the runs of a trace in the order in which they began; one without recorded texts is an error."""
    for found in _found(trace):
        yield run_or_error(file, trace.line, partial(_run, file, trace, found))


def role_of(span: Span) -> str | None:
    """Return the role of a span: an agent, a model call, a tool call, or None."""
    return ROLES.get(span.text(OPERATION) or "") or ROLES.get(span.text(KIND) or "")


def _found(trace: Trace) -> Iterator[_Found]:
    """Yield the agents that made model calls, and a run for the calls without an agent."""
    spans = sorted(trace.spans.values(), key=lambda span: span.started)
    above, outer, around = (nearest(trace, partial(_has_role, role)) for role in (AGENTS, CALLS, TOOLS))
    answered = {up.id for up in {up.id: up for up in outer.values() if up}.values() if _answers(up)}
    agents = {span.id: _Found(span=span) for span in spans if role_of(span) == AGENTS}
    alone = _Found(span=None)
    for span in spans:
        agent = above[span.id]
        owner = agents[agent.id] if agent else next(iter(agents.values())) if len(agents) == 1 else alone
        if role_of(span) == TOOLS:
            tool = around[span.id]
            if tool and above[tool.id] is agent and _tool_name(tool) == _tool_name(span):
                owner.repeats[tool.id] = span
            else:
                owner.tools.append(span)
        elif role_of(span) == CALLS and not ((up := outer[span.id]) and up.id in answered):
            owner.calls.append(span)
    runs = [found for found in agents.values() if found.calls]
    calling = {found.span.id for found in runs if found.span}
    callers = nearest(trace, lambda span: span.id in calling)
    for found in runs:
        assert found.span is not None
        up = callers[found.span.id]
        found.parent = up if up is not found.span else None
    _add_wrappers(runs, agents, above)
    yield from (*runs, *([alone] if alone.calls else []))


def _add_wrappers(runs: Sequence[_Found], agents: Mapping[str, _Found], above: Mapping[str, Span | None]) -> None:
    """Find the agents without calls between each run and its parent that surround this run alone; some form a ring."""
    first: dict[str, _Found] = {}
    shared: set[str] = set()
    for found in runs:
        up = above[found.span.id] if found.span else None
        while up and not agents[up.id].calls and up.id not in first:
            first[up.id] = found
            found.wrappers.append(up)
            up = above[up.id]
        while up and first.get(up.id, found) is not found and up.id not in shared:
            shared.add(up.id)
            up = above[up.id]
    for found in runs:
        found.wrappers = [wrapper for wrapper in found.wrappers if wrapper.id not in shared]


def _has_role(role: str, span: Span) -> bool:
    return role_of(span) == role


def nearest(trace: Trace, is_sought: Callable[[Span], bool]) -> Mapping[str, Span | None]:
    """Return, by the id of each span, the nearest such span above it. Spans may be lost, or form a ring."""
    found: dict[str, Span | None] = {}
    for span in trace.spans.values():
        path, at, answer = {span.id: None}, span, None
        while (up := trace.spans.get(at.parent or "")) is not None and up.id not in path:
            if is_sought(up) or up.id in found:
                answer = up if is_sought(up) else found[up.id]
                break
            path[up.id] = None
            at = up
        found.update(dict.fromkeys(path, answer))
    return found


def _answers(span: Span) -> bool:
    """Return True for a framework's span that has the answer: the client's span below it repeats it."""
    return bool(messages_in(span.attributes, span.events).returned)


def _run(file: str, trace: Trace, found: _Found) -> RecordedRun | RecordError:
    calls = [_Call(span=span, messages=messages_in(span.attributes, span.events)) for span in found.calls]
    answered = [call for call in calls if call.messages.returned]
    if not answered and found.span is None:
        return _NoTexts(file, trace.line, f"trace {trace.id} has {NO_TEXTS}")
    if not answered and found.span:
        return RecordError(file, trace.line, f"agent {found.span.name!r} has {NO_TEXTS}")
    for call in answered:
        call.calls = [made for message in call.messages.returned for made in message.calls]
    _add_results(answered, found)
    _add_results_of_messages(calls)
    steps = tuple(
        Step(
            thought=call.thought,
            reasoning=call.reasoning,
            tool_calls=tuple(call.calls),
            tool_results=tuple(call.results),
            user_text=_new_text(call.messages.given) if at else "",
        )
        for at, call in enumerate(answered)
    )
    header = _header(trace, found, calls)
    return header.recorded(file, trace.line, steps, tuple(_usage(call.span) for call in answered))


def _new_text(given: Sequence[Message]) -> str:
    """Return what the user said after the newest answer in the messages that a call was given; "" without one."""
    return new_user_text({"role": message.role, "content": message.text} for message in reversed(given))


def _add_results(calls: Sequence[_Call], found: _Found) -> None:
    """Add the results of tool spans to the calls that asked for them: by id, else by name and time.

    A tool that no call asked for is a call of the newest answer before it.
    """
    asked = Asked(call.calls for call in calls)
    named: dict[tuple[int, str], deque[ToolCall]] = {}
    for at, call in enumerate(calls):
        for made in call.calls:
            named.setdefault((at, made.name), deque()).append(made)
    starts = [call.span.started for call in calls]
    for tool in found.tools:
        result, failure = _result(tool, found.repeats.get(tool.id))
        newest = max(0, bisect_right(starts, tool.started) - 1)
        waiting = named.get((newest, result.name)) if not result.call_id else None
        if (origin := asked.find(result.call_id, newest)) is not None:
            owner, made = calls[origin[0]], origin[1]
        elif waiting:
            owner, made = calls[newest], waiting.popleft()
        else:
            owner, made = calls[newest], _unasked(tool, result)
            owner.calls.append(made)
        owner.results.append(replace(result, call_id=made.id, name=made.name))
        owner.failures[made.id] = failure


TOOL_OUTPUTS = ("gen_ai.tool.call.result", "output.value")
TOOL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")


def _tool_name(tool: Span) -> str:
    return tool.text("gen_ai.tool.name", "tool.name") or ""


def _unasked(tool: Span, result: ToolResult) -> ToolCall:
    given = tool.text("gen_ai.tool.call.arguments", "input.value")
    return ToolCall(id=result.call_id or tool.id, name=result.name, arguments=arguments_of(given))


def _result(tool: Span, repeat: Span | None = None) -> tuple[ToolResult, str]:
    """Return a tool's result, and the failure that takes the place of its output if no message has that."""
    recorded = next((tool.attributes[name] for name in TOOL_OUTPUTS if name in tool.attributes), None)
    message = tool_message(value_of(recorded))
    output = _said(tool) if recorded is None else recorded_output(message["content"] if message else recorded)
    found = ToolResult(
        call_id=tool.text(*TOOL_IDS) or first_text(message or {}, "tool_call_id") or "",
        name=_tool_name(tool),
        output=output,
        is_error=_is_error(tool, message),
    )
    if repeat is None:
        return found, tool.failure
    other, failure = _result(repeat)
    both = replace(
        found,
        call_id=found.call_id or other.call_id,
        output=found.output or other.output,
        is_error=found.is_error or other.is_error,
    )
    return both, tool.failure or failure


def _said(tool: Span) -> str:
    """Return the output in the messages of a tool's span."""
    returned = messages_in(tool.attributes, tool.events).returned
    texts = (text for message in returned for text in (message.text, *(one.output for one in message.results)))
    return "\n".join(filter(None, texts))


def _is_error(tool: Span, message: Mapping[str, Any] | None) -> bool | None:
    if tool.failed or (message or {}).get("status") == "error":
        return True
    failed = tool.attributes.get("reasonblocks.tool.is_error")
    return failed if isinstance(failed, bool) else None


def _add_results_of_messages(calls: Sequence[_Call]) -> None:
    """Add results whose spans are missing or have no text, from the messages that the next call was given, or a later.

    Some models use the same ids in each answer: the last result of an id that the next call was given is that of the
    newest answer.
    """
    told: dict[str, ToolResult] = {}
    for call in reversed(calls):
        call.results = [
            result if result.output else replace(result, output=_told(result, told) or call.failures[result.call_id])
            for result in call.results
        ]
        done = {"", *(result.call_id for result in call.results)}
        waiting = [made for made in call.calls if made.id in told and made.id not in done]
        call.results += [replace(told[made.id], call_id=made.id, name=made.name) for made in waiting]
        told.update({result.call_id: result for message in call.messages.given for result in message.results})


def _told(result: ToolResult, told: Mapping[str, ToolResult]) -> str:
    return told[result.call_id].output if result.call_id in told else ""


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
            "gen_ai.usage.cache_write.input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
        reasoning=span.count(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
        ),
    )


MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.request.model_name")


def _header(trace: Trace, found: _Found, calls: Sequence[_Call]) -> Header:
    span = found.span
    agents = [span, *found.wrappers] if span else []
    roots = [other for other in trace.spans.values() if not other.parent]
    named = (agent.text("gen_ai.agent.name", "agent.name") for agent in agents)
    return Header(
        run_id=_run_id(span) if span else trace.id,
        source=next(filter(None, named), None) if span else calls[0].span.service or None,
        outcome=next(filter(None, map(_outcome, agents or roots[:1])), None),
        task=_task(agents, calls),
        task_profile=span.text("reasonblocks.run.task_profile") if span else None,
        model=next((model for call in calls if (model := call.span.text(*MODEL))), None),
        parent_run_id=_run_id(found.parent) if found.parent else None,
    )


def _run_id(span: Span) -> str:
    return span.text("reasonblocks.run.id") or f"{span.trace}-{span.id}"


def _outcome(span: Span) -> str | None:
    """Return our own outcome, or a failure if the status is an error; any other status does not show success."""
    failure = f"failure: {span.failure}" if span.failure else "failure"
    return span.text("reasonblocks.run.outcome") or (failure if span.failed else None)


def _task(agents: Sequence[Span], calls: Sequence[_Call]) -> str:
    """Return the user's text that began the run, from the spans of the agent or the first calls.

    Messages of a conversation that goes on begin with those of earlier runs.
    """
    of_agents = (messages_in(agent.attributes, agent.events).given for agent in agents)
    for given in (*of_agents, *(call.messages.given for call in calls)):
        said = (message.text for message in given if message.role == "user")
        if text := _new_text(given) or next(filter(None, said), ""):
            return text
    return next(filter(None, map(_input, agents)), "")


def _input(span: Span) -> str:
    value = value_of(span.text("input.value"))
    if isinstance(value, Mapping):
        value = next((held for key in ("input", "task", "query") if isinstance(held := value.get(key), str)), None)
    return value if isinstance(value, str) else ""
