"""The answers of a person: each of the 12 human triggers as events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from reasonblocks.util.text import size as text_size

from .. import codec
from ..catalogue import Bound
from ..codec import encode, size
from ..log import redirect_words
from ..log.limits import PERSON_CHARS, PROPOSAL_BYTES, PROPOSAL_CHARS
from ..phases import STAGES, Phase, Stage, Trigger
from ..values import Proposal, plain
from ._draft import Draft, shortened

PERSON = "person"
"""The author of a proposal that a person wrote."""
KEEP_BYTES = 1_000
CHANGE_CHARS = 400


def after(stage: Stage) -> Stage:
    """Return the next stage."""
    return STAGES[STAGES.index(stage) + 1]


def _confirmed(draft: Draft) -> None:
    stage = draft.thread.stage
    draft.add("confirmed", {"stage": stage.value, "proposal": draft.open_proposal().id})
    draft.move(Phase.AWAITING_INFERENCE, stage=after(stage))


def _edited(draft: Draft) -> None:
    if draft.thread.phase is Phase.AWAITING_CONFIRMATION:
        _edit_action(draft)
        return
    stage = draft.thread.stage
    words = draft.fact(draft.words("text", needed=True, chars=PROPOSAL_CHARS), stage)
    if (taken := text_size(words)) > PROPOSAL_BYTES:
        raise draft.refused(f"the text has {taken:,} bytes; at most {PROPOSAL_BYTES:,}: shorten it")
    proposal = Proposal(id=draft.proposal_id(), stage=stage, body={"text": words}, confidence=1.0, author=PERSON)
    draft.add("corrected", {"stage": stage.value, "proposal": encode(proposal), "text": words})
    draft.move(Phase.AWAITING_INFERENCE, stage=after(stage))


def _edit_action(draft: Draft) -> None:
    """Change some parameters, or the action with all of its parameters; the card is asked anew."""
    before = draft.open_proposal()
    given = plain(draft.data.get("parameters") or {}, "the parameters")
    name = draft.data.get("action") or before.body.get("action")
    if name is None:
        raise draft.refused("the proposal names no action: choose one")
    same = name == before.body.get("action")
    present = codec.mapping(before.body, "parameters", {}) if same else {}
    words = draft.words("text")
    if same and not given and not words:
        raise draft.refused("it changes nothing: change a parameter, or choose another action")
    proposal = _by_person(draft, name, {**present, **given})
    changed = {each: value for each, value in given.items() if each not in present or present[each] != value}
    told = f"{name}: {json.dumps(changed, ensure_ascii=False, sort_keys=True)}"
    said = shortened(told, CHANGE_CHARS)
    said = draft.fact(f"{words} ({said})" if words else said, Stage.ACTION)
    draft.add("corrected", {"stage": Stage.ACTION.value, "proposal": encode(proposal), "text": said})
    draft.move(Phase.AWAITING_CONFIRMATION)


def _by_person(draft: Draft, name: object, parameters: object) -> Proposal:
    """Return a person's proposal of an action. Raises `Refused` if it could not run."""
    bound = draft.bind(name, parameters)
    if not isinstance(bound, Bound):
        raise draft.refused(bound)
    body = {"action": bound.action, "parameters": plain(parameters, "the parameters")}
    return Proposal(id=draft.proposal_id(), stage=Stage.ACTION, body=body, confidence=1.0, author=PERSON)


def _target(draft: Draft) -> Stage:
    """Return the stage to which an answer leads back, by default the present one."""
    present = draft.thread.stage
    if draft.data.get("redirect_to") is None:
        return present
    stage = codec.stage(draft.data, "redirect_to")
    if STAGES.index(stage) > STAGES.index(present):
        raise draft.refused(f"redirect_to is {stage.value!r}, but the thread is only at the stage {present.value!r}")
    return stage


def _redirected(draft: Draft) -> None:
    stage, feedback = _target(draft), draft.words("feedback")
    keep = plain({"keep": draft.data.get("keep")}, "what to keep")["keep"]
    if size(keep) > KEEP_BYTES:
        raise draft.refused(f"keep has {size(keep):,} bytes; at most {KEEP_BYTES:,}")
    draft.fact(redirect_words(feedback, keep), stage)
    draft.add("redirected", {"redirect_to": stage.value, "feedback": feedback, "keep": keep})
    draft.move(Phase.AWAITING_INFERENCE, stage=stage)


