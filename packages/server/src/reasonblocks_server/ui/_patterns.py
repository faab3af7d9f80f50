"""Shows, changes and adds the patterns of an org."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import pattern_json
from reasonblocks.types import Pattern
from reasonblocks.util.json import canonical
from reasonblocks.util.text import collapse

from ..errors import ApiError
from ._pages import back, render
from ._paths import pattern_href, with_query
from ._visit import Refusal, Visit, whole

PAGE = 20
"""Patterns of one page: three screens of a phone."""
LIST = "/ui/patterns"
TIERS: Mapping[str, str] = {"e1": "lessons", "e2": "interventions", "e3": "standing rules"}
FIELDS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "e1": (
        ("observation", "Observation", "the lesson from earlier runs"),
        ("recommended_action", "Recommended action", "the advice to the agent"),
        (
            "task_context_embedding_text",
            "Applies to",
            "a description of the tasks; the search compares it with the agent's task",
        ),
    ),
    "e2": (
        ("diagnosis", "Diagnosis", "the cause of the failure"),
        ("intervention", "Intervention", "the text that the agent is told"),
        ("anti_pattern", "Anti-pattern", "the behaviour that the agent should avoid"),
        (
            "trajectory_description",
            "Applies to",
            "a description of the steps; the search compares it with the agent's newest steps",
        ),
    ),
    "e3": (("instruction", "Instruction", "the text that every agent is told at the start of a run"),),
}
"""The texts of a pattern by its tier, each with its name, its label and a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A pattern in the list."""

    pattern: Pattern
    text: str
    retrieved: int
    told: int
    recovered: int
    judged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A pattern in its form. `revision` is that of the stored pattern, 0 for a new one."""

    id: str
    tier: str
    texts: Mapping[str, str]
    failure_type: str = ""
    model_family: str = "any"
    revision: int = 0


