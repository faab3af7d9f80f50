"""Reads an item of the SDK in either form: dictionaries in a request, pydantic models in an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from reasonblocks.types import JSON

Item: TypeAlias = Any
"""The SDK's unions of item types have some forty members, and grow."""
Items: TypeAlias = "list[Item]"


def kind(item: Item) -> str:
    """Its type; a message of a request need not say one."""
    return str(get(item, "type") or "")


def get(item: Item, name: str) -> Any:
    """A field of it, None where it has none."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def is_message(item: Item) -> bool:
    """Whether the model said it."""
    return kind(item) in ("message", "") and get(item, "role") == "assistant"


def is_call(item: Item) -> bool:
    return kind(item).endswith("_call")


def is_output(item: Item) -> bool:
    return kind(item).endswith("_output")


def plain(value: Any) -> JSON:
    """JSON of what may be a pydantic model, or hold some."""
    if hasattr(value, "model_dump"):
        return cast("JSON", value.model_dump(mode="json", exclude_none=True))
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else cast("JSON", value)
