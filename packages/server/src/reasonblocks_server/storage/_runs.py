"""Reads, lists and deletes runs."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sqlalchemy import Column, ColumnElement, Select, and_, delete, false, func, not_, or_, select, update

from reasonblocks.types.outcomes import KNOWN, UNKNOWN
from reasonblocks.util.text import storable_text

from ..values import Body, Ingested, RunFilter, RunRow, StepRow
from . import _clean
from ._clean import id_of, name_of
from ._database import Database, add_missing
from ._events import read_all
from ._health import health_of
from ._ingest import PLACEHOLDER, ingest, new_run, summary_in
from ._rows import RUN, RUN_AND_BODY, RUN_ONLY, narrow_of, run_row, step_rows
from ._tables import notes, runs, steps

MOST_NARROW = 1_000
"""Steps of one run in `narrow`."""
MOST_CHARS = 8_000_000
"""Characters of the events that a query returns, so that the memory of a worker holds those of any run."""
AT_ONCE = 32
"""Events that are fetched at once: each may have 5 MB."""
MOST_CHILDREN = 1_000
MOST_UNITS = 100_000
"""Runs of an experiment that are compared."""
MOST_CHOICES = 200
CHOSEN_FROM = 5_000
"""The number of newest runs whose values a list can be filtered by."""
MOST_SCANNED = 20_000
"""The most runs that one page of a list examines if no index covers its filters."""
MOST_QUERY = 500
"""Characters of a search."""
NEWEST = (runs.c.started.desc(), runs.c.run_id)
"""The order of lists."""
_UNSUMMARISED = (runs.c.finished.is_not(None), runs.c.summary.is_(None))


# Names for what methods return: in the class, `list` is a method
RunRows: TypeAlias = list[RunRow]
StepRows: TypeAlias = list[StepRow]
Bodies: TypeAlias = list[Body]
Names: TypeAlias = list[str]
Keys: TypeAlias = list[tuple[str, str]]
Experiments: TypeAlias = list[tuple[str, int, float]]


class Runs:
    """The runs and steps of all orgs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ingest(
        self, org_id: str, events: Sequence[Mapping[str, Any]], *, now: float, project_id: str | None = None
    ) -> Ingested:
        """Store about 1,000 events at most in one transaction. An invalid event is refused alone."""
        batch, refused = read_all(org_id, project_id, events)
        if not batch:
            return Ingested(refused=tuple(refused))
        stored = self._db.repeated(lambda connection: ingest(connection, org_id, batch, now, project_id))
        return replace(stored, refused=tuple(sorted([*refused, *stored.refused])))

    def summarise(self, org_id: str, run_id: str) -> bool:
        """Store the missing summary of a finished run, unless its events change in the meantime.

        Return False for a run that is unknown or has not finished.
        """
        with self._db.reading() as connection:
            query = select(runs).where(_of(org_id, run_id), runs.c.finished.is_not(None))
            row = connection.execute(query).mappings().first()
            summary = None if row is None or row["summary"] else summary_in(connection, dict(row))
        if row is not None and summary:
            same = and_(_of(org_id, run_id), *_UNSUMMARISED, runs.c.seen == row["seen"])
            with self._db.writing() as connection:
                connection.execute(update(runs).where(same).values(summary=summary))
        return row is not None

    def unsummarised(self, *, since: float, limit: int) -> Keys:
        """Return the org and the id of finished runs without a summary whose newest event arrived since a time."""
        query = select(runs.c.org_id, runs.c.run_id).where(runs.c.seen >= since, *_UNSUMMARISED).limit(limit)
        with self._db.reading() as connection:
            return [(org_id, run_id) for org_id, run_id in connection.execute(query)]

    def takes_notes(self, org_id: str, run_id: str, now: float, project_id: str | None = None) -> None:
        """Mark a run whose client asks for notes. The run may have no event yet.

        If `project_id` is given, a run of another project is not changed.
        """
        chosen = _of(org_id, run_id)
        if project_id is not None:
            chosen = and_(chosen, or_(runs.c.project_id == project_id, runs.c.origin == PLACEHOLDER))
        mark = update(runs).where(chosen).values(takes_notes=True)
        with self._db.writing() as connection:
            if not connection.execute(mark).rowcount:
                add_missing(connection, runs, [new_run(org_id, id_of(run_id), now, project_id)])
                connection.execute(mark)

    def get(self, org_id: str, run_id: str) -> RunRow | None:
        with self._db.reading() as connection:
            row = connection.execute(select(*RUN_AND_BODY).where(_of(org_id, run_id))).mappings().first()
        return None if row is None else run_row(row)

    def steps(self, org_id: str, run_id: str, *, after: int = -1, limit: int = 500) -> Bodies:
        """Return the events of the steps after the given one, in their order: at most `limit`, or some 8 MB."""
        return self.page(org_id, run_id, after=after, limit=limit)[0]

    def page(self, org_id: str, run_id: str, *, after: int = -1, limit: int = 500) -> tuple[Bodies, bool]:
        """Return the same as `steps`, and True if there may be more steps."""
        query = _bodies_of(org_id, run_id).where(steps.c.step_index > after).order_by(steps.c.step_index)
        return self._bodies(query.limit(limit), limit)

    def newest_steps(self, org_id: str, run_id: str, *, limit: int) -> Bodies:
        """Return the events of the newest steps, in their order: at most `limit`, or some 8 MB."""
        found, _ = self._bodies(_bodies_of(org_id, run_id).order_by(steps.c.step_index.desc()).limit(limit), limit)
        return found[::-1]

    def _bodies(self, query: Select[Any], limit: int) -> tuple[Bodies, bool]:
        """Read as many bodies as are held in memory at once."""
        texts, size = list[str](), 0
        with self._db.reading() as connection:
            rows = connection.execution_options(yield_per=AT_ONCE).execute(query)
            for (text,) in rows:
                texts.append(text)
                size += len(text)
                if size >= MOST_CHARS:
                    break
            rows.close()
        return [_clean.body_in(text) for text in texts], len(texts) == limit or size >= MOST_CHARS

    def finish_body(self, org_id: str, run_id: str) -> Body | None:
        """Return the `run_finish` event, or None."""
        with self._db.reading() as connection:
            text = connection.execute(select(runs.c.finish).where(_of(org_id, run_id))).scalar()
        return _clean.body_in(text) if text else None

    def narrow(self, org_id: str, run_ids: Sequence[str]) -> dict[str, StepRows]:
        """Return the first 1,000 steps of each run, without their texts. Unknown runs are left out."""
        names = {id_of(name): name for name in run_ids}
        with self._db.reading() as connection:
            days = connection.execute(
                select(runs.c.run_id, runs.c.day).where(runs.c.org_id == org_id, runs.c.run_id.in_(names))
            ).all()
            found = {}
            for name, day in days:
                of_run = and_(steps.c.day == day, steps.c.org_id == org_id, steps.c.run_id == name)
                found[names[name]] = step_rows(narrow_of(connection, of_run, MOST_NARROW))
        return found

    def list(
        self, org_id: str, chosen: RunFilter, *, limit: int, cursor: str | None = None, scan: int = MOST_SCANNED
    ) -> tuple[RunRows, str | None]:
        """Return a page of runs, the newest start first, and the cursor of the next page.

        With filters that no index covers, a page ends after `scan` runs. It may then have fewer than `limit` rows, even
        none, and still a cursor. The rows lack `body`. Raises `ValueError` for a cursor that this method has not
        made.
        """
        indexed, others = _chosen(chosen)
        within = [runs.c.org_id == org_id, *indexed]
        if cursor is not None:
            within.append(_later(*_read_cursor(cursor)))
        places = select(runs.c.started, runs.c.run_id).where(*within).order_by(*NEWEST).offset(scan - 1).limit(1)
        with self._db.reading() as connection:
            end = connection.execute(places).first() if others else None
            if end is not None:
                within.append(not_(_later(*end)))
            query = select(*RUN).where(*within, *others).order_by(*NEWEST).limit(limit + 1)
            rows = [run_row(row) for row in connection.execute(query).mappings()]
        if len(rows) > limit:
            return rows[:limit], _cursor(rows[limit - 1].started, rows[limit - 1].run_id)
        return rows, None if end is None else _cursor(*end)

    def children(self, org_id: str, run_id: str, *, project_id: str | None = None) -> RunRows:
        """Return the newest runs that name this one as their parent; with `project_id` only those of that project."""
        named = [runs.c.org_id == org_id, runs.c.parent_run_id == id_of(run_id)]
        if project_id is not None:
            named.append(runs.c.project_id == project_id)
        return self._rows(RUN, MOST_CHILDREN, *named)

    def choices(self, org_id: str, project_id: str | None = None) -> dict[str, Names]:
        """Return the values of the newest runs, for the filters of a list."""
        columns = {"agents": runs.c.agent_name, "failure_types": runs.c.failure_type, "states": runs.c.state,
                   "experiments": runs.c.experiment_id}  # fmt: skip
        newest = select(*columns.values()).where(runs.c.org_id == org_id)
        if project_id is not None:
            newest = newest.where(runs.c.project_id == project_id)
        query = select(newest.order_by(*NEWEST).limit(CHOSEN_FROM).subquery()).distinct()
        with self._db.reading() as connection:
            rows = connection.execute(query).all()
        return {name: sorted({row[at] for row in rows if row[at]})[:MOST_CHOICES] for at, name in enumerate(columns)}

    def delete(self, org_id: str, run_id: str) -> bool:
        """Delete a run with its steps and notes. Return False if it does not exist."""
        with self._db.writing() as connection:
            day = connection.execute(select(runs.c.day).where(_of(org_id, run_id)).with_for_update()).scalar()
            if day is None:
                return False
            name = id_of(run_id)
            connection.execute(
                delete(steps).where(steps.c.day == day, steps.c.org_id == org_id, steps.c.run_id == name)
            )
            connection.execute(delete(notes).where(notes.c.org_id == org_id, notes.c.run_id == name))
            connection.execute(delete(runs).where(_of(org_id, run_id)))
        return True

    def health(self, org_id: str, *, since: float, project_id: str | None = None) -> Body:
        """Return the counts of the runs that started since a time: of the newest 100,000, `since` the oldest of them.

        Monitors, effects and faults are those of the newest 10,000 finished runs, `summarised` in number.
        """
        indexed, others = _chosen(RunFilter(project_id=project_id))
        with self._db.reading() as connection:
            return health_of(connection, and_(runs.c.org_id == org_id, *indexed, *others), since)

    def changed(self, after_seen: float, limit: int) -> RunRows:
        """Return the runs of all orgs with an event after that time, the oldest event first, without summaries."""
        query = select(*RUN_ONLY).where(runs.c.seen > after_seen).order_by(runs.c.seen, runs.c.org_id, runs.c.run_id)
        with self._db.reading() as connection:
            return [run_row(row) for row in connection.execute(query.limit(limit)).mappings()]

    def units(
        self, org_id: str, experiment_id: str, *, project_id: str | None = None, limit: int = MOST_UNITS
    ) -> tuple[RunRows, bool]:
        """Return an experiment's newest `limit` runs, and True if it has more.

        The rows have no summary, and of `body` only the metadata's `on_fraction`.
        """
        within = [runs.c.org_id == org_id, runs.c.experiment_id == name_of(experiment_id)]
        if project_id is not None:
            within.append(runs.c.project_id == project_id)
        query = select(*RUN_ONLY, runs.c.body).where(*within).order_by(*NEWEST).limit(limit + 1)
        with self._db.reading() as connection:
            rows = connection.execution_options(yield_per=AT_ONCE).execute(query).mappings()
            found = [_unit_row(row) for row in rows]
        return found[:limit], len(found) > limit

    def experiments(self, org_id: str) -> Experiments:
        """Return the id, the number of runs and the first start of each experiment, the newest experiment first."""
        first = func.min(runs.c.started)
        query = (
            select(runs.c.experiment_id, func.count(), first)
            .where(runs.c.org_id == org_id, runs.c.experiment_id.is_not(None))
            .group_by(runs.c.experiment_id)
            .order_by(first.desc(), runs.c.experiment_id)
        )
        with self._db.reading() as connection:
            return [(name, count, started) for name, count, started in connection.execute(query)]

    def _rows(self, columns: Sequence[Column[Any]], limit: int | None, *wanted: ColumnElement[bool]) -> RunRows:
        query = select(*columns).where(*wanted).order_by(*NEWEST).limit(limit)
        with self._db.reading() as connection:
            return [run_row(row) for row in connection.execute(query).mappings()]


