"""Converts patterns to JSON and back: the form of files, of stores' payloads and of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from ..exceptions import ConfigError
from ..types import JSON, Pattern
from ._check import check_pattern

_FIELDS = {field.name: field for field in fields(Pattern)}
_DEFAULTS = {
    name: field.default if field.default_factory is MISSING else field.default_factory()
    for name, field in _FIELDS.items()
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "id": (str,),
    "tier": (str,),
    "fields": (Mapping,),
    "org_id": (str, type(None)),
    "failure_type": (str, type(None)),
    "kinds": (list, tuple),
    "model_family": (str,),
    "exemplars": (list, tuple),
    "gate_threshold": (int, float, type(None)),
    "source_trace_id": (str, type(None)),
    "revision": (int,),
    "created_at": (str, type(None)),
    "stats": (Mapping,),
    "requires_signal": (bool,),
    "off": (bool,),
}
_LISTS = ("exemplars", "kinds")
_KIND_NAMES = {str: "a text", Mapping: "a table", list: "a list", tuple: "a list", int: "a number", float: "a number"}


def pattern_json(pattern: Pattern) -> dict[str, JSON]:
    """Return the pattern in plain JSON, without fields that have their default."""
    values = ((name, getattr(pattern, name), default) for name, default in _DEFAULTS.items())
    return {name: _plain(value) for name, value, default in values if value != default}


def pattern_of(given: Mapping[str, Any]) -> Pattern:
    """Return the valid pattern of a table. Raises `ConfigError` with the field, its value, and the rule."""
    table: object = given
    if not isinstance(table, Mapping):
        raise ConfigError("pattern", table, "must be a table of its fields")
    for name, value in given.items():
        if name not in _FIELDS:
            raise ConfigError.unknown("pattern: field", name, _FIELDS)
        if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and bool not in _KINDS[name]):
            kinds = " or ".join(dict.fromkeys(_KIND_NAMES.get(kind, "nothing") for kind in _KINDS[name]))
            raise ConfigError(f"pattern: {name}", value, f"must be {kinds if name != 'off' else 'true or false'}")
    for name in ("id", "tier"):
        if name not in given:
            raise ConfigError(f"pattern: {name}", None, "is missing")
    values: dict[str, Any] = {name: tuple(value) if name in _LISTS else value for name, value in given.items()}
    return check_pattern(Pattern(**values))


def _plain(value: Any) -> JSON:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    plain: JSON = value
    return plain


COUNTED = ("retrieved", "injected", "recovered", "not_recovered")
"""The keys of `stats`, in the order of a run."""


def revise_pattern(given: Pattern, stored: Pattern | None, now: str) -> Pattern:
    """Return the pattern to store when `given` is added over `stored` at `now`, an ISO time.

    If the content changed, the revision is bumped and old counts are dropped, because they measured other wording.
    Otherwise `stored` is returned with the given counts.
    """
    if stored is None:
        return replace(given, created_at=given.created_at or now)
    created_at = given.created_at or stored.created_at
    if content_of(given) == content_of(stored):
        return replace(stored, created_at=created_at, stats=given.stats or stored.stats)
    return replace(given, created_at=created_at, revision=max(given.revision, stored.revision + 1))


def content_of(pattern: Pattern) -> dict[str, object]:
    """Return everything but the revision, the time and the counts."""
    plain: dict[str, object] = dict(pattern_json(pattern))
    return {name: value for name, value in plain.items() if name not in ("revision", "created_at", "stats")}
