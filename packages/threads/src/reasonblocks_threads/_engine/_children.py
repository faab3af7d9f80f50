"""Derives the commands that open a thread's children, with budgets out of their parent's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from .._log import thread_id_of
from .._phases import Addition
from .._policy import policy_json, policy_of
from .._rules import Rules
from .._values import Budget, Command, ExpectVersion, Policy, Spent, Thread, ThreadEvent


def child_ids(org_id: str, data: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of the threads that a command opens as children."""
    return tuple(thread_id_of(org_id, str(_cause(child).get("key", ""))) for child in _children(data))


def child_commands(
    command: Command, parent: Thread, events: Sequence[ThreadEvent], rules: Callable[[], Rules]
) -> tuple[Command, ...]:
    """Return the commands that open the children of a command whose events open some; none for others."""
    opening = next((event for event in events if event.kind == "children_opened"), None)
    children = _children(command.data) if opening else ()
    if not children or opening is None:
        return ()
    share = _share(rules().in_force(parent).budget, parent.spent, len(children))
    return tuple(_open(command, parent, child, share, f"{parent.id}:{opening.seq}") for child in children)


def _open(command: Command, parent: Thread, child: Mapping[str, Any], share: Budget, caused_by: str) -> Command:
    key = str(_cause(child).get("key", ""))
    own = policy_of(child["policy"]) if child.get("policy") else parent.policy
    data = {
        "proposals": [],
        "rule": "all_of",
        "follows": None,
        "run": parent.run,
        **child,
        "org_id": parent.org_id,
        "policy": policy_json(_within(own, share)),
        "parent": parent.id,
        "ancestors": [parent.id, *parent.ancestors],
    }
    return Command(
        id=f"open:{parent.org_id}:{key}",
        thread_id=thread_id_of(parent.org_id, key),
        trigger=Addition.OPEN,
        expect=ExpectVersion(version=0),
        actor=command.actor,
        at=command.at,
        data=data,
        caused_by=caused_by,
    )


def _share(budget: Budget, spent: Spent, number: int) -> Budget:
    """Return the budget of each of so many children."""
    return Budget(
        calls=max(0, budget.calls - spent.calls) // number,
        tokens=max(0, budget.tokens - spent.tokens) // number,
        usd=max(0.0, budget.usd - spent.usd) / number,
    )


def _within(policy: Policy, share: Budget) -> Policy:
    own = policy.budget
    least = Budget(calls=min(own.calls, share.calls), tokens=min(own.tokens, share.tokens), usd=min(own.usd, share.usd))
    return replace(policy, budget=least)


def _children(data: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
    found = data.get("children")
    return cast("Sequence[Mapping[str, Any]]", found) if isinstance(found, list | tuple) else ()


def _cause(child: Mapping[str, Any]) -> Mapping[str, Any]:
    found = child.get("cause")
    return found if isinstance(found, Mapping) else {}
