"""Reads the values of a monitor's memory, unchecked, as the monitor itself stored them.

A memory needs no second check: the trace state validates a snapshot where it enters. Every unchecked type of the
monitors' memories is declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..types import JSON

EMPTY: Mapping[str, JSON] = MappingProxyType({})


def table(value: JSON) -> Mapping[str, JSON]:
    """Return the object that a memory holds; an empty one before the first step."""
    return value or EMPTY  # type: ignore[return-value]


def count(memory: Mapping[str, JSON], name: str) -> int:
    """Return the whole number under this name, or 0."""
    return memory.get(name, 0)  # type: ignore[return-value]


def fraction(memory: Mapping[str, JSON], name: str) -> float:
    """Return the number under this name, or 0.0."""
    return memory.get(name, 0.0)  # type: ignore[return-value]


def numbers(memory: Mapping[str, JSON], name: str) -> list[int]:
    """Return the whole numbers under this name, or none."""
    return memory.get(name) or []  # type: ignore[return-value]


def rows(memory: Mapping[str, JSON], name: str) -> list[list[int]]:
    """Return the rows of whole numbers under this name, or none."""
    return memory.get(name) or []  # type: ignore[return-value]


def names(memory: Mapping[str, JSON], name: str) -> list[str]:
    """Return the strings under this name, or none."""
    return memory.get(name) or []  # type: ignore[return-value]


def texts(facts: Mapping[str, JSON], *names: str) -> list[str]:
    """Return these facts as strings; "" for a missing one."""
    return [str(facts.get(name) or "") for name in names]
