"""The values of a run's page: from a log, from a replay, and the judgement of its texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks, Step, ToolCall, ToolResult
from reasonblocks.backends.pattern_stats import PatternStats
from reasonblocks.events import Event, StepEvent
from reasonblocks.monitors.profile import parse_patience, patience_of
from reasonblocks.types import Doubt, Usage
from reasonblocks.types.outcomes import ABANDONED
from reasonblocks_workbench.replay import ReplayedRun, replay
from reasonblocks_workbench.report import RunPage, Tally, page_of_log, page_of_replayed, view
from reasonblocks_workbench.report.health import summary_facts
from reasonblocks_workbench.traces import RecordedRun, RunLog
from tests.workbench.report.runs import log, ordinary, page, step, told


def failing(number: int) -> Step:
    call = ToolCall(id=f"c{number}", name="run_tests")
    result = ToolResult(call_id=f"c{number}", output="ValueError: 3 failed", is_error=True)
    return Step(thought="I run the tests again.", tool_calls=(call,), tool_results=(result,))


def recorded(steps: int = 8) -> RecordedRun:
    return RecordedRun(
        run_id="run-1", steps=tuple(map(failing, range(steps))), usages=(Usage(input=10, output=2),) * steps,
        file="runs.jsonl", line=3, source="bugfixer", outcome="failure", task="Fix the tests.", model="m",
    )  # fmt: skip


class Recorder:
    """A sink that keeps its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None: ...


def replayed(steps: int = 8, **settings: Any) -> tuple[ReplayedRun, list[Event]]:
    sink = Recorder()
    rb = ReasonBlocks(sinks=[sink], **settings)
    run = replay(rb, recorded(steps))
    rb.close()
    return run, sink.events


def logged(events: Iterable[Event]) -> RunLog:
    steps = tuple(event for event in events if isinstance(event, StepEvent))
    return RunLog(run_id="run-1", start=None, steps=steps, finish=None, file="", line=1)


@pytest.mark.parametrize("settings", [{}, {"mode": "observe"}, {"standing_rules": "run"}], ids=str)
def test_the_page_of_a_replay_and_of_its_events_have_the_same_calls(settings: dict[str, Any]) -> None:
    run, events = replayed(**settings)
    one, other = page_of_replayed(run), page_of_log(logged(events))
    assert len(one.rows) == 9

    def seen(page: RunPage) -> list[tuple[object, ...]]:
        return [
            (row.number, row.after, row.state, row.final, row.entry.difficulty, row.entry.monitors_fired,
             row.entry.gate_decision, row.entry.tokens,
             [(told.source, told.text, told.withheld) for told in row.told],
             row.step and (row.step.thought, row.step.observation, row.step.action))
            for row in page.rows
        ]  # fmt: skip

    assert seen(one) == seen(other)
    assert one.verdicts.keys() == {row.number for row in one.rows if row.interventions}


def test_a_row_has_call_n_and_the_step_that_it_was_decided_from() -> None:
    rows = ordinary().rows
    assert [(row.number, row.after) for row in rows] == [(0, None), *((n, n - 1) for n in range(1, 8))]
    assert rows[0].step is None
    assert [row.step.action for row in rows[1:3] if row.step] == ["read_file", "run_tests"]
    assert [row.number for row in rows if row.final] == [7]
    assert len(ordinary().calls) == ordinary().steps == 7


def test_an_auxiliary_call_has_no_step_and_moves_none() -> None:
    rows = page(step(0), step(1, thought="a"), step(2, skipped_reason="auxiliary"), step(3, thought="b")).rows
    assert [(row.number, row.after) for row in rows] == [(0, None), (1, 0), (2, None), (3, 1)]


def test_standing_rules_of_every_call_are_listed_once() -> None:
    rules: dict[str, Any] = {"injection_sources": ("E3Injection",), "intervention_texts": ("Check your work.",)}
    found = page(step(0, **rules), step(1, **rules), step(2, **rules))
    assert [len(row.told) for row in found.rows] == [1, 0, 0]
    assert found.told == ()


def test_a_redacted_text_is_replaced_by_its_preview() -> None:
    (row,) = page(step(0, injection_sources=("E1Injection",), injections=("Read...",))).rows
    assert [told.text for told in row.told] == ["Read..."]


def test_the_patterns_of_a_call_belong_to_its_lessons() -> None:
    found = page(
        step(
            0,
            injection_sources=("OperatorInjection", "E1Injection", "E3Injection"),
            intervention_texts=("a", "b", "c"),
            pattern_ids=["lesson", "rule"],
            retrieved={"e1": ["lesson"], "e3": ["rule"]},
        )
    )
    assert [told.patterns for told in found.rows[0].told] == [(), ("lesson",), ()]


def test_steps_after_a_stop_are_shown_without_a_decision() -> None:
    run, _ = replayed(12, stop_when=lambda run: "enough" if len(run.step_log) >= 4 else None)
    found = page_of_replayed(run)
    assert found.stopped is not None
    assert (found.stopped.entry.stop, found.steps) == ("enough", 12)
    assert [row.decided for row in found.rows] == [True] * (found.stopped.number + 1) + [False] * (
        12 - found.stopped.number
    )
    tally = Tally()
    tally.add(found)
    assert (tally.stopped, tally.saved, tally.recorded) == (1, 12 - found.stopped.number, 12)


def test_a_run_without_events_is_empty() -> None:
    found = page(outcome=None)
    assert (found.steps, found.tokens, found.outcome_kind, found.states) == (0, None, "open", ())


