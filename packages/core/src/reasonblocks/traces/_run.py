"""What every reader gives, and what a reader is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ..exceptions import RecordError
from ..types import JSON, Step, Usage
from ._files import Record

__all__ = ["Reader", "RecordedRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One finished run: its completed steps, and what the file says of it.

    `usages` has one entry a step: the tokens of the model call that made it. `task_profile` is None where the file
    names none that we know. `line` is where the run begins, 1-based. Runs of one `task_key` had the same task: the
    file's own key, or a digest of the task's text, or of the run's place where it has none. `oracle_stop`: the
    environment ended the run at its first success, so that its length tells the outcome.
    """

    run_id: str
    steps: tuple[Step, ...]
    usages: tuple[Usage, ...]
    file: str
    line: int
    source: str | None = None
    outcome: str | None = None
    task: str = ""
    task_key: str = ""
    task_profile: str | None = None
    model: str = ""
    oracle_stop: bool = False

    @property
    def has_outcome(self) -> bool:
        """Is it a success or a failure? The reason may follow the word."""
        return self.outcome == "success" or (self.outcome or "").startswith("failure")


class Reader(Protocol):
    """One format. `sniff` says whether a file's first usable record is of it; `read` never raises on what it reads."""

    @property
    def name(self) -> str: ...
    def sniff(self, value: JSON) -> bool: ...
    def read(self, file: str, records: Iterable[Record | RecordError]) -> Iterator[RecordedRun | RecordError]: ...
