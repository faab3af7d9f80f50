"""Reads the events of a batch, and converts each to the columns of its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, entry_of, event_of
from reasonblocks.exceptions import EventError
from reasonblocks.util.text import storable_text

from . import _clean
from ._clean import id_of, name_in, name_of, write_json

MOST = 64
"""The most scores and texts of a call in its row, as many as an evaluation may have."""
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A valid event, with its index in the batch, and its run's id as it is stored."""

    at: int
    run_id: str
    event: Event
    body: str


def read_all(
    org_id: str, project_id: str | None, events: Sequence[Mapping[str, Any]]
) -> tuple[list[Given], list[tuple[int, str]]]:
    """Return the valid events, and the index and fault of each other one."""
    found, refused = list[Given](), list[tuple[int, str]]()
    for at, body in enumerate(events):
        try:
            found.append(_read(org_id, project_id, at, body))
        except EventError as error:
            refused.append((at, storable_text(str(error))))
        except RecursionError:
            refused.append((at, f"event: it is nested more than {_clean.DEEPEST} levels deep"))
        except (ValueError, TypeError) as error:
            refused.append((at, f"event: {error}"))
    return found, refused


def _read(org_id: str, project_id: str | None, at: int, body: Mapping[str, Any]) -> Given:
    event = event_of(body)
    if not event.run_id:
        raise EventError("run_id", event.run_id, "must not be empty")
    run_id = id_of(event.run_id)
    if isinstance(event, RunStart):
        project = project_id if project_id is not None else name_of(event.run.project_id)
        run = replace(event.run, run_id=run_id, org_id=org_id, project_id=project)
        event = replace(event, run=run, timestamp=float(event.timestamp))
    elif isinstance(event, StepEvent):
        event = replace(event, run_id=run_id, timestamp=float(event.timestamp))
    else:
        event = replace(event, run_id=run_id, timestamp=float(event.timestamp), outcome=storable_text(event.outcome))
    return Given(at=at, run_id=run_id, event=event, body=write_json(event.as_dict()))


def run_columns(event: RunStart, body: str) -> Columns:
    run, more = event.run, event.run.metadata
    experiment = name_in(more.get("experiment_id"))
    return {
        "agent_name": name_of(run.agent_name),
        "task": storable_text(run.task[: _clean.TASK_CHARS]),
        "model": name_of(run.model),
        "framework": name_of(run.framework),
        "project_id": run.project_id,
        "parent_run_id": None if run.parent_run_id is None else id_of(run.parent_run_id),
        "experiment_id": experiment,
        "arm": name_in(more.get("arm")),
        "unit_id": _unit(more, run.run_id) if experiment else None,
        "body": body,
    }


def _unit(metadata: Mapping[str, Any], run_id: str) -> str:
    return name_in(metadata.get("assignment_unit")) or run_id


def step_columns(event: StepEvent, body: str) -> Columns:
    entry = entry_of(event)
    return {
        "run_id": event.run_id,
        "step_index": event.step_index,
        "at": event.timestamp,
        "fsm_state": name_of(entry.fsm_state),
        "difficulty": entry.difficulty,
        "composite": entry.composite,
        "failure_type": name_in(event.failure_type),
        "gate": name_of(entry.gate_decision or ""),
        "skipped": name_of(entry.skipped_reason or ""),
        "model": name_in(event.step_model),
        "tokens": event.tokens,
        "cost_usd": entry.cost_usd,
        "scores": _scores(event.scores),
        "fired": _names(event.monitors_fired),
        "sources": _sources(event.injection_sources, event.intervention_texts, event.injections),
        "withheld": _sources(entry.withheld_sources, entry.withheld_texts),
        "final": event.final,
        "error": bool(entry.error),
        "stopped": bool(entry.stop or entry.withheld_stop),
        "doubts": bool(entry.doubts),
        "dropped": len(entry.injections_dropped),
        "body": body,
    }


def _sources(*told: Sequence[str]) -> str:
    """Return the sources of a call's texts, of which there may be more than sources."""
    return _names([source or "" for source, *_ in islice(zip_longest(*told), MOST)])


def note_ids(event: StepEvent) -> tuple[str, ...]:
    """Return the ids of the notes that the agent was told before this call."""
    given = event.metadata.get("note_ids")
    ids = given if isinstance(given, (list, tuple)) else ()
    return tuple(id_of(name) for name in ids if isinstance(name, str))[:MOST]


def finish_columns(event: RunFinish, body: str) -> Columns:
    return {"finished": event.timestamp, "outcome": name_of(event.outcome), "finish": body}


def _names(names: Sequence[str]) -> str:
    return write_json([name_of(name) for name in names[:MOST]]) if names else "[]"


def _scores(scores: Mapping[str, float]) -> str:
    return write_json({name_of(name): float(score) for name, score in islice(scores.items(), MOST)}) if scores else "{}"
