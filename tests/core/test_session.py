"""A run from its first call to its end, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from typing import Any

import pytest

from reasonblocks.events import RunFinish, RunStart
from reasonblocks.exceptions import ConfigError
from reasonblocks.session import SteeringSession
from reasonblocks.types import AdapterCaps, Step, StepInput, StepLogEntry, StepOutcome, ToolCall, Usage
from tests.core.world import MODEL, RecordingSink, begin, called, client, final, found, run, speaks, step


class Boom(Exception):
    pass


def recorded(**options: Any) -> tuple[SteeringSession, RecordingSink]:
    sink = RecordingSink()
    return client(sinks=[sink], **options).session(run_id="run"), sink


def finishes(session: SteeringSession, sink: RecordingSink) -> list[str]:
    """The outcomes that were told, in order."""
    session.close()
    return [event.outcome for event in sink.events if isinstance(event, RunFinish)]


def outcome(**given: Any) -> StepOutcome:
    return StepOutcome(**{"model": MODEL, **given})


# ------------------------------------------------------------ entries


@pytest.mark.parametrize("calls", [0, 1, 2, 7])
def test_n_calls_give_n_entries_numbered_from_0(calls: int) -> None:
    session = client().session()
    run(session, calls)
    assert [entry.step for entry in session.step_log] == list(range(calls))


def test_entry_0_has_nothing_decided() -> None:
    session = client(store=lambda request: found("e3-a") if request.tier == "e3" else ()).session()
    run(session, 1)
    entry = session.step_log[0]
    decided = (
        entry.difficulty, entry.difficulty_parts, entry.composite, entry.monitors_fired, entry.failure_type,
        entry.gate_decision, entry.thought_preview,
    )  # fmt: skip
    assert (decided, entry.fsm_state) == ((None, None, None, (), None, None, ""), "INIT")


def test_an_entry_says_what_was_decided_from_the_step_before_and_what_the_call_got() -> None:
    session = client(speaks("Step 0 failed. Look.", failure_type="loop"), scorer=lambda completed: 0.4).session()
    run(session, 2)
    entry = session.step_log[1]
    assert (entry.difficulty, entry.composite, entry.monitors_fired, entry.failure_type, entry.gate_decision) == (
        0.4, 0.3, ("semantic_loop",), "loop", "inject",
    )  # fmt: skip
    assert (entry.thought_preview, entry.fsm_state, entry.injection_sources, entry.intervention_texts) == (
        "thought-0-", "NORMAL", ("MonitorSteeringInjection",), ("Step 0 failed. Look.",),
    )  # fmt: skip


def test_an_entry_says_what_the_call_did() -> None:
    session = client().session()
    usage = Usage(input=100, output=20, cache_read=7, cache_write=3)
    calls = (ToolCall(id="a", name="read"), ToolCall(id="b", name="edit"))
    session.end_step(begin(session, 0), outcome(model="real", usage=usage, latency_ms=5.5, tool_calls=calls))
    entry = session.step_log[0]
    assert (entry.model_id, entry.tool_calls, entry.latency_ms, entry.attempts) == ("real", ("read", "edit"), 5.5, 1)
    assert (
        entry.tokens, entry.input_tokens, entry.output_tokens, entry.cache_read_tokens, entry.cache_write_tokens,
    ) == (120, 100, 20, 7, 3)  # fmt: skip


def test_previews_are_short_and_texts_are_whole() -> None:
    text = "Step 0 failed " + "again " * 100 + "."
    session = client(speaks(text)).session()
    begin(session, 0)
    session.begin_step(StepInput(completed=step(0, thought="w " * 500)))
    entry = session.step_log[1]
    assert (len(entry.thought_preview) <= 120, len(entry.injections[0]) <= 150, entry.intervention_texts) == (
        True, True, (text,),
    )  # fmt: skip


def test_tokens_are_none_where_the_framework_reports_none() -> None:
    session = client().session()
    session.end_step(begin(session, 0), outcome())
    assert session.step_log[0].tokens is None


def test_an_entry_as_dict_is_json_with_a_key_for_each_field() -> None:
    session = client(speaks("Text one.")).session()
    run(session, 3)
    told = json.loads(json.dumps(session.step_log[1].as_dict(), allow_nan=False))
    assert set(told) == {field.name for field in fields(StepLogEntry)}


def test_a_decision_whose_call_never_came_says_so() -> None:
    session = client().session()
    begin(session, 0)
    begin(session, 1)
    assert [entry.error for entry in session.step_log] == ["not called", None]


def test_the_last_decision_whose_call_never_came_says_so_when_the_run_ends() -> None:
    session = client().session()
    run(session, 1)
    begin(session, 1)
    session.finish()
    assert session.step_log[1].error == "not called"


def test_a_failed_call_keeps_its_entry_with_the_error() -> None:
    session = client().session()
    session.end_step(begin(session, 0), outcome(error="Boom: no"))
    run(session, 2, start=1)
    assert [entry.error for entry in session.step_log] == ["Boom: no", None]


def test_retries_of_a_call_stay_in_its_entry() -> None:
    session = client().session()
    decision = begin(session, 0)
    session.end_step(decision, outcome(usage=Usage(input=5, output=1), error="Boom: no", latency_ms=1.0))
    session.end_step(decision, outcome(usage=Usage(input=6, output=2), attempts=2, latency_ms=2.0))
    entry = session.step_log[0]
    assert (len(session.step_log), entry.attempts, entry.tokens, entry.error, entry.latency_ms) == (1, 3, 14, None, 2.0)


def test_an_outcome_that_comes_late_goes_into_its_own_entry() -> None:
    session = client().session()
    first = begin(session, 0)
    begin(session, 1)
    session.end_step(first, outcome(model="late"))
    assert [entry.model_id for entry in session.step_log] == ["late", None]


def test_the_step_log_keeps_the_newest_10000_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    session = client().session()
    for _ in range(10_005):
        session.begin_step(StepInput())
    session.end_step(session.begin_step(StepInput()), outcome(model="last"))
    log = session.step_log
    assert (len(log), log[0].step, log[-1].step, log[-1].model_id) == (10_000, 6, 10_005, "last")


def test_the_step_log_is_a_copy() -> None:
    session = client().session()
    run(session, 2)
    session.step_log.clear()
    assert len(session.step_log) == 2


# ------------------------------------------------------------ what end_step keeps


def test_what_end_step_said_is_scored_when_the_history_cannot_be_read() -> None:
    session = client().session()
    said = outcome(text="I will look at forms.py", tool_calls=(ToolCall(id="c0", name="read"),))
    session.end_step(begin(session, 0), said)
    session.begin_step(StepInput())
    assert session.step_log[1].thought_preview == "I will look at forms.py"


def test_what_end_step_said_joins_the_results_that_the_adapter_has() -> None:
    seen: list[Step] = []

    def scorer(completed: Step) -> float:
        seen.append(completed)
        return 0.4

    session = client(scorer=scorer).session()
    said = outcome(text="looking", tool_calls=step(0).tool_calls)
    session.end_step(begin(session, 0), said)
    session.begin_step(StepInput(completed=Step(tool_results=step(0).tool_results)))
    assert seen == [Step(thought="looking", tool_calls=step(0).tool_calls, tool_results=step(0).tool_results)]


def test_what_the_adapter_gives_goes_before_what_end_step_said() -> None:
    session = client().session()
    session.end_step(begin(session, 0), outcome(text="from end_step"))
    session.begin_step(StepInput(completed=Step(thought="from the history")))
    assert session.step_log[1].thought_preview == "from the history"


def test_what_end_step_said_is_never_scored_twice() -> None:
    session = client().session()
    session.end_step(begin(session, 0), outcome(text="said once"))
    begin(session, 1)
    session.begin_step(StepInput())
    assert session.step_log[2].thought_preview == ""


def test_what_end_step_said_survives_a_snapshot() -> None:
    rb = client()
    session = rb.session()
    session.end_step(begin(session, 0), outcome(text="before the restart"))
    again = rb.session(snapshot=json.loads(json.dumps(session.trace.snapshot())))
    again.begin_step(StepInput())
    assert again.step_log[0].thought_preview == "before the restart"


def test_a_step_without_text_is_scored_by_its_calls_and_results() -> None:
    session = client().session()
    begin(session, 0)
    session.begin_step(StepInput(completed=step(0, thought="")))
    assert (session.step_log[1].thought_preview, session.step_log[1].difficulty is None) == (
        'read_file {"path":"f0"} fine', False,
    )  # fmt: skip


# ------------------------------------------------------------ the end


def test_the_last_completed_step_is_judged_and_never_injected() -> None:
    session = client(*[speaks(f"Text {at}.") for at in range(9)], scorer=lambda completed: 0.4).session()
    run(session, 3)
    session.finish(completed=step(2))
    final = session.final
    assert final is not None
    assert (final.step, final.gate_decision, final.difficulty, final.monitors_fired) == (
        3, "final", 0.4, ("semantic_loop",),
    )  # fmt: skip
    empty = (final.injections, final.injection_sources, final.intervention_texts, final.model_id, final.tokens)
    assert empty == ((), (), (), None, None)


def test_the_final_entry_is_not_in_the_step_log() -> None:
    session = client().session()
    run(session, 3)
    session.finish()
    assert [entry.step for entry in session.step_log] == [0, 1, 2]


def test_the_final_step_advances_the_state() -> None:
    session = client(scorer=lambda completed: 0.4).session()
    run(session, 1)
    session.finish(completed=step(0))
    assert final(session).fsm_state == "NORMAL"


def test_the_final_step_asks_the_store_nothing() -> None:
    asked: list[str] = []

    def search(request: Any) -> tuple[()]:
        asked.append(request.tier)
        return ()

    session = client(speaks("Text.", failure_type="loop"), store=search).session()
    run(session, 1)
    before = list(asked)
    session.finish(completed=step(0))
    assert asked == before


def test_a_run_that_finishes_twice_is_told_once() -> None:
    session, sink = recorded()
    run(session, 1)
    session.finish()
    session.finish()
    assert finishes(session, sink) == ["success"]


def test_a_failure_after_success_is_told_once_more() -> None:
    session, sink = recorded()
    run(session, 1)
    session.finish()
    session.finish("failure: Boom")
    assert finishes(session, sink) == ["success", "failure: Boom"]


def test_a_success_after_a_failure_comes_too_late() -> None:
    session, sink = recorded()
    run(session, 1)
    session.finish("failure: Boom")
    session.finish()
    assert finishes(session, sink) == ["failure: Boom"]


def test_a_marked_failure_wins_over_the_success_that_follows() -> None:
    session, sink = recorded()
    run(session, 1)
    session.mark_failure("the user said no")
    session.finish()
    assert finishes(session, sink) == ["failure: the user said no"]


def test_a_marked_failure_wins_over_the_success_before_it() -> None:
    session, sink = recorded()
    run(session, 1)
    session.finish()
    session.mark_failure("the tests fail")
    assert (finishes(session, sink), session.outcome) == (
        ["success", "failure: the tests fail"],
        "failure: the tests fail",
    )


def test_a_marked_failure_of_this_run_may_name_it() -> None:
    session, sink = recorded()
    run(session, 1)
    session.mark_failure("no", run_id="run")
    session.finish()
    assert finishes(session, sink) == ["failure: no"]


def test_a_marked_failure_of_another_run_is_refused() -> None:
    session, _ = recorded()
    with pytest.raises(ConfigError, match="run_id='other'"):
        session.mark_failure("no", run_id="other")


@pytest.mark.parametrize("reason", [4, None, "", " ", Boom("no")])
def test_a_failure_without_a_text_as_its_reason_is_refused(reason: Any) -> None:
    session, sink = recorded()
    run(session, 1)
    with pytest.raises(ConfigError, match=r"^reason="):
        session.mark_failure(reason)
    session.finish()
    assert finishes(session, sink) == ["success"]


def test_a_run_left_open_is_abandoned_at_close() -> None:
    session, sink = recorded()
    run(session, 1)
    assert finishes(session, sink) == ["failure: abandoned"]


def test_a_run_left_open_is_abandoned_when_the_client_closes() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    run(rb.session(), 1)
    rb.close()
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["failure: abandoned"]


def test_a_run_that_never_began_a_step_tells_nothing_when_the_client_closes() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    session = rb.session()
    rb.close()
    assert (sink.events, session.step_log) == ([], [])


def test_a_run_that_never_began_a_step_tells_nothing_when_it_is_closed() -> None:
    session, sink = recorded()
    session.close()
    assert sink.events == []


def test_a_context_manager_finishes_the_run_with_success() -> None:
    session, sink = recorded()
    with session as same:
        run(same, 1)
    assert finishes(session, sink) == ["success"]


def runs_and_raises(session: SteeringSession, error: BaseException) -> None:
    """The user's code inside the context manager."""
    with session:
        run(session, 1)
        raise error


