"""Pure readers of message formats, without their frameworks: `langchain`, `openai`, `openai_chat` and `anthropic`.

Each reads dictionaries, as files and requests hold them, as well as the objects of its framework, by attribute.
Adapters use the readers on live runs and `traces` on saved ones, so that both yield the same values. All have

- `answer_of`: the `Step` that one answer of the model began: its text, its reasoning, its tool calls;
- `result_of`: the `ToolResult` of one tool call;
- `usage_of`: the tokens of one call; `input` includes those read from the cache and written to it.

`content` decides for all of them which text stands for the content of a message or of a tool's result.

A malformed optional field reads as an absent one. This module holds the code that they share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from ..types import JSON
from ..util.json import replace_surrogates

MAX_COPIED = 100
"""Levels of a value that `plain` copies, far below Python's recursion limit; anything deeper is shared."""


def get(item: Any, name: str) -> Any:
    """Return a field of a dictionary or of an object; None if it is missing."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def first_text(item: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that holds text; None if none does."""
    return next((value for name in names if isinstance(value := item.get(name), str) and value), None)


def first_int(item: Any, *names: str) -> int | None:
    """Return the first of these fields that holds a whole number; None if none does."""
    found = (get(item, name) for name in names)
    return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)


def parsed_arguments(given: Any) -> JSON:
    """Return a call's arguments; malformed ones, and free text, are the argument `input`. {} stands for none."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            if isinstance(read := json.loads(given), dict):
                return replace_surrogates(read) if "\\u" in given else read
        return {"input": given}
    return plain(given) if isinstance(given, Mapping) else {"input": plain(given)}


def plain(value: Any, levels: int = MAX_COPIED) -> JSON:
    """Return a copy in plain JSON types, so that a reader of the step cannot change the framework's own message."""
    if isinstance(value, str) or levels == 0:
        return cast("JSON", value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, levels - 1) for item in value]
    if hasattr(value, "model_dump"):
        return cast("JSON", value.model_dump(mode="json", exclude_none=True))
    return cast("JSON", value)
