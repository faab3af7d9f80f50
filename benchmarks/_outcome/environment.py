"""An environment: a seeded task with tools and an objective end. Write your own by these protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

Tool: TypeAlias = Mapping[str, Any]
"""A tool as chat APIs declare it: `{"type": "function", "function": {"name", "description", "parameters"}}`."""


class ToolError(Exception):
    """A call that the environment refuses. Its text is the result that the agent reads, after "Error: "."""


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any]


class Environment(Protocol):
    """A task that an agent works on with tools.

    It has to be deterministic: after the same seed and the same calls it gives the same results. That is how a run is
    branched: its calls are made again in a fresh environment.
    """

    @property
    def system(self) -> str:
        """The system message."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools, which stay the same for the whole run."""

    @property
    def max_steps(self) -> int:
        """Calls of a model after which the run ends."""

    def reset(self, seed: int) -> str:
        """Start the task of this seed from its beginning, and return the user's message."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Make a call and return its result. Raises `ToolError` for one that cannot be made."""

    @property
    def done(self) -> bool:
        """True once the task has ended, solved or given up."""

    def success(self) -> bool:
        """Return True if the task is solved now. It changes nothing."""


@runtime_checkable
class Limited(Protocol):
    """An environment that knows the valid values of arguments, for models too small to write them freely."""

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return, for a tool's argument as "tool.argument", the values that it can take now; others are free."""


@runtime_checkable
class Solvable(Protocol):
    """An environment with a reference policy, which tells whether a run can still be won."""

    def reference(self) -> Call | None:
        """Return the policy's next call, from what the agent was shown so far; None if it knows none."""


@runtime_checkable
class Reopening(Protocol):
    """An environment whose end can be taken back, for a second look."""

    def reopen(self) -> None:
        """Go on after the agent's own end of the task, as if it had not called for it."""


@runtime_checkable
class Closing(Protocol):
    """An environment that holds something open, such as a process."""

    def close(self) -> None:
        """Release it."""


def tool(name: str, description: str, /, **arguments: str) -> Tool:
    """Return the declaration of a tool whose arguments are all required strings, each with its description."""
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": [*arguments]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def names(tools: Sequence[Tool]) -> list[str]:
    """Return the tools' names."""
    return [item["function"]["name"] for item in tools]


def unknown(name: str, tools: Sequence[Tool]) -> ToolError:
    """Return the error for a tool that does not exist."""
    return ToolError(f"unknown tool {name}; the tools are {', '.join(names(tools))}")
