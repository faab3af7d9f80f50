"""Arms: what is said in each wording, and where it stands in the request."""

from __future__ import annotations

from typing import get_args

import pytest
from _outcome.arms import ARMS, WORDINGS, Arm, Moment, Place, placed
from _outcome.backend import Message
from _outcome.clients import client_for
from _outcome.tasks.house import House

from reasonblocks.monitors.forms import Form
from reasonblocks.monitors.untried import Alternatives
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.render import FRAME
from reasonblocks.types import FSMState, Injection, StepDecision, StepInput
from tests.outcome.played import Cells

EVIDENCE = 'You have called go(door="attic") 3 times, each time with the same result.'
UNTRIED = 'Not tried yet: go(door="pantry"), go(door="garden").'
LESSON = "What seems to be going on: you walk in circles."
TEXT = f"{EVIDENCE} {UNTRIED}"
MESSAGES: list[Message] = [
    {"role": "system", "content": "You walk."},
    {"role": "user", "content": "Find the exit."},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"role": "tool", "tool_call_id": "call-0", "content": "A hall."},
]


def moment(*texts: str, environment: House | Cells | None = None) -> Moment:
    """The moment of a decision with a monitor's text, and lessons after it."""
    sources = ("MonitorSteeringInjection", *["E2Injection"] * len(texts))
    injections = tuple(Injection(source=source, text=text) for source, text in zip(sources, texts))  # type: ignore[arg-type]
    decision = StepDecision(step=3, fsm_state=FSMState.SLOW, injections=injections)
    found = Alternatives(("pantry", "attic"), newest=True, form=Form("go", "door"))
    return Moment(decision, environment or House(), found, frozenset({"look"}))


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ("shipped", TEXT),
        ("generic", "You are repeating yourself. Try something different."),
        ("named", f"{EVIDENCE} Make a call that you have not made yet."),
        ("untried", UNTRIED),
        ("untried-only", UNTRIED),
        ("names", f"{EVIDENCE} Named in the last result and not tried yet: pantry, attic."),
        ("next-call", f'{EVIDENCE} Next: go(door="pantry").'),
        ("tools", TEXT),
        ("no-end", TEXT),
        ("question", f"{EVIDENCE} What have you not tried yet? {UNTRIED}"),
    ],
)
def test_each_wording_says_its_own_of_a_finding_with_alternatives(wording: str, said: str) -> None:
    assert Arm(name="x", wording=wording).text(moment(TEXT)) == f"{FRAME}\n{said}"


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ("untried", "You are repeating yourself. Try something different."),
        ("names", EVIDENCE),
        ("next-call", EVIDENCE),
        ("tools", f"{EVIDENCE} Tools that you have not used yet: go."),
        ("question", f"{EVIDENCE} What have you not tried yet?"),
    ],
)
def test_without_alternatives_a_wording_falls_back(wording: str, said: str) -> None:
    assert Arm(name="x", wording=wording).text(moment(EVIDENCE)) == f"{FRAME}\n{said}"


@pytest.mark.parametrize(
    ("advice", "left"),
    [
        ("Say what is missing, or finish.", "Say what is missing."),
        ("Go on without it, or report that it is blocked.", "Go on without it."),
        ("Say what is missing, or give the answer.", "Say what is missing."),
        ("Look in another place now.", "Look in another place now."),
    ],
)
def test_one_wording_never_offers_to_stop(advice: str, left: str) -> None:
    assert Arm(name="x", wording="no-end").text(moment(f"{EVIDENCE} {advice}")) == f"{FRAME}\n{EVIDENCE} {left}"


def test_a_wording_that_has_nothing_to_say_shows_not_even_the_frame() -> None:
    assert Arm(name="x", wording="untried-only").text(moment(EVIDENCE)) == ""


def test_the_reference_is_the_next_call_of_the_policy_and_else_the_shipped_text() -> None:
    house = House()
    house.reset(1)
    call = house.reference()
    assert call is not None
    arm = Arm(name="x", wording="reference")
    assert arm.text(moment(TEXT, environment=house)) == f"{FRAME}\nYour next call: go(door={call.arguments['door']!r})."
    assert arm.text(moment(TEXT, environment=Cells())) == f"{FRAME}\n{TEXT}"


def test_shipped_texts_keep_the_lessons_beside_the_finding() -> None:
    assert ARMS["shipped"].text(moment(TEXT, LESSON)) == f"{FRAME}\n{TEXT}\n\n{LESSON}"


def test_every_wording_is_an_arm_and_every_arm_has_its_own_name() -> None:
    assert {arm.wording for arm in ARMS.values()} == {*WORDINGS}
    assert all(name == arm.name for name, arm in ARMS.items())
    assert {arm.place for arm in ARMS.values()} == {*get_args(Place)}


def test_only_arms_of_rules_are_for_whole_runs_alone() -> None:
    assert [name for name, arm in ARMS.items() if arm.only_whole] == ["rules", "all-rules"]


def test_arms_with_rules_tell_those_that_are_shipped_or_all() -> None:
    rules = [pattern for pattern in starter_patterns() if pattern.tier == "e3"]
    told = {}
    for name in ("rules", "all-rules"):
        session = client_for(ARMS[name]).session(task="Find the exit.")
        told[name] = {*session.begin_step(StepInput()).injections[0].pattern_ids}
        session.pause()
    assert told == {"rules": {rule.id for rule in rules if not rule.off}, "all-rules": {rule.id for rule in rules}}


# --- places


def test_a_message_of_its_own_follows_a_result_and_is_one_with_the_users() -> None:
    assert placed(MESSAGES, "Go on.", "message") == [*MESSAGES, {"role": "user", "content": "Go on."}]
    assert placed(MESSAGES[:2], "Go on.", "message") == placed(MESSAGES[:2], "Go on.", "tail")


@pytest.mark.parametrize(("place", "at"), [("tail", 3), ("system", 0)])
def test_in_a_message_the_text_is_its_end(place: Place, at: int) -> None:
    said = placed(MESSAGES, "Go on.", place)
    assert said[at] == {**MESSAGES[at], "content": f"{MESSAGES[at]['content']}\n\nGo on."}
    assert [*said[:at], *said[at + 1 :]] == [*MESSAGES[:at], *MESSAGES[at + 1 :]]


@pytest.mark.parametrize("place", get_args(Place))
def test_the_history_stays_as_it_is(place: Place) -> None:
    before = [dict(message) for message in MESSAGES]
    placed(MESSAGES, "Go on.", place)
    assert before == MESSAGES
    assert placed(MESSAGES, "", place) == MESSAGES
