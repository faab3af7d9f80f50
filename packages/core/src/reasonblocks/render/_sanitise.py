"""Guidance is data: what could pass for our frame, another role or the chat template is taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._fold import folded, origins, visible
from ._markers import OPENING, ROLE_LINE, TOKEN

LONGEST = 8_192
"""Characters of a text that are looked at: the rest could not be shown anyway."""
MOST_PASSES = 8
"""A text in which frames are nested deeper than this was not written in good faith: nothing of it is shown."""


def sanitise(text: str) -> str:
    """The text without control, bidi and zero-width characters, frames, role markers, template tokens and tool syntax.

    Compared is what a model may read (look-alike letters, marks and entities folded); what is left stays as it was
    written. Repeated until nothing changes: what was taken out never lets two halves of a token meet.
    """
    plain = visible(text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(MOST_PASSES):
        spans = _spans(folded(plain))
        if not spans:
            return plain.strip()
        plain = _without(plain, spans, origins(plain))
    return ""


def _spans(read: str) -> list[tuple[int, int]]:
    """Where a folded text is hostile, in order; not searched where it lacks the characters that each search needs."""
    spans = [match.span() for match in TOKEN.finditer(read)] if any(char in read for char in OPENING) else []
    if ":" in read:  # the line break that a marker is found by stays; the first line lacks one
        spans += [(match.start(1) - 1, match.end(1) - 1) for match in ROLE_LINE.finditer(f"\n{read}")]
    return sorted(spans)


def _without(text: str, spans: Iterable[tuple[int, int]], origin: Sequence[int]) -> str:
    kept, at = [], 0
    for start, end in spans:
        if origin[start] > at:
            kept.append(text[at : origin[start]])
        at = max(at, origin[end])
    return "".join((*kept, text[at:]))
