"""The rules of threads written a second time, as plain tables: cells, cards, answers, and when nobody is asked.

Imports nothing of the package, so that a mistake must be made twice to go unnoticed. `model.py` replays logs by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STAGES = ("intent", "context", "action")
TERMINAL = ("done", "dismissed", "handed_off", "done_cleanup_successful")

HUMAN = (
    "confirmed", "edited", "redirected", "provided", "execute", "rejected", "review_accepted", "cleanup_requested",
    "retry_cleanup", "accept_cleanup_failure", "dismissed_by_user", "handed_off_by_user",
)  # fmt: skip
SYSTEM = (
    "begin_inference", "decomposed", "timeout", "inference_started", "inference_rejected", "inference_done",
    "inference_failed", "execution_done", "execution_failed", "cleanup_succeeded", "cleanup_failed",
    "parent_force_close", "source_resolved",
)  # fmt: skip

_INFERRING = "inferring_intent inferring_context inferring_action"
_CLARIFY = "awaiting_intent_clarification awaiting_context_clarification awaiting_action_clarification"

_LINES = f"""
proposed                        begin_inference         awaiting_inference
proposed                        decomposed              monitoring
proposed                        timeout                 dismissed
proposed                        dismissed_by_user       dismissed
proposed                        parent_force_close      dismissed
proposed                        source_resolved         dismissed
proposed                        handed_off_by_user      handed_off
awaiting_inference              inference_started       {_INFERRING}
awaiting_inference              inference_rejected      {_CLARIFY}
awaiting_inference              timeout                 {_CLARIFY}
awaiting_inference              dismissed_by_user       dismissed
awaiting_inference              parent_force_close      dismissed
awaiting_inference              source_resolved         dismissed
awaiting_inference              handed_off_by_user      handed_off
inferring_intent                inference_done          awaiting_inference awaiting_intent_confirmation
inferring_intent                inference_failed        awaiting_intent_clarification
inferring_intent                timeout                 awaiting_intent_clarification
inferring_intent                dismissed_by_user       dismissed
inferring_intent                parent_force_close      dismissed
inferring_intent                source_resolved         dismissed
inferring_intent                handed_off_by_user      handed_off
inferring_context               inference_done          awaiting_inference awaiting_context_confirmation
inferring_context               inference_failed        awaiting_context_clarification
inferring_context               timeout                 awaiting_context_clarification
inferring_context               dismissed_by_user       dismissed
inferring_context               parent_force_close      dismissed
inferring_context               source_resolved         dismissed
inferring_context               handed_off_by_user      handed_off
inferring_action                inference_done          awaiting_action_clarification executing awaiting_confirmation
inferring_action                inference_failed        awaiting_action_clarification
inferring_action                timeout                 awaiting_action_clarification
inferring_action                dismissed_by_user       dismissed
inferring_action                parent_force_close      dismissed
inferring_action                source_resolved         dismissed
inferring_action                handed_off_by_user      handed_off
awaiting_intent_confirmation    confirmed               awaiting_inference
awaiting_intent_confirmation    edited                  awaiting_inference
awaiting_intent_confirmation    redirected              awaiting_inference
awaiting_intent_confirmation    dismissed_by_user       dismissed
awaiting_intent_confirmation    parent_force_close      dismissed
awaiting_intent_confirmation    source_resolved         dismissed
awaiting_intent_confirmation    timeout                 dismissed
awaiting_intent_confirmation    handed_off_by_user      handed_off
awaiting_intent_confirmation    cleanup_requested       cleaning_up
awaiting_context_confirmation   confirmed               awaiting_inference
awaiting_context_confirmation   edited                  awaiting_inference
awaiting_context_confirmation   redirected              awaiting_inference
awaiting_context_confirmation   dismissed_by_user       dismissed
awaiting_context_confirmation   parent_force_close      dismissed
awaiting_context_confirmation   source_resolved         dismissed
awaiting_context_confirmation   timeout                 dismissed
awaiting_context_confirmation   handed_off_by_user      handed_off
awaiting_context_confirmation   cleanup_requested       cleaning_up
awaiting_intent_clarification   provided                awaiting_inference
awaiting_intent_clarification   redirected              awaiting_inference
awaiting_intent_clarification   dismissed_by_user       dismissed
awaiting_intent_clarification   parent_force_close      dismissed
awaiting_intent_clarification   source_resolved         dismissed
awaiting_intent_clarification   timeout                 dismissed
awaiting_intent_clarification   handed_off_by_user      handed_off
awaiting_intent_clarification   cleanup_requested       cleaning_up
awaiting_context_clarification  provided                awaiting_inference
awaiting_context_clarification  redirected              awaiting_inference
awaiting_context_clarification  dismissed_by_user       dismissed
awaiting_context_clarification  parent_force_close      dismissed
awaiting_context_clarification  source_resolved         dismissed
awaiting_context_clarification  timeout                 dismissed
awaiting_context_clarification  handed_off_by_user      handed_off
awaiting_context_clarification  cleanup_requested       cleaning_up
awaiting_action_clarification   provided                awaiting_confirmation awaiting_inference
awaiting_action_clarification   redirected              awaiting_inference
awaiting_action_clarification   dismissed_by_user       dismissed
awaiting_action_clarification   parent_force_close      dismissed
awaiting_action_clarification   source_resolved         dismissed
awaiting_action_clarification   timeout                 dismissed
awaiting_action_clarification   handed_off_by_user      handed_off
awaiting_action_clarification   cleanup_requested       cleaning_up
awaiting_confirmation           execute                 executing
awaiting_confirmation           edited                  awaiting_confirmation
awaiting_confirmation           redirected              awaiting_inference
awaiting_confirmation           rejected                dismissed
awaiting_confirmation           dismissed_by_user       dismissed
awaiting_confirmation           parent_force_close      dismissed
awaiting_confirmation           source_resolved         dismissed
awaiting_confirmation           timeout                 dismissed
awaiting_confirmation           handed_off_by_user      handed_off
awaiting_confirmation           cleanup_requested       cleaning_up
executing                       execution_done          handed_off monitoring awaiting_review done
executing                       execution_failed        awaiting_redirect
executing                       timeout                 awaiting_redirect
executing                       parent_force_close      dismissed
awaiting_review                 review_accepted         done
awaiting_review                 timeout                 done
awaiting_review                 redirected              awaiting_inference
awaiting_review                 cleanup_requested       cleaning_up
awaiting_review                 handed_off_by_user      handed_off
awaiting_review                 dismissed_by_user       dismissed
awaiting_review                 parent_force_close      dismissed
awaiting_redirect               provided                awaiting_inference
awaiting_redirect               redirected              awaiting_inference
awaiting_redirect               dismissed_by_user       dismissed
awaiting_redirect               parent_force_close      dismissed
awaiting_redirect               source_resolved         dismissed
awaiting_redirect               timeout                 dismissed
awaiting_redirect               handed_off_by_user      handed_off
awaiting_redirect               cleanup_requested       cleaning_up
monitoring                      execution_done          done dismissed
monitoring                      handed_off_by_user      handed_off
monitoring                      dismissed_by_user       dismissed
monitoring                      parent_force_close      dismissed
cleaning_up                     cleanup_succeeded       done_cleanup_successful
cleaning_up                     cleanup_failed          done_cleanup_unsuccessful
cleaning_up                     timeout                 done_cleanup_unsuccessful
cleaning_up                     dismissed_by_user       dismissed
cleaning_up                     parent_force_close      dismissed
done_cleanup_unsuccessful       retry_cleanup           cleaning_up
done_cleanup_unsuccessful       accept_cleanup_failure  done
done_cleanup_unsuccessful       timeout                 dismissed
done_cleanup_unsuccessful       dismissed_by_user       dismissed
done_cleanup_unsuccessful       parent_force_close      dismissed
"""

CELLS: Mapping[tuple[str, str], frozenset[str]] = {
    (words[0], words[1]): frozenset(words[2:]) for words in map(str.split, _LINES.strip().splitlines())
}
"""The possible targets of each cell."""
PHASES = tuple(dict.fromkeys(phase for phase, _ in CELLS)) + TERMINAL

CARDS: Mapping[str, str] = {
    "awaiting_intent_confirmation": "confirmation",
    "awaiting_context_confirmation": "confirmation",
    "awaiting_intent_clarification": "clarification",
    "awaiting_context_clarification": "clarification",
    "awaiting_action_clarification": "clarification",
    "awaiting_confirmation": "consent",
    "awaiting_review": "review",
    "awaiting_redirect": "redirect",
    "done_cleanup_unsuccessful": "cleanup_failure",
}
"""The card of each phase that waits for a person."""

MAIN_ANSWERS: Mapping[str, Mapping[str, str]] = {
    "confirmation": {"accept": "confirmed", "edit": "edited", "redirect": "redirected"},
    "clarification": {"provide": "provided", "skip": "dismissed_by_user"},
    "consent": {"approve": "execute", "edit": "edited", "reject": "rejected"},
    "review": {"done": "review_accepted", "redirect": "redirected", "drop": "dismissed_by_user"},
    "redirect": {"provide": "provided", "skip": "dismissed_by_user"},
    "cleanup_failure": {"retry": "retry_cleanup", "accept_failure": "accept_cleanup_failure"},
}
SIDE_ANSWERS: Mapping[str, str] = {
    "take_over": "handed_off_by_user",
    "dismiss": "dismissed_by_user",
    "redirect": "redirected",
    "clean_up": "cleanup_requested",
}
"""Answers to every card whose phase has the cell, unless a main answer pulls it; `clean_up` needs a cleaner."""


def answers(phase: str, *, cleaner: bool) -> dict[str, str]:
    """Return the triggers by the answers that the card of a phase can have, but `later`, which moves nothing."""
    found = dict(MAIN_ANSWERS[CARDS[phase]])
    for name, trigger in SIDE_ANSWERS.items():
        if (phase, trigger) in CELLS and trigger not in found.values() and (cleaner or name != "clean_up"):
            found[name] = trigger
    return found


WORKS: Mapping[str, str] = {
    "proposed": "begin",
    "awaiting_inference": "infer",
    "inferring_intent": "infer",
    "inferring_context": "infer",
    "inferring_action": "infer",
    "executing": "execute",
    "cleaning_up": "clean_up",
}
"""The one work of a phase that the system goes on with."""

_HOUR, _DAY = 3600.0, 86_400.0
EARLIEST: Mapping[str, float] = {
    "proposed": 24 * _HOUR,
    "awaiting_inference": 120.0,
    "inferring_intent": 60.0,
    "inferring_context": 60.0,
    "inferring_action": 60.0,
    "awaiting_review": 72 * _HOUR,
    "cleaning_up": 120.0,
    **{phase: 7 * _DAY for phase, card in CARDS.items() if card != "review"},
}
"""Seconds in a phase before which its timeout cannot fall; an action has its own deadline."""

GRADES = ("low", "medium", "high")


@dataclass(frozen=True)
class Known:
    """An action of the catalogue, as a world of tests declares it."""

    irreversibility: str = "medium"
    regret: str = "medium"
    amplifiers: frozenset[str] = frozenset()
    auto: bool = False
    review: bool = False
    kind: str = "call"
    ready: Callable[[Mapping[str, Any]], bool] = field(default=lambda parameters: True)
    """Its preconditions."""


def strictest(policies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the policy in force: the stricter value of each axis. A null set of names is all names."""

    def both(axis: str) -> set[str] | None:
        given = [set(policy[axis]) for policy in policies if policy[axis] is not None]
        return set.intersection(*given) if given else None

    def grade(axis: str) -> str:
        return GRADES[min(GRADES.index(policy[axis]) for policy in policies)]

    return {
        "auto_advance": both("auto_advance") or set(),
        "floor": max(policy["floor"] for policy in policies),
        "consent_for": set().union(*(policy["consent_for"] for policy in policies)),
        "kinds": both("kinds"),
        "actions": both("actions"),
        "irreversibility": grade("irreversibility"),
        "regret": grade("regret"),
        "amplifiers": both("amplifiers") or set(),
        "review_above": grade("review_above"),
        "calls": min(policy["budget"]["calls"] for policy in policies),
        "tokens": min(policy["budget"]["tokens"] for policy in policies),
        "usd": min(policy["budget"]["usd"] for policy in policies),
    }


