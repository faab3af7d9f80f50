"""Creates a run's page from the events of a log, or from a replayed recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.events import StepEvent, completed_of, entry_of
from reasonblocks.session.log import entry_of_decision
from reasonblocks.types import RunInfo, Step, StepDecision, StepLogEntry, Usage
from reasonblocks.util.json import replace_surrogates

from .page import MONITOR, STANDING, Row, RunPage, Told, completed_before

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RunLog

DEFAULTS = Thresholds()
OF_PATTERNS = frozenset({MONITOR, "E1Injection", "E2Injection"})
"""The sources of texts that come from patterns; an event has the ids of a call's patterns, not those of each text."""
MOST = 64
"""Scores and texts of a call that are read, as many as an evaluation may have."""


def page_of_log(log: RunLog, *, thresholds: Thresholds = DEFAULTS) -> RunPage:
    """Return the page of a run's events.

    Events do not contain the thresholds of the difficulty, so the shipped ones are drawn unless others are passed.
    """
    run = log.start.run if log.start is not None else RunInfo(run_id=log.run_id)
    rows = list(_rows_of_events(log.steps))
    observed = run.mode == "observe" or any(row.entry.mode == "observe" for row in rows)
    finish = log.finish
    return RunPage(
        run_id=log.run_id,
        rows=_rules_once(rows),
        agent=run.agent_name,
        task=run.task,
        model=run.model,
        framework=run.framework if log.start is not None else "",
        parent=run.parent_run_id or "",
        experiment=", ".join(_names(run.metadata.get(name) for name in ("experiment_id", "arm"))),
        outcome=finish.outcome if finish is not None else "",
        doubts=finish.doubts if finish is not None and finish.doubts else rows[-1].entry.doubts if rows else (),
        mode="observe" if observed else "steer",
        started=log.start.timestamp if log.start is not None else next((row.at for row in rows), None),
        finished=finish.timestamp if finish is not None else None,
        place=log.file,
        judged_by=next((name for row in rows if (name := row.entry.judged_by) != "shipped"), "shipped"),
        thresholds=thresholds,
    )


def page_of_replayed(replayed: ReplayedRun, *, thresholds: Thresholds = DEFAULTS) -> RunPage:
    """Return the page of a replayed recording; `thresholds` are those of the client that has replayed it."""
    run = replayed.run
    decisions = (replayed.start, *replayed.decisions)
    rows = [
        _row_of_decision(replayed, decision, number, step, usage)
        for number, (decision, step, usage) in enumerate(zip_longest(decisions, (None, *run.steps), run.usages))
    ]
    observed = any(decision.mode == "observe" for decision in decisions)
    return RunPage(
        run_id=run.run_id,
        rows=_rules_once(rows),
        agent=run.source or "",
        task=run.task,
        model=run.model,
        outcome=run.outcome or "",
        doubts=replayed.doubts,
        mode="observe" if observed else "steer",
        replayed=True,
        place=f"{run.file}:{run.line}",
        judged_by=replayed.judged_by,
        thresholds=thresholds,
    )


def _row_of_decision(
    replayed: ReplayedRun, decision: StepDecision | None, number: int, step: Step | None, usage: Usage | None
) -> Row:
    """Return the row of call `number`; `decision` is None if the run was stopped before."""
    usage = usage or Usage()
    entry = StepLogEntry(step=number, timestamp=0.0)
    if decision is not None:
        entry = entry_of_decision(decision, 0.0, 0.0, replayed.judged_by)
    entry = replace(
        entry,
        step=number,
        tokens=usage.total,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cost_usd=replayed.costs[number] if number < len(replayed.costs) else None,
    )
    return Row(
        entry=entry,
        after=number - 1 if step is not None else None,
        step=step,
        final=bool(replayed.run.steps) and number == len(replayed.run.steps),
        decided=decision is not None,
        scores=decision.scores if decision is not None else {},
        told=texts_of(decision) if decision is not None else (),
    )


def texts_of(decision: StepDecision) -> tuple[Told, ...]:
    """Return all texts of a decision: those that are shown, then those that observing withholds."""
    look = decision.gate_decision == "final"
    shown = [Told(source=one.source, text=one.text, patterns=one.pattern_ids) for one in decision.injections]
    if decision.standing_rules and not any(told.standing for told in shown):
        shown.append(Told(source=STANDING, text=decision.standing_rules))
    withheld = [
        Told(source=one.source, text=one.text, patterns=one.pattern_ids, withheld=True, look=look)
        for one in decision.withheld
    ]
    return (*shown, *withheld)


def _rows_of_events(events: Sequence[StepEvent]) -> Iterator[Row]:
    entries = [_bounded(entry_of(event)) for event in events]
    for event, entry, after in zip(events, entries, completed_before(entries)):
        yield Row(
            entry=entry,
            after=after,
            step=None if after is None else completed_of(event),
            final=event.final,
            at=entry.timestamp,
            scores=_scores(event),
            told=_told(entry, event.final),
        )


def _scores(event: StepEvent) -> dict[str, float]:
    given = islice(event.scores.items(), MOST)
    return {str(replace_surrogates(name)): score for name, score in given if math.isfinite(score)}


def _bounded(entry: StepLogEntry) -> StepLogEntry:
    return replace(entry, monitors_fired=entry.monitors_fired[:MOST])


def _told(entry: StepLogEntry, final: bool) -> tuple[Told, ...]:
    """Return the texts of an event. A text that `redact` has removed is replaced by its preview."""
    rules = entry.retrieved.get("e3") or ()
    patterns = tuple(one for one in entry.pattern_ids if one not in rules)
    shown = [
        Told(source=source or "", text=text or preview or "", patterns=patterns if source in OF_PATTERNS else ())
        for source, text, preview in islice(
            zip_longest(entry.injection_sources, entry.intervention_texts, entry.injections), MOST
        )
    ]
    withheld = [
        Told(source=source or "", text=text or "", withheld=True, look=final)
        for source, text in islice(zip_longest(entry.withheld_sources, entry.withheld_texts), MOST)
    ]
    return (*shown, *withheld)


def _rules_once(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows with the standing rules only where they are new."""
    found, before = list[Row](), set[str]()
    for row in rows:
        rules = {told.text for told in row.told if told.standing}
        if rules & before:
            kept = tuple(told for told in row.told if not (told.standing and told.text in before))
            row = replace(row, told=kept)
        before = rules or before
        found.append(row)
    return tuple(found)


def _names(values: Iterable[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]
