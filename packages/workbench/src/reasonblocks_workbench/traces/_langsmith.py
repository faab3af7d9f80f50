"""Reads runs that were exported from LangSmith, one a line or all in a list.

Source: the fields of `langsmith.schemas.Run`, and the inputs and outputs that the tracers of `langchain_core` and the
wrappers of `langsmith` send. A run of LangSmith is called a node here; a trace of nodes is a run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from reasonblocks.adapters import new_user_text
from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_int, first_text, langchain
from reasonblocks.messages.content import output_of
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage

from ._files import Record
from ._groups import Groups
from ._langchain import MessageData
from ._messages import Asked, Message, decode_output, message_of, objects, value_of
from ._run import Header, RecordedRun, Runs, reason, run_or_error

MODELS = ("llm", "chat_model")
TOOL = "tool"
ANSWERING = ("assistant", "ai", "model")
NOT_ANSWERS = ("system", *langchain.HUMANS, *langchain.RESULTS)
"""Values of `type` of LangChain's messages, which name no role."""
PAUSED = ("GraphInterrupt", "GraphBubbleUp")
"""Errors by which LangGraph pauses a run that waits for a person."""
TRACEBACK = "Traceback (most recent call last)"


class _Node(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, protected_namespaces=())

    id: str
    run_type: str
    name: str = ""
    trace_id: str | None = None
    dotted_order: str = ""
    start_time: str = ""
    parent_run_id: str | None = None
    error: str | None = None
    inputs: Any = None  # an object; in some exports its JSON
    outputs: Any = None
    extra: Any = None
    usage_metadata: Any = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The parts of a node that are kept until its trace is complete; inputs would repeat the whole history."""

    id: str
    parent: str | None
    order: str
    kind: str
    name: str
    error: str
    answer: Step | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    result: ToolResult | None = None
    said: str = ""
    """The user's messages after the newest answer in a model call's inputs."""


@dataclass(slots=True, kw_only=True)
class _Trace:
    """The nodes of a trace by id, and the task in the inputs of its root, or else of its first model call."""

    id: str
    line: int
    nodes: dict[str, _Known] = field(default_factory=dict)
    tasks: dict[bool, tuple[str, str]] = field(default_factory=dict)

    def add(self, node: _Known, task: str) -> None:
        """Add a node, unless it is there; `task` is the task in its inputs."""
        is_root = node.parent is None
        if self.nodes.setdefault(node.id, node) is node and task and (is_root or node.kind in MODELS):
            self.tasks[is_root] = min(self.tasks.get(is_root, (node.order, task)), (node.order, task))

    @property
    def task(self) -> str:
        return (self.tasks.get(True) or self.tasks.get(False) or ("", ""))[1]


class LangSmithRuns:
    """Reads a trace as one run: model calls are the steps, tool calls their results, and the root's error its failure.

    Model calls below a tool call, such as those of a subagent, are left out. Success is not recorded.
    """

    name = "langsmith"
    title = "LangSmith runs"

    def sniff(self, value: JSON) -> bool:
        first = _first(value)
        return "run_type" in first and bool({"trace_id", "dotted_order"} & first.keys())

    def lacks(self, value: JSON) -> str | None:
        return "no 'trace_id' or 'dotted_order'" if "run_type" in _first(value) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_nodes(file, records, _nodes)


def read_nodes(file: str, records: Iterable[Record | RecordError], nodes: Callable[[JSON], Iterator[JSON]]) -> Runs:
    """Yield the run of each trace; `nodes` yields those of a record, as LangSmith exports them."""
    traces: Groups[_Trace] = Groups()
    for record in records:
        if isinstance(record, RecordError):
            yield record
            continue
        for value in nodes(record.value):
            node = _read(file, record.line, value)
            if isinstance(node, RecordError):
                yield node
                continue
            key, known, task = node
            traces.find_or_add(key, partial(_Trace, id=key, line=record.line)).add(known, task)
        yield from (_run(file, trace) for trace in traces.due())
    yield from (_run(file, trace) for trace in traces.rest())


def _first(value: JSON) -> Mapping[str, Any]:
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, dict) else {}


def _nodes(value: JSON) -> Iterator[JSON]:
    """Yield the nodes of a record, those that are nested in `child_runs` too."""
    waiting = deque(value if isinstance(value, list) else [value])
    while waiting:
        node = waiting.popleft()
        yield node
        children = node.get("child_runs") if isinstance(node, dict) else None
        waiting += children if isinstance(children, list) else []


def _read(file: str, line: int, value: JSON) -> tuple[str, _Known, str] | RecordError:
    """Return the key of a node's trace, the kept parts of the node, and the task in its inputs."""
    try:
        node = _Node.model_validate(value)
        key = node.trace_id or _trace_of(node.dotted_order) or node.id
        return key, _known(node), _task(value_of(node.inputs))
    except ValidationError as error:
        return RecordError(file, line, reason(error))
    except RecursionError:
        return RecordError(file, line, "is nested too deeply to be read")