def confident(proposal: Mapping[str, Any], policy: Mapping[str, Any]) -> bool:
    found = proposal.get("confidence")
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return False
    return bool(max(0, policy["floor"]) <= found <= 1)


def passes(stage: str, proposal: Mapping[str, Any], policy: Mapping[str, Any], known: Mapping[str, Known]) -> bool:
    """Return True if nobody is asked about a proposal: every gate passes, and what is unknown does not."""
    if stage not in policy["auto_advance"] or not confident(proposal, policy):
        return False
    if stage != "action":
        return True
    name = proposal["body"].get("action")
    action = known.get(name)
    return (
        action is not None
        and action.auto
        and action.irreversibility != "high"
        and not action.amplifiers
        and name not in policy["consent_for"]
        and (policy["actions"] is None or name in policy["actions"])
        and (policy["kinds"] is None or action.kind in policy["kinds"])
        and GRADES.index(action.irreversibility) <= GRADES.index(policy["irreversibility"])
        and GRADES.index(action.regret) <= GRADES.index(policy["regret"])
        and action.amplifiers <= policy["amplifiers"]
        and action.ready(proposal["body"].get("parameters", {}))
    )


def needs_review(report: Mapping[str, Any], action: Known, policy: Mapping[str, Any]) -> bool:
    over = GRADES.index(action.irreversibility) > GRADES.index(policy["review_above"])
    return bool(action.review or over or report.get("partial"))


def next_stage(stage: str) -> str:
    return STAGES[STAGES.index(stage) + 1]
