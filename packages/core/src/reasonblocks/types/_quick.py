"""Makes and changes the values of a step in half the time that `dataclasses` takes, slot by slot.

For frozen, slotted, keyword-only dataclasses. A step makes some dozen of them, with some 170 fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache, update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Put = Callable[[Any, Any], None]


def quick(cls: type[T]) -> type[T]:
    """The same class; its `__init__` does the same, past the frozen `__setattr__`."""
    known: dict[str, Any] = {f"put_{name}": put for name, put in _puts(cls).items()}
    parameters, lines = ["self", "*"], []
    for field in fields(cls):
        name = field.name
        value = name
        if field.default_factory is not MISSING:
            known |= {f"make_{name}": field.default_factory, "MISSING": MISSING}
            parameters.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        elif field.default is not MISSING:
            known[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        lines.append(f"put_{name}(self, {value})")
    cls.__init__ = update_wrapper(_written("__init__", parameters, lines, known), cls.__init__)  # type: ignore[method-assign]
    return cls


def evolve(value: T, **changes: Any) -> T:
    """A new value with these fields changed. Raises `TypeError` for a name that is no field."""
    cls = type(value)
    copy, puts = _plan(cls)
    new: T = copy(value)
    try:
        for name, item in changes.items():
            puts[name](new, item)
    except KeyError:
        raise TypeError(f"{cls.__name__} has no field {', '.join(changes.keys() - puts.keys())}") from None
    return new


@lru_cache(maxsize=64)
def _plan(cls: type[DataclassInstance]) -> tuple[Callable[[Any], Any], Mapping[str, Put]]:
    """How a value is copied, and how each of its slots is set."""
    puts = _puts(cls)
    lines = [f"put_{name}(new, old.{name})" for name in puts]
    known = {"make": object.__new__, "cls": cls, **{f"put_{name}": put for name, put in puts.items()}}
    return _written("copy", ["old"], ["new = make(cls)", *lines, "return new"], known), puts


def _puts(cls: type[DataclassInstance]) -> dict[str, Put]:
    return {field.name: getattr(cls, field.name).__set__ for field in fields(cls)}


def _written(name: str, parameters: Iterable[str], lines: Iterable[str], known: dict[str, Any]) -> Callable[..., Any]:
    """A function from its source, as `dataclasses` makes them; `known` are its globals."""
    body = "\n    ".join(lines)
    exec(f"def {name}({', '.join(parameters)}):\n    {body}", known)
    function: Callable[..., Any] = known[name]
    return function
