"""What learning keeps of one finished run: its acts, its first sustained trouble, and what it thought there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .._engine import TEXT_BYTES
from .._gates import E1_COMPOSITE, LOOK_BACK, TIER_RULES
from .._replay import ReplayedRun
from .._text import bounded
from ..types import FSMState, Step, StepDecision, Tier
from ._acts import Act, act_of
from ._mask import hidden, private_words, run_label
from ._trouble import Trouble, first_trouble

MAX_STEPS = 256
"""Steps of a run that are compared with those of others; the first ones."""
MAX_CALM = 24
"""Stretches of a run without trouble that are kept to tell trouble from."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Calm:
    """What a run thought where nothing was wrong: the text of a query at tier e2, and at e1, "" where a live run would
    not ask it, as mostly: its gate is shut. `failed` are tools that
    failed or found nothing among these steps: what is learned of them may well be said here."""

    e1: str
    e2: str
    failed: tuple[str, ...] = ()

    def of(self, tier: Tier) -> str:
        return self.e1 if tier == "e1" else self.e2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDigest:
    """One finished run. `texts` are those of the trouble, by tier, masked; `calm` is unmasked, and never stored."""

    run_id: str
    label: str
    """The id as a lesson shows it: without secrets and people."""
    task_key: str
    agent: str
    succeeded: bool
    acts: tuple[Act, ...]
    trouble: Trouble | None
    texts: Mapping[Tier, tuple[str, ...]]
    calm: tuple[Calm, ...]


def digest_of(replayed: ReplayedRun, tool_roles: Mapping[str, str]) -> RunDigest:
    """What learning needs of a run whose outcome is known."""
    run, decisions = replayed.run, replayed.decisions[:MAX_STEPS]
    steps = run.steps[:MAX_STEPS]
    private = private_words(
        [text for step in steps for text in (step.observation[: TEXT_BYTES * 4], step.action_input)]
    )
    acts = tuple(act_of(step, index, tool_roles, private) for index, step in enumerate(steps))
    trouble = first_trouble(acts, decisions)
    succeeded = run.outcome == "success"
    tiers: tuple[Tier, ...] = ("e1", "e2")
    masked = (
        {tier: tuple(_masked(step, private) for step in _asked(steps, trouble.at, tier)) for tier in tiers}
        if trouble is not None
        else {}
    )
    return RunDigest(
        run_id=run.run_id,
        label=run_label(run.run_id, private),
        task_key=run.task_key,
        agent=run.source or "",
        succeeded=succeeded,
        acts=acts,
        trouble=trouble,
        texts=masked,
        calm=_calm(steps, acts, decisions) if succeeded and not (trouble and trouble.sustained) else (),
    )


def texts_at(steps: Sequence[Step], at: int, tier: Tier) -> tuple[str, ...]:
    """What a live run would ask a store with after step `at`: a bounded text of each of the last steps."""
    return tuple(bounded(step.scored_text, TEXT_BYTES) for step in _asked(steps, at, tier))


def _asked(steps: Sequence[Step], at: int, tier: Tier) -> Sequence[Step]:
    return steps[max(0, at + 1 - TIER_RULES[tier].steps) : at + 1]


def _masked(step: Step, private: Collection[str]) -> str:
    """Mask the step's text before it is cut, so that no half of a secret remains unrecognised."""
    return bounded(hidden(step.scored_text, private), TEXT_BYTES)


def asks(tier: Tier, decisions: Sequence[StepDecision], at: int) -> bool:
    """Would a live run ask this tier after step `at`, had it not done so before (BEHAVIOUR section 5)?"""
    now = decisions[at]
    if now.fsm_state in (FSMState.FAST, FSMState.END):
        return False
    fired = any(one.monitors_fired for one in decisions[max(0, at - LOOK_BACK) : at + 1])
    return tier == "e2" or fired or (now.composite or 0.0) > E1_COMPOSITE


def failed_before(acts: Sequence[Act], at: int) -> tuple[str, ...]:
    """The tools that failed or found nothing in the steps that the longest query tells of, the newest first."""
    recent = acts[max(0, at + 1 - TIER_RULES["e2"].steps) : at + 1]
    return tuple(dict.fromkeys(act.tool for act in reversed(recent) if act.fruitless and not act.says))


def _calm(steps: Sequence[Step], acts: Sequence[Act], decisions: Sequence[StepDecision]) -> tuple[Calm, ...]:
    """Stretches at which a live run would ask, spread over the run."""
    asked = [at for at in range(len(decisions)) if asks("e2", decisions, at)]
    every = -(-len(asked) // MAX_CALM) if asked else 1
    return tuple(
        Calm(
            e1="\n".join(texts_at(steps, at, "e1")) if asks("e1", decisions, at) else "",
            e2="\n".join(texts_at(steps, at, "e2")),
            failed=failed_before(acts, at),
        )
        for at in asked[::every]
    )
