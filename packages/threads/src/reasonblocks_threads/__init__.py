"""Threads: matters that a person decides, from an agent's proposal or a stuck run to the action.

A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._async import AsyncThreads
    from ._inferencers import RuleInferencer
    from .catalogue import Action, ActionSpec
    from .engine import Finding
    from .engine.answering import ChildAnswers
    from .errors import (
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
    from .phases import AnswerName, Phase, RunStatus, Stage, Trigger
    from .policy import END_TO_END, HANDS_OFF, PLAN_THEN_REVIEW
    from .ports import Ask, Cleaned, Cleaner, ClosedCard, Inferencer, Inferred, Listed, Notifier
    from .render import render_text
    from .threads import Threads
    from .values import (
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
    "Action": "catalogue",
    "ActionSpec": "catalogue",
    "Actor": "values",
    "Answer": "values",
    "AnswerName": "phases",
    "Ask": "ports",
    "AsyncThreads": "_async",
    "Budget": "values",
    "Card": "values",
    "CardClosed": "errors",
    "Cause": "values",
    "ChildAnswers": "engine.answering",
    "Cleaned": "ports",
    "Cleaner": "ports",
    "ClosedCard": "ports",
    "Conflict": "errors",
    "END_TO_END": "policy",
    "Evidence": "values",
    "Execution": "values",
    "Finding": "engine",
    "HANDS_OFF": "policy",
    "Inferencer": "ports",
    "Inferred": "ports",
    "InvalidTrigger": "errors",
    "Letter": "values",
    "Listed": "ports",
    "Notifier": "ports",
    "PLAN_THEN_REVIEW": "policy",
    "Phase": "phases",
    "Policy": "values",
    "Proposal": "values",
    "ReadOnly": "errors",
    "Refused": "errors",
    "Report": "values",
    "Risk": "values",
    "RuleInferencer": "_inferencers",
    "RunStatus": "phases",
    "Stage": "phases",
    "StoreUnavailable": "errors",
    "Thread": "values",
    "ThreadEvent": "values",
    "Threads": "threads",
    "ThreadsError": "errors",
    "Trigger": "phases",
    "UnknownCard": "errors",
    "UnknownThread": "errors",
    "Work": "values",
    "render_text": "render",
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
