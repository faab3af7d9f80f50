"""A steered run as OpenTelemetry sees it: names, parents, times, attributes, events and evaluations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonblocks.types import ETrace, Evaluation, StepOutcome
from reasonblocks_testing import LoopHarness
from tests.core.otel.recorded import SCRIPT
from tests.core.otel.world import CONTENT, Memory, emitted, finished, id_of, started, step
from tests.core.world import RecordingSink, begin, client, found, run, speaks

SCORES = {"late_sprawl": 0.1, "semantic_loop": 0.9}
STEER = speaks("Step 1 repeats step 0. Look.", failure_type="loop", scores=SCORES)


def played(*evaluations: Evaluation | None, store: list[ETrace] | None = None, **options: Any) -> Memory:
    """The recorded script, played by the loop to a client with these evaluations."""
    memory = Memory()
    if store is not None:
        options["store"] = lambda request: [one for one in store if one.pattern.tier == request.tier]
    rb = client(*evaluations, sinks=[memory.sink(calls=options.pop("calls", False))], **options)
    LoopHarness().run(rb, SCRIPT, "sync")
    rb.close()
    return memory


# ------------------------------------------------------------ names, parents, times


def test_a_run_is_one_trace_with_a_span_a_step_the_last_of_which_is_final() -> None:
    memory = played()
    assert memory.run.names == ("invoke_agent fixer", ["reasonblocks.step"] * 5)
    assert len({span.context.trace_id for span in memory.spans if span.context}) == 1
    assert [one.attributes.get("reasonblocks.step.final") for one in memory.run.below] == [None] * 4 + [True]
    counted = memory.run.attributes
    assert (counted["reasonblocks.run.steps"], counted["reasonblocks.run.tokens"]) == (4, 661)


def test_a_step_lasts_until_the_next_one_and_the_run_until_its_end() -> None:
    run = emitted(started(), step(0), step(1), finished(at=107.5)).run
    assert (run.times, [one.times for one in run.below]) == ((100.0, 107.5), [(101.0, 102.0), (102.0, 107.5)])


def test_the_times_of_a_real_run_are_those_of_its_events() -> None:
    memory, events = Memory(), RecordingSink()
    rb = client(sinks=[memory.sink(), events])
    LoopHarness().run(rb, SCRIPT, "async")
    rb.close()
    times = [event.timestamp for event in events.events]
    spans = [memory.run.times, *(one.times for one in memory.run.below)]
    expected = [(times[0], times[-1]), *((at, times[number]) for number, at in enumerate(times[1:-1], start=2))]
    assert spans == [pytest.approx(pair, abs=1e-6) for pair in expected]


def test_runs_at_the_same_time_do_not_mix() -> None:
    memory = emitted(
        started("a", at=100, agent_name="one"), started("b", at=100.5, agent_name="other"),
        step(0, run_id="a"), step(0, run_id="b"), step(1, run_id="b"), step(1, run_id="a"),
        finished(run_id="b"), finished(run_id="a"),
    )  # fmt: skip
    assert [root.names for root in memory.roots] == [
        ("invoke_agent one", ["reasonblocks.step"] * 2),
        ("invoke_agent other", ["reasonblocks.step"] * 2),
    ]
    for root in memory.roots:
        assert {one.attributes["reasonblocks.run.id"] for one in root.all()} == {root.attributes["reasonblocks.run.id"]}


# ------------------------------------------------------------ attributes


def test_the_span_of_a_run_has_its_description() -> None:
    start = started(
        agent_name="coder", session_id="talk", model="m", framework="langchain", org_id="acme", codebase_id="app",
        parent_run_id="outer", parent_call_id="c7", metadata={"ticket": 7}, task="secret",
    )  # fmt: skip
    assert dict(emitted(start, finished()).run.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coder",
        "gen_ai.conversation.id": "talk",
        "gen_ai.request.model": "m",
        "openinference.span.kind": "AGENT",
        "agent.name": "coder",
        "session.id": "talk",
        "metadata": '{"run_id":"run","ticket":7}',
        "reasonblocks.run.id": "run",
        "reasonblocks.run.parent_id": "outer",
        "reasonblocks.run.parent_call_id": "c7",
        "reasonblocks.run.framework": "langchain",
        "reasonblocks.run.mode": "steer",
        "reasonblocks.run.task_profile": "coding",
        "reasonblocks.run.org_id": "acme",
        "reasonblocks.run.project_id": "default",
        "reasonblocks.run.codebase_id": "app",
        "reasonblocks.run.steps": 0,
        "reasonblocks.run.tokens": 0,
        "reasonblocks.run.outcome": "success",
    }


def test_the_span_of_a_step_has_the_decision_before_its_call() -> None:
    one = played(None, STEER).run.below[2]
    known = {key.removeprefix("reasonblocks.step."): value for key, value in one.attributes.items()}
    assert {key: known[key] for key in ("index", "composite", "gate.decision", "mode", "failure_type", "tokens")} == {
        "index": 2, "composite": 0.3, "gate.decision": "inject", "mode": "steer", "failure_type": "loop", "tokens": 185,
    }  # fmt: skip
    assert (known["monitors_fired"], known["injection_sources"]) == (("semantic_loop",), ("MonitorSteeringInjection",))
    assert known["openinference.span.kind"] == "CHAIN"
    assert (0 <= known["difficulty"] <= 1, known["fsm.state"], known["overhead_ms"] > 0) == (True, "NORMAL", True)
    assert json.loads(known["metadata"])["step.composite"] == 0.3


def test_a_routed_call_has_its_state_and_its_model() -> None:
    routed = step(0, step_model="strong", metadata={"route": "STALLED"})
    one, other = emitted(started(), routed, step(1, step_model="usual"), finished()).run.below
    assert (one.attributes["reasonblocks.route"], one.attributes["gen_ai.request.model"]) == ("STALLED", "strong")
    assert {"reasonblocks.route", "gen_ai.request.model"}.isdisjoint(other.attributes)


def test_a_step_names_the_monitors_of_its_doubts_and_not_their_texts() -> None:
    doubts = [{"monitor": "claim_contradiction", "text": "The tests failed."}]
    memory = emitted(started(), step(0, metadata={"final": True, "doubts": doubts}), finished())
    (one,) = memory.run.below
    assert one.attributes["reasonblocks.step.doubts"] == ("claim_contradiction",)
    assert "tests failed" not in json.dumps(dict(one.attributes))


# ------------------------------------------------------------ evaluations


def test_every_score_is_an_evaluation_of_the_step_that_was_judged() -> None:
    memory = played(None, STEER)
    judged = memory.run.below[1]
    records = [one.log_record for one in memory.records if one.log_record.span_id == id_of(judged.span)]
    assert [(record.event_name, dict(record.attributes or {})) for record in records] == [
        ("gen_ai.evaluation.result", {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": SCORES[name],
            "gen_ai.evaluation.score.label": label,
            "reasonblocks.run.id": "recorded",
            "reasonblocks.step.index": 1,
        })
        for name, label in [("semantic_loop", "fired"), ("late_sprawl", "quiet")]
    ]  # fmt: skip
    assert {record.trace_id for record in records} == {judged.span.context and judged.span.context.trace_id}
    assert {record.timestamp for record in records} == {judged.span.end_time}


def test_the_span_of_the_judged_step_has_the_evaluations_for_openinference() -> None:
    attributes = played(None, STEER).run.below[1].attributes
    assert {key: value for key, value in attributes.items() if key.startswith("evaluations.")} == {
        "evaluations.0.evaluation.name": "semantic_loop",
        "evaluations.0.evaluation.score": 0.9,
        "evaluations.0.evaluation.label": "fired",
        "evaluations.0.evaluation.annotator_kind": "CODE",
        "evaluations.1.evaluation.name": "late_sprawl",
        "evaluations.1.evaluation.score": 0.1,
        "evaluations.1.evaluation.label": "quiet",
        "evaluations.1.evaluation.annotator_kind": "CODE",
    }


def test_a_span_with_very_many_scores_keeps_its_other_attributes() -> None:
    scores = {f"monitor_{number}": 0.5 for number in range(64)}
    memory = emitted(started(), step(0), step(1, scores=scores, monitors_fired=("monitor_63",)), finished())
    one = memory.run.below[0]
    assert (one.span.dropped_attributes, one.attributes["reasonblocks.step.index"]) == (0, 0)
    assert one.attributes["evaluations.0.evaluation.name"] == "monitor_63"
    assert len(memory.records) == 64


# ------------------------------------------------------------ injections


def injections(memory: Memory) -> list[tuple[int, dict[str, Any]]]:
    """The index of each step that has an injection, and the injection's attributes."""
    return [
        (one.attributes["reasonblocks.step.index"], dict(event.attributes or {}))
        for one in memory.run.below
        for event in one.span.events
        if event.name == "reasonblocks.injection" and event.timestamp == one.span.start_time
    ]


