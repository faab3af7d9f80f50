"""Refuses a keyword that a function does not take, with the nearest one that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from .exceptions import UnknownKeyword

if TYPE_CHECKING:
    from .types import RunOptions

P = ParamSpec("P")
SelfT = TypeVar("SelfT")
OptionsT = TypeVar("OptionsT")


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UnknownKeyword`, with the nearest valid name, for a name that is not known."""
    names = frozenset(known)
    for name in given:
        if name not in names:
            raise UnknownKeyword.unknown(f"a keyword of {function}", name, names)


def takes(
    options: Callable[P, OptionsT],
) -> Callable[[Callable[[SelfT, OptionsT], None]], Callable[Concatenate[SelfT, P], None]]:
    """Return the decorator of an `__init__` that takes the fields of the dataclass `options` as its keywords.

    The `__init__` itself receives an instance of the dataclass. Type checkers and `inspect.signature` see the fields;
    unknown keywords are refused as by `check_keywords`.
    """

    def decorate(init: Callable[[SelfT, OptionsT], None]) -> Callable[Concatenate[SelfT, P], None]:
        function = init.__qualname__.removesuffix(".__init__")

        @wraps(init)
        def checked(self: SelfT, /, *args: P.args, **keywords: P.kwargs) -> None:
            if args:
                raise TypeError(f"{function} takes keyword arguments only, and {len(args)} positional were given")
            check_keywords(function, keywords, vars(options)["__dataclass_fields__"])
            init(self, options(*args, **keywords))

        vars(checked)["__wrapped__"] = vars(options)["__init__"]  # for `inspect.signature`
        return checked

    return decorate


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
