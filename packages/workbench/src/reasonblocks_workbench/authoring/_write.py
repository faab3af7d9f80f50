"""Writes patterns as JSON Lines, or as TOML that a person can edit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import pattern_json
from reasonblocks.types import JSON, Pattern
from reasonblocks.util.json import compact
from reasonblocks.util.text import whole

WIDTH = 110
"""The longest list that is written on one line, in characters."""


def as_jsonl(patterns: Iterable[Pattern]) -> str:
    """Return one line for each pattern, without fields that have their default values."""
    return "".join(f"{whole(compact(pattern_json(pattern)))}\n" for pattern in patterns)


def as_toml(patterns: Iterable[Pattern]) -> str:
    """Return a `[[pattern]]` table for each. Raises `ConfigError` for a null, which TOML does not have."""
    return "\n".join("".join(f"{line}\n" for line in _table(pattern)) for pattern in patterns)


def _table(pattern: Pattern) -> Iterator[str]:
    values = pattern_json(pattern)
    yield "[[pattern]]"
    for name, value in values.items():
        if not isinstance(value, Mapping):
            yield f"{name} = {_value(pattern.id, value)}"
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _sub_table(pattern.id, f"pattern.{name}", value)


def _sub_table(pattern_id: str, head: str, table: Mapping[str, JSON]) -> Iterator[str]:
    yield f"[{head}]"
    yield from (f"{_key(name)} = {_value(pattern_id, value)}" for name, value in table.items())


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _text(name)


def _value(pattern_id: str, value: JSON) -> str:
    if value is None:
        raise ConfigError(f"pattern {pattern_id!r}: fields", None, "TOML has no null: write it as JSON Lines")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(pattern_id, item)}" for name, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return _list([_value(pattern_id, item) for item in value])
    return json.dumps(value)


def _text(text: str) -> str:
    """Return a TOML basic string: JSON's, with U+007F escaped as well, which JSON allows as it is."""
    return json.dumps(whole(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(items: list[str]) -> str:
    line = ", ".join(items)
    return f"[{line}]" if len(line) <= WIDTH else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
