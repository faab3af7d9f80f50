"""Decisions about the children of a thread, and about its policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from reasonblocks_threads.codec import encode
from reasonblocks_threads.decide import child_opens
from reasonblocks_threads.errors import Refused
from reasonblocks_threads.phases import Addition, Phase, Trigger
from reasonblocks_threads.policy import END_TO_END, HANDS_OFF, PLAN_THEN_REVIEW, policy_json, policy_of
from reasonblocks_threads.values import SYSTEM, Budget
from tests.threads.pure import CHILDREN, OPERATOR, RULES, Walk, reached, walk_cause
from tests.whole import QUICK_EXAMPLES, WHOLE

EXAMPLES = 600 if WHOLE else 2 * QUICK_EXAMPLES

# --- children


def test_a_thread_ends_with_the_last_of_its_children() -> None:
    walk = reached(Phase.MONITORING)
    first, second = (child.id for child in walk.head.children)
    for _ in range(2):
        walk.send(Trigger.EXECUTION_DONE, {"child": first, "phase": "done_cleanup_successful"})
        assert walk.phase is Phase.MONITORING
    with pytest.raises(Refused, match="not a child"):
        walk.send(Trigger.EXECUTION_DONE, {"child": "th_x", "phase": "done"})
    with pytest.raises(Refused, match="ended as 'executing'"):
        walk.send(Trigger.EXECUTION_DONE, {"child": second, "phase": "executing"})
    walk.send(Trigger.EXECUTION_DONE, {"child": second, "phase": "dismissed"})
    assert walk.phase is Phase.DONE


@pytest.mark.parametrize(
    ("rule", "ends", "phase"),
    [
        ("alternatives", ("dismissed", "dismissed"), Phase.DISMISSED),
        ("alternatives", ("dismissed", "done"), Phase.DONE),
        ("all_of", ("dismissed", "dismissed"), Phase.DONE),
    ],
)
def test_alternatives_that_were_all_dismissed_dismiss_their_parent(
    rule: str, ends: tuple[str, str], phase: Phase
) -> None:
    walk = Walk()
    walk.send(Trigger.DECOMPOSED, {"children": CHILDREN, "rule": rule})
    for child, end in zip(walk.head.children, ends):
        walk.send(Trigger.EXECUTION_DONE, {"child": child.id, "phase": end})
    assert walk.phase is phase


def test_children_share_the_budget_that_is_left() -> None:
    walk = Walk()
    command = walk.command(Trigger.DECOMPOSED, {"children": CHILDREN}, SYSTEM)
    opens = child_opens(walk.head, command, walk.rules)
    walk.send(Trigger.DECOMPOSED, {"children": CHILDREN})
    budgets = [each["policy"]["budget"] for each in opens]
    assert budgets == [{"calls": 4, "tokens": 100_000, "usd": 0.25}] * 2
    assert walk.head.carved == Budget(calls=8, tokens=200_000, usd=0.5)
    for each, child in zip(opens, walk.head.children):
        above = replace(RULES, ancestors=(walk.head.policy,))
        opened = Walk(key=each["cause"]["key"], rules=above, policy=policy_of(each["policy"]), **without_policy(each))
        assert opened.head.parent == walk.id
        assert opened.id == child.id
    more = walk.command(Addition.CHILDREN, {"children": [{"cause": encode(walk_cause(key="later"))}]}, SYSTEM)
    assert child_opens(walk.head, more, walk.rules)[0]["policy"]["budget"]["calls"] == 0


def without_policy(opening: Any) -> dict[str, Any]:
    return {name: value for name, value in opening.items() if name != "policy"}


@drawn(
    count=st.integers(1, 50), calls=st.integers(0, 60), tokens=st.integers(0, 10**6), usd=st.floats(0, allow_nan=False)
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_children_never_have_more_than_their_parent(count: int, calls: int, tokens: int, usd: float) -> None:
    policy = replace(END_TO_END, budget=Budget(calls=calls, tokens=tokens, usd=usd))
    walk = Walk(policy=policy, rules=replace(RULES, installation=policy))
    children = [{"cause": encode(walk_cause(key=str(n)))} for n in range(count)]
    opens = child_opens(walk.head, walk.command(Trigger.DECOMPOSED, {"children": children}, SYSTEM), walk.rules)
    walk.send(Trigger.DECOMPOSED, {"children": children})
    budgets = [each["policy"]["budget"] for each in opens]
    assert sum(each["calls"] for each in budgets) <= calls
    assert sum(each["tokens"] for each in budgets) <= tokens
    assert sum(each["usd"] for each in budgets) <= usd * (1 + 1e-9)
    walk.check()


def test_what_children_may_not_be() -> None:
    twice = [CHILDREN[0], CHILDREN[0]]
    many = [{"cause": encode(walk_cause(key=str(n)))} for n in range(51)]
    looser = [{"cause": encode(walk_cause(key="c")), "policy": policy_json(END_TO_END)}]
    itself = [{"cause": encode(walk_cause())}]
    for children, why in (
        ([], "1 to 50"), (many, "1 to 50"), (twice, "different key"), (itself, "different key"), (looser, "looser"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=why):
            Walk().send(Trigger.DECOMPOSED, {"children": children})
    ancestors = ["th_1", "th_2", "th_3"]
    with pytest.raises(Refused, match="cannot have children"):
        Walk(parent="th_1", ancestors=ancestors).send(Trigger.DECOMPOSED, {"children": CHILDREN})
    with pytest.raises(Refused, match="at most 3"):
        Walk(parent="th_1", ancestors=[*ancestors, "th_4"])
    with pytest.raises(Refused, match="monitors its children"):
        Walk().send(Addition.CHILDREN, {"children": CHILDREN})


# --- policies


def test_an_operator_cannot_loosen_a_child_beyond_its_ancestors() -> None:
    walk = Walk(policy=HANDS_OFF, rules=replace(RULES, ancestors=(HANDS_OFF,)))
    with pytest.raises(Refused, match="loosen that one first"):
        walk.send(Addition.POLICY, {"policy": policy_json(PLAN_THEN_REVIEW)}, by=OPERATOR)


@pytest.mark.parametrize("changes", [{"floor": "high"}, {"kinds": 5}, {"irreversibility": "bad"}, {"more": 1}])
def test_a_policy_that_cannot_be_read_is_refused(changes: dict[str, Any]) -> None:
    policy = {**policy_json(HANDS_OFF), **changes}
    with pytest.raises(Refused, match="cannot be read"):
        Walk().send(Addition.POLICY, {"policy": policy}, by=OPERATOR)
