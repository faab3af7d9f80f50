"""Checks of one value each: what it is called, what it was, what holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import TypeGuard, TypeVar

from ..exceptions import ConfigError

T = TypeVar("T")


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite number that is not a bool; an int too large for a float is finite, too."""
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigError(name, value, "must be a string that is not empty")


def optional_text(name: str, value: object) -> None:
    if not isinstance(value, (str, NoneType)):
        raise ConfigError(name, value, f"must be a string, or None: give str({name})")


def json_by_name(name: str, value: object) -> None:
    """A mapping of strings to what sinks can write, or None."""
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(name, value, "must be a mapping of strings to JSON values, or None")
    for key, item in (value or {}).items():
        if not isinstance(key, str):
            raise ConfigError(name, value, f"must have strings as keys: give str(key) in place of {key!r}")
        try:
            json.dumps(item, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{name}[{key!r}]", item, f"must be JSON ({exc}): give its text, or a list") from exc


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(name, value, "must be True or False")
    return value


def choice(name: str, value: T, valid: tuple[T, ...]) -> T:
    if value not in valid:
        raise ConfigError.unknown(name, value, map(str, valid))
    return value


def call_back(name: str, value: T) -> T:
    if value is not None and not callable(value):
        raise ConfigError(name, value, "must be callable")
    return value


def mapping(name: str, value: Mapping[str, T] | None) -> Mapping[str, T]:
    given: object = {} if value is None else value
    if not isinstance(given, Mapping):
        raise ConfigError(name, value, "must be a mapping")
    return given


def items(name: str, value: Iterable[T]) -> Iterable[T]:
    given: object = value
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigError(name, value, "must be a list")
    return given
