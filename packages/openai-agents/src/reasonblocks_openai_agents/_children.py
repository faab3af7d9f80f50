"""Which request is whose, among the agents that a run's tools have called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ._convert import newest_call_id
from ._items import Item

if TYPE_CHECKING:
    from ._calls import Call

MOST_CHILDREN = 64
"""Runs of agents that this run's tools called; beyond, the oldest is forgotten here."""


class Child(Protocol):
    """What is to be known of a run to find it again."""

    @property
    def run_id(self) -> str: ...
    @property
    def over(self) -> bool: ...
    @property
    def call(self) -> Call | None: ...


RunT = TypeVar("RunT", bound=Child)


class Children(Generic[RunT]):
    """The newest of them, by the id of the tool call that a hook told of, else by their own."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, RunT] = OrderedDict()

    def __iter__(self) -> Iterator[RunT]:
        return iter(list(self._runs.values()))

    def get(self, call_id: str) -> RunT | None:
        return self._runs.get(call_id)

    def of_call(self, call_id: str, make: Callable[[], RunT]) -> RunT:
        return self._runs.get(call_id) or self._add(call_id, make())

    def of_request(self, items: Sequence[Item], make: Callable[[], RunT]) -> RunT:
        """The run whose newest answer made the call that this request brings the result of; else a new one."""
        answered = newest_call_id(items)
        for run in reversed(self._runs.values()):
            if not run.over and run.call is not None and answered in run.call.waits_for:
                return run
        run = make()
        return self._add(run.run_id, run)

    def _add(self, key: str, run: RunT) -> RunT:
        self._runs[key] = run
        while len(self._runs) > MOST_CHILDREN:
            self._runs.popitem(last=False)
        return run
