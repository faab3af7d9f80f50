"""Which request a decision is for, and what is added to it, by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.types import FSMState, Placement, StepDecision
from reasonblocks_claude_agent.gateway._request import (
    Awaited,
    is_side,
    newest,
    steer_request,
    with_tail,
    without_foreign_thinking,
)

GUIDANCE = "[REASONBLOCKS]\nLook again."
CACHED = {"type": "ephemeral"}


def decision(placement: Placement = "system", guidance: str = GUIDANCE, **more: Any) -> StepDecision:
    return StepDecision(step=1, fsm_state=FSMState.NORMAL, placement=placement, guidance=guidance, **more)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def calls(*ids: str) -> dict[str, Any]:
    return answer(*({"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ids))


def results(*ids: str) -> dict[str, Any]:
    return user(*({"type": "tool_result", "tool_use_id": id, "content": "empty"} for id in ids))


def thought(seal: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": seal}


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    system = [text("You fix.", cache_control=CACHED)]
    return {"model": "m", "system": system, "tools": [{"name": "look"}], "messages": list(messages), **more}


def batch(*ids: str, agent_id: str = "") -> Awaited:
    return Awaited(decision=decision(), agent_id=agent_id, call_ids=frozenset(ids))


BEGUN = (user(text("Fix it.")), calls("a", "b"))


def nobodys(seal: str) -> bool:
    return False


def test_a_batch_is_awaited_by_the_request_that_carries_all_its_results() -> None:
    assert batch("a", "b").is_in(request(*BEGUN, results("a", "b")), {})


def test_a_request_with_a_part_of_the_results_is_another_one() -> None:
    assert not batch("a", "b").is_in(request(*BEGUN, results("a")), {})


def test_results_that_were_answered_already_are_no_longer_awaited() -> None:
    assert not batch("a", "b").is_in(request(*BEGUN, results("a", "b"), answer(text("Done."))), {})


def test_a_subagents_batch_is_not_in_a_request_of_another_subagent() -> None:
    asking = {"x-claude-code-agent-id": "other"}
    assert not batch("a", "b", agent_id="one").is_in(request(*BEGUN, results("a", "b")), asking)


@pytest.mark.parametrize(
    "said",
    ["Fix it.", "<system-reminder>x</system-reminder>\nFix it.", "Fix it.\nAnd this file came with it."],
)
def test_a_prompt_is_awaited_by_the_main_request_that_says_it(said: str) -> None:
    assert Awaited(decision=decision(), prompt="Fix it.").is_in(request(user(text(said))), {})


def test_a_command_is_known_by_what_the_cli_makes_of_it() -> None:
    expanded = request(user(text("<command-name>/review</command-name>")))
    assert Awaited(decision=decision(), prompt="/review all").is_in(expanded, {})


def test_a_prompt_is_not_in_a_subagents_request() -> None:
    asking = {"x-claude-code-agent-id": "one"}
    assert not Awaited(decision=decision(), prompt="Fix it.").is_in(request(user(text("Fix it."))), asking)


def test_a_subagents_first_request_is_known_by_its_name() -> None:
    first = request({"role": "user", "content": "Look."})
    awaited = Awaited(decision=decision(), agent_id="one")
    assert [awaited.is_in(first, {"x-claude-code-agent-id": name}) for name in ("one", "two")] == [True, False]


def test_a_prompt_that_comes_while_tools_run_is_awaited_with_their_results() -> None:
    prompted = Awaited(decision=decision(replayed=True), prompt="And this.").after(batch("a", "b"))
    assert prompted.is_in(request(*BEGUN, results("a", "b")), {})


def test_a_new_decision_forgets_what_the_one_before_awaited() -> None:
    prompted = Awaited(decision=decision(), prompt="And this.").after(batch("a", "b"))
    assert not prompted.is_in(request(*BEGUN, results("a", "b")), {})


@pytest.mark.parametrize(
    "side",
    [
        request(user(text("Fix it.")), tools=[]),
        request(user(text("Fix it.")), max_tokens=1),
        request(user(text("Fix it."), text("Your task is to create a detailed summary of the conversation so far"))),
    ],
    ids=["no tools", "a probe", "a summary"],
)
def test_what_the_cli_asks_for_itself_is_no_agents_request(side: dict[str, Any]) -> None:
    assert is_side(side, {})


def test_a_request_that_says_it_is_a_side_request_is_one() -> None:
    assert is_side(request(user(text("Fix it."))), {"x-claude-code-request-class": "compaction"})


def test_system_placement_adds_a_block_after_the_agents_own() -> None:
    body = request(user(text("Fix it.")))
    said = steer_request(body, decision(), nobodys)
    assert said == {**body, "system": [*body["system"], text(GUIDANCE)]}


@pytest.mark.parametrize(("system", "said"), [("You fix.", f"You fix.\n\n{GUIDANCE}"), (None, GUIDANCE)])
def test_a_plain_system_prompt_stays_plain(system: str | None, said: str) -> None:
    assert steer_request(request(user(text("Fix it.")), system=system), decision(), nobodys)["system"] == said


def test_guidance_adds_no_breakpoint_where_caching_is_off() -> None:
    body = request(user(text("Fix it.")), system=[text("You fix.")])
    assert "cache_control" not in repr(steer_request(body, decision(), nobodys))


def test_tail_placement_adds_a_block_to_the_last_user_message() -> None:
    body = request(*BEGUN, results("a", "b"))
    said = steer_request(body, decision("tail"), nobodys)
    last = body["messages"][-1]
    assert said == {**body, "messages": [*BEGUN, {**last, "content": [*last["content"], text(GUIDANCE)]}]}


def test_what_the_cli_says_after_the_user_stays_the_last_word() -> None:
    environment = {"role": "system", "content": "# Environment"}
    told = with_tail([user(text("Fix it.")), environment], GUIDANCE)
    assert told is not None
    assert told[1] is environment


def test_plain_content_becomes_a_block_before_the_tail() -> None:
    assert with_tail([{"role": "user", "content": "Fix it."}], GUIDANCE) == [user(text("Fix it."), text(GUIDANCE))]


def test_standing_rules_stand_before_the_guidance() -> None:
    said = steer_request(request(user(text("Fix it."))), decision(standing_rules="Check."), nobodys)
    assert [block["text"] for block in said["system"]] == ["You fix.", "Check.", GUIDANCE]


def test_a_decision_without_words_leaves_the_request_as_it_is() -> None:
    body = request(*BEGUN, results("a", "b"))
    assert steer_request(body, decision(guidance=""), nobodys) is body


def test_steering_changes_nothing_in_the_request_it_was_given() -> None:
    body = request(user(text("Fix it.")), answer(thought("s"), text("Yes.")), user(text("Go on.")))
    before = copy.deepcopy(body)
    steer_request(body, decision("tail"), lambda seal: True)
    assert body == before


def test_foreign_thinking_is_dropped_and_own_thinking_stays() -> None:
    messages = [answer(thought("own"), thought("foreign"), text("Yes."))]
    assert without_foreign_thinking(messages, "foreign".__eq__) == [answer(thought("own"), text("Yes."))]


def test_redacted_thinking_is_sealed_too() -> None:
    messages = [answer({"type": "redacted_thinking", "data": "s"}, text("Yes."))]
    assert without_foreign_thinking(messages, "s".__eq__) == [answer(text("Yes."))]


def test_an_answer_of_foreign_thinking_alone_is_left_out() -> None:
    assert without_foreign_thinking([*BEGUN, answer(thought("s"))], "s".__eq__) == [*BEGUN]


@given(st.lists(st.sampled_from(["user", "assistant", "system"]), max_size=8))
def test_the_newest_messages_are_those_after_the_last_answer(roles: list[str]) -> None:
    body = {"messages": [{"role": role, "content": []} for role in roles]}
    new = [message["role"] for message in newest(body)]
    assert "assistant" not in new
    assert roles[len(roles) - len(new) :] == new
    assert len(new) == len(roles) or roles[len(roles) - len(new) - 1] == "assistant"
