"""Creates a run's page from the events of a log, or from a replayed recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.events import StepEvent, completed_of
from reasonblocks.types import Doubt, RunInfo, Step, StepDecision, Usage
from reasonblocks.util.json import evolve

from .page import HARDEST, MONITOR, STANDING, Row, RunPage, Told

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RunLog

DEFAULTS = Thresholds()
OF_PATTERNS = frozenset({MONITOR, "E1Injection", "E2Injection"})
"""The sources of texts that come from patterns; an event has the ids of a call's patterns, not those of each text."""
UNKNOWN = "?"
"""A state that the machine does not have."""
MOST = 64
"""Scores and texts of a call that are read, as many as an evaluation may have."""


def page_of_log(log: RunLog, *, thresholds: Thresholds = DEFAULTS) -> RunPage:
    """Return the page of a run's events.

    Events do not contain the thresholds of the difficulty, so the shipped ones are drawn unless others are passed.
    """
    run = log.start.run if log.start is not None else RunInfo(run_id=log.run_id)
    rows = list(_rows_of_events(log.steps))
    observed = run.mode == "observe" or any(step.metadata.get("mode") == "observe" for step in log.steps)
    finish = log.finish
    return RunPage(
        run_id=log.run_id,
        rows=_rules_once(rows),
        agent=run.agent_name,
        task=run.task,
        model=run.model,
        framework=run.framework if log.start is not None else "",
        parent=run.parent_run_id or "",
        experiment=", ".join(filter(None, (_text(run.metadata.get(name)) for name in ("experiment_id", "arm")))),
        outcome=finish.outcome if finish is not None else "",
        doubts=finish.doubts if finish is not None and finish.doubts else _doubts(log.steps),
        mode="observe" if observed else "steer",
        started=_finite(log.start.timestamp) if log.start is not None else next((row.at for row in rows), None),
        finished=_finite(finish.timestamp) if finish is not None else None,
        place=log.file,
        judged_by=next((text for step in log.steps if (text := _text(step.metadata.get("judged_by")))), "shipped"),
        thresholds=thresholds,
    )


def page_of_replayed(replayed: ReplayedRun, *, thresholds: Thresholds = DEFAULTS) -> RunPage:
    """Return the page of a replayed recording; `thresholds` are those of the client that has replayed it."""
    run = replayed.run
    decisions = (replayed.start, *replayed.decisions)
    final = len(run.steps)
    rows = [
        _row_of_decision(number, decision, step, usage, final=bool(final) and number == final)
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
    number: int, decision: StepDecision | None, step: Step | None, usage: Usage | None, *, final: bool
) -> Row:
    usage, after = usage or Usage(), number - 1 if step is not None else None
    if decision is None:  # the run was stopped before
        return Row(number=number, after=after, state="", step=step, final=final, tokens=usage.total)
    look = decision.gate_decision == "final"
    shown = [Told(source=one.source, text=one.text, patterns=one.pattern_ids) for one in decision.injections]
    if decision.standing_rules and not any(told.standing for told in shown):
        shown.append(Told(source=STANDING, text=decision.standing_rules))
    withheld = [
        Told(source=one.source, text=one.text, patterns=one.pattern_ids, withheld=True, look=look)
        for one in decision.withheld
    ]
    return Row(
        number=number,
        after=after,
        state=decision.fsm_state.value,
        step=step,
        final=final,
        difficulty=decision.difficulty,
        parts={} if decision.difficulty_parts is None else asdict(decision.difficulty_parts),
        scores=decision.scores,
        fired=decision.monitors_fired,
        composite=decision.composite,
        failure_type=decision.failure_type or "",
        gate=decision.gate_decision or "",
        skipped=decision.skipped_reason or "",
        told=(*shown, *withheld),
        dropped=decision.dropped,
        retrieved=decision.retrieved,
        stop=decision.stop or "",
        withheld_stop=decision.withheld_stop or "",
        asked=decision.interrupt or "",
        withheld_asked=decision.withheld_interrupt or "",
        route=decision.route or "",
        withheld_route=decision.withheld_route or "",
        tokens=usage.total,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
    )


