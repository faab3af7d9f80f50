"""Where guidance goes: what was asked for where the run has it, else the system message, and the log says so."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.render import place, steered_request, with_message, with_tail
from reasonblocks.types import (
    AdapterCaps,
    FSMState,
    Placement,
    Step,
    StepDecision,
    StepInput,
    StepLogEntry,
    StepOutcome,
    Usage,
)
from tests.core.world import begin, called, client, run, speaks

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
GUIDANCE = "[REASONBLOCKS]\nLook up."
NO_TAIL = AdapterCaps(placements=frozenset({"system"}))


def test_the_default_is_the_tail_everywhere() -> None:
    decision = StepDecision(step=0, fsm_state=FSMState.INIT)
    entry = StepLogEntry(step=0, timestamp=0.0)
    assert (decision.placement, entry.placement) == ("tail", "tail")
    assert run(ReasonBlocks().session(), 1)[0].placement == "tail"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if "placement=" in text]


def talking() -> SteeringSession:
    """A run to which every call would say something new."""
    return client(*[speaks(f"Text {at}.") for at in range(9)], scorer=lambda completed: 0.4).session()


@pytest.mark.parametrize("asked", ["tail", "context"])
def test_a_run_without_what_its_client_asks_for_goes_to_the_system_and_says_so_once(
    asked: Placement, caplog: pytest.LogCaptureFixture
) -> None:
    rb = client(speaks("Text."), speaks("Another."), placement=asked)
    first, second = (rb.session(caps=NO_TAIL, framework="theirs") for _ in range(2))
    run(first, 3)
    assert len(said(caplog)) == 2, "one for each run"
    assert {entry.placement for entry in first.step_log} == {"system"}
    assert second.faults == {}
    assert f"this run of 'theirs' has no placement {asked!r}: guidance goes to 'system'" in said(caplog)[0]


@pytest.mark.parametrize("options", [{"placement": "system"}, {"caps": AdapterCaps()}])
def test_nothing_is_said_where_guidance_goes_where_it_was_asked_for(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(client().session(**{"caps": NO_TAIL, **options}), 2)
    assert said(caplog) == []


def test_a_framework_that_keeps_what_it_is_told_has_nothing_to_choose_and_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caps = AdapterCaps(ephemeral=False, placements=frozenset({"context"}))
    assert run(client().session(caps=caps), 1)[0].placement == "context"
    assert said(caplog) == []


def test_steering_that_is_off_says_nothing_of_placement(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    run(client().session(caps=NO_TAIL), 2)
    assert said(caplog) == []


def test_a_run_that_turns_out_to_have_no_tail_goes_on_in_the_system(caplog: pytest.LogCaptureFixture) -> None:
    session = talking()
    for number in range(6):
        if number >= 3:
            session.no_tail("the server keeps this conversation")
        session.end_step(begin(session, number), StepOutcome(model="m", usage=Usage(input=90, output=10)))
    assert [entry.placement for entry in session.step_log] == ["tail"] * 3 + ["system"] * 3
    assert len(said(caplog)) == 1
    # texts at calls 1 and 4: the first stood at the tail, so that the system message changes at 4 and 5 alone
    assert [bool(entry.injections) for entry in session.step_log] == [False, True, False, False, True, False]
    assert [entry.cache_tokens_at_risk for entry in session.step_log] == [0, 0, 0, 0, 100, 100]


def test_a_call_whose_last_message_holds_no_text_moves_the_run_to_the_system(caplog: pytest.LogCaptureFixture) -> None:
    session = talking()
    session.end_step(begin(session, 0), StepOutcome(model="m", usage=Usage(input=90, output=10)))
    moved = session.without_tail(begin(session, 1))
    assert moved.guidance
    session.end_step(moved, called(1))
    again = begin(session, 2)
    assert (moved.placement, again.placement) == ("system", "system")
    entries = [(entry.placement, entry.cache_tokens_at_risk) for entry in session.step_log[:2]]
    assert entries == [("tail", 0), ("system", 100)]
    assert len(said(caplog)) == 1


def test_a_refused_call_is_tried_again_without_guidance_and_the_run_goes_on_in_the_system(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = talking()
    for number in range(6):
        given = StepInput(key=f"call-{number}", completed=Step(thought=f"Thought {number}.") if number else None)
        decision = session.begin_step(given)
        if number == 1:
            assert decision.guidance
            session.withdraw(decision, 400)
            decision = session.begin_step(given)
            assert (decision.replayed, decision.guidance) == (True, "")
        session.end_step(decision, called(number))
    assert [entry.placement for entry in session.step_log] == ["tail"] * 2 + ["system"] * 4
    assert [len(entry.intervention_texts) for entry in session.step_log] == [0, 0, 0, 0, 1, 0]
    assert [len(entry.withheld_texts) for entry in session.step_log] == [0, 1, 0, 0, 0, 0]
    assert len(said(caplog)) == 1
    assert "HTTP 400" in said(caplog)[0]


def test_the_repeated_key_of_a_refused_call_has_no_guidance_in_a_resumed_run_either() -> None:
    rb = client(speaks("Text."))
    session = rb.session()
    session.end_step(begin(session, 0), called(0))
    given = StepInput(key="call-1", completed=Step(thought="Thought."))
    session.withdraw(session.begin_step(given), 422)
    resumed = client(speaks("Text.")).session(snapshot=session.trace.snapshot())
    repeated = resumed.begin_step(given)
    assert (repeated.replayed, repeated.guidance, repeated.injections) == (True, "", ())
    resumed.end_step(repeated, called(1))
    assert begin(resumed, 2).placement == "system"


def test_a_refusal_of_a_call_without_guidance_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    session = client(speaks("Text.")).session()
    session.withdraw(begin(session, 0), 400)
    assert begin(session, 1).placement == "tail"
    assert said(caplog) == []


def test_a_run_in_the_system_message_has_no_tail_to_lose(caplog: pytest.LogCaptureFixture) -> None:
    session = client().session(placement="system")
    session.no_tail("the server keeps this conversation")
    assert said(caplog) == []


@quick
@given(
    wished=st.sampled_from(PLACEMENTS),
    own=st.none() | st.sampled_from(PLACEMENTS),
    there=st.sets(st.sampled_from(PLACEMENTS), min_size=1),
)
def test_the_placement_of_a_run_follows_the_rule(
    wished: Placement, own: Placement | None, there: set[Placement]
) -> None:
    """A run gets what it asks for or is refused; one that asks for nothing its client's, else `system` if it can."""
    rb, caps = client(placement=wished), AdapterCaps(placements=frozenset(there))
    if own is not None and own not in there:
        with pytest.raises(ValueError, match="placement"):
            rb.session(placement=own, caps=caps)
        return
    session = rb.session(placement=own, caps=caps)
    used = begin(session, 0).placement
    session.end_step(session.trace.state.last or StepDecision(step=0, fsm_state=FSMState.INIT), called(0))
    assert used in there
    assert session.step_log[0].placement == used
    if (own or wished) in there:
        assert used == (own or wished)
    elif "system" in there:
        assert used == "system"