def _trace_of(dotted_order: str) -> str:
    """Return the id in the first part of a dotted order, after its time: "20240101T000000000000Z" and the id."""
    return dotted_order.split(".", 1)[0].partition("Z")[2]


def _known(node: _Node) -> _Known:
    outputs = value_of(node.outputs)
    answered = node.run_type in MODELS and node.error is None
    answer, data = _answer(outputs) if answered else (None, None)
    return _Known(
        id=node.id,
        parent=node.parent_run_id,
        order=node.dotted_order or node.start_time,
        kind=node.run_type,
        name=node.name,
        error=node.error or "",
        answer=answer,
        usage=_usage(node, outputs, data),
        model=_model(node, data) if node.run_type in MODELS else "",
        result=_result(node, outputs) if node.run_type == TOOL else None,
        said=_new_text(value_of(node.inputs)) if answered else "",
    )


# --- a model call


def _answer(outputs: JSON) -> tuple[Step, MessageData | None]:
    """Return the step that a model call began, and LangChain's message if it is one."""
    found = _messages(outputs)
    data = [message for item in found if (message := _langchain(item)) is not None]
    if data:
        return langchain.answer_of(data[0]), data[0]
    read = [message for message in map(message_of, found) if message.role in ANSWERING]
    step = Step(
        thought="\n".join(filter(None, (message.text for message in read))) or ("" if read else _text(outputs)),
        reasoning="\n".join(filter(None, (message.reasoning for message in read))),
        tool_calls=tuple(call for message in read for call in message.calls),
    )
    return step, None


def _messages(outputs: JSON) -> list[Mapping[str, Any]]:
    """Return the messages in a call's outputs.

    LangChain nests them in `generations` (a list a prompt), OpenAI in `choices`; others have them under a key, or are
    a message.
    """
    if not isinstance(outputs, dict):
        return objects(outputs)
    rows = outputs.get("generations")
    if isinstance(rows, list):
        first = rows[0] if rows and isinstance(rows[0], list) else rows
        return [_inner(item) for item in objects(first)[:1]]
    if "choices" in outputs:
        return [_inner(item) for item in objects(outputs["choices"])[:1]]
    for key in ("messages", "output"):
        if isinstance(outputs.get(key), list):
            return objects(outputs[key])
    held = outputs.get("message", outputs.get("output"))
    if isinstance(held, dict):
        return [held]
    return [outputs] if {"role", "content", "kwargs"} & outputs.keys() else []


def _inner(item: Mapping[str, Any]) -> Mapping[str, Any]:
    message = item.get("message")
    return message if isinstance(message, Mapping) else {"content": item.get("text")}


def _langchain(item: Mapping[str, Any]) -> MessageData | None:
    """Return LangChain's message of a model, from its constructor's arguments or its fields; None for any other."""
    held = item.get("kwargs")
    fields = held if isinstance(held, Mapping) else item
    if str(fields.get("type")) not in langchain.ANSWERS:
        return None
    try:
        return MessageData.model_validate(fields)
    except ValidationError:
        return None


