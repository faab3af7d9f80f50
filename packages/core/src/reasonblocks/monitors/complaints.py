"""Reads what an error complains of: something missing, the form of the call, a part of its arguments, a rule.

It is apart from `outcome`, which decides whether there is an error at all: these patterns are tried for errors only.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .outcome import AnyCase

HEAD = 2_000
"""Characters at each end of an error that are read."""
SHORTEST = 3
"""Characters of the shortest name in an error that is looked for in the arguments."""

_MISSING = AnyCase(
    r"\bnot f(?:ou|i)nd\b|\bno such\b|\bunknown (?:column|table|field|name|key|user|id|item|tool|function|command)"
    r"|\b(?:does|do|did) not exist|\bdoesn't exist|\bnon-?existent|\bundefined\b|\bis not defined\b|\bno module named\b"
    r"|\bhas no attribute\b|\bkeyerror\b|\bnot (?:been )?recognized\b|\bno matching\b|\bnothing found\b",
    "found find such unknown exist defined module attribute keyerror recognized matching".split(),
)
_OFFERS = AnyCase(
    r"\b(?:similar|did you mean|suggestions?|available \w+|valid (?:values|options|names|choices)|choose from"
    r"|must be one of|expected one of|possible (?:values|options))\b.{0,40}[\['\"`:]",
    "similar,did you mean,suggestion,available ,valid ,choose from,one of,possible ".split(","),
)
_BLOCKED = AnyCase(
    r"\b(?:permission denied|access denied|not (?:allowed|permitted|authorized)|unauthori[sz]ed|forbidden|blocked"
    r"|data omitted|omitted because)\b",
    "denied allowed permitted authori forbidden blocked omitted".split(),
)
_PLACE = re.compile(r"\bline \d|:\d+\b|\b[EFW]\d{3}\b|\bnear ['\"`]")
"""The place of a fault within the call's content."""
_NAME = re.compile(r"['\"`\[(]([^'\"`\[\]()\n]{3,80})['\"`\])]|([A-Za-z]*[\w/-]*[_./\d][\w./-]*)")
"""A name in an error: in quotes or brackets, or a word with a mark that no common word has."""


def says_missing(error: str) -> bool:
    """Return True if an error names something that does not exist."""
    return _MISSING.found(_read(error))


def says_offer(error: str) -> bool:
    """Return True if an error offers what would be right, as "Did you mean ..." does."""
    return _OFFERS.found(_read(error))


def says_blocked(text: str) -> bool:
    """Return True if a result refuses the call by a rule, so that no other arguments would help."""
    return _BLOCKED.found(text)


def names_part(line: str, given: str, tools: Collection[str]) -> bool:
    """Return True if the message of an error names a place in the call's content, or a part of the arguments."""
    if _PLACE.search(line):
        return True
    given = given.lower()
    for quoted, marked in _NAME.findall(line):
        name = (quoted or marked).strip(" .:/").lower()
        if len(name) >= SHORTEST and name not in tools and any(map(str.isalpha, name)) and name in given:
            return True
    return False


def _read(error: str) -> str:
    return error if len(error) <= 2 * HEAD else f"{error[:HEAD]}\n{error[-HEAD:]}"