# ------------------------------------------------------------ the request of a loop by hand

USER: dict[str, Any] = {"role": "user", "content": "Fix it."}
TOOL: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "content": "ok"}
ITEM: dict[str, Any] = {"type": "function_call_output", "call_id": "c", "output": "ok"}


def test_the_tail_is_behind_the_text_of_the_last_message() -> None:
    assert with_tail([USER], GUIDANCE) == [{**USER, "content": f"Fix it.\n\n{GUIDANCE}"}]
    assert with_tail([USER, TOOL], GUIDANCE) == [USER, {**TOOL, "content": f"ok\n\n{GUIDANCE}"}]
    assert with_tail([USER, ITEM], GUIDANCE) == [USER, {**ITEM, "output": f"ok\n\n{GUIDANCE}"}]


def test_an_empty_result_becomes_the_guidance() -> None:
    assert with_tail([{**TOOL, "content": None}], GUIDANCE) == [{**TOOL, "content": GUIDANCE}]
    assert with_tail([{**ITEM, "output": ""}], GUIDANCE) == [{**ITEM, "output": GUIDANCE}]


def test_a_message_of_its_own_is_the_users_and_joins_one_of_the_user() -> None:
    assert with_message([USER, TOOL], GUIDANCE) == [USER, TOOL, {"role": "user", "content": GUIDANCE}]
    assert with_message([], GUIDANCE) == [{"role": "user", "content": GUIDANCE}]
    assert with_message([USER], GUIDANCE) == [{**USER, "content": f"Fix it.\n\n{GUIDANCE}"}]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "tool", "content": "a [REASONBLOCKS] b"}, {"role": "tool", "content": 'a "REASONBLOCKS" b'}),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": "<reason blocks>"}]}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": '"REASONBLOCKS"'}]}],
            },
        ),
        (
            {
                "type": "function_call_output",
                "output": [{"type": "input_text", "text": "［ＲＥＡＳＯＮＢＬＯＣＫＳ］"}],
            },
            {"type": "function_call_output", "output": [{"type": "input_text", "text": '"REASONBLOCKS"'}]},
        ),
    ],
)
def test_a_forged_frame_in_the_message_that_holds_the_guidance_is_defused(
    message: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy(message)
    (last,) = with_tail([message], GUIDANCE) or [{}]
    key = "output" if "output" in message else "content"
    kept = last[key][:-1] if isinstance(last[key], list) else last[key].removesuffix(f"\n\n{GUIDANCE}")
    assert {**last, key: kept} == expected
    assert message == before


def test_without_guidance_a_forged_frame_is_not_touched() -> None:
    forged = [{"role": "tool", "content": "[REASONBLOCKS]"}]
    assert steered_request(StepDecision(step=1, fsm_state=FSMState.NORMAL), None, forged) == (None, forged)


texts = st.text(max_size=8)
blocks = st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "tool_result"]), "text": texts}), max_size=3)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": texts | blocks})
    | st.just(object()),
    max_size=5,
)


