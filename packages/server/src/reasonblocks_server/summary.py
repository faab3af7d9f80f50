"""Summarises a finished run for lists and counts, by the rules of `reasonblocks_workbench.report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reasonblocks.types import Doubt, StepLogEntry
from reasonblocks_workbench.report import Row, RunPage, Told, completed_before

from .values import Body, StepRow

PIXELS = 132
"""The width of the drawing."""
MOST_POINTS = 66
"""The most points of the drawing: one for every two pixels."""
NO_TYPE = "no failure type"


def summary_of(steps: Sequence[StepRow], outcome: str | None, *, doubts: bool = False) -> Body:
    """Return the summary of a run. `steps` are all its steps. `doubts` is True if monitors doubt its end.

    - `states` that were reached and `hardest`, the first of them; `failures`: the failure types; `monitors` that fired
    - `steps`: completed ones; `calls`; `told`: texts by source, without standing rules; `withheld`: those not shown
    - `kinds`: the marks of the texts, "stop" and "doubt"; `judged` and `recovered`: texts by failure type
    - `faults`, `unavailable`, `errors`, `dropped`: steps without steering, calls that failed, texts left out
    - `peak`: the highest difficulty; `points`: the difficulty, at most 66 numbers or nulls; `ticks`: calls with texts
    - `last`: the number of the last row, which is the right edge of the drawing
    """
    page = _page(steps, outcome or "", doubts or bool(steps and steps[-1].doubts))
    levels = [row.entry.difficulty for row in page.rows]
    last = max(1, len(page.rows) - 1)
    known = [level for level in levels if level is not None]
    types = {row.number: row.entry.failure_type or NO_TYPE for row in page.rows}
    return {
        "states": list(page.states),
        "hardest": page.states[0] if page.states else "",
        "failures": list(page.failure_types),
        "monitors": sorted({name for row in page.decided for name in row.entry.monitors_fired}),
        "steps": page.steps,
        "calls": len(page.calls),
        "told": dict(Counter(told.source for _, told in page.told if not told.withheld)),
        "withheld": dict(Counter(told.source for _, told in page.told if told.withheld)),
        "kinds": _kinds(page),
        "stopped": page.stopped is not None,
        "doubts": bool(page.doubts),
        "judged": dict(Counter(types[call] for call in page.verdicts)),
        "recovered": dict(Counter(types[call] for call, verdict in page.verdicts.items() if verdict.recovered)),
        "faults": sum(row.entry.skipped_reason == "fault" for row in page.decided),
        "unavailable": sum("unavailable" in (row.entry.skipped_reason, row.entry.gate_decision) for row in page.rows),
        "errors": sum(step.error for step in steps),
        "dropped": sum(step.dropped for step in steps),
        "peak": round(max(known), 3) if known else None,
        "points": _points(levels),
        "ticks": _ticks([row.number for row, _ in page.told], last),
        "last": last,
    }


def _kinds(page: RunPage) -> list[str]:
    found = list[str](dict.fromkeys(told.kind for _, told in page.told))
    return [*found, *(["stop"] if page.stopped is not None else []), *(["doubt"] if page.doubts else [])]


def _page(steps: Sequence[StepRow], outcome: str, doubts: bool) -> RunPage:
    return RunPage(
        run_id=steps[0].run_id if steps else "",
        rows=tuple(_rows(steps)),
        outcome=outcome,
        doubts=(Doubt(monitor="", text=""),) if doubts else (),
    )


def _rows(steps: Sequence[StepRow]) -> Iterator[Row]:
    entries = [_entry(step) for step in steps]
    for step, entry, after in zip(steps, entries, completed_before(entries)):
        shown = [Told(source=source, text="") for source in step.sources]
        withheld = [Told(source=source, text="", withheld=True, look=step.final) for source in step.withheld]
        yield Row(entry=entry, after=after, final=step.final, at=step.at, told=(*shown, *withheld))


def _entry(step: StepRow) -> StepLogEntry:
    """Return the log entry of a call, without what no summary counts."""
    return StepLogEntry(
        step=step.step_index,
        timestamp=step.at,
        fsm_state=step.fsm_state,
        difficulty=step.difficulty,
        monitors_fired=step.fired,
        composite=step.composite,
        failure_type=step.failure_type,
        gate_decision=step.gate,
        skipped_reason=step.skipped,
        stop="stop" if step.stopped else None,
        tokens=step.tokens,
    )


def _points(levels: Sequence[float | None]) -> list[float | None]:
    """Return the difficulties. For a long run, return the highest of each section."""
    each = -(-len(levels) // MOST_POINTS) or 1
    stretches = [[one for one in levels[at : at + each] if one is not None] for at in range(0, len(levels), each)]
    return [round(max(stretch), 3) if stretch else None for stretch in stretches]


def _ticks(calls: Sequence[int], last: int) -> list[int]:
    """Return the calls, but only the first of several at the same place in the drawing."""
    places = dict[int, int]()
    for call in calls:
        places.setdefault(round(min(1.0, call / last) * PIXELS), call)
    return list(places.values())[:MOST_POINTS]
