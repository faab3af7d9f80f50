"""Where guidance goes: what was asked for where the run has it, else the system message, and the log says so."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks._render import place, steered_request, with_tail
from reasonblocks.types import AdapterCaps, FSMState, Placement, StepDecision, StepLogEntry, StepOutcome, Usage
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


@pytest.mark.parametrize("asked", ["tail", "context"])
def test_a_run_without_what_its_client_asks_for_goes_to_the_system_and_says_so_once(
    asked: Placement, caplog: pytest.LogCaptureFixture
) -> None:
    rb = client(speaks("Text."), speaks("Another."), placement=asked)
    with caplog.at_level(logging.WARNING, "reasonblocks"):
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
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        run(client().session(**{"caps": NO_TAIL, **options}), 2)
    assert said(caplog) == []


def test_a_framework_that_keeps_what_it_is_told_has_nothing_to_choose_and_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caps = AdapterCaps(ephemeral=False, placements=frozenset({"context"}))
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        assert run(client().session(caps=caps), 1)[0].placement == "context"
    assert said(caplog) == []


def test_steering_that_is_off_says_nothing_of_placement(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        run(client().session(caps=NO_TAIL), 2)
    assert said(caplog) == []


def test_a_run_that_turns_out_to_have_no_tail_goes_on_in_the_system(caplog: pytest.LogCaptureFixture) -> None:
    session = client(*[speaks(f"Text {at}.") for at in range(9)], scorer=lambda completed: 0.4).session()
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        for number in range(6):
            if number >= 3:
                session.no_tail("the server keeps this conversation")
            session.end_step(begin(session, number), StepOutcome(model="m", usage=Usage(input=90, output=10)))
    assert [entry.placement for entry in session.step_log] == ["tail"] * 3 + ["system"] * 3
    assert len(said(caplog)) == 1
    # texts at calls 1 and 4: the first stood at the tail, so that the system message changes at 4 and 5 alone
    assert [bool(entry.injections) for entry in session.step_log] == [False, True, False, False, True, False]
    assert [entry.cache_tokens_at_risk for entry in session.step_log] == [0, 0, 0, 0, 100, 100]


def test_a_run_in_the_system_message_has_no_tail_to_lose(caplog: pytest.LogCaptureFixture) -> None:
    session = client().session(placement="system")
    with caplog.at_level(logging.WARNING, "reasonblocks"):
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
RESULTS: dict[str, Any] = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}


def test_without_guidance_the_messages_are_the_same() -> None:
    assert with_tail([USER], "") == [USER]


def test_after_a_user_message_guidance_joins_a_copy_of_it() -> None:
    assert with_tail([USER], GUIDANCE) == [{"role": "user", "content": f"Fix it.\n\n{GUIDANCE}"}]


def test_after_anything_else_guidance_is_a_user_message_of_its_own() -> None:
    tool = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    assert with_tail([USER, tool], GUIDANCE) == [USER, tool, {"role": "user", "content": GUIDANCE}]
    item = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    assert with_tail([item], GUIDANCE) == [item, {"role": "user", "content": GUIDANCE}]
    assert with_tail([], GUIDANCE) == [{"role": "user", "content": GUIDANCE}]


def test_guidance_follows_the_tool_results_of_a_message() -> None:
    (last,) = with_tail([RESULTS], GUIDANCE)
    assert last["content"] == [*RESULTS["content"], {"type": "text", "text": GUIDANCE}]


def test_a_message_of_the_responses_api_gets_a_block_of_its_kind() -> None:
    asked = {"role": "user", "content": [{"type": "input_text", "text": "Fix it."}]}
    (last,) = with_tail([asked], GUIDANCE)
    assert last["content"][-1] == {"type": "input_text", "text": GUIDANCE}


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
    assert said == place(system, "", rules, cache_control=False)
    assert "".join(read(request)).endswith(GUIDANCE)
    assert "".join(read(request)).replace("\n", "") == "".join([*read(history), GUIDANCE]).replace("\n", "")
    assert len(request) - len(history) in (0, 1)
    roles = [one["role"] for one in request if isinstance(one, Mapping)]
    assert roles[-1] == "user"