def test_a_context_manager_that_is_left_by_an_error_finishes_the_run_as_failed() -> None:
    session, sink = recorded()
    with pytest.raises(Boom):
        runs_and_raises(session, Boom("mine"))
    assert finishes(session, sink) == ["failure: Boom"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_run_that_is_stopped_from_outside_is_failed(error: type[BaseException]) -> None:
    session, sink = recorded()
    with pytest.raises(error):
        runs_and_raises(session, error())
    assert finishes(session, sink) == [f"failure: {error.__name__}"]


def test_an_async_context_manager_finishes_the_run() -> None:
    session, sink = recorded()

    async def whole() -> None:
        async with session:
            session.end_step(await session.abegin_step(StepInput()), called(0))

    asyncio.run(whole())
    assert finishes(session, sink) == ["success"]


def test_an_async_context_manager_that_is_left_by_an_error_finishes_the_run_as_failed() -> None:
    session, sink = recorded()

    async def whole() -> None:
        async with session:
            session.end_step(await session.abegin_step(StepInput()), called(0))
            raise Boom

    with pytest.raises(Boom):
        asyncio.run(whole())
    assert finishes(session, sink) == ["failure: Boom"]


def test_a_finish_inside_the_context_manager_is_the_finish() -> None:
    session, sink = recorded()
    with session:
        run(session, 1)
        session.finish("failure: Mine")
    assert finishes(session, sink) == ["failure: Mine"]


# ------------------------------------------------------------ budget, disabled, views


@pytest.mark.parametrize(("budget", "used"), [(None, None), (240, 0.5), (60, 2.0)])
def test_the_budget_used_is_a_fraction_that_may_exceed_1(budget: int | None, used: float | None) -> None:
    session = client(token_budget=budget).session()
    for number in range(4):
        session.end_step(begin(session, number), outcome(usage=Usage(input=20, output=10)))
    assert session.trace.get_budget_used() == used


def test_a_spent_budget_changes_no_decision() -> None:
    spent, free = client(token_budget=1).session(run_id="run"), client().session(run_id="run")
    assert run(spent, 4) == run(free, 4)


def test_total_tokens_count_every_attempt() -> None:
    session = client().session()
    decision = begin(session, 0)
    session.end_step(decision, outcome(usage=Usage(input=5)))
    session.end_step(decision, outcome(usage=Usage(input=7)))
    assert session.trace.state.total_tokens == 12


def test_disabled_nothing_is_judged_asked_or_injected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    asked: list[Any] = []

    def search(request: Any) -> tuple[()]:
        asked.append(request)
        return ()

    session = client(speaks("Text."), store=search, scorer=asked.append).session()
    decisions = run(session, 4)
    session.finish(completed=step(3))
    assert (asked, [(one.guidance, one.route, one.difficulty) for one in decisions]) == ([], [("", None, None)] * 4)


def test_disabled_every_entry_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    session = client().session()
    run(session, 3)
    assert [entry.skipped_reason for entry in session.step_log] == ["disabled"] * 3


def test_the_trace_state_carries_the_runs_id() -> None:
    assert client().session(run_id="run").trace.state.trace_id == "run"


def test_a_run_without_an_id_gets_one_of_its_own() -> None:
    rb = client()
    assert rb.session().run.run_id != rb.session().run.run_id


def test_a_task_is_at_most_2000_characters() -> None:
    assert len(client().session(task="t" * 5_000).run.task) == 2_000


def test_a_placement_that_the_framework_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="placement='context'"):
        client().session(placement="context")


