"""From injections to the one text that the model reads: sizes, order, frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..text import cut, size
from ..types import ETrace, Injection, Source, Tier
from ._forms import render_pattern, text_field
from ._sanitise import sanitise

FRAME = "[REASONBLOCKS]"
INJECTION_BYTES = 4_096
"""The most that one injection may take, in bytes of UTF-8 (as JSON: an escape counts twice)."""
CONTEXT_CHARS = 9_500
"""The most that guidance may take in `context` placement: beyond some 10,000 the Claude CLI shows a preview only."""
SOURCES: dict[Tier, Source] = {"e1": "E1Injection", "e2": "E2Injection", "e3": "E3Injection"}


def monitor_injection(text: str, pattern_ids: tuple[str, ...] = ()) -> Injection | None:
    """A monitor's text; None when nothing of it is left to show."""
    shown = _cut(sanitise(text))
    return Injection(source="MonitorSteeringInjection", text=shown, pattern_ids=pattern_ids) if shown else None


def steered_text(evidence: str, trace: ETrace) -> str | None:
    """The evidence sentence of a monitor and the intervention of an E2; None when the pattern has none."""
    intervention = text_field(trace.pattern.fields, "intervention")
    return f"{evidence} {intervention}" if intervention else None


def tier_injections(tier: Tier, traces: Iterable[ETrace], model_id: str) -> tuple[tuple[Injection, ...], list[str]]:
    """What a tier says, and the ids of the patterns that lack a field. All of E3 is one injection."""
    texts: list[tuple[str, str]] = []
    lacking: list[str] = []
    for trace in traces:
        text = render_pattern(tier, model_id, trace.pattern.fields)
        if text is None:
            lacking.append(trace.pattern.id)
        else:
            texts.append((trace.pattern.id, text))
    groups = [_fitting(texts)] if tier == "e3" and texts else [[one] for one in texts]
    return tuple(_joined(SOURCES[tier], group) for group in groups), lacking


def _joined(source: Source, group: Sequence[tuple[str, str]]) -> Injection:
    text = _cut("\n".join(text for _, text in group))
    return Injection(source=source, text=text, pattern_ids=tuple(one for one, _ in group))


def _fitting(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Whole rules from the start, as many as one injection holds (at least one, cut if need be)."""
    for end in range(len(texts), 1, -1):
        if size("\n".join(text for _, text in texts[:end])) <= INJECTION_BYTES:
            return list(texts[:end])
    return [texts[0]]


def _cut(text: str) -> str:
    return text if size(text) <= INJECTION_BYTES else cut(text, INJECTION_BYTES - 3) + "…"


def fit(injections: Sequence[Injection], limit: int) -> tuple[tuple[Injection, ...], tuple[Source, ...]]:
    """What stays within `limit` bytes of guidance, and the sources of what was dropped from the end."""
    kept = list(injections)
    while kept and size(guidance(kept)) > limit:
        kept.pop()
    return tuple(kept), tuple(one.source for one in injections[len(kept) :])


def guidance(injections: Iterable[Injection]) -> str:
    """The frame's line and the injections, joined by blank lines; empty when there are none."""
    texts = [injection.text for injection in injections]
    return f"{FRAME}\n" + "\n\n".join(texts) if texts else ""
