"""How evidence becomes a lesson without a language model: the sentences, and when there is nothing worth saying."""

from __future__ import annotations

import re

from .._text import digest
from ..types import JSON, Pattern
from ._alternatives import Instead
from ._evidence import Evidence
from ._secret_names import MASK
from ._trouble import Kind

_NONE_FOUND = re.compile(r"(?i)\bno \w+ (?:were |was )?found\b|\bno (?:results|matches)\b")
_SAID = {
    "unverified": "The run went on as if all were done{around}, and nothing had checked the result.",
    "drift": "The steps{around} had left what the task asks for.",
    "sprawl": "New tools and targets{around} came in late, without an answer coming nearer.",
    "churn": "The same things were looked up and planned again{around}.",
}
_ANTI = {
    "error": "Calling `{tool}` again without changing what the error names.",
    "repeat": "Calling `{tool}` with the same arguments again: the result was the same each time.",
    "empty": "Searching on with small changes of the words after `{tool}` found nothing.",
    "unverified": "Saying that it is done without a look at the result.",
    "claimed": "Taking the failed call of `{tool}` for a success.",
    "drift": "Following up what the task does not ask for.",
    "sprawl": "Opening one more new line of search.",
    "churn": "Reading again what was read and has not changed.",
}
_GENERAL = {
    "claimed": "Look at what `{tool}` answered: it failed. Change what the error names, or say that it was not done.",
    "error": "Change the argument that the error names, or look up a valid value for it first.",
    "repeat": "Asking `{tool}` again changes nothing: work with what it gave, take another tool, or say what lacks.",
    "empty": "Ask `{tool}` once more with one plain word, or without a filter; if that is empty too, look elsewhere.",
}


def distil(evidence: Evidence) -> Pattern | None:
    """The built-in distiller: a lesson of tier e1 from what successful runs did instead, one of e2 also without."""
    instead = evidence.instead
    if not evidence.texts:
        return None
    if evidence.tier == "e1":
        return None if instead is None else _pattern(evidence, _e1_fields(evidence, instead))
    action = _action(evidence.kind, instead) if instead else _GENERAL.get(_said_as(evidence.kind))
    if action is None:
        return None
    return _pattern(evidence, _e2_fields(evidence, action.replace("{tool}", evidence.kind.tool)))


def _said_as(kind: Kind) -> str:
    """Some tools call it an error that there was nothing to find."""
    return "empty" if kind.form == "error" and _NONE_FOUND.search(kind.error) else kind.form


def _pattern(evidence: Evidence, fields: dict[str, JSON]) -> Pattern:
    kind = evidence.kind
    named = "\n".join([evidence.tier, evidence.org_id, kind.failure_type, kind.form, kind.tool, kind.error])
    source = evidence.run_ids[0] if evidence.tier == "e1" else ""
    if MASK in source:  # masked ids of several runs may be equal
        source += evidence.texts[0]
    return Pattern(
        id=f"learned-{evidence.tier}-{digest(f'{named}{chr(10)}{source}')}",
        tier=evidence.tier,
        fields=fields,
        org_id=evidence.org_id,
        failure_type=kind.failure_type or None,
        exemplars=evidence.texts,
        source_trace_id=evidence.run_ids[0],
    )


def _e1_fields(evidence: Evidence, instead: Instead) -> dict[str, JSON]:
    return {
        "task_context_embedding_text": evidence.texts[0],
        "observation": _happened(evidence),
        "recommended_action": _action(evidence.kind, instead),
    }


def _e2_fields(evidence: Evidence, action: str) -> dict[str, JSON]:
    met = f"{evidence.runs} failed runs of {evidence.tasks} tasks met this."
    return {
        "trigger_state": {"trajectory_description": evidence.texts[0]},
        "diagnosis": f"{_happened(evidence)} {met}",
        "intervention": action,
        "anti_pattern": _ANTI.get(_said_as(evidence.kind), _ANTI["repeat"]).replace("{tool}", evidence.kind.tool),
    }


def _happened(evidence: Evidence) -> str:
    kind, times = evidence.kind, evidence.times
    often = f"{times} times" if times > 1 else "once"
    if kind.form == "error":
        said = f', with "{kind.error}"' if kind.error != "error" else ""
        return f"`{kind.tool}` failed {often}{said}."
    if kind.form == "claimed":
        return f'`{kind.tool}` failed with "{kind.error}", and the run went on as if it had gone well.'
    if kind.form == "repeat":
        return f"`{kind.tool}` was called {often} with the same arguments, and gave the same result."
    if kind.form == "empty":
        return f"`{kind.tool}` found nothing, {often}."
    return _SAID[kind.form].format(around=f" around `{kind.tool}`" if kind.tool else "")


def _action(kind: Kind, instead: Instead) -> str:
    """Who did what: the runs that succeeded, and their way."""
    return f"{_who(instead)} {_way(kind, instead)}."


def _who(instead: Instead) -> str:
    if not instead.same_task:
        return f"{instead.agreeing} of {instead.seen} runs that met this and succeeded"
    if instead.by_task:
        return f"In {instead.agreeing} of {instead.seen} tasks, runs that succeeded"
    if instead.seen == 1:
        return "The run of the same task that succeeded"
    return f"{instead.agreeing} of {instead.seen} runs of the same task that succeeded"


def _way(kind: Kind, instead: Instead) -> str:
    move = instead.move
    if not move.tool:
        return f"answered here, and did not call `{kind.tool}` again"
    if not move.again:
        given = f" (given {_and(move.changes)})" if move.changes else ""
        again = f" rather than `{kind.tool}` again" if kind.tool != move.tool and kind.form in _GENERAL else ""
        return f"called `{move.tool}`{given} here{again}"
    changes = f" {_and(move.changes)}" if move.changes else " with other arguments"
    if not move.before:
        return f"called `{move.tool}`{changes}"
    return f"first called {_and(tuple(f'`{one}`' for one in move.before))}, then `{move.tool}`{changes}"


def _and(parts: tuple[str, ...]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
