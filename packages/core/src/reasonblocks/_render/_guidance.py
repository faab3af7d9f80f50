"""From injections to the one text that the model reads: sizes, order, frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from ..types import JSON, ETrace, Injection, Source, Tier
from ._sanitise import sanitise

Family: TypeAlias = Literal["haiku", "sonnet", "opus", "gpt", "gemini", "neutral"]

_CLAUDE: Mapping[Tier, str] = {
    "e1": "<lesson>\nIn a similar situation: {observation}\nWhat helped: {recommended_action}\n</lesson>",
    "e2": (
        "<lesson>\nWhat seems to be going on: {diagnosis}\nTry this: {intervention}\n"
        "What did not help others: {anti_pattern}\n</lesson>"
    ),
    "e3": "- {instruction}",
}
FORMS: Mapping[Family, Mapping[Tier, str]] = {
    "haiku": {
        "e1": "<lesson>\n{observation}\nWhat helped: {recommended_action}\n</lesson>",
        "e2": "<lesson>\n{diagnosis}\nTry this: {intervention}\n</lesson>",
        "e3": "- {instruction}",
    },
    "sonnet": _CLAUDE,
    "opus": _CLAUDE,
    "gpt": {
        "e1": "**From a similar run.** {observation}\n**What helped:** {recommended_action}",
        "e2": "**Diagnosis:** {diagnosis}\n**Next:** {intervention}\n**Avoid:** {anti_pattern}",
        "e3": "- {instruction}",
    },
    "gemini": {
        "e1": "Similar run: {observation}\nNext step that helped: {recommended_action}",
        "e2": "Diagnosis: {diagnosis}\nNext step: {intervention}\nAvoid: {anti_pattern}",
        "e3": "* {instruction}",
    },
    "neutral": {
        "e1": "From a similar run: {observation}\nWhat helped: {recommended_action}",
        "e2": "What seems to be going on: {diagnosis}\nTry this: {intervention}\nWhat did not help: {anti_pattern}",
        "e3": "- {instruction}",
    },
}
FIELDS: Mapping[Tier, tuple[str, ...]] = {
    "e1": ("observation", "recommended_action"),
    "e2": ("diagnosis", "intervention", "anti_pattern"),
    "e3": ("instruction",),
}
_MARKS: tuple[tuple[str, Family], ...] = (
    ("haiku", "haiku"),
    ("opus", "opus"),
    ("claude", "sonnet"),
    ("sonnet", "sonnet"),
    ("gemini", "gemini"),
    ("gpt", "gpt"),
    ("openai", "gpt"),
    ("o1", "gpt"),
    ("o3", "gpt"),
    ("o4", "gpt"),
)


def family(model_id: str) -> Family:
    """The model family that a name speaks of; `neutral` for everything unknown."""
    name = model_id.lower()
    tail = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    for mark, found in _MARKS:
        if tail.startswith(mark) if len(mark) == 2 else mark in name:
            return found
    return "neutral"


def render_pattern(tier: Tier, model_id: str, fields: Mapping[str, JSON]) -> str | None:
    """A pattern's text for a model; None when a field that its form needs is missing, empty or not text."""
    values = {name: text_field(fields, name) for name in FIELDS[tier]}
    form = FORMS[family(model_id)][tier]
    if any(value is None and f"{{{name}}}" in form for name, value in values.items()):
        return None
    return form.format_map(values)


def text_field(fields: Mapping[str, JSON], name: str) -> str | None:
    """One field, sanitised; None when there is nothing left to show."""
    value = fields.get(name)
    return (sanitise(value) or None) if isinstance(value, str) else None


FRAME = "[REASONBLOCKS]"
INJECTION_BYTES = 4_096
"""The most that one injection may take, in bytes of UTF-8."""
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


def tier_injections(
    tier: Tier, traces: Iterable[ETrace], model_id: str
) -> tuple[tuple[Injection, ...], tuple[str, ...]]:
    """What a tier says, and what of it could not be said. All of E3 is one injection."""
    rendered = [(trace.pattern.id, render_pattern(tier, model_id, trace.pattern.fields)) for trace in traces]
    texts = [(one, text) for one, text in rendered if text is not None]
    notes = lacking([one for one, text in rendered if text is None])
    if tier != "e3" or not texts:
        return tuple(_joined(SOURCES[tier], [one]) for one in texts), notes
    fitting = _fitting(texts)
    left_out = [one for one, _ in texts[len(fitting) :]]
    if left_out:
        notes += (f"standing rules beyond {INJECTION_BYTES} bytes were left out: {', '.join(left_out)}",)
    return (_joined(SOURCES[tier], fitting),), notes


def lacking(ids: Iterable[str]) -> tuple[str, ...]:
    """What the user hears, once a run, of patterns that cannot be rendered."""
    return tuple(f"pattern {one!r} lacks a field that its form needs; it was skipped" for one in ids)


def _joined(source: Source, group: Sequence[tuple[str, str]]) -> Injection:
    text = _cut("\n".join(text for _, text in group))
    return Injection(source=source, text=text, pattern_ids=tuple(one for one, _ in group))


def _fitting(texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Whole rules from the start, as many as one injection holds (at least one, cut if need be)."""
    for end in range(len(texts), 1, -1):
        if _bytes("\n".join(text for _, text in texts[:end])) <= INJECTION_BYTES:
            return texts[:end]
    return texts[:1]


def _bytes(text: str) -> int:
    return len(text.encode())


def _cut(text: str) -> str:
    raw = text.encode()
    return text if len(raw) <= INJECTION_BYTES else raw[: INJECTION_BYTES - 3].decode("utf-8", "ignore") + "…"


def fit(injections: Sequence[Injection], limit: int) -> tuple[tuple[Injection, ...], tuple[Source, ...]]:
    """What stays within `limit` bytes of guidance, and the sources of what was dropped from the end."""
    kept = list(injections)
    while kept and _bytes(guidance(kept)) > limit:
        kept.pop()
    return tuple(kept), tuple(one.source for one in injections[len(kept) :])


def guidance(injections: Iterable[Injection]) -> str:
    """The frame's line and the injections, joined by blank lines; empty when there are none."""
    texts = [injection.text for injection in injections]
    return f"{FRAME}\n" + "\n\n".join(texts) if texts else ""
