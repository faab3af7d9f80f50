"""Validates a pattern before it is stored: the kinds of its values, and that a search could find it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..exceptions import ConfigError
from ..types import Pattern, Tier
from ..types.steering import TIERS
from ..util.text import size, whole

NAME_BYTES = 200
"""Bytes of the longest id or name in compact JSON; a trace state has about 100 of them and stays under 64 KB."""
MAX_KINDS = 32
"""Kinds of one pattern, at most; there are fewer in all."""
EXEMPLARS = 32
"""Exemplars of one pattern, at most; each is a row that every search compares."""
EXEMPLAR_CHARS = 16_000
"""Characters of one exemplar, or of one field, at most: far more than is embedded or shown."""
DEEPEST = 16
"""Nested levels of a pattern's fields, at most; the tiers' own fields need two."""
MATCHED: Mapping[Tier, tuple[str, ...]] = {
    "e1": ("task_context_embedding_text",),
    "e2": ("trigger_state", "trajectory_description"),
}
"""The path to the field that is matched if a pattern has no exemplars."""


def check_pattern(pattern: Pattern) -> Pattern:
    """Return the pattern if it is valid. Raises `ConfigError` with the pattern's id, field, value and the rule."""
    name: object = pattern.id
    if not isinstance(name, str) or not name.strip() or not _is_name(name):
        raise ConfigError("pattern id", name, f"must be a text of 1 to {NAME_BYTES} bytes, in whole characters")
    if pattern.tier not in TIERS:
        raise ConfigError.unknown(f"pattern {pattern.id!r}: tier", pattern.tier, TIERS)
    for field in ("org_id", "failure_type"):
        value: object = getattr(pattern, field)
        if value is not None and not _is_name(value):
            rule = f"must be a text of 1 to {NAME_BYTES} bytes, or None"
            raise ConfigError(f"pattern {name!r}: {field}", value, rule)
    if not pattern.off:
        _check_content(pattern)
    return pattern


def _is_name(value: object) -> bool:
    """Return True if a session would keep the value."""
    return isinstance(value, str) and 0 < size(value) <= NAME_BYTES and whole(value) == value


def _check_content(pattern: Pattern) -> None:
    name = f"pattern {pattern.id!r}"
    if pattern.tier == "e1" and pattern.org_id is None:
        raise ConfigError(f"{name}: org_id", None, "tier e1 belongs to one customer: give its org_id")
    if not isinstance(pattern.fields, Mapping):
        raise ConfigError(f"{name}: fields", pattern.fields, "must be a mapping of names to texts")
    if not _is_json(pattern.fields, DEEPEST):
        raise ConfigError(f"{name}: fields", pattern.fields, f"must be JSON of at most {DEEPEST} levels")
    gate: object = pattern.gate_threshold
    if gate is not None and (isinstance(gate, bool) or not isinstance(gate, (int, float)) or not 0 <= gate <= 1):
        raise ConfigError(f"{name}: gate_threshold", gate, "must be a similarity from 0 to 1, or None")
    texts: tuple[object, ...] = (
        *pattern.exemplars,
        *(value for value in pattern.fields.values() if isinstance(value, str)),
    )
    if any(not isinstance(text, str) or len(text) > EXEMPLAR_CHARS for text in texts):
        rule = f"must be texts of at most {EXEMPLAR_CHARS} characters"
        raise ConfigError(f"{name}: exemplars and fields", f"{len(texts)} texts", rule)
    if len(pattern.exemplars) > EXEMPLARS:
        raise ConfigError(f"{name}: exemplars", len(pattern.exemplars), f"at most {EXEMPLARS}")
    if pattern.requires_signal and (pattern.tier != "e2" or pattern.failure_type is None):
        raise ConfigError(f"{name}: requires_signal", True, "is for tier e2, with the failure_type that it waits for")
    _check_kinds(pattern)
    if pattern.tier != "e3" and not exemplars(pattern):
        raise ConfigError(f"{name}: exemplars", pattern.exemplars, "give at least one text to match")


def _check_kinds(pattern: Pattern) -> None:
    """Check the form. An unknown kind, from a newer version or another monitor, is stored and fits no finding."""
    name = f"pattern {pattern.id!r}: kinds"
    kinds: object = pattern.kinds
    if not isinstance(kinds, tuple) or len(kinds) > MAX_KINDS or not all(map(_is_name, kinds)):
        raise ConfigError(name, kinds, f"must be at most {MAX_KINDS} texts of 1 to {NAME_BYTES} bytes")
    if kinds and pattern.tier != "e2":
        raise ConfigError(name, kinds, "are for tier e2")


def _is_json(value: object, levels: int) -> bool:
    if isinstance(value, Mapping):
        return levels > 0 and all(isinstance(name, str) and _is_json(item, levels - 1) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return levels > 0 and all(_is_json(item, levels - 1) for item in value)
    return math.isfinite(value) if isinstance(value, float) else value is None or isinstance(value, (str, int))


def exemplars(pattern: Pattern) -> tuple[str, ...]:
    """Return the texts that a query is compared with: the exemplars, or else the tier's own field for it."""
    if pattern.tier == "e3" or pattern.exemplars:
        return pattern.exemplars
    value: object = pattern.fields
    for name in MATCHED[pattern.tier]:
        value = value.get(name) if isinstance(value, Mapping) else None
    return (value,) if isinstance(value, str) and value.strip() else ()
