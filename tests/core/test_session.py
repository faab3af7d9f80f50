"""A run from its first call to its end, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest

from reasonblocks.events import RunFinish
from reasonblocks.exceptions import ConfigError
from reasonblocks.session import SteeringSession
from reasonblocks.types import AdapterCaps, Step, StepInput, StepLogEntry, StepOutcome, ToolCall, Usage
from tests.core.world import (
    MODEL,
    RecordingSink,
    Scores,
    ScriptedStore,
    begin,
    called,
    client,
    final,
    found,
    nothing,
    run,
    speaks,
    step,
)


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


def test_an_entry_as_dict_is_json_with_a_key_for_each_field() -> None:
    session = client(speaks("Text one.")).session()
    run(session, 3)
    told = json.loads(json.dumps(session.step_log[1].as_dict(), allow_nan=False))
    assert set(told) == {field.name for field in fields(StepLogEntry)}


def test_a_decision_whose_call_never_came_says_so_and_a_failed_call_has_its_error() -> None:
    session = client().session()
    begin(session, 0)
    session.end_step(begin(session, 1), outcome(error="Boom: no"))
    session.end_step(begin(session, 2), called(2))
    begin(session, 3)
    assert [entry.error for entry in session.step_log] == ["not called", "Boom: no", None, None]
    session.finish()
    assert session.step_log[3].error == "not called"


def test_retries_of_a_call_stay_in_its_entry_and_count_in_the_total() -> None:
    session = client().session()
    decision = begin(session, 0)
    session.end_step(decision, outcome(usage=Usage(input=5, output=1), error="Boom: no", latency_ms=1.0))
    session.end_step(decision, outcome(usage=Usage(input=6, output=2), attempts=2, latency_ms=2.0))
    entry = session.step_log[0]
    assert (len(session.step_log), entry.attempts, entry.tokens, entry.error, entry.latency_ms) == (1, 3, 14, None, 2.0)
    assert session.trace.state.total_tokens == 14


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
    scorer = Scores()
    session = client(scorer=scorer).session()
    said = outcome(text="looking", tool_calls=step(0).tool_calls)
    session.end_step(begin(session, 0), said)
    session.begin_step(StepInput(completed=Step(tool_results=step(0).tool_results)))
    assert scorer.seen == [Step(thought="looking", tool_calls=step(0).tool_calls, tool_results=step(0).tool_results)]


def test_what_end_step_said_is_never_scored_twice_and_tokens_that_it_did_not_say_are_none() -> None:
    session = client().session()
    session.end_step(begin(session, 0), outcome(text="said once"))
    begin(session, 1)
    session.begin_step(StepInput())
    assert (session.step_log[2].thought_preview, session.step_log[0].tokens) == ("", None)


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
    last = final(session)
    assert (last.step, last.gate_decision, last.difficulty, last.monitors_fired, last.fsm_state) == (
        3, "final", 0.4, ("semantic_loop",), "NORMAL",
    )  # fmt: skip
    empty = (last.injections, last.injection_sources, last.intervention_texts, last.model_id, last.tokens)
    assert empty == ((), (), (), None, None)
    assert [entry.step for entry in session.step_log] == [0, 1, 2]


def test_the_final_step_asks_the_store_nothing() -> None:
    store = ScriptedStore(nothing)
    session = client(speaks("Text.", failure_type="loop"), pattern_store=store).session()
    run(session, 1)
    before = list(store.asked)
    session.finish(completed=step(0))
    assert store.asked == before


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        pytest.param([("finish",), ("finish",)], ["success"], id="a second end is not told"),
        pytest.param([("finish",), ("finish", "failure: X")], ["success", "failure: X"], id="a failure is told later"),
        pytest.param([("finish", "failure: X"), ("finish",)], ["failure: X"], id="a success comes too late"),
        pytest.param([("mark_failure", "no"), ("finish",)], ["failure: no"], id="a mark wins over what follows"),
        pytest.param([("mark_failure", "no", "run"), ("finish",)], ["failure: no"], id="a mark may name its run"),
        pytest.param([("finish",), ("mark_failure", "no")], ["success", "failure: no"], id="a mark wins over before"),
        pytest.param([], ["failure: abandoned"], id="what is left open is abandoned at close"),
    ],
)
def test_a_run_is_told_its_outcome_once_and_a_failure_once_more(ends: list[tuple[str, ...]], told: list[str]) -> None:
    session, sink = recorded()
    run(session, 1)
    for name, *given in ends:
        getattr(session, name)(*given)
    assert (finishes(session, sink), session.outcome) == (told, told[-1])


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


def test_a_run_left_open_is_abandoned_when_the_client_closes() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    run(rb.session(), 1)
    rb.close()
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["failure: abandoned"]


def test_a_run_that_never_began_a_step_tells_nothing_when_it_or_its_client_is_closed() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink])
    session, other = rb.session(), rb.session()
    other.close()
    rb.close()
    assert (sink.events, session.step_log) == ([], [])


def test_a_context_manager_finishes_the_run_with_success_unless_it_is_finished_inside() -> None:
    session, sink = recorded()
    with session as same:
        run(same, 1)
    assert finishes(session, sink) == ["success"]
    failed, sink = recorded()
    with failed:
        failed.finish("failure: Mine")
    assert failed.outcome == "failure: Mine"


def runs_and_raises(session: SteeringSession, error: BaseException) -> None:
    """The user's code inside the context manager."""
    with session:
        run(session, 1)
        raise error


@pytest.mark.parametrize("error", [Boom, KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_a_context_manager_that_is_left_by_an_error_finishes_the_run_as_failed(error: type[BaseException]) -> None:
    session, sink = recorded()
    with pytest.raises(error):
        runs_and_raises(session, error())
    assert finishes(session, sink) == [f"failure: {error.__name__}"]


@pytest.mark.parametrize(("errors", "outcome"), [([], "success"), ([Boom()], "failure: Boom")])
def test_an_async_context_manager_finishes_the_run(errors: list[Exception], outcome: str) -> None:
    session, sink = recorded()

    async def whole() -> None:
        with suppress(Boom):
            async with session:
                session.end_step(await session.abegin_step(StepInput()), called(0))
                for error in errors:
                    raise error

    asyncio.run(whole())
    assert finishes(session, sink) == [outcome]


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


def test_disabled_nothing_is_judged_asked_or_injected_and_every_entry_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    asked: list[Any] = []
    session = client(speaks("Text."), store=asked.append, scorer=asked.append).session()  # type: ignore[arg-type]
    decisions = run(session, 4)
    session.finish(completed=step(3))
    assert (asked, [(one.guidance, one.route, one.difficulty) for one in decisions]) == ([], [("", None, None)] * 4)
    assert [entry.skipped_reason for entry in session.step_log] == ["disabled"] * 4


def test_a_task_is_at_most_2000_characters() -> None:
    assert len(client().session(task="t" * 5_000).run.task) == 2_000


def test_a_run_without_an_id_gets_one_of_its_own() -> None:
    rb = client()
    assert rb.session().run.run_id != rb.session().run.run_id


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


def test_cache_tokens_at_risk_are_those_of_the_last_call_when_the_system_text_changes() -> None:
    session = client(speaks("Text."), scorer=lambda completed: 0.4, placement="system").session()
    for number in range(4):
        session.end_step(begin(session, number), outcome(usage=Usage(input=90, output=10)))
    assert [entry.cache_tokens_at_risk for entry in session.step_log] == [0, 100, 100, 0]