def patterns(visit: Visit) -> Response:
    """Show the patterns that the org sees, by their tiers."""
    tier, q, page = visit.asked("tier"), visit.asked("q").strip()[:200], visit.asked("page")
    known = visit.server.patterns.list(visit.org)
    everything = sorted(map(_summary, known), key=lambda one: (one.pattern.org_id is None, -one.told))
    words = q.lower().split()
    fit = [one for one in everything if tier in ("", one.pattern.tier) and _has(one, words)]
    at = min(whole(page) or 0, max(0, len(fit) - 1) // PAGE)
    shown = fit[at * PAGE : (at + 1) * PAGE]
    query = {"tier": tier, "q": q}
    return render(
        visit,
        "patterns.html",
        "Patterns",
        rows=shown,
        may_add=visit.may("admin") and visit.key.project_id is None,
        total=len(everything),
        fit=len(fit),
        first=at * PAGE + 1,
        tiers=[(name, words, sum(one.pattern.tier == name for one in everything)) for name, words in TIERS.items()],
        tier=tier,
        query=q,
        earlier=with_query(LIST, {**query, "page": str(at - 1)}) if at else "",
        later=with_query(LIST, {**query, "page": str(at + 1)}) if len(fit) > (at + 1) * PAGE else "",
    )


def pattern(visit: Visit, pattern_id: str) -> Response:
    """Show a pattern, and the form that changes it."""
    return _form(visit, visit.server.patterns.get(visit.org, pattern_id))


def new(visit: Visit) -> Response:
    """Show the form for a new pattern of a tier."""
    visit.needs_whole_org()
    tier = visit.asked("tier") if visit.asked("tier") in TIERS else "e1"
    return _form(visit, None, Draft(id="", tier=tier, texts={}))


def add(visit: Visit) -> Response:
    """Add a pattern."""
    visit.needs_whole_org()
    draft = _draft(visit, visit.form.get("id", "").strip(), visit.form.get("tier", ""))
    try:
        if any(one.id == draft.id for one in visit.server.patterns.list(visit.org)):
            raise ApiError(409, f"a pattern {draft.id!r} exists already: choose another id")
        visit.server.patterns.add(visit.org, [_given({}, draft)])
    except (ApiError, ConfigError) as error:
        return _form(visit, None, draft, problem=_reason(error), code=422)
    visit.audit("pattern.add", draft.id)
    return back(pattern_href(draft.id), "pattern-added")


def save(visit: Visit, pattern_id: str) -> Response:
    """Save a changed pattern, unless someone else has saved it in the meantime."""
    visit.needs_whole_org()
    stored = visit.server.patterns.get(visit.org, pattern_id)
    draft = _draft(visit, pattern_id, stored.tier)
    try:
        saved = visit.server.patterns.put(visit.org, pattern_id, _given(pattern_json(stored), draft), draft.revision)
    except (ApiError, ConfigError) as error:
        stored = visit.server.patterns.get(visit.org, pattern_id)
        conflict = isinstance(error, ApiError) and error.status == 412
        problem = "" if conflict else _reason(error)
        return _form(visit, stored, draft, problem=problem, conflict=conflict, code=412 if conflict else 422)
    visit.audit("pattern.put", f"{pattern_id} revision {saved.revision}")
    return back(pattern_href(pattern_id), "pattern-saved")


def switch(visit: Visit, pattern_id: str) -> Response:
    """Turn a pattern off or on."""
    visit.needs_whole_org()
    off = visit.form.get("off") == "1"
    given = {**pattern_json(visit.server.patterns.get(visit.org, pattern_id)), "off": off}
    saved = visit.server.patterns.put(visit.org, pattern_id, given, _revision(visit))
    visit.audit("pattern.put", f"{pattern_id} revision {saved.revision} {'off' if off else 'on'}")
    return back(pattern_href(pattern_id), "pattern-off" if off else "pattern-on")


def delete(visit: Visit, pattern_id: str) -> Response:
    """Delete a pattern, unless someone else has changed it in the meantime."""
    visit.needs_whole_org()
    visit.server.patterns.remove(visit.org, pattern_id, _revision(visit))
    visit.audit("pattern.delete", pattern_id)
    return back(LIST, "pattern-deleted")


def _form(
    visit: Visit,
    stored: Pattern | None,
    draft: Draft | None = None,
    *,
    problem: str = "",
    conflict: bool = False,
    code: int = 200,
) -> Response:
    shown = draft or _draft_of(stored)
    may_change = visit.may("admin") and visit.key.project_id is None
    known = {name for name, _, _ in FIELDS[shown.tier]} if shown.tier in FIELDS else set()
    return render(
        visit,
        "pattern.html",
        "Patterns",
        code,
        stored=stored,
        draft=shown,
        fields=FIELDS.get(shown.tier, ()),
        tiers=TIERS,
        theirs=_draft_of(stored) if stored is not None and conflict else None,
        summary=_summary(stored) if stored is not None else None,
        others=[] if stored is None else [(name, _text(value)) for name, value in stored.fields.items()
                                          if name not in known and name != "trigger_state"],
        editable=may_change and (stored is None or stored.org_id == visit.org),
        problem=problem,
        json=canonical(pattern_json(stored)) if stored is not None else "",
    )  # fmt: skip


def _draft(visit: Visit, pattern_id: str, tier: str) -> Draft:
    if tier not in TIERS:
        raise Refusal(422, "No such tier", "The tier of a pattern is e1, e2 or e3.")
    texts = {name: visit.form.get(f"field-{name}", "").strip() for name, _, _ in FIELDS[tier]}
    return Draft(
        id=pattern_id,
        tier=tier,
        texts=texts,
        failure_type=visit.form.get("failure_type", "").strip(),
        model_family=visit.form.get("model_family", "").strip() or "any",
        revision=_revision(visit),
    )


def _revision(visit: Visit) -> int:
    return whole(visit.form.get("revision", "")) or 0


def _draft_of(stored: Pattern | None) -> Draft:
    assert stored is not None, "a new pattern has a draft"
    texts = {name: _text(stored.fields.get(name)) for name, _, _ in FIELDS[stored.tier]}
    trigger = stored.fields.get("trigger_state")
    if isinstance(trigger, Mapping):
        texts["trajectory_description"] = _text(trigger.get("trajectory_description"))
    return Draft(
        id=stored.id,
        tier=stored.tier,
        texts=texts,
        failure_type=stored.failure_type or "",
        model_family=stored.model_family,
        revision=stored.revision,
    )


def _given(stored: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the pattern from a form. Fields that the form does not show keep their stored values."""
    before = stored.get("fields")
    fields: dict[str, Any] = dict(before) if isinstance(before, Mapping) else {}
    for name, value in draft.texts.items():
        if name == "trajectory_description":
            trigger = fields.get("trigger_state")
            fields["trigger_state"] = {**(trigger if isinstance(trigger, Mapping) else {}), name: value}
        elif value or name in fields:
            fields[name] = value
    return {
        **stored,
        "id": draft.id,
        "tier": draft.tier,
        "fields": fields,
        "failure_type": draft.failure_type or None,
        "model_family": draft.model_family,
    }


def _summary(pattern: Pattern) -> Summary:
    first, counts = FIELDS[pattern.tier], pattern.stats
    texts = (_text(pattern.fields.get(name)) for name, _, _ in reversed(first[:2]))
    recovered = counts.get("recovered", 0)
    return Summary(
        pattern=pattern,
        text=collapse(next((text for text in texts if text), "")),
        retrieved=counts.get("retrieved", 0),
        told=counts.get("injected", 0),
        recovered=recovered,
        judged=recovered + counts.get("not_recovered", 0),
    )


def _has(one: Summary, words: list[str]) -> bool:
    searched = f"{one.pattern.id} {one.text} {one.pattern.failure_type or ''}".lower()
    return all(word in searched for word in words)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else canonical(value)


def _reason(error: ApiError | ConfigError) -> str:
    return f"The pattern was not saved: {error.detail if isinstance(error, ApiError) else error}."
