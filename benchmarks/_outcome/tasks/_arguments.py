"""Reads the arguments of a call, as small models write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..environment import Tool, ToolError, names, unknown

QUOTES = " \t\n\"'`"
"""What small models put around a value."""


def checked(
    name: str, arguments: Mapping[str, Any], tools: Sequence[Tool], *, verbatim: Sequence[str] = ()
) -> dict[str, str]:
    """Return the arguments as texts without white space and quotes around them; those of `verbatim` unchanged.

    Raises `ToolError` for a tool that does not exist and for arguments that are missing or too many.
    """
    if name not in names(tools):
        raise unknown(name, tools)
    wanted = next(item["function"]["parameters"]["required"] for item in tools if item["function"]["name"] == name)
    if {*arguments} != {*wanted}:
        takes = f"the arguments {', '.join(wanted)}" if wanted else "no arguments"
        raise ToolError(f"{name} takes {takes}")
    return {key: str(arguments[key]).strip("" if key in verbatim else QUOTES) for key in wanted}


def listed(values: Sequence[str]) -> str:
    """Return the values as a list within a sentence."""
    return ", ".join(values)
