"""An inferencer without a model: makes proposals from the kind of a cause and its evidence, by fixed rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from reasonblocks.render.sanitise import sanitise
from reasonblocks.util.text import collapse

from .builtin import GUIDANCE_CHARS, INJECT_GUIDANCE
from .phases import STAGES, Stage
from .ports import Ask, Inferred
from .values import Proposal

if TYPE_CHECKING:
    from .values import Evidence

NAME = "rules"

TITLE_CONFIDENCE = 0.9
"""The confidence of an intent that repeats the cause's title: its opener wrote it, nothing is guessed."""
INTENT_CONFIDENCE = 0.8
"""The confidence of a built-in intent: it follows from counts in the run, not from the purpose of the run."""
CONTEXT_CONFIDENCE = 0.7
"""The confidence of a context: it lists the given evidence, and may be incomplete."""
TOLD_CONFIDENCE = 0.8
"""The confidence of guidance in the words of a person."""
GUIDANCE_CONFIDENCE = 0.6
"""The confidence of guidance from evidence: it is true, but general."""
AGAIN_CONFIDENCE = 0.3
"""Of an action that failed before: below the floor of the policies, so a person decides."""

TEXT_CHARS = 1_000
QUOTED = 6
"""The number of newest pieces of evidence that a text quotes."""
QUOTE_CHARS = 160
NAMED = 8
"""The most actions that a question names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """The texts for a cause of steering: the intent of its thread, the observation, and the advice to the run."""

    intent: str
    observed: str
    advice: str


TROUBLES: Mapping[str, _Trouble] = MappingProxyType(
    {
        "run_stalled": _Trouble(
            intent="Get the stalled run going again, or decide that it should stop.",
            observed="This run appears to have made no progress for many steps.",
            advice="Do not repeat what has not worked. State in one sentence what blocks you. Then try a different "
            "approach, or finish and report what you have found and what is missing.",
        ),
        "run_struggling": _Trouble(
            intent="Help the run out of a difficulty that it has not solved in many calls.",
            observed="This run has had difficulties for many calls, and the advice of monitors has not ended them.",
            advice="Name the assumption that your last attempts share, and check it before anything else. If it is "
            "wrong, choose another way.",
        ),
        "monitor_unheeded": _Trouble(
            intent="Make the run act on a problem that a monitor finds in it.",
            observed="A monitor finds a problem in this run, and the advice of monitors has not ended it.",
            advice="State which part of your work this refers to, and change it before you continue.",
        ),
    }
)
"""The texts for the causes of steering, by kind."""


class RuleInferencer:
    """Makes proposals offline and deterministically: the same request gets the same answer.

    For a cause of steering, it proposes guidance for the run, in a person's words or from the evidence. For all other
    causes, it takes the title as the intent and asks a person for an action. An action that failed is proposed
    again after a person said how to continue, so that it can be corrected and approved.
    """

    @property
    def name(self) -> str:
        return NAME

    def infer(self, ask: Ask) -> Inferred:
        """Return proposals for the requested stage and the later ones."""
        make = {Stage.INTENT: _intent, Stage.CONTEXT: _context, Stage.ACTION: _action}
        return Inferred(proposals=tuple(make[stage](ask) for stage in STAGES[STAGES.index(ask.stage) :]))


def _intent(ask: Ask) -> Proposal:
    corrected = _told(ask, Stage.INTENT)
    if corrected:
        return Proposal.of_intent(_cut(corrected), confidence=TITLE_CONFIDENCE)
    trouble = TROUBLES.get(ask.cause_kind)
    if trouble is None:
        return Proposal.of_intent(_cut(ask.title) or "(no title)", confidence=TITLE_CONFIDENCE)
    return Proposal.of_intent(trouble.intent, confidence=INTENT_CONFIDENCE)


def _context(ask: Ask) -> Proposal:
    quoted = ask.evidence[-QUOTED:]
    lines = [item.label if _is_bare(item) else f"{item.label}: {item.text}" for item in quoted]
    if told := _told(ask, Stage.CONTEXT):
        lines.append(f"A person adds: {told}")
    text = "\n".join(_cut(collapse(line), QUOTE_CHARS) for line in lines) or "No evidence was given."
    return Proposal(
        stage=Stage.CONTEXT,
        body={"text": _cut(text)},
        confidence=CONTEXT_CONFIDENCE,
        refs=tuple(item.id for item in quoted),
    )


def _action(ask: Ask) -> Proposal:
    trouble = TROUBLES.get(ask.cause_kind)
    if trouble is None:
        return _again(ask) or Proposal.of_question(_question(ask))
    guidance = next((offered for offered in ask.actions if offered.name == INJECT_GUIDANCE), None)
    if guidance is None or guidance.unavailable or ask.run_id is None or ask.run == "ended":
        why = (
            "the run has ended, so no guidance can reach it" if ask.run == "ended" else "no guidance can reach this run"
        )
        return Proposal.of_question(_question(ask, why))
    if told := _told(ask, Stage.ACTION):
        return _guidance(told, TOLD_CONFIDENCE)
    quoted = _quotable(ask.evidence)
    if not quoted:
        return Proposal.of_question(_cut(f"{ask.title}. There is no evidence to go by. What should the run be told?"))
    return _guidance(_from_evidence(trouble, quoted), GUIDANCE_CONFIDENCE, tuple(item.id for item in quoted))


def _again(ask: Ask) -> Proposal | None:
    """Return the action that failed, so that a person can correct or approve it without typing it anew."""
    action = ask.last.body.get("action") if ask.failed and not ask.errors and ask.last is not None else None
    if not any(offered.name == action and not offered.unavailable for offered in ask.actions):
        return None
    assert ask.last is not None
    return Proposal(stage=Stage.ACTION, body=ask.last.body, confidence=AGAIN_CONFIDENCE)


def _guidance(text: str, confidence: float, refs: tuple[str, ...] = ()) -> Proposal:
    body = {"action": INJECT_GUIDANCE, "parameters": {"text": _cut(text, GUIDANCE_CHARS)}}
    return Proposal(stage=Stage.ACTION, body=body, confidence=confidence, refs=refs)


def _from_evidence(trouble: _Trouble, quoted: Sequence[Evidence]) -> str:
    """Return guidance in our words around quoted evidence, which agents and tools wrote: it may give no order."""
    lines = "\n".join(f"- {_quote(item)}" for item in quoted)
    return f"{trouble.observed}\nEvidence:\n{lines}\n{trouble.advice}"


def _quote(item: Evidence) -> str:
    from reasonblocks.masking.mask import plain_words

    return _cut(sanitise(plain_words(collapse(f"{item.label}: {item.text}"))), QUOTE_CHARS)


def _quotable(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return the newest evidence that has a text and may be quoted."""
    return [item for item in evidence if not _is_bare(item)][-QUOTED:]