def _provided(draft: Draft) -> None:
    stage, picks = _target(draft), draft.data.get("action") is not None
    if draft.thread.phase is not Phase.AWAITING_REDIRECT and stage is not draft.thread.stage:
        raise draft.refused("this answer is for the stage of the card: use redirect to go back to an earlier one")
    if picks and draft.thread.phase is not Phase.AWAITING_ACTION_CLARIFICATION:
        raise draft.refused("this card takes only text; an action can be chosen at the action stage")
    if not picks and draft.data.get("parameters"):
        raise draft.refused("parameters need the name of their action")
    words = draft.fact(draft.words("text", needed=not picks), stage)
    if words:
        draft.add("provided", {"stage": stage.value, "text": words})
    if picks:
        proposal = _by_person(draft, draft.data.get("action"), draft.data.get("parameters") or {})
        draft.add("picked", {"proposal": encode(proposal)})
        draft.move(Phase.AWAITING_CONFIRMATION)
    else:
        draft.move(Phase.AWAITING_INFERENCE, stage=stage)


def _execute(draft: Draft) -> None:
    """Approve exactly the action that the hash names."""
    proposal, wanted = draft.open_proposal(), codec.words(draft.data, "hash")
    bound = draft.bind(proposal.body.get("action"), proposal.body.get("parameters", {}))
    if not isinstance(bound, Bound):
        raise draft.refused(f"{bound}; edit it, or redirect it")
    if not wanted or wanted != bound.hash:
        raise draft.refused(
            f"the hash {wanted!r} does not match the action as it would run now ({bound.hash!r}): "
            "look at the card again; if the catalogue has changed since it was opened, edit or redirect it"
        )
    approve(draft, proposal, bound, by=draft.command.actor.name, auto=False)
    draft.move(Phase.EXECUTING)


def approve(draft: Draft, proposal: Proposal, bound: Bound, *, by: str, auto: bool) -> None:
    """Add the approval of the action as it will run."""
    parameters = plain(bound.parameters, "the parameters")
    draft.add(
        "action_approved",
        {
            "proposal": proposal.id, "action": bound.action, "parameters": parameters, "hash": bound.hash, "by": by,
            "auto": auto,
        },
    )  # fmt: skip


def _rejected(draft: Draft) -> None:
    reason = draft.words("reason")
    draft.add("action_rejected", {"reason": reason})
    draft.move(Phase.DISMISSED, reason=reason or "rejected")


def _review_accepted(draft: Draft) -> None:
    draft.add("review_accepted", {"auto": False})
    draft.move(Phase.DONE)


def _cleanup_requested(draft: Draft) -> None:
    kind = draft.thread.cause.kind
    if kind not in draft.rules.cleaned:
        known = ", ".join(sorted(draft.rules.cleaned)) or "none"
        raise draft.refused(f"no cleaner handles causes of the kind {kind!r}; kinds with a cleaner: {known}")
    draft.move(Phase.CLEANING_UP)


def _retry_cleanup(draft: Draft) -> None:
    draft.move(Phase.CLEANING_UP)


def _accept_cleanup_failure(draft: Draft) -> None:
    draft.move(Phase.DONE, reason="the clean-up failed, which a person accepted")


def _dismissed(draft: Draft) -> None:
    draft.move(Phase.DISMISSED, reason=draft.words("reason") or "dismissed")


def _handed_off(draft: Draft) -> None:
    to, reason = draft.words("to", needed=True, chars=PERSON_CHARS), draft.words("reason")
    draft.move(Phase.HANDED_OFF, reason=f"handed to {to}: {reason}" if reason else f"handed to {to}")


ANSWERS: Mapping[Trigger, Callable[[Draft], None]] = MappingProxyType(
    {
        Trigger.CONFIRMED: _confirmed,
        Trigger.EDITED: _edited,
        Trigger.REDIRECTED: _redirected,
        Trigger.PROVIDED: _provided,
        Trigger.EXECUTE: _execute,
        Trigger.REJECTED: _rejected,
        Trigger.REVIEW_ACCEPTED: _review_accepted,
        Trigger.CLEANUP_REQUESTED: _cleanup_requested,
        Trigger.RETRY_CLEANUP: _retry_cleanup,
        Trigger.ACCEPT_CLEANUP_FAILURE: _accept_cleanup_failure,
        Trigger.DISMISSED_BY_USER: _dismissed,
        Trigger.HANDED_OFF_BY_USER: _handed_off,
    }
)
"""The events of each human trigger, once the table has its cell."""