def test_the_headline_counts_the_runs_with_an_unknown_outcome() -> None:
    tally = Tally()
    for outcome in ("success", "gave up", "unknown"):
        tally.add(page(outcome=outcome))
    assert summary_facts(tally)[0].note == "1 succeeded, 2 outcome unknown"


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [("success", "success"), ("failure: KeyError", "failure"), ("stopped: stalled", "stopped"), ("done", "unknown")],
)
def test_outcomes_are_sorted(outcome: str, kind: str) -> None:
    assert page(outcome=outcome).outcome_kind == kind


def test_only_a_log_that_goes_on_is_unfinished() -> None:
    run, _ = replayed()
    unknown = page_of_replayed(replace(run, run=replace(run.run, outcome=None)))
    assert (page(outcome=None).outcome_kind, page(outcome="").outcome_kind) == ("open", "unknown")
    assert unknown.outcome_kind == "unknown"


def test_steps_without_an_evaluation_are_counted() -> None:
    found = page(step(0, gate_decision="unavailable"), step(1, gate_decision="unavailable"),
                 step(2, skipped_reason="fault"), step(3), step(4, skipped_reason="unavailable"))  # fmt: skip
    assert [row.number for row in found.rows if row.unjudged] == [1, 2]
    assert found.unjudged == 2


def test_the_duration_of_an_open_run_ends_with_its_last_event() -> None:
    assert page(step(0), step(9), outcome=None).seconds == 9.0
    assert page(step(0), step(9)).seconds == 60.0


# --- the judgement


class Counted:
    """A store that only counts."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def count(self, ids: Iterable[str], what: str) -> None:
        self.counts[what] += len([*ids])


steps = st.lists(
    st.tuples(
        st.sampled_from(["NORMAL", "SLOW", "SKIP", "FAST"]), st.booleans(), st.booleans(), st.booleans(),
        st.sampled_from([0.0, 0.2]),
    ),
    max_size=12,
)  # fmt: skip


DOUBT = Doubt(monitor="claim_contradiction", text="You said done.")


@given(steps, st.sampled_from(["success", "failure: E", "stopped: stalled", ABANDONED]), st.booleans())
def test_texts_are_judged_as_the_pattern_statistics_judge_lessons(
    made: list[tuple[str, bool, bool, bool, float]], outcome: str, doubted: bool
) -> None:
    events = []
    for index, (state, fires, tells, auxiliary, composite) in enumerate(made):
        lesson: dict[str, Any] = {
            "injection_sources": ("E2Injection",), "intervention_texts": ("Look.",), "pattern_ids": ["p"],
            "retrieved": {"e2": ["p"]},
        }  # fmt: skip
        fired: dict[str, Any] = {"monitors_fired": ("semantic_loop",)} if fires else {}
        more = {"skipped_reason": "auxiliary"} if auxiliary else lesson if tells else {}
        events.append(step(index, state=state, composite=composite, **fired, **more))
    found = log(*events, outcome=outcome, doubts=(DOUBT,) if doubted else ())
    store = Counted()
    sink = PatternStats(store)
    assert found.finish is not None
    for event in events:
        sink.emit(event)
    sink.emit(found.finish)
    verdicts = page_of_log(found).verdicts.values()
    assert sum(verdict.recovered for verdict in verdicts) == store.counts["recovered"]
    assert sum(not verdict.recovered for verdict in verdicts) == store.counts["not_recovered"]


def test_recovery_is_judged_three_steps_later() -> None:
    verdict = ordinary().verdicts[4]
    assert (verdict.recovered, verdict.steps, verdict.at_end) == (True, 3, False)


def test_a_run_that_ends_before_is_judged_by_its_outcome() -> None:
    verdict = page(step(0), told(1), step(2, final=True), outcome="failure: E").verdicts[1]
    assert (verdict.recovered, verdict.steps, verdict.at_end) == (False, 1, True)


def test_a_success_in_doubt_is_no_recovery() -> None:
    found = page(step(0), told(1), step(2, final=True), doubts=(DOUBT,))
    assert (found.in_doubt, found.verdicts[1].recovered, found.verdicts[1].at_end) == (True, False, True)
    assert ordinary(doubts=(DOUBT,)).verdicts[4].recovered


def test_a_text_in_an_open_run_is_not_judged_yet() -> None:
    assert page(step(0), told(1), step(2), outcome=None).verdicts == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own: 4 of 5, 30 runs", "the agent's own 30 runs: a text once 4 of 5 steps are dead"),
        ("own:47 runs:dd8f89", "the agent's own 47 runs"),
        ("patience: 2 of 3", "the program's option: a text once 2 of 3 steps are dead"),
        ("explores: 12 runs", "nothing: monitors are silent in this run, to learn from it beside 12 others"),
        ("another's", "another's"),
    ],
)
def test_the_small_print_says_in_words_what_judged_the_moment(name: str, words: str) -> None:
    facts = view.about(replace(page(), judged_by=name))
    assert [(fact.value, fact.note) for fact in facts if "judged" in fact.name] == [
        (words, name if name != words else "")
    ]


def test_the_words_know_every_name_of_a_patience() -> None:
    runs: list[Any] = [{"reached": [9] * 7, "needless": [needless] * 7, "checks": True} for needless in (0, 9)]
    learned = [patience_of([run]).name for run in runs]
    names = [*learned, patience_of(runs, explore=1.0).name, parse_patience("3 of 5").name]
    assert len({*names}) == 4
    assert all(view.judge(name) != name for name in names)
