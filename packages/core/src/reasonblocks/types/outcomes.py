"""Decides what an outcome of a run means, and the outcome that a run is given."""

from __future__ import annotations

from typing import Literal, TypeAlias

OutcomeKind: TypeAlias = Literal["success", "failure", "stopped", "unknown"]
"""A run that `stop_when` ended is "stopped": neither a success nor a failure."""
KNOWN: tuple[Literal["success"], Literal["failure"], Literal["stopped"]] = ("success", "failure", "stopped")
"""The words with which known outcomes begin, in any case. A reason may follow: "failure: the tests still fail"."""
UNKNOWN: Literal["unknown"] = "unknown"
ABANDONED = "failure: abandoned"
"""The outcome of a run that was not finished."""


def kind_of(outcome: str | None) -> OutcomeKind:
    """Return the kind of a recorded outcome; "unknown" for a missing one, and for one that begins with another word."""
    start = _start(outcome or "")
    return next((kind for kind in KNOWN if start == kind), UNKNOWN)


def _start(outcome: str) -> str:
    """Return the word with which an outcome begins, in lower case, if it has the length of the known ones."""
    word = outcome.lstrip()[: len(UNKNOWN) + 1]
    return word[: len(UNKNOWN)].lower() if not word[len(UNKNOWN) :].isalnum() else ""


def outcome_of(given: str) -> str:
    """Return the outcome of a run that was finished with these words.

    One that begins with a known word, or with "unknown", is kept; a success has no reason. Any other text is the reason
    of a failure. "" is unknown.
    """
    given, kind = given.strip(), kind_of(given)
    if kind == "success" or not given:
        return kind
    start = _start(given)
    return f"{start}{given[len(UNKNOWN) :]}" if start in (*KNOWN, UNKNOWN) else f"failure: {given}"


def parts_of(outcome: str) -> tuple[str, str]:
    """Split a run's outcome into its first word, with all that precedes the reason, and the reason."""
    reason = outcome[len(UNKNOWN) :].lstrip(": ")
    return outcome[: len(outcome) - len(reason)], reason


def recorded_outcome(outcome: str | None) -> str:
    """Return a recorded outcome as `outcome_of` keeps it; "unknown" for one of another kind."""
    return UNKNOWN if outcome is None or kind_of(outcome) == UNKNOWN else outcome


def failure_of(reason: str) -> str:
    """Return the outcome of a run that was marked as failed for this reason."""
    return outcome_of(reason) if kind_of(reason) == "failure" else f"failure: {reason}"
