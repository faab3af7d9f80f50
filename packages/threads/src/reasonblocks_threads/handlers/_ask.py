"""The question to an inferencer, and the check of its answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..catalogue import Bound, Catalogue
from ..engine.described import mask_text
from ..log.limits import ACTION_BYTES, PROPOSAL_CHARS
from ..phases import STAGES, Stage
from ..ports import Ask, Inferred
from ..values import Evidence, Proposal, Thread

if TYPE_CHECKING:
    from ..ports import Reading
    from ..rules import Rules

SHOWN_CHARS = 80
ERASED = "(erased)"


def ask_of(reading: Reading, thread: Thread, rules: Rules, *, seconds: float, errors: tuple[str, ...] = ()) -> Ask:
    """Return the question of a thread's stage: everything that is known of it, with the secrets of others masked.

    What persons said is unchanged: they said it to be used.
    """
    left = rules.in_force(thread).budget.tokens - thread.spent.tokens
    return Ask(
        thread_id=thread.id,
        stage=thread.stage,
        cause_kind=thread.cause.kind,
        title=mask_text(thread.cause.title),
        run_id=thread.cause.run_id,
        run=thread.run,
        evidence=tuple(_resolved(reading, item) for item in thread.evidence),
        facts=thread.facts,
        accepted=tuple(thread.proposals[stage] for stage in _before(thread.stage) if stage in thread.proposals),
        last=thread.last if thread.last is not None and thread.last.stage is thread.stage else None,
        failed=_has_failed(thread),
        problem=thread.problem,
        actions=rules.catalogue.offered(thread),
        seconds=seconds,
        tokens=max(0, left),
        errors=errors,
    )


def _has_failed(thread: Thread) -> bool:
    """Return True if the last problem of a thread is that of its last execution."""
    report = thread.execution.report if thread.execution is not None else None
    if report is None or report.succeeded or thread.problem is None:
        return False
    return (thread.problem.code, thread.problem.text) == (report.code or "failed", report.summary)


def _before(stage: Stage) -> tuple[Stage, ...]:
    return STAGES[: STAGES.index(stage)]


def _resolved(reading: Reading, item: Evidence) -> Evidence:
    """Return a piece of evidence with its private text, and without secrets."""
    text = item.text
    if item.blob is not None:
        found = reading.blob(item.blob)
        text = ERASED if found is None else found
    return replace(item, label=mask_text(item.label), text=mask_text(text))


@dataclass(frozen=True, slots=True)
class Checked:
    """A proposal as it may be used, or the `faults` for which it may not."""

    proposal: Proposal | None = None
    faults: tuple[str, ...] = ()
    bound: Bound | None = None
    """The action as it would run."""


def usable(answer: object, thread: Thread, catalogue: Catalogue, author: str) -> tuple[tuple[Checked, ...], list[str]]:
    """Return the usable proposals of an answer, the asked stage's first, or the faults if that has none.

    Those of later stages are left out if they are not usable, or if one is stored.
    """
    if not isinstance(answer, Inferred):
        return (), [f"the answer is {_kind(answer)} and no Inferred"]
    if not isinstance(answer.proposals, tuple | list):
        return (), [f"its proposals are {_kind(answer.proposals)} and no tuple"]
    found: dict[Stage, Checked] = {}
    given: Sequence[object] = answer.proposals
    for each in given:
        if isinstance(each, Proposal) and each.stage in STAGES:
            proposal = replace(each, stage=Stage(each.stage))
            found.setdefault(proposal.stage, check(proposal, thread, catalogue, author=author))
    asked = found.get(thread.stage)
    if asked is None:
        return (), [f"it has no proposal of the stage {thread.stage.value!r}"]
    if asked.faults:
        return (), list(asked.faults)
    later = [found[stage] for stage in STAGES[len(_before(thread.stage)) + 1 :] if _is_new(stage, found, thread)]
    return (asked, *later), []


def _is_new(stage: Stage, found: Mapping[Stage, Checked], thread: Thread) -> bool:
    return stage in found and not found[stage].faults and stage not in thread.proposals


def check(proposal: Proposal, thread: Thread, catalogue: Catalogue, *, author: str | None = None) -> Checked:
    """Check a proposal; `author` is the inferencer's name, None for one that is stored, whose evidence is known."""
    faults = _confidence_faults(proposal.confidence)
    body, bound = _body(proposal, thread, catalogue)
    if isinstance(body, str):
        faults.append(body)
        body = {}
    refs = proposal.refs
    if author is not None:
        faults += _unknown(refs, {item.id for item in thread.evidence})
    if faults:
        return Checked(faults=tuple(faults))
    made_by = proposal.author if author is None else author
    kept = replace(proposal, body=body, confidence=float(proposal.confidence), refs=tuple(refs), author=made_by)
    return Checked(kept, (), bound)


def _confidence_faults(confidence: object) -> list[str]:
    if isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0.0 <= confidence <= 1.0:
        return []
    return [f"its confidence is {str(confidence)[:SHOWN_CHARS]} and no number from 0 to 1"]


def _unknown(refs: object, known: Collection[str]) -> list[str]:
    if not isinstance(refs, tuple | list):
        return [f"its refs are {_kind(refs)} and no tuple"]
    unknown = [str(ref)[:SHOWN_CHARS] for ref in refs if not isinstance(ref, str) or ref not in known]
    return [f"it refers to evidence that does not exist: {unknown[0]!r}"] if unknown else []


def _body(proposal: Proposal, thread: Thread, catalogue: Catalogue) -> tuple[dict[str, object] | str, Bound | None]:
    """Return the fields that a proposal may have, or the fault; an action also as it would run."""
    body: object = proposal.body
    if not isinstance(body, Mapping):
        return f"its body is {_kind(body)} and no mapping", None
    if proposal.stage is not Stage.ACTION:
        return _texts(body, "text"), None
    if body.get("question") is not None:
        return _texts(body, "question"), None
    bound = catalogue.bind(body.get("action"), body.get("parameters", {}), thread)
    if isinstance(bound, str):
        return bound, None
    parameters = json.loads(json.dumps(body.get("parameters", {})))
    kept: dict[str, object] = {"action": bound.action, "parameters": parameters}
    if (size := len(json.dumps(kept).encode())) > ACTION_BYTES:
        return f"the action has {size} bytes with its parameters; the most are {ACTION_BYTES}", None
    return kept, bound


def _texts(body: Mapping[str, object], name: str) -> dict[str, object] | str:
    text = body.get(name)
    if not isinstance(text, str) or not text.strip():
        return f"its {name} is empty" if isinstance(text, str) else f"its {name} is {_kind(text)} and no text"
    text = text.strip()
    return {name: text if len(text) <= PROPOSAL_CHARS else f"{text[: PROPOSAL_CHARS - 1]}…"}


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
