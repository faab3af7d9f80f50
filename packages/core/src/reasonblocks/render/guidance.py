"""Renders patterns and monitors' texts into injections, and injections into the guidance of one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from ..types import JSON, ETrace, Injection, Pattern, Source, Tier
from .sanitise import sanitise

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
"""Each model family's text of each tier's patterns, with their fields in braces."""
FIELDS: Mapping[Tier, tuple[str, ...]] = {
    "e1": ("observation", "recommended_action"),
    "e2": ("diagnosis", "intervention", "anti_pattern"),
    "e3": ("instruction",),
}
"""The fields of each tier's patterns that forms show."""
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
"""Parts of model names and their families; the first that is found wins. One of two letters must start the name."""


def family(model_id: str) -> Family:
    """Return the model family of a model's name; `neutral` if it is unknown."""
    name = model_id.lower()
    tail = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    for mark, found in _MARKS:
        if tail.startswith(mark) if len(mark) == 2 else mark in name:
            return found
    return "neutral"


def render_pattern(tier: Tier, model_id: str, fields: Mapping[str, JSON]) -> str | None:
    """Return a pattern's text for a model; None if a field that its form needs is missing, empty or not a string."""
    values, form = _values(tier, fields), FORMS[family(model_id)][tier]
    return None if _missing(form, values) else form.format_map(values)


def missing_fields(tier: Tier, model_id: str, fields: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the fields that a pattern's form for a model needs and that are missing, empty or not a string."""
    return _missing(FORMS[family(model_id)][tier], _values(tier, fields))


def _values(tier: Tier, fields: Mapping[str, JSON]) -> dict[str, str | None]:
    return {name: text_field(fields, name) for name in FIELDS[tier]}


def _missing(form: str, values: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple([name for name, value in values.items() if value is None and f"{{{name}}}" in form])


def text_field(fields: Mapping[str, JSON], name: str) -> str | None:
    """Return one sanitised field; None if there is nothing left to show."""
    value = fields.get(name)
    return (sanitise(value) or None) if isinstance(value, str) else None


FRAME = "[REASONBLOCKS]"
"""The first line of guidance."""
OPERATOR = "An operator of this run says:"
"""The beginning of an operator's note."""
ADVISOR = "Another model, asked for advice, says:"
"""The beginning of an advisor's answer."""
NOTE_CHARS = 2_000
"""Characters of an operator's note, at most."""
INJECTION_BYTES = 4_096
"""Bytes of UTF-8 of one injection, at most (BEHAVIOUR section 7)."""
CONTEXT_CHARS = 9_500
"""Characters of guidance in `context` placement, at most: above some 10,000 the Claude CLI only shows a preview."""
SOURCES: dict[Tier, Source] = {"e1": "E1Injection", "e2": "E2Injection", "e3": "E3Injection"}


def monitor_injection(text: str, pattern_ids: tuple[str, ...] = ()) -> Injection | None:
    """Return the injection of a monitor's text; None if nothing of it is left to show."""
    shown = _cut(sanitise(text))
    return Injection(source="MonitorSteeringInjection", text=shown, pattern_ids=pattern_ids) if shown else None


def note_injection(text: str) -> Injection | None:
    """Return the injection of an operator's note; None if nothing of it is left to show."""
    shown = sanitise(text)[:NOTE_CHARS].strip()
    return Injection(source="OperatorInjection", text=_cut(f"{OPERATOR} {shown}")) if shown else None


def with_text(injection: Injection, text: str) -> Injection | None:
    """Return the injection with another text; None if nothing of it is left to show."""
    if text == injection.text:
        return injection
    shown = _cut(sanitise(text))
    return Injection(source=injection.source, text=shown, pattern_ids=injection.pattern_ids) if shown else None


def steered_text(fact: str, hint: str, trace: ETrace) -> str | None:
    """Return a monitor's fact, an E2's intervention and the hint as one text; None if the pattern has none."""
    intervention = text_field(trace.pattern.fields, "intervention")
    return f"{fact} {intervention} {hint}".strip() if intervention else None


def gives_way(pattern: Pattern, hint: str) -> bool:
    """Return True for a general lesson, one of the starter library, beside a hint: that says it better."""
    return bool(hint) and pattern.id.startswith("rb-")


def tier_injections(
    tier: Tier, traces: Iterable[ETrace], model_id: str
) -> tuple[tuple[Injection, ...], tuple[str, ...]]:
    """Return a tier's injections, and warnings about patterns that were left out. All of E3 is one injection."""
    rendered = [(trace.pattern, render_pattern(tier, model_id, trace.pattern.fields)) for trace in traces]
    texts = [(pattern.id, text) for pattern, text in rendered if text is not None]
    skipped = [pattern for pattern, text in rendered if text is None]
    warnings = tuple([lacking(one.id, missing_fields(tier, model_id, one.fields)) for one in skipped])
    if tier != "e3" or not texts:
        return tuple(_joined(SOURCES[tier], [item]) for item in texts), warnings
    fitting = _fitting(texts)
    left_out = [pattern_id for pattern_id, _ in texts[len(fitting) :]]
    if left_out:
        warnings += (f"standing rules beyond {INJECTION_BYTES} bytes were left out: {', '.join(left_out)}",)
    return (_joined(SOURCES[tier], fitting),), warnings


def lacking(pattern_id: str, fields: Sequence[str]) -> str:
    """Return the warning, which the user gets once a run, about a pattern that lacks these fields of its form."""
    return f"pattern {pattern_id!r} lacks {' and '.join(fields)}, which its form needs; it was skipped"


def _joined(source: Source, group: Sequence[tuple[str, str]]) -> Injection:
    text = _cut("\n".join(text for _, text in group))
    return Injection(source=source, text=text, pattern_ids=tuple(pattern_id for pattern_id, _ in group))


def _fitting(texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return the first rules that fit into one injection as a whole; always at least one, which may be cut."""
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
    """Return the first injections that fit into `limit` bytes of guidance, and the sources of the others.

    The line of the budget is the last one, and stays.
    """
    last = tuple(injections[-1:]) if injections and injections[-1].source == "BudgetInjection" else ()
    others = injections[: len(injections) - len(last)]
    count = len(others)
    while count and _bytes(guidance([*others[:count], *last])) > limit:
        count -= 1
    return (*others[:count], *last), tuple(injection.source for injection in others[count:])


def guidance(injections: Iterable[Injection]) -> str:
    """Return the frame's line and the injections, joined by blank lines; "" if there are none."""
    texts = [injection.text for injection in injections]
    return f"{FRAME}\n" + "\n\n".join(texts) if texts else ""
