"""A backend answers the model calls of many runs at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from .environment import Call, Tool

Message: TypeAlias = Mapping[str, Any]
"""A message of a chat API, with `tool_calls` (their arguments as a JSON string) and `tool_call_id` as OpenAI has
them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One model call. `lane` identifies the run among those at the same time, so that a cache serves its next call.

    `choices` are the valid values of arguments, as "tool.argument"; `seed` is that of the sampling. Without `tools` the
    answer is a text. `strong` asks the stronger model, if there is one.
    """

    messages: Sequence[Message]
    tools: Sequence[Tool]
    lane: int
    seed: int
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer: text and at most one call. `cached` are the prompt tokens that were not evaluated again."""

    text: str = ""
    call: Call | None = None
    prompt: int = 0
    completion: int = 0
    cached: int | None = None


class BackendError(Exception):
    """A model call that failed for good: `where` it was made, the `problem`, what to do (`hint`), and the `lane`."""

    def __init__(self, where: str, problem: str, hint: str, lane: int | None = None) -> None:
        self.where, self.problem, self.hint, self.lane = where, problem, hint, lane
        super().__init__(f"{where}: {problem}; {hint}")


class Backend(Protocol):
    """A model. `lanes` is the number of runs at a time.

    With `in_rounds` all runs are asked at once; otherwise `complete` is called from many threads, with a query each.
    """

    @property
    def model(self) -> str: ...
    @property
    def lanes(self) -> int: ...
    @property
    def in_rounds(self) -> bool: ...
    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries, in their order, each of another lane. Raises `BackendError`."""

    def close(self) -> None: ...


class WithStronger:
    """A model, and a stronger one for the queries that ask for it."""

    in_rounds = False

    def __init__(self, own: Backend, strong: Backend) -> None:
        self.model, self.lanes = own.model, own.lanes
        self._own, self._strong = own, strong

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries, each by its model. Raises `BackendError`."""
        return [(self._strong if query.strong else self._own).complete([query])[0] for query in queries]

    def close(self) -> None:
        self._own.close()
        self._strong.close()