def _unit_row(row: Mapping[Any, Any]) -> RunRow:
    found = run_row(row)
    metadata = found.body.get("metadata")
    fraction = metadata.get("on_fraction") if isinstance(metadata, Mapping) else None
    return replace(found, task="", body={"metadata": {"on_fraction": fraction}})


def _of(org_id: str, run_id: str) -> ColumnElement[bool]:
    return and_(runs.c.org_id == org_id, runs.c.run_id == id_of(run_id))


def _bodies_of(org_id: str, run_id: str) -> Select[Any]:
    return select(steps.c.body).join_from(runs, steps, _same_run()).where(_of(org_id, run_id))


def _same_run() -> ColumnElement[bool]:
    return and_(steps.c.day == runs.c.day, steps.c.org_id == runs.c.org_id, steps.c.run_id == runs.c.run_id)


def _later(started: float, run_id: str) -> ColumnElement[bool]:
    """Return the condition for the runs that follow this one in a list."""
    return or_(runs.c.started < started, and_(runs.c.started == started, runs.c.run_id > run_id))


def _chosen(chosen: RunFilter) -> tuple[list[ColumnElement[bool]], list[ColumnElement[bool]]]:
    """Return the conditions that an index has, and the others."""
    indexed = _equal(
        {
            runs.c.agent_name: chosen.agent,
            runs.c.experiment_id: chosen.experiment_id,
            runs.c.project_id: chosen.project_id or "",
        }
    )
    if chosen.since is not None:
        indexed.append(runs.c.started >= chosen.since)
    others = _equal(
        {
            runs.c.state: chosen.state,
            runs.c.failure_type: chosen.failure_type,
            runs.c.arm: chosen.arm,
        }
    )
    if chosen.outcome:
        others.append(_outcome(chosen.outcome))
    if chosen.q:
        part = storable_text(chosen.q[:MOST_QUERY]).lower()
        searched = (runs.c.task, runs.c.agent_name, runs.c.run_id)
        others.append(or_(*[func.lower(column).contains(part, autoescape=True) for column in searched]))
    return indexed, others


def _equal(values: Mapping[Column[Any], str]) -> list[ColumnElement[bool]]:
    return [column == name_of(value) for column, value in values.items() if value]


def _outcome(kind: str) -> ColumnElement[bool]:
    if kind == "live":
        return runs.c.finished.is_(None)
    if kind == UNKNOWN:
        return and_(runs.c.finished.is_not(None), *[~_begins(one) for one in KNOWN])
    return _begins(kind) if kind in KNOWN else false()


def _begins(kind: str) -> ColumnElement[bool]:
    return func.lower(func.ltrim(runs.c.outcome)).startswith(kind)


def _cursor(started: float, run_id: str) -> str:
    return urlsafe_b64encode(json.dumps([started, run_id]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[float, str]:
    try:
        started, name = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if isinstance(name, str) and (number := _clean.number_in(started)) is not None:
            return number, id_of(name)
    except (ValueError, TypeError):
        pass
    raise ValueError(f"cursor={cursor[:100]!r}: this server has not made it")
