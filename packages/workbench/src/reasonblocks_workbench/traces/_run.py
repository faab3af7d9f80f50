"""The interface of a reader, its result, and the header that all formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON, Step, Usage
from reasonblocks.types.outcomes import OutcomeKind, kind_of
from reasonblocks.util.text import digest

from ._files import Progress, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One finished run: its completed steps and its header.

    `usages` has one entry a step: the tokens of the model call that began it. `task_profile` is None if the file names
    none that is known. `line` is the first line of the run, 1-based. Runs with the same task have the same `task_key`:
    the file's own key, or a digest of the task's text, or of the run's place if it has no task. `oracle_stop` is True
    if the environment ended the run at its first success, so that its length reveals the outcome. `parent_run_id` is
    the run that started this one, if the file names it. `seconds` has one entry a step, the time from the first call to
    the call after this step; it is empty if the file has no such times. `calls` has the number of the call after each
    step in a log of our sinks, where calls that are no steps have a number, too; it is empty elsewhere.
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
    parent_run_id: str | None = None
    seconds: tuple[float, ...] = ()
    calls: tuple[int, ...] = ()

    def call_after(self, step: int) -> int:
        """Return the number of the call that followed a completed step, or would have followed the last one."""
        return self.calls[step] if self.calls else step + 1

    @property
    def outcome_kind(self) -> OutcomeKind:
        return kind_of(self.outcome)

    @property
    def has_outcome(self) -> bool:
        """True for a success or a failure. `calibrate` and `learn` count a stopped run as one of unknown outcome."""
        return self.outcome_kind in ("success", "failure")


Runs: TypeAlias = "Iterator[RecordedRun | RecordError]"
"""The runs of a file, in order, one in memory at a time; an error takes the place of a malformed one."""


@runtime_checkable
class Reader(Protocol):
    """Reads one format of JSON. `sniff` recognises a record of it; `read` never raises for the content of a record.

    `name` is the value of `--format`. Two attributes are optional: `title`, the format's name for people, and
    `lacks(value) -> str | None`, which returns what a value that resembles the format lacks, None for any other value.
    """

    @property
    def name(self) -> str: ...
    def sniff(self, value: JSON) -> bool: ...
    def read(self, file: str, records: Iterable[Record | RecordError]) -> Iterator[RecordedRun | RecordError]: ...


@runtime_checkable
class FileReader(Protocol):
    """Reads a format that is not JSON. `opens` recognises its files by their first bytes; `read_file` opens the path.

    `name` and the optional `title` are those of a `Reader`. `read_file` never raises for the content of a file.
    """

    @property
    def name(self) -> str: ...
    def opens(self, head: bytes) -> bool: ...
    def read_file(self, path: str, progress: Progress | None) -> Iterator[RecordedRun | RecordError]: ...


def run_by_run(
    file: str,
    records: Iterable[Record | RecordError],
    read_one: Callable[[str, Record], RecordedRun | RecordError],
) -> Runs:
    """Read a format in which every record is one run."""
    for record in records:
        if isinstance(record, RecordError):
            yield record
        else:
            yield run_or_error(file, record.line, partial(read_one, file, record))


def run_or_error(file: str, line: int, read: Callable[[], RecordedRun | RecordError]) -> RecordedRun | RecordError:
    """Return a run; an error for one that is not of its form, or has values in values that are too many levels deep."""
    try:
        return read()
    except ValidationError as error:
        return RecordError(file, line, reason(error))
    except RecursionError:
        return RecordError(file, line, "is nested too deeply to be read")


PROFILES = frozenset({"coding", "pr_review", "qa"})


class Header(BaseModel):
    """The keys of a run beside its steps, in any format. All are optional; unknown keys are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore", protected_namespaces=())

    run_id: str | None = None
    source: str | None = None
    outcome: str | None = None
    task: str | None = None
    task_key: str | None = None
    task_profile: str | None = None
    model: str | None = None
    oracle_stop: bool | None = None
    parent_run_id: str | None = None

    def recorded(self, file: str, line: int, steps: tuple[Step, ...], usages: tuple[Usage, ...]) -> RecordedRun:
        """Return the run; its id defaults to its file and line."""
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
            parent_run_id=self.parent_run_id,
        )


MESSAGE_KEYS = ("messages", "input")
"""The keys under which an object with a header may have its messages: ours, and that of a request to the Responses API.
"""


def messages_of(value: JSON) -> list[JSON] | None:
    """Return the messages of a record: the list itself, or the one beside a header; None if there is no list."""
    if isinstance(value, dict):
        value = next((value[key] for key in MESSAGE_KEYS if key in value), None)
    return value if isinstance(value, list) else None


def with_messages(value: JSON) -> dict[str, JSON]:
    """Return a record of messages as an object: its header, and the list under `messages`."""
    header = value if isinstance(value, dict) else {}
    return {**header, "messages": messages_of(value)}


def reason(error: ValidationError) -> str:
    """Return the first fault with its place and value, and the number of others."""
    faults = error.errors(include_url=False, include_context=False)
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"]) or "the record"
    shown = repr(first["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {first['msg']}, not {shown}{more}"
