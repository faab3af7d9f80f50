"""What an author should look at again in a pattern: nothing here makes it unusable."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._monitors.builtin import MONITORS
from .._patterns import EXEMPLAR_CHARS, exemplars
from .._render import FIELDS, FORMS, INJECTION_BYTES, render_pattern, sanitise
from .._requests import Retrieve
from .._text import collapse, nearest, preview, words
from ..backends._local_store import LocalStore
from ..ports import Embedder
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


NEAR = 0.9
"""The calibrated similarity of two exemplars from which on they are taken for one. 0.8 is what 1 % of unrelated texts
reach with any of 400 patterns (PATTERNS section 2); no two shipped patterns reach 0.9."""
BANK = "bank"
"""The org of a comparison: patterns of different orgs are never compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Two patterns, by id, in order. `same`: a model reads the same; else `similarity` is that of their exemplars."""

    first: str
    second: str
    similarity: float
    same: bool


def near_duplicates(patterns: Sequence[Pattern], embedder: Embedder | None = None) -> tuple[Near, ...]:
    """Every pair, the nearest first. Only patterns of one tier, org and failure type compete with each other.

    Without an `embedder` it is the library's. What an embedder raises is passed on.
    """
    found: dict[tuple[str, str], Near] = {}
    for group in _groups(patterns):
        for near in (*_same(group), *_alike(group, embedder)):
            pair = (near.first, near.second)
            found[pair] = max(near, found.get(pair, near), key=_nearness)
    return tuple(sorted(found.values(), key=lambda one: (*(-value for value in _nearness(one)), one.first, one.second)))


def _nearness(near: Near) -> tuple[bool, float]:
    return near.same, near.similarity


def _pair(one: str, other: str, similarity: float, *, same: bool = False) -> Near:
    return Near(first=min(one, other), second=max(one, other), similarity=similarity, same=same)


def _groups(patterns: Iterable[Pattern]) -> Iterator[list[Pattern]]:
    groups: dict[tuple[str, str | None, str | None], list[Pattern]] = defaultdict(list)
    for one in patterns:
        if not one.off:
            groups[one.tier, one.org_id, one.failure_type].append(one)
    yield from (group for group in groups.values() if len(group) > 1)


def _same(group: Iterable[Pattern]) -> Iterator[Near]:
    """What a model would read, letter by letter."""
    seen: dict[str, str] = {}
    for one in group:
        text = collapse(render_pattern(one.tier, "", one.fields) or "").casefold()
        if text and (first := seen.setdefault(text, one.id)) != one.id:
            yield _pair(first, one.id, 1.0, same=True)


def _alike(group: Iterable[Pattern], embedder: Embedder | None) -> Iterator[Near]:
    """Each text asks for the others, as the thoughts of a run would."""
    bank = [Pattern(id=one.id, tier="e2", exemplars=texts) for one in group if (texts := _lessons(one))]
    with LocalStore(patterns=bank, embedder=embedder) as store:
        for one in bank:
            for text in one.exemplars:
                yield from (_pair(one.id, other, near) for other, near in _found(store, text) if other != one.id)


def _lessons(pattern: Pattern) -> tuple[str, ...]:
    """What it is found by; of a standing rule the rule."""
    rule = pattern.fields.get("instruction")
    return exemplars(pattern) or ((rule,) if isinstance(rule, str) and rule.strip() else ())


def _found(store: LocalStore, text: str) -> Iterator[tuple[str, float]]:
    asked = Retrieve(tier="e2", texts=(text,), top_k=5, similarity=NEAR, org_id=BANK, failure_type=None, model="")
    yield from ((trace.pattern.id, trace.similarity) for trace in store.search(asked))
