"""`dataclasses.replace` for slotted values that are made anew on every step, at a fraction of its time.

The new value is filled slot by slot, past `__init__`: its fields were checked when the old one was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Put = Callable[[Any, Any], None]


def evolve(value: T, **changes: Any) -> T:
    """A new value with these fields changed. Raises `TypeError` for a name that is no field."""
    cls = type(value)
    puts, get = _plan(cls)
    if not changes.keys() <= puts.keys():
        raise TypeError(f"{cls.__name__} has no field {', '.join(changes.keys() - puts.keys())}")
    new = object.__new__(cls)
    for put, kept in zip(puts.values(), get(value), strict=True):
        put(new, kept)
    for name, item in changes.items():
        puts[name](new, item)
    return new


@lru_cache(maxsize=64)
def _plan(cls: type[DataclassInstance]) -> tuple[Mapping[str, Put], attrgetter[tuple[Any, ...]]]:
    """How each slot is set, and how all are read at once."""
    names = [field.name for field in fields(cls)]
    return {name: getattr(cls, name).__set__ for name in names}, attrgetter(*names)
