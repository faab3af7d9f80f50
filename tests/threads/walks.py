"""The thirty golden walks, as paths, and a walker that goes on from wherever a walk stands, also in a new process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasonblocks_threads import Policy, Stage

from tests.threads.driver import ASK_ALL, DEADLINE_S, END_TO_END, MARA, Driver
from tests.threads.model import Matter

BEGIN = "begin_inference awaiting_inference "


def seek(stage: str, then: str) -> str:
    """Return the part of a path in which a stage is inferred."""
    return f"inference_started inferring_{stage} inference_done {then} "


INTENT, CONTEXT = seek("intent", "awaiting_inference"), seek("context", "awaiting_inference")
ACTION = seek("action", "awaiting_confirmation")
CONSENT = BEGIN + INTENT + CONTEXT + ACTION
RUN = "execute executing "
DONE = "execution_done done "
LOW_INTENT = BEGIN + seek("intent", "awaiting_intent_confirmation")


@dataclass(frozen=True)
class Walk:
    """A path of triggers and phases, the policy, the action, and what the person adds to each answer, by trigger."""

    path: str
    policy: Policy = field(default_factory=Policy)
    action: str = "tidy"
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    children: bool = False
    """The thread is opened with two children, which are dismissed."""
    rule: str = "all_of"
    below: bool = False
    """The thread is opened under another, with a child of its own; the one above is dismissed."""

    @property
    def moves(self) -> list[tuple[str, str]]:
        words = self.path.split()
        return list(zip(words[::2], words[1::2], strict=True))


PICK = {"provided": {"action": "tidy", "parameters": {"n": 4}}}
WORDS = {"provided": {"text": "the database is slow"}}
WALKS: Mapping[str, Walk] = {
    "W1": Walk(
        LOW_INTENT
        + "confirmed awaiting_inference "
        + seek("context", "awaiting_context_confirmation")
        + "confirmed awaiting_inference "
        + ACTION
        + RUN
        + DONE,
        policy=ASK_ALL,
    ),
    "W2": Walk(CONSENT),
    "W3": Walk(BEGIN + INTENT + CONTEXT + seek("action", "executing") + DONE, policy=END_TO_END),
    "W4": Walk(
        CONSENT + RUN + "execution_done awaiting_review review_accepted done", policy=END_TO_END, action="ship"
    ),
    "W5": Walk(LOW_INTENT, policy=END_TO_END),
    "W6": Walk(
        BEGIN
        + "inference_started inferring_intent inference_failed awaiting_intent_clarification "
        + "provided awaiting_inference "
        + INTENT,
        given=WORDS,
    ),
    "W7": Walk(BEGIN + "inference_rejected awaiting_intent_clarification dismissed_by_user dismissed"),
    "W8": Walk(BEGIN + "timeout awaiting_intent_clarification timeout dismissed"),
    "W9": Walk("dismissed_by_user dismissed"),
    "W10": Walk(LOW_INTENT + "confirmed awaiting_inference dismissed_by_user dismissed"),
    "W11": Walk(
        LOW_INTENT + "redirected awaiting_inference " + seek("intent", "awaiting_intent_confirmation"),
        given={"redirected": {"text": "look at the network"}},
    ),
    "W12": Walk(
        CONSENT + "redirected awaiting_inference " + ACTION,
        given={"redirected": {"text": "another one", "stage": Stage.ACTION}},
    ),
    "W13": Walk(
        CONSENT + "redirected awaiting_inference inference_started inferring_intent",
        given={"redirected": {"text": "all wrong", "stage": Stage.INTENT}},
    ),
    "W14": Walk(
        CONSENT + "edited awaiting_confirmation " + RUN + DONE, given={"edited": {"parameters": {"n": 7, "how": "ok"}}}
    ),
    "W15": Walk(CONSENT + "rejected dismissed"),
    "W16": Walk(
        BEGIN
        + INTENT
        + CONTEXT
        + seek("action", "awaiting_action_clarification")
        + "provided awaiting_confirmation "
        + RUN,
        given=PICK,
    ),
    "W17": Walk(
        BEGIN
        + INTENT
        + CONTEXT
        + seek("action", "awaiting_action_clarification")
        + "provided awaiting_inference inference_started inferring_action",
        given=WORDS,
    ),
    "W18": Walk(
        CONSENT + RUN + "execution_failed awaiting_redirect provided awaiting_inference " + ACTION + RUN + DONE,
        given=WORDS,
    ),
    "W19": Walk(
        CONSENT + RUN + "execution_done awaiting_review redirected awaiting_inference",
        action="check",
        given={"redirected": {"text": "do it again"}},
    ),
    "W20": Walk(CONSENT + RUN + "execution_done awaiting_review timeout done", action="check"),
    "W21": Walk(CONSENT + RUN + "timeout awaiting_redirect dismissed_by_user dismissed", action="touch"),
    "W22": Walk(CONSENT + RUN + "execution_done handed_off"),
    "W23": Walk(
        BEGIN
        + INTENT
        + "inference_started inferring_context inference_failed awaiting_context_clarification "
        + "handed_off_by_user handed_off"
    ),
    "W24": Walk(CONSENT + RUN + "execution_done monitoring execution_done done", action="decompose"),
    "W25": Walk(
        "decomposed monitoring execution_done dismissed", children=True, rule="alternatives"
    ),
    "W26": Walk("decomposed monitoring parent_force_close dismissed", children=True, below=True),
    "W27": Walk(CONSENT + "cleanup_requested cleaning_up cleanup_succeeded done_cleanup_successful"),
    "W28": Walk(
        LOW_INTENT
        + "cleanup_requested cleaning_up cleanup_failed done_cleanup_unsuccessful "
        + "retry_cleanup cleaning_up cleanup_failed done_cleanup_unsuccessful accept_cleanup_failure done"
    ),
    "W29": Walk(CONSENT + "source_resolved dismissed"),
    "W30": Walk(BEGIN + "dismissed_by_user dismissed"),
}
