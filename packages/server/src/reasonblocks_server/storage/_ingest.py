"""Stores batches of events, and decides which rows each event adds and changes.

- A run is made by its first event. Its start is that of its `run_start`, else the time of its earliest event. It is
  five minutes after the event's arrival at most, however far a client's clock is ahead.
- A repeated step changes nothing. A call takes the place of the final step of a run that continued after its end.
- The oldest success ends a run, unless there is another outcome: then the newest of those.
- A `run_start` of a later time starts the run again, as does `SQLiteMonitorSink`; an earlier one is a repeat.

The row of a run is locked before its steps are read, so that two writers of one run wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, or_, select, update

from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.types.outcomes import kind_of
from reasonblocks_workbench.report import ROUTINE

from ..summary import summary_of
from ..values import Ingested
from . import _clean
from ._clean import name_of
from ._database import add_missing
from ._events import Columns, Given, finish_columns, note_ids, run_columns, step_columns
from ._rows import narrow_of, step_rows
from ._tables import notes, runs, steps

PLACEHOLDER, EARLIEST, STARTED = 0, 1, 2
"""The origins of a run's `started`: none of its events, the earliest of them, its `run_start`."""
AHEAD_S = 300.0
"""Seconds by which the clock of a client may be ahead: a run that starts later would stay the first of every list."""
MOST_STEPS = 10_000
"""The most steps of a run that its summary counts."""
SUMMARISED_AT_ONCE = 1_000
"""The most steps of a run that is summarised with its batch, which reads all of them: 40 ms of a writer's time."""
CHANGED = [column for column in runs.c if column.name not in ("org_id", "run_id", "day", "takes_notes")]


def day_of(now: float) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()


def new_run(org_id: str, run_id: str, now: float, project_id: str | None) -> Columns:
    """Return the row of a run before its first event."""
    return {
        **{column.name: None for column in runs.c},
        **dict.fromkeys(("agent_name", "task", "model", "framework"), ""),
        **dict.fromkeys(("steps", "injections"), 0),
        **dict.fromkeys(("last_step", "failure_step"), -1),
        "org_id": org_id,
        "run_id": run_id,
        "project_id": project_id or "default",
        "mode": "steer",
        "day": day_of(now),
        "origin": PLACEHOLDER,
        "started": now,
        "client_started": now,
        "seen": now,
        "takes_notes": False,
    }


def ingest(connection: Connection, org_id: str, batch: Sequence[Given], now: float, project_id: str | None) -> Ingested:
    """Store a batch in the caller's transaction."""
    rows = _locked(connection, org_id, sorted({given.run_id for given in batch}), now, project_id)
    for row in rows.values():
        if row["origin"] == PLACEHOLDER:  # perhaps made by `takes_notes`, which knows no project
            row["project_id"] = project_id or row["project_id"]
    foreign = {name for name, row in rows.items() if project_id is not None and row["project_id"] != project_id}
    refused = [(given.at, "run_id: the run belongs to another project") for given in batch if given.run_id in foreign]
    batch = [given for given in batch if given.run_id not in foreign]
    runs_of = {name: _Run(row=row, now=now) for name, row in rows.items() if name not in foreign}
    _find_steps(connection, runs_of, batch)
    accepted = [given.event for given in batch if runs_of[given.run_id].add(given)]
    changed = [run for run in runs_of.values() if run.changed]
    finished = tuple(run.row["run_id"] for run in changed if run.ended)
    _write(connection, org_id, changed, now)
    _tell_notes(connection, org_id, batch)
    if finished:
        _close_notes(connection, org_id, finished)
    return Ingested(
        accepted=len(accepted),
        repeated=len(batch) - len(accepted),
        refused=tuple(refused),
        steps=tuple([event for event in accepted if isinstance(event, StepEvent)]),
        finished=finished,
        unsummarised=tuple([run.row["run_id"] for run in changed if run.has_ended() and run.row["summary"] is None]),
    )