def test_an_injection_is_an_event_of_the_step_whose_call_has_it() -> None:
    assert injections(played(None, STEER)) == [
        (2, {
            "reasonblocks.injection.source": "MonitorSteeringInjection",
            "reasonblocks.injection.placement": "tail",
        })
    ]  # fmt: skip


def test_the_injection_of_a_pattern_names_it() -> None:
    (first, *_) = injections(played(store=found("e3-rule")))
    assert first[1]["reasonblocks.injection.source"] == "E3Injection"
    assert first[1]["reasonblocks.injection.pattern_ids"] == ("e3-rule",)


def test_an_operators_note_is_an_injection_with_its_id() -> None:
    told = step(
        0, injection_sources=("OperatorInjection",), intervention_texts=("Stop.",), metadata={"note_ids": ["n1"]}
    )
    ((_, attributes),) = injections(emitted(started(), told, finished()))
    assert attributes["reasonblocks.injection.note_ids"] == ("n1",)


def test_what_observe_withholds_is_marked() -> None:
    memory = played(None, STEER, mode="observe")
    assert memory.run.attributes["reasonblocks.run.mode"] == "observe"
    assert {one.attributes["reasonblocks.step.mode"] for one in memory.run.below} == {"observe"}
    ((index, attributes),) = injections(memory)
    assert (index, attributes["reasonblocks.injection.withheld"]) == (2, True)
    assert "reasonblocks.step.injection_sources" not in memory.run.below[2].attributes


