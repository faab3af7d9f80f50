"""Writes the calls and results of tools, which are JSON, as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

from reasonblocks.types import Step, ToolCall

INDENT = "  "


def describe_calls(step: Step) -> str:
    """Return the names of the tools that a step called, each with its arguments below it."""
    return "\n".join(map(_call, step.tool_calls))


def describe_results(step: Step) -> str:
    """Return the results of a step; one that is JSON has a line for each of its values, and its texts unquoted."""
    return "\n\n".join(_result(result.output) for result in step.tool_results)


def _call(call: ToolCall) -> str:
    with suppress(RecursionError):
        return "\n".join(_under(f"{call.name}:", call.arguments))
    return call.name


def _result(text: str) -> str:
    if text.lstrip()[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):
            return "\n".join(_lines(json.loads(text))) or text
    return text


def _lines(value: object) -> Iterator[str]:
    """Yield the lines of a value. The texts in it are as they are, with their own lines."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _under(f"{name}:", inner)
    elif isinstance(value, list | tuple) and value:
        for inner in value:
            yield from _under("-", inner)
    elif not isinstance(value, Mapping):
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _under(head: str, value: object) -> Iterator[str]:
    """Yield a value after its head; one of several lines is indented below it."""
    lines = "\n".join(_lines(value)).split("\n")
    if len(lines) == 1 and not (isinstance(value, Mapping | list | tuple) and value):
        yield f"{head} {lines[0]}".rstrip()
    else:
        yield head
        yield from (f"{INDENT}{line}" for line in lines)
