"""The bodies of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ..monitors.bounds import checked_account, checked_patience
from ..monitors.sightings import OWN_MEMORY
from ..requests import Evaluate
from ..types import Account, Doubt, Evaluation, Injected, Note, Patience
from ._base import Answer, Number, Request, Unit
from ._step import WireStep

MAX_INJECTED = 5
"""The most monitor injections of one run."""
MAX_SENT = 10_000
"""The most steps of one request. The time of an answer grows with them, and clients that send all steps of a run do so
again with each."""
MAX_NUMBER = 2**53
"""The largest number of a step: that of JSON libraries which have no other numbers than floats."""


class WireInjected(Request):
    """A monitor's injection in this run."""

    step: int
    monitor: str


class WireObserved(Request):
    """The observation of a monitor that runs in the client."""

    name: str
    score: Unit
    evidence: list[int] = Field(default_factory=list)
    failure_type: str = ""


class EvaluateRequest(Request):
    """POST /monitors/evaluate: the newest step with the account of the run up to it, or all steps without one."""

    model: str = ""
    task_profile: str = "coding"
    weights: dict[str, Number] | None = None
    task: str = ""
    tool_roles: dict[str, str] | None = None
    run_id: str = ""
    from_step: int = Field(default=0, ge=0, le=MAX_NUMBER)
    steps: list[WireStep] = Field(default_factory=list, max_length=MAX_SENT)
    injected: list[WireInjected] = Field(default_factory=list)
    account: Annotated[Account, AfterValidator(checked_account)] | None = None
    patience: Annotated[Patience, AfterValidator(checked_patience)] = Field(default_factory=Patience)
    sightings: Any = None
    observed: list[WireObserved] = Field(default_factory=list)
    notes: bool = False
    notes_told: list[str] = Field(default_factory=list)


class WireDoubt(Answer):
    """A doubt that the newest step raises."""

    monitor: str
    text: str


class WireNote(Answer):
    """An operator's note."""

    id: str
    text: str


class EvaluateResponse(Answer):
    """The answer to an evaluation. `partial` is True if the steps before were unknown: no account was given."""

    inject: bool = False
    intervention_text: str | None = None
    fact: str = ""
    hint: str = ""
    failure_type: str | None = None
    injection_path: str | None = None
    intervention_source: str | None = None
    fired: list[str] = Field(default_factory=list)
    pattern_id: str | None = None
    scores: dict[str, Unit] = Field(default_factory=dict)
    composite: Unit = 0.0
    monitor: str | None = None
    kind: str | None = None
    doubts: list[WireDoubt] = Field(default_factory=list)
    partial: bool = False
    notes: list[WireNote] = Field(default_factory=list)

    def evaluation(self) -> Evaluation:
        """Return the evaluation. Its notes are read apart."""
        return Evaluation(
            inject=self.inject,
            intervention_text=self.intervention_text,
            fact=self.fact,
            hint=self.hint,
            fired=tuple(self.fired),
            scores=dict(self.scores),
            composite=self.composite,
            failure_type=self.failure_type,
            injection_path=self.injection_path,
            intervention_source=self.intervention_source,
            pattern_id=self.pattern_id,
            monitor=self.monitor,
            kind=self.kind,
            doubts=tuple([Doubt(monitor=doubt.monitor, text=doubt.text) for doubt in self.doubts]),
        )

    def notes_of(self) -> tuple[Note, ...]:
        """Return the notes that wait for the run."""
        return tuple([Note(id=note.id, text=note.text) for note in self.notes])


def evaluate_request(
    request: Evaluate,
    *,
    weights: Mapping[str, float] | None = None,
    tool_roles: Mapping[str, str] | None = None,
    failure_types: Mapping[str, str] | None = None,
) -> EvaluateRequest:
    """Return the body for one completed step.

    `weights` and `tool_roles` are those that the caller gave, None for the server's own; `failure_types` are those of
    the caller's monitors, by name.
    """
    of_type = failure_types or {}
    return EvaluateRequest(
        task_profile=request.profile,
        weights=None if weights is None else dict(weights),
        task=request.task,
        tool_roles=None if tool_roles is None else dict(tool_roles),
        run_id=request.run_id,
        from_step=request.index,
        steps=[WireStep.of(request.step)],
        injected=[WireInjected(step=told.step, monitor=told.monitor) for told in request.injected[-MAX_INJECTED:]],
        account=request.account,
        patience=request.patience,
        sightings=request.memories.get(OWN_MEMORY),
        observed=[
            WireObserved(name=name, score=score, evidence=list(steps), failure_type=of_type.get(name, name))
            for name, score, _, steps in request.observed
        ],
        notes=request.takes_notes,
        notes_told=list(request.notes_told),
    )


def injected_of(request: EvaluateRequest) -> tuple[Injected, ...]:
    """Return the run's monitor injections so far."""
    return tuple([Injected(step=told.step, monitor=told.monitor) for told in request.injected[-MAX_INJECTED:]])


def evaluation_response(
    evaluation: Evaluation, *, partial: bool = False, notes: Sequence[Note] = ()
) -> EvaluateResponse:
    """Return the body of an answer."""
    return EvaluateResponse(
        inject=evaluation.inject,
        intervention_text=evaluation.intervention_text,
        fact=evaluation.fact,
        hint=evaluation.hint,
        failure_type=evaluation.failure_type,
        injection_path=evaluation.injection_path,
        intervention_source=evaluation.intervention_source,
        fired=list(evaluation.fired),
        pattern_id=evaluation.pattern_id,
        scores=dict(evaluation.scores),
        composite=evaluation.composite,
        monitor=evaluation.monitor,
        kind=evaluation.kind,
        doubts=[WireDoubt(monitor=doubt.monitor, text=doubt.text) for doubt in evaluation.doubts],
        partial=partial,
        notes=[WireNote(id=note.id, text=note.text) for note in notes],
    )
