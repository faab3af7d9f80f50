"""Measures the time that a run takes in this process."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Counts a run's seconds from one reading to the next. The time between `stop` and the next reading is none."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: float | None = None

    def passed(self) -> float:
        """Return the seconds since the last reading; 0 for the first one."""
        now = self._monotonic()
        last, self._last = self._last, now
        return 0.0 if last is None else now - last

    def stop(self) -> None:
        """Pause the clock until its next reading."""
        self._last = None