@dataclass(slots=True, kw_only=True)
class _Run:
    """A run while a batch changes it: its row, and the steps that are new.

    `known` has those stored steps that the batch may repeat, and whether each is a final one.
    """

    row: Columns
    now: float
    known: dict[int, bool] = field(default_factory=dict)
    new: dict[int, Columns] = field(default_factory=dict)
    replaced: set[int] = field(default_factory=set)
    again: bool = False
    changed: bool = False
    ended: bool = False

    def has_ended(self) -> bool:
        return self.row["finished"] is not None

    def add(self, given: Given) -> bool:
        """Return False for an event that changes nothing."""
        event = given.event
        if isinstance(event, RunStart):
            new = self._start(event, given.body)
        elif isinstance(event, StepEvent):
            new = self._step(event, given.body)
        else:
            new = self._finish(event, given.body)
        earlier = self._date(event.timestamp)
        self.changed |= new or earlier
        return new

    def _start(self, event: RunStart, body: str) -> bool:
        row = self.row
        if row["origin"] == STARTED:
            if event.timestamp <= row["client_started"]:
                return False
            self._restart()
        observed = row["mode"] == "observe" or event.run.mode == "observe"
        row |= run_columns(event, body)
        row |= {"mode": "observe" if observed else "steer", "origin": STARTED, **self._begun(event.timestamp)}
        return True

    def _begun(self, at: float) -> Columns:
        return {"client_started": at, "started": min(at, self.now + AHEAD_S)}

    def _restart(self) -> None:
        blank = new_run(self.row["org_id"], self.row["run_id"], 0.0, None)
        kept = {name: self.row[name] for name in ("day", "seen", "takes_notes")}
        self.row |= blank | kept
        self.known, self.new, self.replaced = {}, {}, set()
        self.again, self.ended = True, False

    def _step(self, event: StepEvent, body: str) -> bool:
        at, final = event.step_index, event.final
        before = self.known.get(at)
        if before is not None and (final or not before):
            return False
        if before and at not in self.new:
            self.replaced.add(at)
        self.known[at] = final
        self.new[at] = step_columns(event, body)
        if event.metadata.get("mode") == "observe":
            self.row["mode"] = "observe"
        return True

    def _finish(self, event: RunFinish, body: str) -> bool:
        row = self.row
        if self.has_ended() and not _overrules(event, row):
            return False
        self.ended |= not self.has_ended()
        row |= finish_columns(event, body)
        return True

    def _date(self, at: float) -> bool:
        """Return True if a run without a `run_start` began earlier than was known."""
        row = self.row
        if row["origin"] == STARTED or (row["origin"] == EARLIEST and at >= row["client_started"]):
            return False
        row |= {"origin": EARLIEST, **self._begun(at)}
        return True

    def count(self, rows: Iterable[Columns]) -> None:
        """Add new steps to the counts of the run."""
        row = self.row
        for step in rows:
            row["injections"] += _told(step["sources"])
            if not step["final"]:
                row["steps"] += 1
                if step["tokens"] is not None:
                    row["tokens"] = _clean.sum_of((row["tokens"] or 0, step["tokens"]))
                if step["cost_usd"] is not None:
                    row["cost_usd"] = (row["cost_usd"] or 0) + step["cost_usd"]
            if step["step_index"] >= row["last_step"]:  # the same if it is replaced
                row |= {"last_step": step["step_index"], "state": step["fsm_state"] or None}
            if step["failure_type"] and step["step_index"] > row["failure_step"]:
                row |= {"failure_step": step["step_index"], "failure_type": step["failure_type"]}

    def forget(self, injections: int, failure: tuple[int, str] | None) -> None:
        """Subtract the replaced steps from the counts. `failure` is the newest one of the other steps."""
        self.row["injections"] -= injections
        if self.row["failure_step"] in self.replaced:
            self.row["failure_step"], self.row["failure_type"] = failure or (-1, None)


def _overrules(event: RunFinish, row: Columns) -> bool:
    """Return True if a second end replaces the first: a success by any other outcome, and others by a newer one."""
    outcome = name_of(event.outcome)
    old = (kind_of(row["outcome"]) != "success", row["finished"])
    new = (kind_of(outcome) != "success", event.timestamp)
    if new == old:
        return bool(outcome > row["outcome"])
    return new > old if new[0] else not old[0] and new[1] < old[1]


def _locked(
    connection: Connection, org_id: str, names: list[str], now: float, project_id: str | None
) -> dict[str, Columns]:
    """Return the rows of the runs, locked. Missing rows are created."""
    found = _lock(connection, org_id, names)
    missing = [name for name in names if name not in found]
    if missing:
        add_missing(connection, runs, [new_run(org_id, name, now, project_id) for name in missing])
        found |= _lock(connection, org_id, missing)
    return found


def _lock(connection: Connection, org_id: str, names: list[str]) -> dict[str, Columns]:
    query = select(runs).where(runs.c.org_id == org_id, runs.c.run_id.in_(names)).order_by(runs.c.run_id)
    return {row.run_id: dict(row._mapping) for row in connection.execute(query.with_for_update())}


