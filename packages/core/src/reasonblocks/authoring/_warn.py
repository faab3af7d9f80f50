"""What an author should look at again in a pattern: nothing here makes it unusable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..monitors.builtin import MONITORS
from ..patterns import EXEMPLAR_CHARS, exemplars
from ..render import FIELDS, FORMS, INJECTION_BYTES, render_pattern, sanitise
from ..text import nearest, preview, words
from ..types import Pattern, Tier

FEWEST_WORDS = 12
"""Words of an exemplar below which it reads as a title: it is compared with the thoughts of three to five steps, and
the shortest of a shipped pattern has 16."""
SHOWN = 40
"""Characters of a text that a warning quotes."""
FAILURE_TYPES = tuple(row.failure_type for row in MONITORS)
OTHER_FIELDS: Mapping[Tier, tuple[str, ...]] = {
    "e1": ("task_context_embedding_text",),
    "e2": ("trigger_state",),
    "e3": ("meta_reasoning_prompt",),
}
"""Fields that are not shown to the model."""
_PUSHY = re.compile(r"\bmust\b|\boverrid\w*|\b(?:do not|don['’]t) mention\b", re.IGNORECASE)
"""BEHAVIOUR section 7: guidance is data, an agent trusts what argues more than what commands."""


def warnings(pattern: Pattern) -> tuple[str, ...]:
    """One line for each thing to look at; none for a pattern that is off."""
    if pattern.off:
        return ()
    return tuple(
        line for look in (_fields, _texts, _size, _failure_type, _exemplars) for line in dict.fromkeys(look(pattern))
    )


def standing_bytes(patterns: Iterable[Pattern]) -> tuple[str, ...]:
    """All standing rules are one injection: a warning when they are too long together."""
    rules = [render_pattern("e3", "", one.fields) or "" for one in patterns if one.tier == "e3" and not one.off]
    size = len("\n".join(rules).encode())
    if size <= INJECTION_BYTES:
        return ()
    return (f"the {len(rules)} rules of tier e3 take {size:,} bytes together; beyond {INJECTION_BYTES:,} the last ones "
            "are left out",)  # fmt: skip


def _fields(pattern: Pattern) -> Iterator[str]:
    known = (*FIELDS[pattern.tier], *OTHER_FIELDS[pattern.tier])
    for name in pattern.fields:
        if name not in known:
            near = nearest(name, known)
            yield f"field {preview(name, SHOWN)!r} is not used in tier {pattern.tier}" + _meant(near)
    lacking = [family for family in FORMS if render_pattern(pattern.tier, family, pattern.fields) is None]
    if lacking:
        missing = [name for name in FIELDS[pattern.tier] if not _shown(pattern, name)]
        whom = "every model" if len(lacking) == len(FORMS) else f"the models {', '.join(lacking)}"
        yield f"without {' and '.join(missing)} it is skipped for {whom}"


def _meant(near: str | None) -> str:
    return f"; did you mean {near!r}?" if near else ""


def _shown(pattern: Pattern, name: str) -> str:
    """What is left of a field once it is sanitised."""
    value = pattern.fields.get(name)
    return sanitise(value) if isinstance(value, str) else ""


def _texts(pattern: Pattern) -> Iterator[str]:
    for name in FIELDS[pattern.tier]:
        text = pattern.fields.get(name)
        if not isinstance(text, str):
            continue
        shown = _shown(pattern, name)
        if shown != text.replace("\r\n", "\n").replace("\r", "\n").strip():
            left = f"what is left begins {preview(shown, SHOWN)!r}" if shown else "nothing is left"
            yield f"{name}: parts of it are stripped before a model sees it; {left}"
        for found in _PUSHY.findall(text):
            yield f"{name}: says {found.lower()!r}; say what to do and why instead"


def _size(pattern: Pattern) -> Iterator[str]:
    texts = [render_pattern(pattern.tier, family, pattern.fields) or "" for family in FORMS]
    size = max(len(text.encode()) for text in texts)
    if size > INJECTION_BYTES:
        yield f"rendered it takes {size:,} bytes; what is beyond {INJECTION_BYTES:,} is cut off"


def _failure_type(pattern: Pattern) -> Iterator[str]:
    named = pattern.failure_type
    if pattern.tier == "e2" and named is None:
        yield f"no failure_type: it competes in every kind of trouble; give one of {', '.join(FAILURE_TYPES)}"
    if named is not None and named not in FAILURE_TYPES:
        yield f"failure_type {preview(named, SHOWN)!r} is none of the shipped monitors'" + _meant(
            nearest(named, FAILURE_TYPES)
        )


def _exemplars(pattern: Pattern) -> Iterator[str]:
    if pattern.tier == "e3":
        return
    if not pattern.exemplars:
        yield "no exemplars: descriptions rarely resemble what agents say; give 3 to 6 thoughts as agents write them"
    for text in exemplars(pattern):
        if len(words(text[:EXEMPLAR_CHARS])) < FEWEST_WORDS:
            yield f"exemplar {preview(text, SHOWN)!r} is short: write what an agent says over three to five steps"