def _rows_of_events(events: Iterable[StepEvent]) -> Iterator[Row]:
    """Yield the rows of a run's events. Auxiliary calls and the first step's have no completed step before them."""
    before = None
    for event in events:
        auxiliary = event.metadata.get("skipped_reason") == "auxiliary"
        yield _row_of_event(event, None if auxiliary else before)
        before = before if auxiliary else event.step_index


def _row_of_event(event: StepEvent, after: int | None) -> Row:
    more = event.metadata
    final, state = more.get("final") is True, _text(more.get("fsm_state"))
    return Row(
        number=event.step_index,
        after=after,
        state=state if state in HARDEST else UNKNOWN,
        step=None if after is None else completed_of(event),
        final=final,
        at=_finite(event.timestamp),
        difficulty=_finite(more.get("difficulty")),
        parts=_numbers(more.get("difficulty_parts")),
        scores=_numbers(event.scores),
        fired=event.monitors_fired[:MOST],
        composite=_finite(event.composite),
        failure_type=event.failure_type or "",
        gate=_text(more.get("gate_decision")),
        skipped=_text(more.get("skipped_reason")),
        told=_told(event, final),
        dropped=_texts(more.get("injections_dropped")),
        retrieved=_retrieved(more.get("retrieved")),
        stop=_text(more.get("stop")),
        withheld_stop=_text(more.get("withheld_stop")),
        asked=_text(more.get("interrupt")),
        withheld_asked=_text(more.get("withheld_interrupt")),
        model=event.step_model or "",
        route=_text(more.get("route")),
        withheld_route=_text(more.get("withheld_route")),
        tokens=_count(event.tokens),
        input_tokens=_count(event.input_tokens),
        output_tokens=_count(event.output_tokens),
        cache_read_tokens=_count(event.cache_read_tokens),
        latency_ms=_finite(more.get("latency_ms")),
        overhead_ms=_finite(more.get("overhead_ms")),
        error=_text(more.get("error")),
    )


def _told(event: StepEvent, final: bool) -> tuple[Told, ...]:
    """Return the texts of an event. A text that `redact` has removed is replaced by its preview."""
    more, rules = event.metadata, _retrieved(event.metadata.get("retrieved")).get("e3") or ()
    patterns = tuple(one for one in _texts(more.get("pattern_ids")) if one not in rules)
    shown = [
        Told(source=source or "", text=text or preview or "", patterns=patterns if source in OF_PATTERNS else ())
        for source, text, preview in islice(
            zip_longest(event.injection_sources, event.intervention_texts, event.injections), MOST
        )
    ]
    withheld = [
        Told(source=source or "", text=text or "", withheld=True, look=final)
        for source, text in islice(
            zip_longest(_texts(more.get("withheld_sources")), _texts(more.get("withheld_texts"))), MOST
        )
    ]
    return (*shown, *withheld)


def _rules_once(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows with the standing rules only where they are new."""
    found, before = list[Row](), set[str]()
    for row in rows:
        rules = {told.text for told in row.told if told.standing}
        if rules & before:
            kept = tuple(told for told in row.told if not (told.standing and told.text in before))
            row = evolve(row, told=kept)
        before = rules or before
        found.append(row)
    return tuple(found)


def _doubts(steps: Sequence[StepEvent]) -> tuple[Doubt, ...]:
    found = steps[-1].metadata.get("doubts") if steps else None
    rows = [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []
    return tuple(Doubt(monitor=_text(one.get("monitor")), text=_text(one.get("text"))) for one in rows)


def _retrieved(value: Any) -> dict[str, tuple[str, ...] | None]:
    if not isinstance(value, Mapping):
        return {}
    return {str(tier): None if ids is None else _texts(ids) for tier, ids in value.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, (list, tuple)) else ()


def _finite(value: Any) -> float | None:
    """Return a finite number as a float, and None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _numbers(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {}
    given = islice(value.items(), MOST)
    return {str(name): number for name, one in given if (number := _finite(one)) is not None}
