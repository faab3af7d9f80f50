"""What is counted over the runs of a file, from reports written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from reasonblocks.types import FSMState, Injection, SkippedReason, Source, Step, StepDecision, Usage
from reasonblocks_workbench.cli._decisions import interventions
from reasonblocks_workbench.cli._replay import Summary, total
from reasonblocks_workbench.cli.output import Table
from reasonblocks_workbench.replay import ReplayedRun
from reasonblocks_workbench.traces import RecordedRun

MONITOR = Injection(source="MonitorSteeringInjection", text="look again")


def after(
    state: str = "NORMAL",
    *sources: Source,
    fired: tuple[str, ...] = (),
    skipped: SkippedReason | None = None,
    **fields: Any,
) -> StepDecision:
    return StepDecision(
        step=1,
        fsm_state=FSMState(state),
        monitors_fired=fired,
        skipped_reason=skipped,
        injections=tuple(Injection(source=source, text="t") for source in sources),
        **fields,
    )


def report(*decisions: StepDecision, outcome: str | None = None, steps: int | None = None) -> ReplayedRun:
    """Return a run with these decisions; one of more steps is stopped."""
    steps = steps or len(decisions)
    run = RecordedRun(
        run_id="r",
        steps=(Step(),) * steps,
        usages=(Usage(),) * steps,
        file="f",
        line=1,
        outcome=outcome,
    )
    return ReplayedRun(run=run, start=after("INIT", "E3Injection"), decisions=decisions)


def summed(*reports: ReplayedRun, malformed: int = 0) -> list[Table]:
    summary = Summary("f", malformed=malformed)
    for one in reports:
        summary.add(one)
    return summary.tables()


def row(table: Table, name: str) -> tuple[str, ...]:
    return tuple(next(row for row in table.rows if row[0] == name)[1:])


def test_runs_steps_and_malformed_records_are_counted() -> None:
    (table,) = summed(report(after(), after()), report(after()), malformed=3)
    assert row(table, "runs") == ("2, 3 steps, 3 malformed",)


def test_states_have_their_share_of_the_steps() -> None:
    (table,) = summed(report(after("FAST"), after("NORMAL")), report(after("NORMAL"), after("NORMAL")))
    assert row(table, "states") == ("FAST 25.0 %, NORMAL 75.0 %",)


def test_a_run_reaches_a_state_once() -> None:
    (table,) = summed(report(after("SLOW"), after("NORMAL"), after("SLOW")), report(after("NORMAL")))
    assert row(table, "reached by") == ("NORMAL 2 runs, SLOW 1 run",)


def test_a_monitor_counts_once_a_run() -> None:
    (table,) = summed(report(after(fired=("a",)), after(fired=("a", "b"))), report(after(fired=("a",))))
    assert row(table, "monitors fired") == ("a in 2 runs, b in 1 run",)


@pytest.mark.parametrize("source", ["MonitorSteeringInjection", "E1Injection", "E2Injection"])
def test_what_is_injected_is_an_intervention(source: Source) -> None:
    assert interventions(report(after(), after("NORMAL", source))) == [1]


def test_two_texts_before_one_call_are_one_intervention() -> None:
    assert interventions(report(after("NORMAL", "MonitorSteeringInjection", "E2Injection"))) == [0]


def test_interventions_have_their_runs_and_the_median_of_the_first() -> None:
    hit = after("NORMAL", "MonitorSteeringInjection")
    (table,) = summed(report(hit, hit), report(after(), after(), hit), report(after()), report(after()))
    assert row(table, "interventions") == ("3 in 2 runs (50.0 %), the first after step 1 (median)",)


def test_without_interventions_it_says_none() -> None:
    assert row(summed(report(after()))[0], "interventions") == ("none",)


def test_faults_are_told_where_there_are_some() -> None:
    (table,) = summed(report(after(skipped="fault"), after()))
    assert row(table, "faults")[0].startswith("1 step went")


def test_without_outcomes_there_is_no_comparison() -> None:
    assert len(summed(report(after()))) == 1


def test_failing_and_succeeding_runs_are_compared() -> None:
    hit = after("SLOW", "MonitorSteeringInjection", fired=("a",))
    _, table = summed(
        report(hit, outcome="failure"),
        report(after("FAST"), outcome="failure: ValueError"),
        report(after("FAST"), outcome="success"),
        report(after(), outcome="unheard of"),
    )
    assert tuple(table.head) == ("", "failing", "succeeding")
    assert row(table, "runs") == ("2", "1")
    assert row(table, "with an intervention") == ("50.0 %", "0.0 %")
    assert row(table, "first after step") == ("0", "-")
    assert row(table, "steps in FAST") == ("50.0 %", "100.0 %")
    assert row(table, "steps in SLOW") == ("50.0 %", "0.0 %")
    assert row(table, "a fired") == ("50.0 %", "0.0 %")


def test_one_kind_of_outcome_is_one_column() -> None:
    _, table = summed(report(after(), outcome="failure"))
    assert tuple(table.head) == ("", "failing")


def test_the_total_is_the_sum_of_the_files() -> None:
    one, two = Summary("a", malformed=1), Summary("b", malformed=2)
    one.add(report(after("FAST"), outcome="success"))
    two.add(report(after("SLOW"), after("SLOW"), outcome="success"))
    overview, outcome = total([one, two]).tables()
    assert row(overview, "runs") == ("2, 3 steps, 3 malformed",)
    assert row(outcome, "runs") == ("2",)


def test_a_run_without_steps_is_a_run() -> None:
    assert row(summed(report())[0], "runs") == ("1, 0 steps, 0 malformed",)


def test_stops_are_counted_with_their_outcomes_and_the_steps_not_made() -> None:
    overview, outcomes = summed(
        report(after(), after(stop="stalled"), outcome="failure", steps=9),
        report(after(stop="stalled"), outcome="failure: ValueError", steps=3),
        report(after(stop="stalled"), outcome="success", steps=2),
        report(after(stop="stalled"), steps=2),
        report(after(), after(), outcome="success"),
    )
    assert row(overview, "stopped") == ("4 runs (2 failing, 1 succeeding, 1 unknown); 11 of 18 steps not made",)
    assert row(overview, "runs") == ("5, 18 steps, 0 malformed",)
    assert row(outcomes, "stopped") == ("100.0 %", "50.0 %")


def test_stops_that_observing_prevents_are_counted_at_their_first_step() -> None:
    held = after(mode="observe", withheld_stop="stalled")
    overview, outcomes = summed(report(after(), held, held, after(), outcome="failure"))
    text = "1 run (1 failing); 2 of 4 steps would not be made"
    assert (row(overview, "would be stopped"), row(outcomes, "would be stopped")) == ((text,), ("100.0 %",))


def test_without_outcomes_stops_are_only_counted() -> None:
    assert row(summed(report(after(stop="mine"), steps=2))[0], "stopped") == ("1 run; 1 of 2 steps not made",)


def test_no_stop_has_a_row_if_runs_may_be_stopped() -> None:
    tables = [summary.tables()[0] for summary in (Summary("f"), Summary("f", stops=True))]
    assert [[row[1] for row in table.rows if row[0] == "stopped"] for table in tables] == [[], ["none"]]


def test_second_looks_are_counted_apart_from_interventions() -> None:
    look = after(gate_decision="final", withheld=(MONITOR,))
    table, _ = summed(report(after(), look, outcome="success"), report(after(), outcome="failure"))
    assert (row(table, "interventions"), row(table, "second looks")) == (("none",), ("1 run (1 succeeding)",))


def test_runs_with_an_unknown_outcome_are_counted() -> None:
    known = (report(after(), outcome="success"), report(after(), outcome="failure: tests"))
    (overview, _) = summed(*known, report(after(), outcome="gave up"), report(after()))
    assert row(overview, "unknown outcome") == ("2 runs",)


def test_without_an_unknown_outcome_nothing_is_said_of_it() -> None:
    (overview, _) = summed(report(after(), outcome="success"))
    assert "unknown outcome" not in [name for name, *_ in overview.rows]


def test_escalated_calls_are_counted_also_those_that_observing_withholds() -> None:
    routed, withheld = after(route="ESCALATE"), after(withheld_route="ESCALATE")
    (table,) = summed(report(after(), routed, routed, after()), report(withheld, after()), report(after()))
    assert row(table, "escalated") == ("3 calls in 2 runs",)
    assert "escalated" not in [row[0] for row in summed(report(after()))[0].rows]
