"""How a pattern reads, by tier and model family: one table (BEHAVIOUR section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..types import JSON, Tier
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
