"""Counts the blocks with `cache_control` that one LangChain request will send to Anthropic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, ToolMessage

from reasonblocks._render import count_breakpoints
from reasonblocks._routing import attribute

MAX_WRAPPED = 8
"""The most bindings around a model that are searched."""


def breakpoints(request: ModelRequest[Any], messages: Sequence[AnyMessage], model: object) -> int:
    """Count them outside the system message: in messages, tools, and what the call or the model adds to the request."""
    tools = (tool if isinstance(tool, Mapping) else {"extras": attribute(tool, "extras")} for tool in request.tools)
    parts = [*tools, request.model_settings, *_added_by(model)]
    return sum(map(_of_message, messages)) + sum(map(count_breakpoints, parts))


def _of_message(message: AnyMessage) -> int:
    """Count a message's marks; LangChain moves those within a tool's output to the output as a whole."""
    found = count_breakpoints(message.content)
    return min(found, 1) if isinstance(message, ToolMessage) else found


def _added_by(model: object) -> Iterator[object]:
    """Yield the keywords that a model sends with every request: its own and its bound ones."""
    for _ in range(MAX_WRAPPED):
        yield attribute(model, "model_kwargs")
        yield attribute(model, "kwargs")
        if (model := attribute(model, "bound")) is None:
            return
