"""Takes the texts of private evidence out of a command's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Blobs: TypeAlias = dict[str, str]
"""Private texts by their names."""


def without_private(data: Mapping[str, object], name: Callable[[str], str]) -> tuple[dict[str, Any], Blobs]:
    """Return the data with names in place of private texts, and the texts; those of children stay for their own."""
    blobs: Blobs = {}

    def one(item: Any) -> Any:
        if not (isinstance(item, Mapping) and item.get("private") is True and item.get("text")):
            return item
        text = str(item["text"])
        blob = name(text)
        if blob:
            blobs[blob] = text
        return {**item, "text": "", "blob": blob}

    def many(items: object) -> Any:
        return [one(item) for item in items] if isinstance(items, list | tuple) else items

    found: dict[str, Any] = dict(data)
    if "items" in found:
        found["items"] = many(found["items"])
    if isinstance(cause := found.get("cause"), Mapping) and "evidence" in cause:
        found["cause"] = {**cause, "evidence": many(cause["evidence"])}
    return found, blobs
