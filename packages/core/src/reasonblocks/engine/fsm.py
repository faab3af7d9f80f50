"""The difficulty state machine, as one table of transitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from typing import Literal, TypeAlias

from ..exceptions import ConfigError
from ..keywords import takes
from ..types import FSMState

HISTORY_LIMIT = 64
"""Newest difficulties that are kept by default."""
MAX_HISTORY_LIMIT = 1_000
"""The largest window or caller's `history_limit`, in steps: the trace state stays small."""
_EXACT = Context(prec=60, traps=[])
"""A decimal context of our own: the caller's must not change a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The machine's parameters, which the constructor checks: thresholds are difficulties in [0, 1], windows steps.

    Raises `ConfigError` with the parameter, its value and the rule.
    """

    fast_threshold: float = 0.2
    slow_threshold: float = 0.6
    skip_threshold: float = 0.85
    hysteresis_margin: float = 0.1
    fast_window: int = 6
    slow_window: int = 5
    skip_window: int = 35

    def __post_init__(self) -> None:
        for name in ("fast_threshold", "slow_threshold", "skip_threshold", "hysteresis_margin"):
            _check_difficulty(name, getattr(self, name))
        for name in ("fast_window", "slow_window", "skip_window"):
            _check_window(name, getattr(self, name))
        if not self.fast_threshold < self.slow_threshold:
            raise ConfigError(
                "fast_threshold", self.fast_threshold, f"must be below slow_threshold={self.slow_threshold!r}"
            )
        if not self.slow_threshold <= self.skip_threshold:
            raise ConfigError(
                "skip_threshold", self.skip_threshold, f"must be at least slow_threshold={self.slow_threshold!r}"
            )
        if not self.leave_fast < self.slow_threshold:
            rule = (
                f"fast_threshold + hysteresis_margin = {self.leave_fast!r} "
                f"must be below slow_threshold={self.slow_threshold!r}"
            )
            raise ConfigError("hysteresis_margin", self.hysteresis_margin, rule)

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Thresholds:
        """Return the thresholds of a mapping. Raises `ConfigError` for an unknown key, with the nearest valid name."""
        valid = {field.name for field in fields(cls)}
        for name in given:
            if name not in valid:
                raise ConfigError.unknown("fsm_thresholds", name, valid)
        return cls(**given)  # type: ignore[arg-type]  # checked value by value in __post_init__

    @property
    def leave_fast(self) -> float:
        """The difficulty above which FAST ends."""
        return float(_EXACT.add(_decimal(self.fast_threshold), _decimal(self.hysteresis_margin)))

    @property
    def leave_slow(self) -> float:
        """The difficulty below which SLOW and SKIP end."""
        return float(_EXACT.subtract(_decimal(self.slow_threshold), _decimal(self.hysteresis_margin)))

    @property
    def largest_window(self) -> int:
        return max(self.fast_window, self.slow_window, self.skip_window)


Bound: TypeAlias = Literal["fast_threshold", "slow_threshold", "skip_threshold", "leave_fast", "leave_slow"]
Window: TypeAlias = Literal["newest", "fast_window", "slow_window", "skip_window"]


@dataclass(frozen=True, slots=True)
class Row:
    """One transition: if the newest `window` difficulties are all strictly `side` the `bound`, go `to` that state."""

    window: Window
    side: Literal["above", "below"]
    bound: Bound
    to: FSMState

    def holds(self, thresholds: Thresholds, history: Sequence[float]) -> bool:
        """Return True if the history is long enough and the condition is met."""
        size = 1 if self.window == "newest" else getattr(thresholds, self.window)
        if len(history) < size:
            return False
        bound: float = getattr(thresholds, self.bound)
        newest = history[len(history) - size :]
        return min(newest) > bound if self.side == "above" else max(newest) < bound


TABLE: Mapping[FSMState, tuple[Row, ...]] = {
    FSMState.INIT: (),  # see ELSE
    FSMState.NORMAL: (
        Row("fast_window", "below", "fast_threshold", FSMState.FAST),
        Row("slow_window", "above", "slow_threshold", FSMState.SLOW),
    ),
    FSMState.FAST: (Row("newest", "above", "leave_fast", FSMState.NORMAL),),
    FSMState.SLOW: (
        Row("newest", "below", "leave_slow", FSMState.NORMAL),
        Row("skip_window", "above", "skip_threshold", FSMState.SKIP),
    ),
    FSMState.SKIP: (Row("newest", "below", "leave_slow", FSMState.NORMAL),),
    FSMState.END: (),
}
"""The transitions from each state. The first row that holds is taken; if none does, the state stays."""

ELSE: Mapping[FSMState, FSMState] = {FSMState.INIT: FSMState.NORMAL}
"""The next state if no row holds, for states that do not stay."""


class DifficultyFSM:
    """The built-in machine; `transition` is a pure function of state and history, the newest difficulty last."""

    __slots__ = ("thresholds",)

    @takes(Thresholds)
    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds

    @classmethod
    def of(cls, given: Mapping[str, float]) -> DifficultyFSM:
        """Return the machine with the parameters of a mapping, like that of `ReasonBlocks(fsm_thresholds=...)`."""
        Thresholds.of(given)
        return cls(**given)  # type: ignore[arg-type]  # Thresholds.of has just checked them

    @property
    def history_limit(self) -> int:
        """The number of newest difficulties that the machine needs."""
        return max(HISTORY_LIMIT, self.thresholds.largest_window)

    def transition(self, state: FSMState, history: Sequence[float]) -> FSMState:
        """Return the next state; never END unless `state` is END."""
        for row in TABLE[state]:
            if row.holds(self.thresholds, history):
                return row.to
        return ELSE.get(state, state)


def _decimal(number: float) -> Decimal:
    """Return the decimal number as written: 0.2, not 0.200000000000000011."""
    return Decimal(repr(float(number)))


def _check_difficulty(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(name, value, "must be a finite number")
    if not 0 <= value <= 1:
        raise ConfigError(name, value, "must be in [0, 1]")


def _check_window(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(name, value, "must be an int (steps)")
    if not 1 <= value <= MAX_HISTORY_LIMIT:
        raise ConfigError(name, value, f"must be at least 1 and at most {MAX_HISTORY_LIMIT}")
