"""Refuses a keyword that a function does not take, with the nearest one that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .exceptions import UnknownKeyword

if TYPE_CHECKING:
    from .types import RunOptions

P = ParamSpec("P")
T = TypeVar("T")


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UnknownKeyword`, with the nearest valid name, for a name that is not known."""
    names = frozenset(known)
    for name in given:
        if name not in names:
            raise UnknownKeyword.unknown(f"a keyword of {function}", name, names)


def with_known_keywords(init: Callable[P, T]) -> Callable[P, T]:
    """Return an `__init__` without `**` that refuses unknown keywords as `check_keywords` does."""

    @wraps(init)
    def checked(*args: P.args, **keywords: P.kwargs) -> T:
        check_keywords(init.__qualname__.removesuffix(".__init__"), keywords, _parameters(init))
        return init(*args, **keywords)

    return checked


@cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    from inspect import signature  # slow to import, and needed by a client only

    return frozenset(signature(function).parameters) - {"self"}


def split_keywords(
    function: str, given: Mapping[str, Any], others: Iterable[str] = ()
) -> tuple[RunOptions, dict[str, Any]]:
    """Return the run options in `given`, and the keywords whose names are in `others`.

    `others` are the framework's own keywords, and the function's named parameters, which an error can then suggest.
    Raises `UnknownKeyword` with the nearest valid name for any other name.
    """
    from dataclasses import fields  # slow to import, as are the types, and needed by a run only

    from .types import RunOptions

    ours = [field.name for field in fields(RunOptions)]
    check_keywords(function, given, [*ours, *others])
    mine = {name: value for name, value in given.items() if name in ours}
    return RunOptions(**mine), {name: value for name, value in given.items() if name not in mine}