def test_a_framework_without_routing_gets_no_route() -> None:
    rb = client(model_routing={"NORMAL": "small"})
    assert [one.route for one in run(rb.session(caps=AdapterCaps(routing="none")), 3)] == [None] * 3


def test_a_mapped_model_that_cannot_be_built_leaves_the_steering(caplog: pytest.LogCaptureFixture) -> None:
    session = client(speaks("Text."), model_routing={"NORMAL": "small"}).session()
    begin(session, 0)
    session.route_failed("NORMAL", Boom("no key"))
    session.route_failed("NORMAL", Boom("no key"))
    decision = begin(session, 1)
    assert (decision.route, decision.gate_decision, len(caplog.records)) == (None, "inject", 1)


def test_a_call_whose_mapped_model_cannot_be_built_is_logged_as_the_agents_own() -> None:
    session = client(speaks("Text."), model_routing={"NORMAL": "small"}).session()
    begin(session, 0)
    decision = begin(session, 1)
    session.route_failed("NORMAL", Boom("no key"))
    session.end_step(decision, outcome(model="own"))
    assert (decision.route, session.step_log[1].route, session.step_log[1].model_id) == ("NORMAL", None, "own")


def test_a_route_that_fails_leaves_the_calls_before_it() -> None:
    session = client(speaks("Text."), model_routing={"NORMAL": "small"}).session()
    for n in range(2):
        session.end_step(begin(session, n), outcome(model="small"))
    begin(session, 2)
    session.route_failed("NORMAL", Boom("no key"))
    assert [entry.route for entry in session.step_log] == [None, "NORMAL", None]


def test_a_run_start_is_told_once_before_the_first_call() -> None:
    session, sink = recorded()
    run(session, 3)
    session.finish()
    session.close()
    starts = [at for at, event in enumerate(sink.events) if isinstance(event, RunStart)]
    assert starts == [0]


def test_cache_tokens_at_risk_are_those_of_the_last_call_when_the_system_text_changes() -> None:
    session = client(speaks("Text."), scorer=lambda completed: 0.4, placement="system").session()
    for number in range(4):
        session.end_step(begin(session, number), outcome(usage=Usage(input=90, output=10)))
    assert [entry.cache_tokens_at_risk for entry in session.step_log] == [0, 100, 100, 0]


def test_at_the_tail_which_is_the_default_no_cache_is_at_risk() -> None:
    session = client(speaks("Text."), scorer=lambda completed: 0.4).session()
    for number in range(3):
        session.end_step(begin(session, number), outcome(usage=Usage(input=90, output=10)))
    assert [(entry.placement, entry.cache_tokens_at_risk) for entry in session.step_log] == [("tail", 0)] * 3
