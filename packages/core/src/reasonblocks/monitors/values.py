"""Which values a thought states for named things, and whether they differ from those stated before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..types import JSON
from .features import Features
from .finding import rows
from .outcome import hash_of

__all__ = ["values_in"]

HEAD = 1_000
"""Characters of a thought that are looked at."""
MOST_VALUES = 8
"""Statements that are remembered: the newest ones."""
LONGEST = 20
"""Words of a sentence that states one thing."""
MOST_PARTS = 3
"""Words of a value: "3 may 2024"."""

_COPULAS = frozenset("is are was were equals totals amounts comes".split())
_VERBS = _COPULAS | frozenset("costs ships arrives departs leaves starts begins ends opens closes".split())
_MONTHS = frozenset("january february march april may june july august september october november december".split())
_SMALL = frozenset("the a an of for to in on at by from and its this that it there here exactly".split())
_UNSURE = frozenset(
    "if not would could should might maybe perhaps either or let unless assume assuming about around roughly next "
    "current step page epoch round attempt iteration other another first second third last left remaining".split()
)
"""A sentence with one of these is a guess, or counts something up: it states nothing that has to stay."""
_REASONS = frozenset(
    "because since but actually correct correction corrected correcting mistake mistaken wrong error earlier before "
    "previous previously first instead rather not however after now updated update new include included includes "
    "including exclude excluded excludes excluding excludes recount recounted recalculated again sorry apologies "
    "apologize said had change changed changes due given with without adding added so therefore thus then found shows "
    "show says according turns turned once if minus plus subtracting".split()
)
"""Words of a thought that gives a reason for another value, good or bad."""
_STATED = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b[^.!?\n]{{0,40}}\d")
_DIGIT = re.compile(r"\d")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_EDGES = ".,:;!()[]*_`\"'$€£"


def values_in(features: Features, kept: Mapping[str, JSON]) -> tuple[list[int], Mapping[str, JSON]]:
    """The two steps that give different values for one thing, or none; and what to remember.

    A result that is new may be the reason for another value: what was stated before it is forgotten.
    """
    known = rows(kept, "stated")
    fresh = features.result is not None and features.result != kept.get("result")
    if fresh and not known:
        return [], {"result": features.result}
    stated = dict(_stated(features.thought[:HEAD])) if _may_state(features) else {}
    other: list[int] = []
    if stated and _REASONS.isdisjoint(features.vocabulary):
        other = [row[2] for row in known if row[0] in stated and row[1] != stated[row[0]]][-1:]
    if fresh:
        return _pair(other, features.index), {"result": features.result}
    if stated:
        rest = [row for row in known if row[0] not in stated]
        new = [[thing, value, features.index] for thing, value in stated.items()]
        kept = {**kept, "stated": [*rest, *new][-MOST_VALUES:]}
    return _pair(other, features.index), kept


def _pair(other: list[int], index: int) -> list[int]:
    return [*other, index] if other else []


def _may_state(features: Features) -> bool:
    return (
        not _VERBS.isdisjoint(features.vocabulary)
        and _DIGIT.search(features.thought, 0, HEAD) is not None  # which each statement ends with
        and _STATED.search(features.thought, 0, HEAD) is not None
    )


def _stated(text: str) -> Iterator[tuple[int, int]]:
    """Hashes of thing and value. A thing with two values in one thought is a list of things, not one thing."""
    found = [one for sentence in _SENTENCE.split(text) if (one := _statement(sentence))]
    for thing, value in found:
        if all(other == value for same, other in found if same == thing):
            yield thing, value


def _statement(sentence: str) -> tuple[int, int] | None:
    said = [word.strip(_EDGES) for word in sentence.split()]
    at = next((n for n, word in enumerate(said) if n and word in _VERBS), 0)
    if not at or len(said) > LONGEST or sentence.endswith("?") or not _UNSURE.isdisjoint(said):
        return None
    value = [n for n in range(at + 1, len(said)) if said[n] in _MONTHS or any(map(str.isdigit, said[n]))]
    if not value or len(value) > MOST_PARTS or value[-1] - value[0] >= len(value):
        return None
    subject = _names(said[:at])
    if not subject:
        return None
    verb = () if said[at] in _COPULAS else (said[at],)
    thing = {*subject, *verb, *_names([word for n, word in enumerate(said[at + 1 :], at + 1) if n not in value])}
    return hash_of(" ".join(sorted(thing))), hash_of(" ".join(sorted(_plain(said[n]) for n in value)))


def _names(said: list[str]) -> list[str]:
    return [word for word in said if word not in _SMALL and (len(word) > 1 or word.isdigit())]


def _plain(value: str) -> str:
    """ "1,200.00" and "1200" are one value."""
    value = value.replace(",", "")
    return value.rstrip("0").rstrip(".") if "." in value else value
