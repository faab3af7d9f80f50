"""Replays runs under one set of settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from reasonblocks.exceptions import ConfigError, ReasonBlocksError
from reasonblocks.types import StepDecision

from ..replay import OtherRuns, ReplayedRun, replay
from ..report.page import STANDING
from ._fault import UserFault
from .options import Settings, settings_of_file

if TYPE_CHECKING:
    from reasonblocks.client import ReasonBlocks

    from ..traces import RecordedRun

OWN = "own"
"""The value of the setting `profile` for the other runs of the files."""
MOST_ASKED = 100
"""The number of questions to an advisor after which no further run asks it."""


class Replayer:
    """Replays runs through one client.

    With `others`, all runs have to be gathered first, so that each can be judged by the others; `observing` is the
    client that does this, because the agent of a recorded run was told nothing. `profiled` gives every
    run the task profile of the settings, even if it has its own. `stops` is True if runs may be stopped. `advises` asks
    the advisor of the settings, until it was asked `MOST_ASKED` times; the run in which that happens is replayed whole.
    """

    def __init__(
        self,
        rb: ReasonBlocks,
        others: OtherRuns | None,
        observing: ReasonBlocks,
        *,
        profiled: bool,
        stops: bool,
        advises: bool,
        tool_roles: Mapping[str, str],
    ) -> None:
        self.rb, self.others, self.observing = rb, others, observing
        self.profiled, self.stops, self.advises, self.tool_roles = profiled, stops, advises, tool_roles
        self.asked = 0

    @property
    def gathers(self) -> bool:
        return self.others is not None and not self.others.complete

    def gathered(self) -> None:
        """Note that every run was replayed once."""
        if self.others is not None:
            self.others.complete = True

    def __call__(self, run: RecordedRun) -> ReplayedRun:
        if self.others is not None:
            self.others.task_key = run.task_key
        rb = self.observing if self.gathers else self.rb
        run = replace(run, task_profile=None) if self.profiled else run
        try:
            replayed = replay(rb, run, advise=self.advises and self.asked < MOST_ASKED)
        except (ReasonBlocksError, MemoryError):
            raise
        except Exception as error:  # raised with `strict`
            raise UserFault(f"run {run.run_id!r}", error) from error
        self.asked += sum(decision.advisor_ms is not None for decision in replayed.decisions)
        return _rules_once(replace(replayed, tool_roles=self.tool_roles))


def _rules_once(replayed: ReplayedRun) -> ReplayedRun:
    """Return the run with the rules that every call shows only where they are new."""
    decisions = (replayed.start, *replayed.decisions)
    if not any(any(_rules(decision)) for decision in decisions):
        return replayed
    once = [
        _without_rules(decision) if _rules(decision) == _rules(before) else decision
        for before, decision in pairwise(decisions)
    ]
    return replace(replayed, decisions=tuple(once))


def _rules(decision: StepDecision) -> tuple[str, ...]:
    rules = (injection.text for injection in decision.withheld if injection.source == STANDING)
    return (decision.standing_rules, *rules)


def _without_rules(decision: StepDecision) -> StepDecision:
    others = tuple(injection for injection in decision.withheld if injection.source != STANDING)
    return replace(decision, standing_rules="", withheld=others)


@contextmanager
def replayer(settings: Settings, over: str | None = None) -> Iterator[Replayer]:
    """Make a client of the settings, which those of the file `over` override, and close it at the end.

    Raises `ConfigError` with the option or the file that has the setting.
    """
    read = settings.read(over)
    profiled = "task_profile" in settings.given or (over is not None and "task_profile" in settings_of_file(over))
    others = OtherRuns() if read.get("profile") == OWN else None
    own = read if others is None else {**read, "profile": others}
    stops = any(read.get(name) is not None for name in ("stop_when", "budget"))
    advises, roles = read.get("advisor") is not None, read.get("tool_roles") or {}
    try:
        rb, observing = _client(own), _client({**own, "mode": "observe"})
    except ConfigError as error:
        raise settings.named(error, over) from error
    with _closing(rb), _closing(observing):
        yield Replayer(rb, others, observing, profiled=profiled, stops=stops, advises=advises, tool_roles=roles)


def _client(settings: Mapping[str, Any]) -> ReasonBlocks:
    from reasonblocks.client import ReasonBlocks

    return ReasonBlocks(**settings, base_url="")  # recorded runs stay here


@contextmanager
def _closing(rb: ReasonBlocks) -> Iterator[None]:
    """Close the client at the end; after an error, none of closing takes its place."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            rb.close()
        raise
    rb.close()
