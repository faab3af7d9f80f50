"""The actions that every catalogue has: guidance for a run, a hand-over, a split into parts, and an acknowledgement.

Only `acknowledge` may run without a person, because it changes nothing outside its thread. The others need the consent
of a person, whatever a policy allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from .catalogue import Action
from .values import Execution, Report, Risk

if TYPE_CHECKING:
    from .values import Thread

INJECT_GUIDANCE = "inject_guidance"
HAND_OFF = "hand_off"
DECOMPOSE = "decompose"
ACKNOWLEDGE = "acknowledge"

GUIDANCE_CHARS = 1_200
"""The most characters of guidance, which is added to a call of the run."""
LETTER_S = 30 * 60.0
"""Seconds within which a call of the run has to carry the guidance."""
NOTE_CHARS = 1_000
CHILDREN = 50
"""The most parts of one matter."""

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Note = Annotated[str, StringConstraints(strip_whitespace=True, max_length=NOTE_CHARS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InjectGuidance(_Strict):
    """A text for the next call of a run. The run is bound to that of the thread."""

    run_id: Annotated[str, StringConstraints(min_length=1)]
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=GUIDANCE_CHARS)]


class HandOff(_Strict):
    """The person, team or queue that takes over, and the reason."""

    to: Line
    reason: Note = ""


class Part(_Strict):
    """A part of a matter: `key` names it among the parts of its thread."""

    key: Line
    title: Line
    kind: Line = "part"


class Decompose(_Strict):
    """The parts of a matter, each a thread of its own, and the rule by which it ends with them."""

    children: Annotated[list[Part], Field(min_length=1, max_length=CHILDREN)]
    rule: Literal["all_of", "alternatives"] = "all_of"

    @field_validator("children")
    @classmethod
    def _unique(cls, children: list[Part]) -> list[Part]:
        if len({child.key for child in children}) < len(children):
            raise ValueError("each part needs a different key")
        return children


class Acknowledge(_Strict):
    """A note for the log."""

    note: Note = ""


def run_has_not_ended(_: InjectGuidance, thread: Thread) -> str | None:
    """Return why nothing reaches the run, if it has ended."""
    if thread.run == "ended":
        return f"the run {thread.cause.run_id!r} has ended, so no call of it can carry the guidance"
    return None


def _leave_letter(parameters: InjectGuidance, execution: Execution) -> Report:
    """Return the report of a letter that waits; the engine writes the letter and reports when a call carried it."""
    return Report.ok(f"the guidance waits for the next call of {parameters.run_id!r}")


def _hand_off(parameters: HandOff, execution: Execution) -> Report:
    summary = f"handed to {parameters.to}" + (f": {parameters.reason}" if parameters.reason else "")
    return Report(succeeded=True, disposition="handed_off", to=parameters.to, summary=summary)


def _decompose(parameters: Decompose, execution: Execution) -> Report:
    number = len(parameters.children)
    return Report(
        succeeded=True, disposition="decomposed", summary=f"split into {number} part{'' if number == 1 else 's'}"
    )


def _acknowledge(parameters: Acknowledge, execution: Execution) -> Report:
    return Report.ok(parameters.note or "acknowledged")


BUILT_IN: tuple[Action, ...] = (
    Action(
        INJECT_GUIDANCE,
        InjectGuidance,
        _leave_letter,
        purpose="Add a text to the guidance in the next call of the run.",
        # What a model has read cannot be taken back, but it only advises.
        risk=Risk(irreversibility="medium", regret="medium"),
        idempotent=True,
        deadline_s=LETTER_S,
        bind={"run_id": "run_id"},
        preconditions=(run_has_not_ended,),
        kind="guidance",
    ),
    Action(
        HAND_OFF,
        HandOff,
        _hand_off,
        purpose="Hand the matter to a person, a team or a queue. This ends its thread.",
        risk=Risk(irreversibility="low", regret="medium"),
        idempotent=True,
        kind="hand_off",
    ),
    Action(
        DECOMPOSE,
        Decompose,
        _decompose,
        purpose="Split the matter into parts, each with a thread of its own.",
        risk=Risk(irreversibility="low", regret="medium"),
        idempotent=True,
        kind="decompose",
    ),
    Action(
        ACKNOWLEDGE,
        Acknowledge,
        _acknowledge,
        purpose="Note that the matter is known and needs no other action.",
        risk=Risk(irreversibility="low", regret="low"),
        auto=True,
        idempotent=True,
        kind="note",
    ),
)