def _usage(node: _Node, outputs: JSON, data: MessageData | None) -> Usage:
    """Return the tokens that the message counts, else the outputs, else LangSmith itself."""
    held = outputs if isinstance(outputs, dict) else {}
    nothing = Usage()
    for counts in (langchain.usage_of(data) if data else nothing, *_counts({**held, **_own_counts(node)})):
        if counts != nothing:
            return counts
    return Usage(input=node.prompt_tokens, output=node.completion_tokens)


def _own_counts(node: _Node) -> Mapping[str, Any]:
    return {} if node.usage_metadata is None else {"usage_metadata": node.usage_metadata}


def _counts(outputs: Mapping[str, Any]) -> Iterator[Usage]:
    held = outputs.get("llm_output")
    for counts in (outputs.get("usage_metadata"), outputs.get("usage"), _field(held, "token_usage")):
        details = _field(counts, "input_token_details") or _field(counts, "prompt_tokens_details")
        yield Usage(
            input=first_int(counts, "input_tokens", "prompt_tokens"),
            output=first_int(counts, "output_tokens", "completion_tokens"),
            cache_read=first_int(details, "cache_read", "cached_tokens"),
            cache_write=first_int(details, "cache_creation"),
            reasoning=first_int(_field(counts, "output_token_details"), "reasoning"),
        )


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _model(node: _Node, data: MessageData | None) -> str:
    extra = value_of(node.extra)
    metadata, asked = _field(extra, "metadata"), _field(extra, "invocation_params")
    named = first_text(metadata, "ls_model_name") if isinstance(metadata, Mapping) else None
    given = first_text(asked, "model", "model_name") if isinstance(asked, Mapping) else None
    return (langchain.model_of(data) if data else None) or named or given or ""


# --- a tool call


def _result(node: _Node, outputs: JSON) -> ToolResult:
    output = _field(outputs, "output") if isinstance(outputs, dict) and "output" in outputs else outputs
    fields = _field(output, "kwargs") or output
    call_id = _field(fields, "tool_call_id") or _field(value_of(node.extra), "tool_call_id")
    content = fields.get("content") if isinstance(fields, Mapping) and "content" in fields else output
    failed = node.error is not None or _field(fields, "status") == "error"
    return decode_output(
        ToolResult(
            call_id=call_id if isinstance(call_id, str) else "",
            name=node.name,
            output=output_of(content) if node.error is None else _cause(node.error),
            is_error=True if failed else None,
        )
    )


def _cause(error: str) -> str:
    """Return an error without its traceback, which LangSmith appends to it."""
    return error.partition(TRACEBACK)[0].strip() or error


def _text(outputs: JSON) -> str:
    """Return the text of outputs that are not a message."""
    held = outputs if isinstance(outputs, dict) else {}
    return first_text(held, "output", "text", "content") or (outputs if isinstance(outputs, str) else "")


# --- a run


def _run(file: str, trace: _Trace) -> RecordedRun | RecordError:
    return run_or_error(file, trace.line, partial(_built, file, trace))


def _built(file: str, trace: _Trace) -> RecordedRun | RecordError:
    nodes = sorted(trace.nodes.values(), key=lambda node: node.order)
    below = _below(trace.nodes)
    calls = [node for node in nodes if node.answer is not None and node.id not in below]
    if not calls:
        return RecordError(file, trace.line, f"trace {trace.id} has no answer of a model")
    steps = _steps(calls, [node for node in nodes if node.result is not None and node.id not in below])
    root = next((node for node in nodes if node.parent is None), None)
    header = Header(
        run_id=trace.id,
        source=root.name or None if root else None,
        outcome=_outcome(root.error) if root else None,
        task=trace.task,
        model=next((node.model for node in calls if node.model), None),
    )
    return header.recorded(file, trace.line, steps, tuple(node.usage for node in calls))


