"""Converts rows of the tables to the values that the routes read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from reasonblocks.util.text import storable_text

from ..values import RunRow, StepRow
from ._clean import body_in, names_in, read_json
from ._tables import runs, steps

RUN = [column for column in runs.c if column.name in RunRow.__dataclass_fields__ and column.name != "body"]
"""The columns of a run without its `run_start` event."""
RUN_AND_BODY = [*RUN, runs.c.body]
RUN_ONLY = [column for column in RUN if column.name != "summary"]
NARROW = [column for column in steps.c if column.name not in ("day", "org_id", "body")]
"""The columns of a step without its texts."""


def run_row(row: Mapping[Any, Any]) -> RunRow:
    """Return a run from the columns `RUN_ONLY`, and possibly `summary` and `body`. With `body`, its task is whole."""
    columns = {column.name: row[column.name] for column in RUN_ONLY}
    summary, body = row.get("summary"), body_in(row.get("body"))
    task = storable_text(body["task"]) if body else columns["task"]
    return RunRow(**{**columns, "task": task}, summary=read_json(summary) if summary else None, body=body)


def narrow_of(connection: Connection, where: ColumnElement[bool], limit: int) -> Sequence[RowMapping]:
    """Return the first steps of a run, without their texts."""
    query = select(*NARROW).where(where).order_by(steps.c.run_id, steps.c.step_index).limit(limit)
    return connection.execute(query).mappings().all()


def step_rows(rows: Iterable[Mapping[Any, Any]]) -> list[StepRow]:
    return [step_row(row) for row in rows]


def step_row(row: Mapping[Any, Any]) -> StepRow:
    lists = {name: names_in(row[name]) for name in ("fired", "sources", "withheld")}
    scores = read_json(row["scores"]) if row["scores"] != "{}" else {}
    return StepRow(**{**row, **lists, "scores": scores})
