"""Says in our words what the SDK's items say. Pure; the way back is `_request`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from agents import default_tool_error_function
from agents.run_context import RunContextWrapper
from agents.tool import default_tool_timeout_error_message

from reasonblocks.types import JSON, Step, StepOutcome, ToolCall, ToolResult, Usage

from ._items import Item, Items, get, is_call, is_message, is_output, kind, plain

TOOL_FAILED = default_tool_error_function(RunContextWrapper(None), Exception("")).split(" Error:")[0]
"""What the SDK tells the model of a tool that raised, as the installed version words it."""
MAX_LOOKED_AT = 1_000
"""Items that are searched for a step's results, from the end: a step that has more of them loses the oldest."""
ARGUMENTS = ("action", "operation", "queries", "code")
"""Where tools of the provider's keep what they were called with."""
OUTPUTS = ("output", "results", "outputs")
"""Where tools that the provider runs keep what came back."""

# --- what an answer says


def answer_of(output: Iterable[Item]) -> Step:
    """What the model thought and called, with the results of the tools that the provider itself ran."""
    items = list(output)
    return Step(
        thought="\n".join(filter(None, (_message_text(item) for item in items if is_message(item)))),
        reasoning="\n".join(filter(None, (_reasoning(item) for item in items if kind(item) == "reasoning"))),
        tool_calls=tuple(_call(item) for item in items if is_call(item)),
        tool_results=tuple(result for item in items if is_call(item) for result in _hosted_result(item, items)),
    )