def _outcome(error: str) -> str | None:
    return f"failure: {_cause(error)}" if error and not error.startswith(PAUSED) else None


def _below(nodes: Mapping[str, _Known]) -> set[str]:
    """Return the ids of the nodes below a model's or a tool's."""
    known: dict[str, bool] = {}
    for node in nodes.values():
        path, at, answer = {node.id: None}, node, False
        while (up := nodes.get(at.parent or "")) is not None and up.id not in path:
            if up.kind in (*MODELS, TOOL) or known.get(up.id):
                answer = True
                break
            if up.id in known:
                break
            path[up.id] = None
            at = up
        known.update(dict.fromkeys(path, answer))
    return {id for id, is_below in known.items() if is_below}


def _steps(calls: Sequence[_Known], tools: Sequence[_Known]) -> tuple[Step, ...]:
    """Return the steps with their results: a tool's belongs to the call of its id, else to the newest
    before it, as that of the first call of its name."""
    asked, orders = Asked(call.answer.tool_calls for call in calls if call.answer), [call.order for call in calls]
    results: list[list[ToolResult]] = [[] for _ in calls]
    named: dict[tuple[int, str], deque[ToolCall]] = {}
    for at, call in enumerate(calls):
        for made in call.answer.tool_calls if call.answer else ():
            named.setdefault((at, made.name), deque()).append(made)
    taken: set[int] = set()
    for tool in tools:
        assert tool.result is not None
        newest = max(0, bisect_right(orders, tool.order) - 1)
        owner = asked.find(tool.result.call_id, newest)
        at = owner[0] if owner else newest
        waiting = named.get((at, tool.result.name), deque())
        while waiting and id(waiting[0]) in taken:
            waiting.popleft()
        asker = owner[1] if owner else waiting[0] if waiting else None
        taken.add(id(asker))
        results[at].append(replace(tool.result, call_id=asker.id) if asker else tool.result)
    return tuple(
        Step(
            thought=call.answer.thought,
            reasoning=call.answer.reasoning,
            tool_calls=call.answer.tool_calls,
            tool_results=tuple(results[at]),
            user_text=call.said if at else "",
        )
        for at, call in enumerate(calls)
        if call.answer is not None
    )


def _task(inputs: JSON) -> str:
    """Return the first text of a user in a node's inputs, or their only text."""
    if isinstance(inputs, str):
        return inputs
    if text := _new_text(inputs):
        return text  # the messages of a conversation that goes on begin with those of earlier runs
    for item in _given(inputs):
        role, text = _said(item)
        if role in ("human", "user") and text:
            return text
    return first_text(inputs if isinstance(inputs, dict) else {}, "input", "question", "query", "task", "prompt") or ""


def _new_text(inputs: JSON) -> str:
    """Return what the user said after the newest answer in a model call's inputs; "" if they have no answer."""
    said = (_said(item) for item in reversed(_given(inputs)))
    return new_user_text({"role": role, "content": text} for role, text in said)


def _given(inputs: JSON) -> list[Any]:
    """Return the messages in a node's inputs."""
    given = inputs.get("messages") if isinstance(inputs, Mapping) else inputs
    if isinstance(given, list) and given and isinstance(given[0], list) and not _is_pair(given[0]):
        given = given[0]  # a list a prompt
    return given if isinstance(given, list) else []


def _said(item: object) -> tuple[str, str]:
    """Return the role and text of a message, which may be a pair of both."""
    if isinstance(item, list) and _is_pair(item):
        return item[0], item[1]
    if not isinstance(item, Mapping):
        return "", ""
    held = item.get("kwargs")
    fields = held if isinstance(held, Mapping) else item
    message: Message = message_of(fields)
    kind = fields.get("type")
    return kind if kind in NOT_ANSWERS else message.role, message.text


def _is_pair(item: list[Any]) -> bool:
    return len(item) == 2 and all(isinstance(part, str) for part in item)
