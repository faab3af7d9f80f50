"""Writes runs in the library's own format of recorded runs, for `reasonblocks replay` and the other commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .rows import Made, Row

__all__ = ["records", "write"]

TaskText = Callable[[str, int], str]
"""Returns the user's message of the task of a family and a seed."""


def write(path: Path, rows: Sequence[Row], task: TaskText | None = None) -> int:
    """Write the runs as JSON lines, and return their number. Raises `OSError`."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for record in records(rows, task):
            file.write(json.dumps(record) + "\n")
            count += 1
    return count


def records(rows: Sequence[Row], task: TaskText | None = None) -> Iterator[dict[str, Any]]:
    """Yield each run as a JSON object. A run that broke off with an error has no outcome.

    Its source is the agent: the model, what it went through, and the family of tasks. Runs of a family in which a won
    run was ended by the environment are marked with `oracle_stop`: their length reveals the outcome.
    """
    stopping = _stopping(rows)
    for row in rows:
        yield {
            "run_id": "/".join(map(str, row.key)),
            "source": f"{row.model}/{row.through}/{row.family}",
            "outcome": _outcome(row),
            "task": task(row.family, row.seed) if task else "",
            "task_key": f"{row.family}/{row.seed}",
            "model": row.model,
            "oracle_stop": row.family in stopping,
            "steps": [_step(index, made) for index, made in enumerate(row.calls)],
            "phase": row.phase,
            "arm": row.arm,
            "told": [{"step": told.step, "text": told.text, "monitor": told.monitor} for told in row.told],
        }


def _stopping(rows: Iterable[Row]) -> set[str]:
    return {row.family for row in rows if row.won and not row.ended}


def _outcome(row: Row) -> str | None:
    if row.error is not None:
        return None
    return "success" if row.won else "failure: gave up" if row.ended else "failure: out of steps"


def _step(index: int, made: Made) -> dict[str, Any]:
    if not made.name:
        return {"thought": made.thought, "tool_calls": [], "tool_results": []}
    call = f"call-{index}"
    result = {"call_id": call, "name": made.name, "output": made.output, "is_error": made.is_error}
    return {
        "thought": made.thought,
        "tool_calls": [{"id": call, "name": made.name, "arguments": made.arguments}],
        "tool_results": [result],
    }
