"""Assigns the runs of an experiment to its arms: runs in "on" are steered, and runs in "off" are only observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from ..exceptions import ConfigError
from ..types import Mode, RunOptions, Settings
from ..util.json import JSON, evolve, is_number
from ..util.text import bounded, whole

Arm: TypeAlias = Literal["on", "off"]
MODES: Mapping[Arm, Mode] = {"on": "steer", "off": "observe"}
ID_BYTES = 200
"""The most bytes in the id of an experiment or a unit, as in that of a run."""
DEFAULT_FRACTION = 0.5
MAX_ASSIGNED = 4_096
"""The number of newest runs whose assignments are kept for the runs that they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A unit's place in an experiment. A client that observes all runs, or that is disabled, records no arm."""

    experiment_id: str
    unit_id: str
    on_fraction: float
    has_arm: bool = True

    @property
    def arm(self) -> Arm:
        """The arm of the unit: the same in every process, thread and framework."""
        text = f"{self.experiment_id}:{self.unit_id}".encode()
        number = int.from_bytes(sha256(text).digest()[:8], "big")
        return "on" if number < self.on_fraction * 2**64 else "off"  # both sides are exact

    def metadata(self) -> dict[str, JSON]:
        """Return the part of a run's metadata that a report uses."""
        return {
            "experiment_id": self.experiment_id,
            **({"arm": self.arm} if self.has_arm else {}),
            "assignment_unit": self.unit_id,
            "on_fraction": self.on_fraction,
        }


RESERVED = ("experiment_id", "arm", "assignment_unit", "on_fraction")
"""Names in the metadata of a run that is part of an experiment."""


class Assignments(dict[str, Assignment]):
    """The assignments of a client's newest runs, by run id."""

    def keep(self, run_id: str, assignment: Assignment) -> None:
        self.pop(run_id, None)
        self[run_id] = assignment
        for oldest in list(self)[: max(0, len(self) - MAX_ASSIGNED)]:
            self.pop(oldest, None)  # another thread may have removed it


def check_experiment(options: RunOptions) -> None:
    """Validate the options of an experiment. Raises `ConfigError`."""
    for name in ("experiment_id", "unit_id"):
        _check_id(name, getattr(options, name))
    share: object = options.on_fraction
    if share is not None and not (is_number(share) and 0 <= share <= 1):
        raise ConfigError("on_fraction", share, "must be a number from 0 to 1: the share of units that are steered")
    if options.experiment_id is None:
        for name in ("unit_id", "on_fraction"):
            if getattr(options, name) is not None:
                raise ConfigError(name, getattr(options, name), "needs an experiment_id")
        return
    if options.mode is not None:
        rule = "an experiment chooses the mode of its runs: leave out mode or experiment_id"
        raise ConfigError("mode", options.mode, rule)
    for name in RESERVED:
        if name in (options.metadata or {}):
            raise ConfigError("metadata", options.metadata, f"{name!r} is set for runs with an experiment_id")


def _check_id(name: str, value: object) -> None:
    usable = isinstance(value, str) and value and whole(value) == value and bounded(value, ID_BYTES) == value
    if value is not None and not usable:
        rule = f"must be a string of 1 to {ID_BYTES} bytes without unpaired surrogates"
        raise ConfigError(name, value, rule)


def assigned(
    options: RunOptions, settings: Settings, run_id: str, caller: Assignment | None
) -> tuple[RunOptions, Assignment | None]:
    """Return a run's options with its mode and metadata, and its assignment, or None outside an experiment.

    `caller` is the assignment of the run that starts this one. `settings` are the client's.
    """
    found = _assignment(options, run_id, caller)
    if found is None:
        return options, None
    if settings.disabled or settings.mode == "observe":
        found = evolve(found, has_arm=False)
    mode = MODES[found.arm] if found.has_arm else None
    return evolve(options, mode=mode, metadata={**(options.metadata or {}), **found.metadata()}), found


def _assignment(options: RunOptions, run_id: str, caller: Assignment | None) -> Assignment | None:
    """Return the run's own assignment, or else that of the run that starts it: a subagent is in its caller's arm."""
    if options.experiment_id is None:
        return None if options.mode is not None else caller
    if caller is not None and caller.experiment_id == options.experiment_id and options.unit_id is None:
        return caller
    share = DEFAULT_FRACTION if options.on_fraction is None else float(options.on_fraction)
    return Assignment(experiment_id=options.experiment_id, unit_id=options.unit_id or run_id, on_fraction=share)


def kept_id(snapshot: Mapping[str, Any] | None) -> str | None:
    """Return the id of the run that a snapshot continues."""
    found = snapshot.get("trace_id") if isinstance(snapshot, Mapping) else None
    return found if isinstance(found, str) and found else None
