"""Defines the JSON of runs and notes in responses and in the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reasonblocks.util.json import compact

from .values import Body, NoteRow, NoteState, RunRow

LIVE_TASK_CHARS = 200
LIVE_STEP_BYTES = 8_000
"""Bytes of the largest step event that the stream sends complete. A listener has at most 64 KB of unread messages."""
LIVE_TEXT_CHARS = 1_000
LONG_TEXTS = ("thought", "action_input", "observation")
SHORT_FIELDS = (
    "event", "run_id", "step_index", "timestamp", "action", "is_error", "tokens", "input_tokens", "output_tokens",
    "cache_read_tokens", "step_model", "failure_type", "composite",
)  # fmt: skip
SHORT_METADATA = ("fsm_state", "difficulty", "latency_ms", "skipped_reason", "gate_decision", "mode", "final")


class RunBody(BaseModel):
    """A run.

    Times are seconds since the epoch: `started` and `finished` by the client's clock, `seen` by the server's. `state`
    is that of the newest step, and `failure_type` the newest one. `summary` is null until the run has finished.
    """

    model_config = ConfigDict(from_attributes=True)

    run_id: str
    started: float
    seen: float
    finished: float | None
    outcome: str | None
    agent_name: str
    task: str
    model: str
    framework: str
    project_id: str
    mode: str
    parent_run_id: str | None
    experiment_id: str | None
    arm: str | None
    unit_id: str | None
    steps: int
    state: str | None
    failure_type: str | None
    injections: int
    tokens: int | None
    cost_usd: float | None
    takes_notes: bool
    summary: dict[str, Any] | None


class RunDetail(RunBody):
    """A run with its `run_start` and `run_finish` events, null if the client has not sent them."""

    start: dict[str, Any] | None
    finish: dict[str, Any] | None


class NoteBody(BaseModel):
    """An operator's note. `told_step` is the call that carried it."""

    model_config = ConfigDict(from_attributes=True)

    note_id: str
    run_id: str
    text: str
    key_id: str
    state: NoteState
    created: float
    expires: float
    told_step: int | None = Field(default=None)


def live_run(row: RunRow) -> Body:
    """Return a run as the stream sends it: without its summary, and with the start of a long task."""
    body = RunBody.model_validate(row).model_dump(exclude={"summary"})
    return {**body, "task": row.task[:LIVE_TASK_CHARS]}


def live_step(event: Mapping[str, Any]) -> Body:
    """Return a step event as the stream sends it. A large one has only its small fields and the start of its texts."""
    body = dict(event)
    if len(compact(body)) <= LIVE_STEP_BYTES:
        return body
    metadata = body.get("metadata")
    known: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    return {
        **_cut(body, SHORT_FIELDS),
        **_cut(body, LONG_TEXTS),
        "metadata": _cut(known, SHORT_METADATA),
        "shortened": True,
    }


def _cut(given: Mapping[str, Any], names: tuple[str, ...]) -> Body:
    """Return the named values that are small, and the first characters of texts."""
    return {
        name: value[:LIVE_TEXT_CHARS] if isinstance(value, str) else value
        for name, value in given.items()
        if name in names and (value is None or isinstance(value, (str, int, float)))
    }


def live_note(row: NoteRow) -> Body:
    """Return a note as the stream sends it."""
    return NoteBody.model_validate(row).model_dump()
