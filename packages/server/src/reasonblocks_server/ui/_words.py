"""Formats times, shares and states for the dashboard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone

from ..values import NoteRow, RunRow

SILENT = 600.0
"""Seconds without an event after which a live run counts as silent."""
NOTICES: Mapping[str, str] = {
    "note-queued": "The note is sent. Below it says whether the agent has been told.",
    "note-withdrawn": "The note is withdrawn.",
    "note-late": "The note can no longer be withdrawn.",
    "run-deleted": "The run is deleted.",
    "pattern-saved": "The pattern is saved.",
    "pattern-added": "The pattern is added.",
    "pattern-deleted": "The pattern is deleted.",
    "pattern-off": "The pattern is off and is never retrieved.",
    "pattern-on": "The pattern is on.",
    "agent-deleted": "The agent's patience is deleted.",
    "finding-forgotten": "The finding is forgotten.",
    "findings-forgotten": "The findings are forgotten.",
    "findings-none": "Nothing is forgotten: no such finding is stored.",
    "key-revoked": "The key is revoked. All servers refuse it within 30 seconds.",
    "org-saved": "The settings are saved.",
    "card-answered": "Your answer is in the log of the thread.",
    "card-later": "The card is put off.",
    "logged-out": "You are logged out.",
}
"""The sentences that a page shows after a form was sent, by their names in its address."""


def ago(then: float | None, now: float) -> str:
    """Return the time since a moment in one unit, as `42 s ago`."""
    if then is None or not math.isfinite(then):
        return "–"
    passed = now - then
    if passed < 1:
        return "now"
    for limit, unit, name in ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (30 * 86_400, 86_400, "d")):
        if passed < limit:
            return f"{passed // unit:.0f} {name} ago"
    return moment(then).partition(" ")[0]


def moment(then: float | None) -> str:
    """Return a time as `2026-01-31 12:00:09 UTC`; `–` for a missing time and for one outside the calendar."""
    if then is None:
        return "–"
    try:
        return datetime.fromtimestamp(then, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return "–"


def share(value: float | None, digits: int = 0) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f} %"


def decimal(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}".replace("-", "−")


def sentence_case(words: str) -> str:
    return words[:1].upper() + words[1:]


def status(run: RunRow, now: float) -> str:
    """Return the status of a run without an outcome: "live", or the time for which it has been silent."""
    if run.finished is not None:
        return ""
    quiet = now - run.seen
    if quiet < SILENT:
        return "live"
    hours, minutes = divmod(int(quiet // 60), 60)
    if hours >= 48:
        return f"silent for {hours // 24} d"
    return f"silent for {hours} h" if hours else f"silent for {minutes} min"


def note(row: NoteRow) -> str:
    """Return the state of a note in words."""
    if row.state == "told":
        return "told" if row.told_step is None else f"told before call {row.told_step}"
    return {
        "queued": "waiting for the agent's next call",
        "withdrawn": "withdrawn",
        "expired": "expired before the agent's next call",
        "unheard": "not told: the run ended first",
    }[row.state]