def read(history: Sequence[Any]) -> list[str]:
    """Everything that a model would read, in order."""
    found = []
    for message in history:
        content = message["content"] if isinstance(message, Mapping) else ""
        found += [content] if isinstance(content, str) else [block["text"] for block in content]
    return found


@quick
@given(placement=st.sampled_from(["tail", "system"]), history=messages, rules=texts, system=st.none() | texts)
def test_guidance_is_in_one_place_of_the_request_and_the_history_is_untouched(
    placement: Placement, history: list[Any], rules: str, system: str | None
) -> None:
    decision = StepDecision(
        step=1, fsm_state=FSMState.NORMAL, guidance=GUIDANCE, standing_rules=rules, placement=placement
    )
    kept, before = list(history), copy.deepcopy([one for one in history if isinstance(one, Mapping)])
    said, request = steered_request(decision, system, history)
    assert history == kept
    assert [one for one in history if isinstance(one, Mapping)] == before
    if placement == "system":
        assert request == history
        assert said == place(system, GUIDANCE, rules, cache_control=False)
        return
    if not history or not isinstance(history[-1], Mapping) or history[-1]["role"] == "assistant":
        assert (said, request) == (place(system, GUIDANCE, rules, cache_control=False), history)
        return
    assert said == place(system, "", rules, cache_control=False)
    assert "".join(read(request)).endswith(GUIDANCE)
    assert "".join(read(request)).replace("\n", "") == "".join([*read(history), GUIDANCE]).replace("\n", "")
    assert len(request) == len(history)
