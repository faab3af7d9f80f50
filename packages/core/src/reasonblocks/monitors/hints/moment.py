"""The newest step as the rows of the table see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...account.calls import Kind, kind_of
from ...account.results import Reading, read_result
from ...types import Account, Step, ToolCall, ToolResult
from ...types.account import FAILED, Action
from ..roles import trust_of
from .seen import Seen


@dataclass(frozen=True)
class Moment:
    """A completed step, its account, and what the run has shown. `call` is its only call, `now` that call's account."""

    step: Step
    index: int
    account: Account
    now: Action
    call: ToolCall
    seen: Seen
    roles: Mapping[str, str]

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.call, self.roles)

    @cached_property
    def reading(self) -> Reading:
        results = self.step.tool_results
        result = results[0] if results else ToolResult(call_id="", output="")
        return read_result(result, kind=self.kind, given=self.call.arguments)

    @cached_property
    def own(self) -> bool:
        """True if the result is the user's own, so that a text may quote it."""
        return not self.call.name or trust_of(self.call, self.roles) == "full"

    @property
    def failed(self) -> bool:
        return bool(self.now.flags & FAILED)

    def ago(self, step: int) -> str:
        """Return how long ago a step was."""
        gone = self.index - step
        return f"{gone} step{'s' * (gone != 1)} before your last one"


Row = Callable[[Moment], str]


def listed(names: Sequence[str], room: int) -> str:
    """Return names with commas between them, as many as have room, and that there are others."""
    shown: list[str] = []
    for at, name in enumerate(names):
        if name == "…" or sum(map(len, shown)) + 2 * at + len(name) > room:
            return f"{', '.join(shown)} and others"
        shown.append(name)
    return ", ".join(shown)
