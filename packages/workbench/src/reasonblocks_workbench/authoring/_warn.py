"""Warns authors of likely mistakes in patterns; none of them makes a pattern unusable."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.monitors.builtin import MONITORS
from reasonblocks.monitors.kinds import KINDS, TYPES
from reasonblocks.patterns import EXEMPLAR_CHARS, exemplars
from reasonblocks.ports import Embedder
from reasonblocks.render.guidance import FIELDS, FORMS, INJECTION_BYTES, missing_fields, render_pattern
from reasonblocks.render.sanitise import sanitise
from reasonblocks.requests import Retrieve
from reasonblocks.types import Pattern, Tier
from reasonblocks.util.text import collapse, nearest, preview, words

MIN_WORDS = 12
"""A shorter exemplar reads as a title. It is compared with the thoughts of three to five steps; the shortest one of a
shipped pattern has 16 words."""
QUOTED = 40
"""Characters of a text that a warning quotes."""
FAILURE_TYPES = tuple(row.failure_type for row in MONITORS)
OTHER_FIELDS: Mapping[Tier, tuple[str, ...]] = {
    "e1": ("task_context_embedding_text",),
    "e2": ("trigger_state",),
    "e3": ("meta_reasoning_prompt",),
}
"""Valid fields that are not shown to the model."""
_PUSHY = re.compile(r"\bmust\b|\boverrid\w*|\b(?:do not|don['’]t) mention\b", re.IGNORECASE)
"""BEHAVIOUR section 7: agents trust guidance that gives reasons more than guidance that commands."""


def warnings(pattern: Pattern) -> tuple[str, ...]:
    """Return one line for each warning; none for a pattern that is off."""
    if pattern.off:
        return ()
    checks = (_fields, _texts, _size, _failure_type, _kinds, _exemplars)
    return tuple(line for check in checks for line in dict.fromkeys(check(pattern)))


def fields_for_any(pattern: Pattern) -> tuple[str, ...]:
    """Return the missing fields without which no model is shown the pattern; none for a pattern that is off."""
    if pattern.off:
        return ()
    missing = [missing_fields(pattern.tier, family, pattern.fields) for family in FORMS]
    return tuple([name for name in FIELDS[pattern.tier] if all(name in names for names in missing)])


def standing_bytes(patterns: Iterable[Pattern]) -> tuple[str, ...]:
    """Return a warning if the standing rules, which are one injection, are too long together."""
    standing = [pattern for pattern in patterns if pattern.tier == "e3" and not pattern.off]
    rules = [render_pattern("e3", "", pattern.fields) or "" for pattern in standing]
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
            yield f"field {preview(name, QUOTED)!r} is not used in tier {pattern.tier}" + _meant(near)
    lacking = [family for family in FORMS if render_pattern(pattern.tier, family, pattern.fields) is None]
    if lacking:
        missing = [name for name in FIELDS[pattern.tier] if not _shown(pattern, name)]
        whom = "every model" if len(lacking) == len(FORMS) else f"the models {', '.join(lacking)}"
        yield f"without {' and '.join(missing)} it is skipped for {whom}"


def _meant(near: str | None) -> str:
    return f"; did you mean {near!r}?" if near else ""


def _shown(pattern: Pattern, name: str) -> str:
    """Return the sanitised field, "" if it is no text."""
    value = pattern.fields.get(name)
    return sanitise(value) if isinstance(value, str) else ""


def _texts(pattern: Pattern) -> Iterator[str]:
    for name in FIELDS[pattern.tier]:
        text = pattern.fields.get(name)
        if not isinstance(text, str):
            continue
        shown = _shown(pattern, name)
        if shown != text.replace("\r\n", "\n").replace("\r", "\n").strip():
            left = f"what is left begins {preview(shown, QUOTED)!r}" if shown else "nothing is left"
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
        yield f"failure_type {preview(named, QUOTED)!r} is none of the shipped monitors'" + _meant(
            nearest(named, FAILURE_TYPES)
        )


def _kinds(pattern: Pattern) -> Iterator[str]:
    named = pattern.failure_type
    own = KINDS.get(named, ()) if named is not None else tuple(TYPES)
    for kind in pattern.kinds:
        if kind not in TYPES:
            near = nearest(kind, own or TYPES)
            yield f"kind {preview(kind, QUOTED)!r} is none of the shipped monitors'" + _meant(near)
        elif named in KINDS and kind not in own:
            yield f"kind {kind!r} is one of failure_type {TYPES[kind]!r}: with {named!r} it fits no finding"


def _exemplars(pattern: Pattern) -> Iterator[str]:
    if pattern.tier == "e3":
        return
    if not pattern.exemplars:
        yield "no exemplars: descriptions rarely resemble what agents say; give 3 to 6 thoughts as agents write them"
    for text in exemplars(pattern):
        if len(words(text[:EXEMPLAR_CHARS])) < MIN_WORDS:
            yield f"exemplar {preview(text, QUOTED)!r} is short: write what an agent says over three to five steps"


NEAR = 0.9
"""The calibrated similarity from which two exemplars count as duplicates. 1 % of unrelated texts reach 0.8 with any of
400 patterns (PATTERNS section 2); no two shipped patterns reach 0.9."""
BANK = "bank"
"""The org under which a group is compared; a group's patterns all belong to one org."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Two similar patterns, by id, in order.

    `same`: a model would read the same text. Otherwise `similarity` is that of their exemplars.
    """

    first: str
    second: str
    similarity: float
    same: bool


def near_duplicates(patterns: Sequence[Pattern], embedder: Embedder | None = None) -> tuple[Near, ...]:
    """Return every similar pair, the nearest first. Only patterns of one tier, org and failure type are compared.

    The default `embedder` is the library's. Exceptions of an embedder propagate.
    """
    found: dict[tuple[str, str], Near] = {}
    for group in _groups(patterns):
        for near in (*_same(group), *_alike(group, embedder)):
            pair = (near.first, near.second)
            found[pair] = max(near, found.get(pair, near), key=_nearness)
    return tuple(
        sorted(found.values(), key=lambda near: (*(-value for value in _nearness(near)), near.first, near.second))
    )


def _nearness(near: Near) -> tuple[bool, float]:
    return near.same, near.similarity


def _pair(pattern_id: str, other: str, similarity: float, *, same: bool = False) -> Near:
    return Near(first=min(pattern_id, other), second=max(pattern_id, other), similarity=similarity, same=same)


def _groups(patterns: Iterable[Pattern]) -> Iterator[list[Pattern]]:
    groups: dict[tuple[str, str | None, str | None], list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        if not pattern.off:
            groups[pattern.tier, pattern.org_id, pattern.failure_type].append(pattern)
    yield from (group for group in groups.values() if len(group) > 1)


def _same(group: Iterable[Pattern]) -> Iterator[Near]:
    """Yield the pairs that render to the same text."""
    seen: dict[str, str] = {}
    for pattern in group:
        text = collapse(render_pattern(pattern.tier, "", pattern.fields) or "").casefold()
        if text and (first := seen.setdefault(text, pattern.id)) != pattern.id:
            yield _pair(first, pattern.id, 1.0, same=True)


def _alike(group: Iterable[Pattern], embedder: Embedder | None) -> Iterator[Near]:
    """Yield the pairs in which one pattern's exemplar finds the other, as the thoughts of a run would."""
    bank = [Pattern(id=pattern.id, tier="e2", exemplars=texts) for pattern in group if (texts := _searched(pattern))]
    with LocalStore(patterns=bank, embedder=embedder) as store:
        for pattern in bank:
            for text in pattern.exemplars:
                found = _found(store, text)
                yield from (_pair(pattern.id, other, near) for other, near in found if other != pattern.id)


def _searched(pattern: Pattern) -> tuple[str, ...]:
    """Return the texts by which a pattern is found; for a standing rule the rule itself."""
    rule = pattern.fields.get("instruction")
    return exemplars(pattern) or ((rule,) if isinstance(rule, str) and rule.strip() else ())


def _found(store: LocalStore, text: str) -> Iterator[tuple[str, float]]:
    query = Retrieve(tier="e2", texts=(text,), top_k=5, similarity=NEAR, org_id=BANK, failure_type=None, model="")
    yield from ((trace.pattern.id, trace.similarity) for trace in store.search(query))
