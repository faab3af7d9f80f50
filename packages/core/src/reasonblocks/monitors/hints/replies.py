"""Hints for results that demand something, or that answer an act which was made already."""

from __future__ import annotations

import re

from ...types.account import FAILED
from ..excerpts import literal, shortened_line
from .moment import Moment

ANSWERED = "Each of these calls was answered without an error."
"""The sentence about an act that was made again: it is true, and no way on."""
_DEMANDS = re.compile(
    r"[^.\n]{0,160}\b(?:must|please (?:always|make sure|provide|format|use)|should be|has to|exactly one"
    r"|mak(?:e|ing) sure|format your)\b[^\n]{0,200}",
    re.IGNORECASE,
)


def demand(moment: Moment) -> str:
    """Repeat what the agent's own harness demands of an answer in which it found no call."""
    if moment.call.name:
        return ""
    found = _DEMANDS.search(moment.reading.text[:800])
    return f"The reply says: {literal(shortened_line(found[0].strip(), 220))}." if found else ""


def made_again(moment: Moment) -> str:
    """Say that an act which was made again had succeeded before."""
    if moment.kind.shell or not moment.kind.changes or moment.failed or moment.account.did.letter != "A":
        return ""
    same = [one for one in moment.account.actions if one.call == moment.now.call]
    if len(same) < 2 or any(one.flags & FAILED for one in same):
        return ""
    return ANSWERED