# ------------------------------------------------------------ failures


def test_a_failed_run_is_an_error_of_the_type_of_its_exception() -> None:
    run = emitted(started(), step(0), finished(outcome="failure: TimeoutError")).run
    assert (run.status, run.attributes["error.type"]) == ("ERROR", "TimeoutError")
    assert run.attributes["reasonblocks.run.outcome"] == "failure: TimeoutError"


@pytest.mark.parametrize("outcome", ["success", "stopped: over budget"])
def test_a_run_that_succeeds_or_is_stopped_is_no_error(outcome: str) -> None:
    run = emitted(started(), finished(outcome=outcome)).run
    assert (run.status, "error.type" in run.attributes) == ("UNSET", False)
    assert run.attributes["reasonblocks.run.outcome"] == outcome


def test_a_failed_call_is_an_error_of_its_step() -> None:
    memory = Memory()
    session = client(sinks=[memory.sink()]).session()
    run(session, 1)
    session.end_step(begin(session, 1), StepOutcome(error="RateLimitError: secret details"))
    session.finish("failure: RateLimitError")
    session.close()
    failed = [one for one in memory.run.below if one.status == "ERROR"]
    assert [(one.attributes["reasonblocks.step.index"], one.attributes["error.type"]) for one in failed] == [
        (1, "RateLimitError")
    ]
    assert failed[0].span.status.description is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [("ValueError", "ValueError"), ("openai.RateLimitError: no", "openai.RateLimitError"), ("it broke", "_OTHER"),
     ("failure: abandoned", "abandoned"), ("failure: 3 tests fail", "_OTHER"), (": x", "_OTHER")],
)  # fmt: skip
def test_the_type_of_an_error_is_a_name(error: str, kind: str) -> None:
    (one,) = emitted(started(), step(0, metadata={"error": error}), finished()).run.below
    assert one.attributes["error.type"] == kind


# ------------------------------------------------------------ content


def test_no_text_of_the_agent_is_emitted_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONTENT, raising=False)
    assert texts_in(played(None, STEER, calls=True)) == []


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "SPAN_ONLY", "span_and_event"])
def test_texts_are_emitted_if_the_variable_permits_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(CONTENT, value)
    assert set(texts_in(played(None, STEER, calls=True))) == set(TEXTS)


@pytest.mark.parametrize("value", ["", "false", "no_content", "EVENT_ONLY", "yes, please"])
def test_any_other_value_permits_no_text(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(CONTENT, value)
    assert texts_in(played(None, STEER, calls=True)) == []


TEXTS = (
    "Fix the parser", "I look at the parser", "Something else may call it", "src/parse.py", "def parse", "3 failed",
    "The parser is fixed", "Step 1 repeats step 0",
)  # fmt: skip
"""Parts of the task, of answers, reasoning, arguments, results and injections."""


def texts_in(memory: Memory) -> list[str]:
    spans = [span.to_json() for span in memory.spans]
    records = [json.dumps(dict(one.log_record.attributes or {})) for one in memory.records]
    return [text for text in TEXTS if any(text in shown for shown in (*spans, *records))]


def test_with_content_task_injection_and_evaluation_have_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    memory = played(None, STEER)
    attributes = memory.run.attributes
    assert attributes["input.value"] == SCRIPT.task
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": SCRIPT.task}]}
    ]
    assert injections(memory)[0][1]["reasonblocks.injection.text"] == "Step 1 repeats step 0. Look."
    said = [dict(one.log_record.attributes or {}).get("gen_ai.evaluation.explanation") for one in memory.records]
    assert [text for text in said if text] == ["Step 1 repeats step 0. Look."]


def test_a_long_text_keeps_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    text = "begin" + "x" * 100_000 + "end"
    value = emitted(started(task=text), finished()).run.attributes["input.value"]
    assert (len(value) <= 16_001, value[:5], value[-3:]) == (True, "begin", "end")


def test_redaction_comes_before_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    memory = played(None, STEER, calls=True, redact=lambda text: "***")
    assert texts_in(memory) == []