def texts_of(content: object) -> str:
    """The text of a message or a tool's output, its parts one below the other. Images and the like have none."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else [content]
    return "\n".join(text for part in parts if (text := _part_text(part)))


def _part_text(part: Item) -> str:
    if isinstance(part, str):
        return part
    texts = (get(part, name) for name in ("text", "refusal", "stdout", "stderr"))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _message_text(item: Item) -> str:
    return texts_of(get(item, "content") or "")


def _reasoning(item: Item) -> str:
    return texts_of(get(item, "summary") or ()) or texts_of(get(item, "content") or ())


def _call(item: Item) -> ToolCall:
    name = get(item, "name") or kind(item).removesuffix("_call")
    return ToolCall(id=_call_id(item), name=str(name), arguments=_arguments(item))


def _call_id(item: Item) -> str:
    return str(get(item, "call_id") or get(item, "id") or "")


def _arguments(item: Item) -> JSON:
    """Malformed ones, and free text, are the argument `input`."""
    given = get(item, "arguments") or get(item, "input")
    if isinstance(given, str):
        with suppress(ValueError):
            if isinstance(read := json.loads(given), dict):
                return read
        return {"input": given}
    if given is not None:  # of a tool search, an object already
        return plain(given) if isinstance(given, Mapping) else {"input": plain(given)}
    return {name: plain(value) for name in ARGUMENTS if (value := get(item, name)) is not None}


def _hosted_result(item: Item, answer: Items) -> list[ToolResult]:
    """Most calls of that kind hold it; of a shell it is an item of its own."""
    if (call_id := get(item, "call_id")) is not None:
        return [_output(one, _call(item).name) for one in answer if is_output(one) and _call_id(one) == call_id]
    error = get(item, "error")
    found = next((value for name in OUTPUTS if (value := get(item, name)) is not None), error)
    if found is None or kind(item) == "image_generation_call":
        return []
    text = found if isinstance(found, str) else json.dumps(plain(found), ensure_ascii=False, default=str)
    return [ToolResult(call_id=_call_id(item), name=_call(item).name, output=text, is_error=error is not None or None)]


def local_call_ids(output: Iterable[Item]) -> tuple[str, ...]:
    """The calls that the provider did not run itself: those have an id for what is to come back."""
    items = list(output)
    done = {get(item, "call_id") for item in items if is_output(item)}
    return tuple(
        str(call_id) for item in items if is_call(item) and (call_id := get(item, "call_id")) not in {None, *done}
    )


# --- what came back, and what was asked


def completed_step(
    items: Sequence[Item], answer: Step | None, ended: Mapping[str, ToolResult], failed: Iterable[str]
) -> Step:
    """The step that `answer` began, with what came back.

    `answer` is None where another process got it: then the newest one in `items` is meant, or, of a conversation that
    the server keeps, only the results are known. `ended` are results as the tools gave them, for those that a filter
    took out of the items; `failed` are ids of calls that the SDK says have failed.
    """
    said = answer or answer_of(newest_answer(items))
    names = {call.id: call.name for call in said.tool_calls}
    outputs = _outputs(items, set(names) if names or answer else None)
    known = {**{key: result for key, result in ended.items() if key in names}, **outputs}
    results = {result.call_id: result for result in said.tool_results}
    for call_id in names or outputs:
        if call_id in known:
            results[call_id] = _named(known[call_id], names.get(call_id, ""), ended.get(call_id), call_id in failed)
    return Step(
        thought=said.thought,
        reasoning=said.reasoning,
        tool_calls=said.tool_calls,
        tool_results=tuple(results.values()),
    )


def failed_calls(done: Step | None) -> frozenset[str]:
    return frozenset(result.call_id for result in (done.tool_results if done else ()) if result.is_error)


def _named(result: ToolResult, name: str, ended: ToolResult | None, failed: bool) -> ToolResult:
    return ToolResult(
        call_id=result.call_id,
        name=result.name or name,
        output=result.output,
        is_error=True if failed or result.output.startswith((TOOL_FAILED, _timed_out(name))) else result.is_error,
        duration_ms=ended.duration_ms if ended else None,
    )


def _timed_out(name: str) -> str:
    """What the SDK tells the model of a tool that took too long, up to how long that was."""
    return default_tool_timeout_error_message(tool_name=name, timeout_seconds=1).split(" 1 ")[0]


def _outputs(items: Sequence[Item], wanted: set[str] | None) -> dict[str, ToolResult]:
    """What the tools gave back, by call id: of these calls, or of those that nothing follows."""
    found: dict[str, ToolResult] = {}
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if not is_output(item):
            if wanted is None or wanted <= found.keys():
                break
        elif wanted is None or _call_id(item) in wanted:
            found.setdefault(_call_id(item), _output(item))
    return dict(reversed(found.items()))


def _output(item: Item, name: str = "") -> ToolResult:
    failed = True if get(item, "status") == "failed" else None
    return ToolResult(call_id=_call_id(item), name=name, output=texts_of(get(item, "output") or ""), is_error=failed)


def newest_answer(items: Sequence[Item]) -> Items:
    """The answer right before the outputs at the end; empty where none stands there."""
    found: Items = []
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if is_message(item) or is_call(item) or kind(item) == "reasoning":
            found.append(item)
        elif found or not is_output(item):
            break
    return found[::-1]


def task_of(asked: str | Sequence[Item]) -> str:
    """What a run is asked: the first user message after what earlier runs left, else the first of all."""
    if isinstance(asked, str):
        return asked
    last = max((at for at, item in enumerate(asked, 1) if is_message(item) or is_output(item)), default=0)
    users = (item for part in (asked[last:], asked) for item in part if get(item, "role") == "user")
    return next((texts_of(get(item, "content") or "") for item in users), "")


def is_question(items: Sequence[Item]) -> bool:
    """Whether a request ends with what somebody asks, as a run's first one does."""
    return bool(items) and get(items[-1], "role") == "user"


def newest_call_id(items: Sequence[Item]) -> str | None:
    """The id of the call whose result a request brings: it says whose next step it is. None after an answer."""
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if is_call(item) or is_output(item):
            return _call_id(item)
        if is_message(item):
            return None
    return None


# --- what a call did


def usage_of(usage: Item) -> Usage:
    """Tokens as the SDK, or the provider, counts them (input with what was cached); None where nobody said."""
    if not get(usage, "input_tokens") and not get(usage, "output_tokens"):
        return Usage()
    read, thought = get(usage, "input_tokens_details"), get(usage, "output_tokens_details")
    return Usage(
        input=get(usage, "input_tokens"),
        output=get(usage, "output_tokens"),
        cache_read=get(read, "cached_tokens"),
        cache_write=get(read, "cache_write_tokens"),
        reasoning=get(thought, "reasoning_tokens"),
    )


def outcome_of(
    answer: Step, usage: Usage, *, model: str, latency_ms: float | None, ttft_ms: float | None
) -> StepOutcome:
    return StepOutcome(
        model=model,
        usage=usage,
        latency_ms=latency_ms,
        ttft_ms=ttft_ms,
        text=answer.thought,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
    )
