"""Reads items of the OpenAI Responses API: dictionaries of a request, or the models of `openai.types.responses`.

The Agents SDK keeps conversations as such items, too. The source of the rules is the API reference, "Responses", and
the item types of `openai` 2.x, unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ..types import JSON, Step, ToolCall, ToolResult, Usage
from . import first_int, get, parsed_arguments, plain
from .content import output_of, text_of

Item: TypeAlias = Any
"""The SDK's unions of item types have some forty members, and grow."""
Items: TypeAlias = "list[Item]"

MAX_LOOKED_AT = 1_000
"""Items at the end of a conversation that are searched for an answer or its results."""
ARGUMENTS = ("action", "operation", "queries", "code")
"""Fields that hold the arguments of the provider's own tools (shell, patch, file search, code interpreter)."""
OUTPUTS = ("output", "results", "outputs")
"""Fields that hold the results of tools that the provider runs."""


def kind(item: Item) -> str:
    """Return the item's `type`; "" for a message of a request, which need not have one."""
    return str(get(item, "type") or "")


def is_message(item: Item) -> bool:
    """Return True if the item is a message of the model."""
    return kind(item) in ("message", "") and get(item, "role") == "assistant"


def is_call(item: Item) -> bool:
    """Return True for any tool call: the types of all of them end in `_call`."""
    return kind(item).endswith("_call")


def is_output(item: Item) -> bool:
    """Return True for any tool output: the types of all of them end in `_output`."""
    return kind(item).endswith("_output")


def call_id_of(item: Item) -> str:
    """Return the id that a call shares with its output; calls that the provider runs have an `id` only."""
    return str(get(item, "call_id") or get(item, "id") or "")


def answer_of(output: Iterable[Item]) -> Step:
    """Return the step that a response's `output` began, with the results of tools that the provider ran."""
    items = list(output)
    return Step(
        thought="\n".join(filter(None, (text_of(get(item, "content") or "") for item in items if is_message(item)))),
        reasoning="\n".join(filter(None, (_reasoning(item) for item in items if kind(item) == "reasoning"))),
        tool_calls=tuple(_call(item) for item in items if is_call(item)),
        tool_results=tuple(result for item in items if is_call(item) for result in _hosted_results(item, items)),
    )


def newest_answer(items: Sequence[Item]) -> Items:
    """Return the items of the answer that the trailing outputs belong to; empty if there is none."""
    found: Items = []
    for item in reversed(items[-MAX_LOOKED_AT:]):
        if is_message(item) or is_call(item) or kind(item) == "reasoning":
            found.append(item)
        elif found or not is_output(item):
            break
    return found[::-1]


def local_call_ids(output: Iterable[Item]) -> tuple[str, ...]:
    """Return the ids of the calls that the client has to run: those with a `call_id` and without an output."""
    items = list(output)
    done = {get(item, "call_id") for item in items if is_output(item)}
    return tuple(
        str(call_id) for item in items if is_call(item) and (call_id := get(item, "call_id")) not in {None, *done}
    )


def _reasoning(item: Item) -> str:
    """Return the summary, or else the reasoning itself, which open models show."""
    return text_of(get(item, "summary") or ()) or text_of(get(item, "content") or ())


def _call(item: Item) -> ToolCall:
    name = get(item, "name") or kind(item).removesuffix("_call")
    return ToolCall(id=call_id_of(item), name=str(name), arguments=_arguments(item))


def _arguments(item: Item) -> JSON:
    """Return a call's arguments; malformed ones, and free text, are the argument `input`."""
    given = get(item, "arguments") or get(item, "input")
    if given is not None and given != "":  # a tool search has an object
        return parsed_arguments(given)
    return {name: plain(value) for name in ARGUMENTS if (value := get(item, name)) is not None}


def _hosted_results(item: Item, answer: Items) -> list[ToolResult]:
    """Return the result of a call that the provider ran: from the call itself, or a shell's from its own item."""
    name = _call(item).name
    if (call_id := get(item, "call_id")) is not None:
        return [result_of(output, name) for output in answer if is_output(output) and call_id_of(output) == call_id]
    error = get(item, "error")
    found = next((value for value in (*_returned(item), error) if value is not None), None)
    if found is None:
        return []
    return [
        ToolResult(call_id=call_id_of(item), name=name, output=output_of(found), is_error=error is not None or None)
    ]


def _returned(item: Item) -> list[Any]:
    if kind(item) == "image_generation_call":
        return [{"type": "image", "data": picture}] if (picture := get(item, "result")) else []
    return [get(item, field) for field in OUTPUTS]


def result_of(item: Item, name: str = "") -> ToolResult:
    """Return the result that an output item holds; `name` is the tool's, which the item lacks."""
    failed = True if get(item, "status") == "failed" else None
    output = get(item, "output") or ""
    parts = [_printed(part) for part in output] if isinstance(output, (list, tuple)) else output
    return ToolResult(call_id=call_id_of(item), name=name, output=output_of(parts), is_error=failed)


def _printed(part: Item) -> Item:
    """Return what a command of a shell printed as a text; any other part as it is."""
    streams = [text for name in ("stdout", "stderr") if isinstance(text := get(part, name), str)]
    return "\n".join(filter(None, streams)) if streams else part


def usage_of(usage: Item) -> Usage:
    """Return the tokens of a response's `usage`, or of the Agents SDK's `Usage`; unknown if it counts none.

    The Agents SDK fills in zeros where the provider reports nothing.
    """
    if not get(usage, "input_tokens") and not get(usage, "output_tokens"):
        return Usage()
    cached, thought = get(usage, "input_tokens_details"), get(usage, "output_tokens_details")
    return Usage(
        input=first_int(usage, "input_tokens"),
        output=first_int(usage, "output_tokens"),
        cache_read=first_int(cached, "cached_tokens"),
        cache_write=first_int(cached, "cache_write_tokens"),
        reasoning=first_int(thought, "reasoning_tokens"),
    )
