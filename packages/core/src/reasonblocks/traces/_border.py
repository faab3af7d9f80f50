"""What a recorded run must look like: the pydantic models of the border, and their reasons in one line."""

from __future__ import annotations

from pathlib import PurePath

from pydantic import BaseModel, ConfigDict, ValidationError

from ..text import digest
from ..types import Step, Usage
from ._run import RecordedRun

__all__ = ["Header", "reason"]

PROFILES = frozenset({"coding", "pr_review", "qa"})


class Header(BaseModel):
    """What any format may say of a run beside its steps. Everything is optional, unknown keys are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore", protected_namespaces=())

    run_id: str | None = None
    source: str | None = None
    outcome: str | None = None
    task: str | None = None
    task_key: str | None = None
    task_profile: str | None = None
    model: str | None = None
    oracle_stop: bool | None = None

    def recorded(self, file: str, line: int, steps: tuple[Step, ...], usages: tuple[Usage, ...]) -> RecordedRun:
        """The run; without an id it is called by its file and line."""
        return RecordedRun(
            run_id=self.run_id or f"{PurePath(file).name}:{line}",
            steps=steps,
            usages=usages,
            file=file,
            line=line,
            source=self.source,
            outcome=self.outcome,
            task=self.task or "",
            task_key=self.task_key or digest(self.task or f"{file}:{line}"),
            task_profile=self.task_profile if self.task_profile in PROFILES else None,
            model=self.model or "",
            oracle_stop=bool(self.oracle_stop),
        )


def reason(error: ValidationError) -> str:
    """The first fault: where, what is wrong, which value; and how many more there are."""
    faults = error.errors(include_url=False, include_context=False)
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"]) or "the record"
    shown = repr(first["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {first['msg']}, not {shown}{more}"