def _find_steps(connection: Connection, runs_of: Mapping[str, _Run], batch: Sequence[Given]) -> None:
    """Find the stored steps that the batch repeats. Only steps up to the newest stored one can be repeated."""
    asked = defaultdict[str, set[int]](set)
    for given in batch:
        if isinstance(given.event, StepEvent) and given.event.step_index <= runs_of[given.run_id].row["last_step"]:
            asked[given.run_id].add(given.event.step_index)
    for name, numbers in asked.items():  # a query a run: row values in one query take longer in both databases
        run = runs_of[name]
        query = select(steps.c.step_index, steps.c.final).where(_of(run), steps.c.step_index.in_(numbers))
        run.known |= {row.step_index: row.final for row in connection.execute(query)}


def _of(run: _Run) -> Any:
    return _steps_of(run.row)


def _steps_of(row: Columns) -> Any:
    return and_(steps.c.day == row["day"], steps.c.org_id == row["org_id"], steps.c.run_id == row["run_id"])


def _write(connection: Connection, org_id: str, changed: Sequence[_Run], now: float) -> None:
    if not changed:
        return
    for run in changed:
        if run.again:
            connection.execute(delete(steps).where(_of(run)))
        elif run.replaced:
            _drop_replaced(connection, run)
    new = [{"org_id": org_id, "day": run.row["day"], **row} for run in changed for row in run.new.values()]
    if new:
        connection.execute(steps.insert(), new)
    for run in changed:
        run.count(run.new.values())
        if run.has_ended():
            is_short = run.row["steps"] <= SUMMARISED_AT_ONCE
            run.row["summary"] = summary_in(connection, run.row) if is_short else None
        run.row["seen"] = max(run.row["seen"], now)
    connection.execute(_UPDATE, [{f"new_{name}": value for name, value in run.row.items()} for run in changed])


_UPDATE = (
    update(runs)
    .where(runs.c.org_id == bindparam("new_org_id"), runs.c.run_id == bindparam("new_run_id"))
    .values({column.name: bindparam(f"new_{column.name}") for column in CHANGED})
)


def _drop_replaced(connection: Connection, run: _Run) -> None:
    """Delete the final steps whose numbers calls have now."""
    replaced = and_(_of(run), steps.c.step_index.in_(run.replaced))
    told = [_told(sources) for sources in connection.execute(select(steps.c.sources).where(replaced)).scalars()]
    connection.execute(delete(steps).where(replaced))
    failed = select(steps.c.step_index, steps.c.failure_type).where(_of(run), steps.c.failure_type.is_not(None))
    newest = connection.execute(failed.order_by(steps.c.step_index.desc()).limit(1)).first()
    run.forget(sum(told), None if newest is None else (newest.step_index, newest.failure_type))


def _told(sources: str) -> int:
    """Return the number of texts that the agent was told in answer to a trouble, or by a person."""
    return sum(source not in ROUTINE for source in _clean.names_in(sources))


def summary_in(connection: Connection, row: Columns) -> str:
    """Return the summary of a finished run, from its row and its steps."""
    rows = step_rows(narrow_of(connection, _steps_of(row), MOST_STEPS))
    doubts = _clean.body_in(row["finish"]).get("doubts")
    return _clean.write_json(summary_of(rows, row["outcome"], doubts=bool(doubts)))


def _tell_notes(connection: Connection, org_id: str, batch: Sequence[Given]) -> None:
    """Mark the notes that calls have contained, with the first such call."""
    told = [
        {"of_org": org_id, "of_run": given.run_id, "of_note": name, "at_step": given.event.step_index}
        for given in batch
        if isinstance(given.event, StepEvent)
        for name in note_ids(given.event)
    ]
    if told:
        connection.execute(_MARK_TOLD, told)


_MARK_TOLD = (
    update(notes)
    .where(
        notes.c.org_id == bindparam("of_org"),
        notes.c.run_id == bindparam("of_run"),
        notes.c.note_id == bindparam("of_note"),
        or_(notes.c.state != "told", notes.c.told_step.is_(None), notes.c.told_step > bindparam("at_step")),
    )
    .values(state="told", told_step=bindparam("at_step"))
)


def _close_notes(connection: Connection, org_id: str, finished: Sequence[str]) -> None:
    queued = (notes.c.org_id == org_id, notes.c.run_id.in_(finished), notes.c.state == "queued")
    connection.execute(update(notes).where(*queued).values(state="unheard"))