def _is_bare(item: Evidence) -> bool:
    """Return True for evidence that has no text to quote: a private one could not be erased from a proposal."""
    return item.private or item.blob is not None or not item.text.strip()


def _question(ask: Ask, why: str = "") -> str:
    """Return the question to a person if the rules have no action to propose."""
    parts = [f"Which action fits {ask.title!r}?"]
    if _told(ask, Stage.ACTION):
        parts.insert(0, "The rules cannot turn words into an action.")
    if ask.errors:
        parts.insert(0, f"The proposed action cannot run: {'; '.join(ask.errors)}.")
    elif ask.problem is not None:
        parts.insert(0, f"{ask.problem.text.rstrip('.')}.")
    elif why:
        parts.insert(0, f"{why[:1].upper()}{why[1:].rstrip('.')}.")
    names = [offered.name for offered in ask.actions if not offered.unavailable][:NAMED]
    if names:
        parts.append(f"Available: {', '.join(names)}.")
    return _cut(" ".join(parts))


def _told(ask: Ask, stage: Stage) -> str:
    """Return the last words of a person at a stage."""
    return next((fact.text for fact in reversed(ask.facts) if fact.stage is stage and fact.text.strip()), "")


def _cut(text: str, limit: int = TEXT_CHARS) -> str:
    """Return a text in one piece, cut after a word to a limit."""
    text = text.strip()
    if len(text) <= limit:
        return text
    return (text[: limit - 1].rpartition(" ")[0] or text[: limit - 1]) + "…"
