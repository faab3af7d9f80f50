"""With `mode="observe"` everything is decided and recorded as ever, and nothing reaches a call (SERVER section 5)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reasonblocks.events import RunStart, StepEvent
from reasonblocks.types import ETrace, StepDecision, StepLogEntry
from tests.core.test_engine_rules import Store, judgements, knobs, script, steered
from tests.core.world import (
    RecordingSink,
    ScriptedEvaluator,
    begin,
    called,
    client,
    pattern,
    run,
    speaks,
    step,
    through_json,
)
from tests.whole import WHOLE

WITHHELD = {"injection_sources": "withheld_sources", "intervention_texts": "withheld_texts", "route": "withheld_route"}
"""Fields of a steered call's entry, and the fields of an observed call's that have the same."""
SHOWN = {"injections", "pattern_ids", "placement", "cache_tokens_at_risk", "mode", "timestamp", "overhead_ms"}
"""Fields that may differ otherwise."""


def as_if_told(entry: StepLogEntry) -> dict[str, Any]:
    """The decision of an entry, in the names of a steered one."""
    fields = {name: value for name, value in entry.as_dict().items() if name not in SHOWN}
    if entry.mode == "steer":
        return {name: value for name, value in fields.items() if not name.startswith("withheld_")}
    told = {steered: fields[observed] for steered, observed in WITHHELD.items()}
    return {**{name: value for name, value in fields.items() if not name.startswith("withheld_")}, **told}


def nothing_reaches(decision: StepDecision) -> bool:
    shown = (decision.injections, decision.guidance, decision.standing_rules, decision.route, decision.stop)
    return not any(shown) and decision.cache_tokens_at_risk == 0


@pytest.mark.parametrize("rules", ["first_call", "run"])
def test_random_runs_are_decided_as_if_everything_had_been_told(rules: Any) -> None:
    withheld = 0
    for seed in range(150 if WHOLE else 50):
        dice = Random(seed)
        calls, of_run = dice.randint(1, 24), knobs(dice)
        judged, scripts = judgements(dice, calls), [script(dice) for _ in range(calls)]
        logs: dict[str, list[StepLogEntry]] = {}
        for mode in ("steer", "observe"):
            evaluator, store = ScriptedEvaluator([one.evaluation for one in judged]), Store(scripts)
            rb = steered(of_run, judged, evaluator, store, standing_rules=rules)
            session = rb.session(task="a task", mode=mode)
            for number in range(calls):
                store.call = number
                decision = begin(session, number)
                session.end_step(decision, called(number))
                assert mode == "steer" or nothing_reaches(decision)
            session.finish(completed=step(calls - 1))
            assert session.final is not None
            logs[mode] = [*session.step_log, session.final]
            withheld += sum(bool(entry.withheld_texts) for entry in logs[mode])
        assert [as_if_told(entry) for entry in logs["observe"]] == [as_if_told(entry) for entry in logs["steer"]], seed
    assert withheld > (100 if WHOLE else 30)


def test_a_decision_restored_from_a_snapshot_still_withholds() -> None:
    rb = client(speaks("Look again. It failed."), mode="observe")
    session = rb.session()
    run(session, 1)
    told = begin(session, 1, key="one")
    assert [injection.text for injection in told.withheld] == ["Look again. It failed."]
    again = rb.session(snapshot=through_json(session.trace.snapshot()))
    replayed = begin(again, 1, key="one")
    assert (replayed.replayed, replayed.guidance, replayed.withheld) == (True, "", told.withheld)
    assert again.step_log[0].withheld_texts == ("Look again. It failed.",)


def test_a_run_has_its_own_mode() -> None:
    rb = client(speaks("Look again."), speaks("Look again."), mode="observe")
    observed, steered_run = rb.session(), rb.session(mode="steer")
    assert (observed.observes, steered_run.observes) == (True, False)
    assert (run(observed, 2)[1].guidance, run(steered_run, 2)[1].guidance) == ("", "[REASONBLOCKS]\nLook again.")


def test_the_event_of_an_observed_call_has_what_was_withheld() -> None:
    sink = RecordingSink()
    rb = client(
        speaks("Look again."), mode="observe", sinks=[sink], scorer=lambda done: 0.7, model_routing={"SLOW": "m2"}
    )
    with rb.session() as session:
        run(session, 7)
    rb.close()
    events = [event for event in sink.events if isinstance(event, StepEvent)]
    first = events[1].metadata
    assert (first["mode"], first["withheld_texts"]) == ("observe", ["Look again."])
    assert first["withheld_sources"] == ["MonitorSteeringInjection"]
    assert [event.metadata.get("withheld_route") for event in events][5:7] == ["SLOW", "SLOW"]
    assert {event.intervention_texts for event in events} == {()}


def test_the_start_event_has_the_mode_of_the_run() -> None:
    sink = RecordingSink()
    rb = client(mode="observe", sinks=[sink])
    for mode in (None, "steer"):
        with rb.session(mode=mode) as session:
            run(session, 1)
    rb.close()
    assert [event.as_dict()["mode"] for event in sink.events if isinstance(event, RunStart)] == ["observe", "steer"]


def test_what_was_withheld_is_redacted() -> None:
    sink = RecordingSink()
    rb = client(
        speaks("The key is hunter2."),
        mode="observe",
        sinks=[sink],
        redact=lambda text: text.replace("hunter2", "***"),
        stop_when=lambda run: "saw hunter2",
    )
    with rb.session() as session:
        run(session, 2)
    rb.close()
    (event,) = [event for event in sink.events if isinstance(event, StepEvent) and event.step_index == 1]
    assert event.metadata["withheld_texts"] == ["The key is ***."]
    assert event.metadata["withheld_stop"] == "saw ***"


def test_patterns_of_an_observed_run_count_as_retrieved_and_never_as_injected() -> None:
    counted: list[tuple[tuple[str, ...], str]] = []

    class Counting:
        def search(self, request: Any) -> tuple[ETrace, ...]:
            return (ETrace(pattern=pattern("e3-rule")),) if request.tier == "e3" else ()

        def count(self, ids: Any, what: str) -> None:
            counted.append((tuple(ids), what))

    rb = client(mode="observe", pattern_store=Counting())
    with rb.session() as session:
        run(session, 3)
    rb.close()
    assert counted == [(("e3-rule",), "retrieved")]
