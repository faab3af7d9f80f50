"""`on_injection` is asked before a text is told: it replaces the text, or drops it (BEHAVIOUR section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reasonblocks.exceptions import BadAnswer, RunStopped
from reasonblocks.types import ETrace, Injection
from tests.core.world import begin, called, client, found, hanging, pattern, run, speaks, through_json

SOURCES = ("MonitorSteeringInjection", "E1Injection", "E2Injection", "E3Injection")


def lessons(request: Any) -> Sequence[ETrace]:
    return found(f"{request.tier}-a") if request.tier != "e2" or request.top_k > 1 else ()


def test_every_injection_is_asked_about_once_before_its_call() -> None:
    asked: list[tuple[int, str]] = []

    def review(injection: Injection, view: Any) -> Injection:
        asked.append((view.step_log[-1].step, injection.source))
        return injection

    run(client(speaks("Look."), store=lessons, on_injection=review).session(), 3)
    assert asked == [(0, SOURCES[3]), (1, SOURCES[0]), (1, SOURCES[1]), (1, SOURCES[2])]


def test_the_callable_sees_what_the_step_was_found_to_be() -> None:
    def review(injection: Injection, view: Any) -> Injection:
        entry = view.step_log[-1]
        assert (entry.step, entry.monitors_fired, entry.failure_type) == (1, ("semantic_loop",), "loop")
        assert (view.trace.state.steps[-1].step, view.run.task) == (0, "a task")
        return injection

    rb = client(speaks("Look.", failure_type="loop"), on_injection=review)
    assert run(rb.session(task="a task"), 2)[1].guidance == "[REASONBLOCKS]\nLook."


@pytest.mark.parametrize("kind", ["text", "injection"])
def test_another_text_replaces_it(kind: str) -> None:
    def review(injection: Injection, view: Any) -> Any:
        other = f"{injection.text} Please.\x07 [REASONBLOCKS]"
        return other if kind == "text" else Injection(source=injection.source, text=other)

    session = client(speaks("Look."), store=lambda asked: (), on_injection=review).session()
    decision = run(session, 2)[1]
    assert (decision.guidance, decision.gate_decision) == ("[REASONBLOCKS]\nLook. Please.", "inject")
    assert session.step_log[1].intervention_texts == ("Look. Please.",)


def test_a_replaced_lesson_keeps_its_pattern() -> None:
    session = client(store=lessons, on_injection=lambda injection, view: "Other words.").session()
    run(session, 1)
    assert session.step_log[0].pattern_ids == ("e3-a",)
    assert session.step_log[0].intervention_texts == ("Other words.",)


def test_a_dropped_text_counts_as_not_injected() -> None:
    answers = iter([None, None, "Told."])
    rb = client(*[speaks(f"Text {at}.") for at in range(4)], on_injection=lambda injection, view: next(answers))
    session = rb.session()
    decisions = run(session, 4)
    assert [decision.gate_decision for decision in decisions] == [None, "quiet", "quiet", "inject"]
    assert [entry.injections_dropped for entry in session.step_log] == [(), SOURCES[:1], SOURCES[:1], ()]
    assert [injected.step for injected in session.trace.state.injected] == [3]


def test_a_dropped_lesson_was_not_shown() -> None:
    session = client(store=lessons, on_injection=lambda injection, view: None).session()
    decision = run(session, 1)[0]
    assert (decision.guidance, decision.injections, decision.dropped) == ("", (), SOURCES[3:])
    assert session.trace.state.patterns_shown == ()
    assert session.step_log[0].retrieved == {"e3": ("e3-a",)}


def test_dropped_standing_rules_are_in_no_call() -> None:
    rb = client(store=lessons, standing_rules="run", on_injection=lambda injection, view: None)
    assert [decision.standing_rules for decision in run(rb.session(), 3)] == ["", "", ""]


def test_a_text_that_was_told_before_is_a_duplicate_by_its_final_words() -> None:
    rb = client(
        *[speaks(f"Text {at}.") for at in range(9)],
        on_injection=lambda injection, view: "The same.",
        scorer=lambda done: 0.4,
    )
    assert [decision.gate_decision for decision in run(rb.session(), 6)][1:] == [
        "inject", "cooldown", "cooldown", "duplicate", "duplicate",
    ]  # fmt: skip


def test_an_e2_in_a_monitors_text_is_part_of_what_is_asked_about() -> None:
    seen: list[Injection] = []

    def review(injection: Injection, view: Any) -> Injection:
        seen.append(injection)
        return injection

    rb = client(
        speaks("It failed. Look.", failure_type="loop"),
        store=lambda asked: [ETrace(pattern=pattern("e2-a"), similarity=0.9)] if asked.top_k == 1 else (),
        on_injection=review,
    )
    run(rb.session(), 2)
    told = [injection for injection in seen if injection.source == SOURCES[0]]
    assert [(injection.text, injection.pattern_ids) for injection in told] == [
        ("It failed. try what e2-a says", ("e2-a",))
    ]


@pytest.mark.parametrize("answer", [7, True, b"text", ("text",), [Injection(source="E1Injection", text="x")]])
def test_a_wrong_answer_is_a_fault_and_leaves_the_text(answer: Any) -> None:
    session = client(speaks("Look."), on_injection=lambda injection, view: answer, strict=False).session()
    assert run(session, 2)[1].guidance == "[REASONBLOCKS]\nLook."
    assert session.faults == {"on_injection": 1}
    with pytest.raises(BadAnswer, match="on_injection is"):
        run(client(speaks("Look."), on_injection=lambda injection, view: answer).session(), 2)


@pytest.mark.parametrize("error", [ValueError("no"), RunStopped("me", "r")])
def test_a_callable_that_raises_leaves_the_text(error: Exception) -> None:
    def review(injection: Injection, view: Any) -> None:
        raise error

    session = client(speaks("Look."), on_injection=review, strict=False).session()
    assert run(session, 2)[1].guidance == "[REASONBLOCKS]\nLook."
    assert session.faults == {"on_injection": 1}


def test_a_callable_that_hangs_leaves_the_text_and_is_switched_off() -> None:
    with hanging() as hang:
        texts = [speaks(f"Text {at}.") for at in range(20)]
        session = client(*texts, on_injection=hang, step_deadline_ms=400, scorer=lambda done: 0.4).session()
        run(session, 14)
        assert [entry.step for entry in session.step_log if entry.intervention_texts] == [1, 4, 7, 10, 13]
        assert hang.calls == 3


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_text_of_which_nothing_is_left_is_dropped(blank: str) -> None:
    session = client(speaks("Look."), on_injection=lambda injection, view: blank).session()
    assert run(session, 2)[1].injections == ()
    assert session.trace.state.injected == ()


def test_an_observed_run_withholds_the_final_text() -> None:
    rb = client(speaks("Look."), on_injection=lambda injection, view: "Other.", mode="observe")
    session = rb.session()
    assert run(session, 2)[1].guidance == ""
    assert session.step_log[1].withheld_texts == ("Other.",)


def test_a_replayed_decision_is_not_asked_about_again() -> None:
    asked: list[str] = []

    def review(injection: Injection, view: Any) -> str:
        asked.append(injection.text)
        return "Told."

    rb = client(speaks("Look."), on_injection=review)
    session = rb.session()
    session.end_step(begin(session, 0, key="a"), called(0))
    begin(session, 1, key="b")
    restored = rb.session(snapshot=through_json(session.trace.snapshot()))
    assert begin(restored, 1, key="b").guidance == "[REASONBLOCKS]\nTold."
    assert asked == ["Look."]
