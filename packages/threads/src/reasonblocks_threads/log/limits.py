"""The limits of a thread's head: together they keep it within 32 KB of JSON."""

from __future__ import annotations

from reasonblocks.util.text import size as text_size

from ..codec import encode, size
from ..values import Evidence, Fact

HEAD_BYTES = 32 * 1024

TITLE_CHARS = 200
NAME_CHARS = 200
"""Keys, families, kinds of causes, and ids of runs."""
NAME_BYTES = 400
PERSON_CHARS = 120
PERSON_BYTES = 240
"""Names of persons, and of authors of proposals."""
TEXT_CHARS = 2_000
"""One text of a person."""
FACTS_BYTES = 8_000
LABEL_CHARS = 120
LABEL_BYTES = 240
EVIDENCE_CHARS = 400
EVIDENCE_TEXT_BYTES = 1_200
EVIDENCE_KEPT = 64
EVIDENCE_BYTES = 8_000
SAID_BYTES = 10_000
"""Facts and evidence together: the older evidence gives way."""
PROPOSAL_CHARS = 1_000
PROPOSAL_BYTES = 2_000
ACTION_BYTES = 3_000
"""An action with its parameters, as proposed and as bound."""
REFS_BYTES = 300
SUMMARY_CHARS = 1_000
SUMMARY_BYTES = 1_500
OUTPUT_BYTES = 1_000
REASON_CHARS = 300
REASON_BYTES = 600
POLICY_BYTES = 1_500
NAMES_BYTES = len('{"id":"","label":"","text":""},')
APART_BYTES = len(',"blob":"","private":true')
CALLS_KEPT = 16
CALL_CHARS = 48
CHILDREN = 50
DEPTH = 3
"""Ancestors of a thread."""


def limit_evidence(
    evidence: tuple[Evidence, ...], new: tuple[Evidence, ...], used: int, facts_bytes: int
) -> tuple[tuple[Evidence, ...], int]:
    """Return the newest evidence within the limits, and its bytes. One with a known id takes the older one's place."""
    known = {each.id for each in new}
    again = [each for each in evidence if each.id in known] if known else []
    used += sum(map(_evidence_size, new)) - sum(map(_evidence_size, again))
    found = (*(each for each in evidence if each.id not in known), *new) if again else (*evidence, *new)
    limit = min(EVIDENCE_BYTES, SAID_BYTES - facts_bytes)
    drop = 0
    while drop < len(found) and (used > limit or len(found) - drop > EVIDENCE_KEPT):
        used -= _evidence_size(found[drop])
        drop += 1
    return found[drop:], used


def _evidence_size(evidence: Evidence) -> int:
    """Return the bytes of a piece as JSON, without encoding it: the fold does this for each."""
    apart = 0 if evidence.blob is None and not evidence.private else APART_BYTES + text_size(evidence.blob or "")
    return NAMES_BYTES + apart + text_size(f"{evidence.id}{evidence.label}{evidence.text}")


def fact_size(fact: Fact) -> int:
    """Return the bytes of a fact as JSON."""
    return size(encode(fact)) + 1
