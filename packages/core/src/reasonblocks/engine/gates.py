"""Decides whether a monitor's text may be injected and whether a tier may be searched (BEHAVIOUR sections 4 and 5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

from ..account.observe import CHECK_LOOP
from ..monitors.suite import LETTERS
from ..types import Evaluation, FSMState, GateDecision, Tier, TierUse, TraceState
from ..util.text import collapse, digest

MONITOR_CAP = 5
"""Monitor injections in one run, at most."""
COOLDOWN = MappingProxyType({FSMState.FAST: 5, FSMState.NORMAL: 3, FSMState.SLOW: 2, FSMState.SKIP: 2})
"""Steps from one monitor injection to the next, at least, by the state after this step's advance."""
E1_COMPOSITE = 0.15
"""A composite above this opens the E1 gate, and is a signal for E2."""
LOOK_BACK = 2
"""Previous steps whose fired monitors keep the E1 gate open."""
APART = 4
"""Steps in a row that were not dead, after which dead ones are another trouble."""
RETRY_AFTER = 3
"""Calls after which an empty or failed E1 or E2 request is retried."""
E3_RETRIES = 3
"""Following steps on which a failed E3 request is retried, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRule:
    """One tier's rule: at most `top_k` patterns of at least this `similarity` to the last `steps` completed ones."""

    top_k: int
    similarity: float
    steps: int


TIER_RULES: MappingProxyType[Tier, TierRule] = MappingProxyType(
    {
        "e1": TierRule(top_k=1, similarity=0.8, steps=3),
        "e2": TierRule(top_k=2, similarity=0.7, steps=5),
        "e3": TierRule(top_k=32, similarity=0.0, steps=0),
    }
)

_SENTENCE = re.compile(
    r"(?:" + r'"""(?:(?!""").)*"""' + r"""|"[^"]*"|`[^`]*`|"(?![^"]*")|`(?![^`]*`)|[^"`])+?[.!?](?=\s|$)"""
)
"""A sentence; a full stop inside quotes does not end it."""


def may_inject(state: TraceState, now: FSMState, evaluation: Evaluation | None) -> GateDecision | None:
    """Return the first reason not to inject into the next step; None if only `duplicate` can still prevent it."""
    if evaluation is None:
        return "unavailable"
    if not evaluation.inject or not (evaluation.intervention_text or "").strip():
        return "quiet"
    if len(state.injected) >= MONITOR_CAP:
        return "cap"
    return "cooldown" if cools_down(state, now) else None


def cools_down(state: TraceState, now: FSMState) -> bool:
    """Return True if the last monitor injection is too near for another one."""
    return bool(state.injected) and state.steps_begun - state.injected[-1].step < COOLDOWN[now]


def is_duplicate(state: TraceState, text: str) -> bool:
    """Return True if the text equals the monitor text that was injected last, white space aside."""
    return state.injected_text == text_key(text)


def is_known(state: TraceState) -> bool:
    """Return True if the agent was told of this trouble: since that text no `APART` steps in a row were live.

    Another text about it needs a way on: a second fact alone says nothing new, and small models gave up after it. A
    check that ends in the same way goes with changes, which are live, so all that follow its first text are known.
    """
    told = [one.step for one in state.injected if one.monitor in LETTERS]
    account = state.account
    since = state.steps_begun - told[-1] if told else 0
    if not told or since > len(account.letters):
        return False
    if account.did.due == "check" and account.check is not None:
        return account.check.row > CHECK_LOOP
    return "." * APART not in account.letters[-since:]


def text_key(text: str) -> str:
    """Return the key by which duplicates are compared."""
    return digest(collapse(text))


def first_of_type(state: TraceState, failure_type: str | None) -> bool:
    """Return True if no text of this failure type was injected yet: the first may include an E2's intervention."""
    return failure_type is not None and failure_type not in state.injected_types


def first_sentence(text: str) -> str:
    """Return the first sentence of a text: its evidence, which precedes its advice."""
    found = _SENTENCE.match(text.strip())
    return found.group(0) if found else text.strip()


def e1_open(state: TraceState, evaluation: Evaluation | None) -> bool:
    """Return True if there are signs of trouble now or in the previous two steps, or if no evaluation ever answered."""
    if evaluation is not None and (evaluation.fired or evaluation.composite > E1_COMPOSITE):
        return True
    return any(state.fired_before) or (evaluation is None and not state.evaluated)


def e2_signalled(now: FSMState, evaluation: Evaluation | None) -> bool:
    """Return True for a failure type, a raised composite, SLOW or SKIP: the signals of `e2_requires_signal`."""
    if now in (FSMState.SLOW, FSMState.SKIP):
        return True
    return evaluation is not None and (evaluation.failure_type is not None or evaluation.composite > E1_COMPOSITE)


def may_ask(use: TierUse, call: int) -> bool:
    """Return True if the tier is neither used up nor waiting for a retry."""
    return not use.used and call >= use.next_call


def after_answer(use: TierUse, call: int, *, got_any: bool) -> TierUse:
    """Return an answered tier's use: a pattern uses up E1 and E2, and an empty answer is retried later."""
    return TierUse(asked=use.asked + 1, used=got_any, next_call=call + RETRY_AFTER)


def after_failure(use: TierUse) -> TierUse:
    """Return E3's use after a failed request, which is retried on the following steps up to `E3_RETRIES` times."""
    return TierUse(asked=use.asked + 1, used=use.asked >= E3_RETRIES, next_call=0)
