"""Threads: matters that a person decides, from an agent's proposal or a stuck run to the action.

A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._async import AsyncThreads
    from ._catalogue import Action, ActionSpec
    from ._engine import Finding
    from ._engine._answering import ChildAnswers
    from ._errors import (
        CardClosed,
        Conflict,
        InvalidTrigger,
        ReadOnly,
        Refused,
        StoreUnavailable,
        ThreadsError,
        UnknownCard,
        UnknownThread,
    )
    from ._inferencers import RuleInferencer
    from ._phases import AnswerName, Phase, RunStatus, Stage, Trigger
    from ._policy import END_TO_END, HANDS_OFF, PLAN_THEN_REVIEW
    from ._ports import Ask, Cleaned, Cleaner, ClosedCard, Inferencer, Inferred, Listed, Notifier
    from ._render import render_text
    from ._threads import Threads
    from ._values import (
        Actor,
        Answer,
        Budget,
        Card,
        Cause,
        Evidence,
        Execution,
        Letter,
        Policy,
        Proposal,
        Report,
        Risk,
        Thread,
        ThreadEvent,
        Work,
    )

__all__ = [
    "END_TO_END",
    "HANDS_OFF",
    "PLAN_THEN_REVIEW",
    "Action",
    "ActionSpec",
    "Actor",
    "Answer",
    "AnswerName",
    "Ask",
    "AsyncThreads",
    "Budget",
    "Card",
    "CardClosed",
    "Cause",
    "ChildAnswers",
    "Cleaned",
    "Cleaner",
    "ClosedCard",
    "Conflict",
    "Evidence",
    "Execution",
    "Finding",
    "Inferencer",
    "Inferred",
    "InvalidTrigger",
    "Letter",
    "Listed",
    "Notifier",
    "Phase",
    "Policy",
    "Proposal",
    "ReadOnly",
    "Refused",
    "Report",
    "Risk",
    "RuleInferencer",
    "RunStatus",
    "Stage",
    "StoreUnavailable",
    "Thread",
    "ThreadEvent",
    "Threads",
    "ThreadsError",
    "Trigger",
    "UnknownCard",
    "UnknownThread",
    "Work",
    "__version__",
    "render_text",
]

__version__ = "0.1.0"

_HOMES = {
    "Action": "_catalogue",
    "ActionSpec": "_catalogue",
    "Actor": "_values",
    "Answer": "_values",
    "AnswerName": "_phases",
    "Ask": "_ports",
    "AsyncThreads": "_async",
    "Budget": "_values",
    "Card": "_values",
    "CardClosed": "_errors",
    "Cause": "_values",
    "ChildAnswers": "_engine._answering",
    "Cleaned": "_ports",
    "Cleaner": "_ports",
    "ClosedCard": "_ports",
    "Conflict": "_errors",
    "END_TO_END": "_policy",
    "Evidence": "_values",
    "Execution": "_values",
    "Finding": "_engine",
    "HANDS_OFF": "_policy",
    "Inferencer": "_ports",
    "Inferred": "_ports",
    "InvalidTrigger": "_errors",
    "Letter": "_values",
    "Listed": "_ports",
    "Notifier": "_ports",
    "PLAN_THEN_REVIEW": "_policy",
    "Phase": "_phases",
    "Policy": "_values",
    "Proposal": "_values",
    "ReadOnly": "_errors",
    "Refused": "_errors",
    "Report": "_values",
    "Risk": "_values",
    "RuleInferencer": "_inferencers",
    "RunStatus": "_phases",
    "Stage": "_phases",
    "StoreUnavailable": "_errors",
    "Thread": "_values",
    "ThreadEvent": "_values",
    "Threads": "_threads",
    "ThreadsError": "_errors",
    "Trigger": "_phases",
    "UnknownCard": "_errors",
    "UnknownThread": "_errors",
    "Work": "_values",
    "render_text": "_render",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
