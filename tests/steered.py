"""A client whose monitors want to speak at every step: the adapters' tests share it, each in its own environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from reasonblocks.types import ETrace, Evaluation, Pattern
from reasonblocks_testing import ScriptedEvaluator, ScriptedReasonBlocks, ScriptedStore

__all__ = ["RULE", "Hostile", "speaking", "steering", "unguided"]

RULE = Pattern(id="rule", tier="e3", fields={"instruction": "Check before you say that it is done."})
MAX_STEPS = 400


class Hostile:
    """A mapped model that raises whatever is asked of it."""

    def _raises(self, *given: object) -> Any:
        raise LookupError("hostile")

    __class__ = property(_raises)
    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __getattr__ = __call__ = _raises


def unguided(text: str) -> str:
    """Return the text of a message without the guidance behind it."""
    return text.partition("\n\n[REASONBLOCKS]")[0]


def speaking(at: int, mark: str = "") -> Evaluation:
    return Evaluation(
        inject=True,
        intervention_text=f"Step {at} looked again{mark}. Read what it said.",
        fired=("semantic_loop",),
        scores={"semantic_loop": 0.9},
        composite=0.225,
        failure_type="loop",
        monitor="semantic_loop",
    )


@cache
def _all_speaking(mark: str) -> Sequence[Evaluation]:
    return [speaking(at, mark) for at in range(MAX_STEPS)]


def steering(mark: str = "", **options: Any) -> ScriptedReasonBlocks:
    """Return a client that wants to say a text of its own at every step, marked if several clients have to differ.

    Every step has a middling difficulty, and one standing rule is in the store.
    """
    given: dict[str, Any] = {
        "evaluator": ScriptedEvaluator(_all_speaking(mark)),
        "pattern_store": ScriptedStore(lambda asked: [ETrace(pattern=RULE)] if asked.tier == RULE.tier else []),
        "scorer": lambda step: 0.4,
        "strict": True,
    }
    return ScriptedReasonBlocks(**{**given, **options})
