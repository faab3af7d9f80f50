"""What a framework cannot tell as the core does: declared here, counted in the comparison, refused once it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.parity.compare import differences
from tests.parity.exchange import Line, ParityFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A field of one run's entries that cannot be equal, and why."""

    run: str
    field: str
    reason: str


LIMITS: Mapping[str, tuple[Limit, ...]] = {
    "claude-agent": (
        Limit(
            run="recorded intercode_react",
            field="completed.observation",
            reason="the CLI cuts off the white space around the text of an error",
        ),
    ),
}
"""By adapter. A decision is never a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The differences that nobody declared, and how many each limit explains."""

    wrong: list[str]
    declared: Mapping[Limit, int]


def compared(file: ParityFile, run: str, mode: str, core: Sequence[Line], limits: Sequence[Limit] = ()) -> Compared:
    """One run in one mode beside the core. A limit of this run that explains nothing is a difference, too."""
    ours = [limit for limit in limits if limit.run == run]
    fields = {limit.field for limit in ours}
    wrong = differences(file, run, mode, core, leave=fields)
    declared = {
        limit: len(differences(file, run, mode, core, leave=fields - {limit.field})) - len(wrong) for limit in ours
    }
    gone = [
        f"{file.framework}, {mode}, {run}: {limit.field} is declared as a limit ({limit.reason}), and does not differ"
        for limit, count in declared.items()
        if not count
    ]
    return Compared(wrong=wrong + gone, declared=declared)
