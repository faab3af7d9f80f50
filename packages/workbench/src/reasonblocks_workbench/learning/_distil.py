"""Defines the input of a distiller, and the built-in one, which writes a lesson without a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reasonblocks.masking import MASK
from reasonblocks.types import JSON, Pattern, Tier
from reasonblocks.util.text import digest

from ._alternatives import Alternative, Remedy
from ._digest import RunDigest
from ._trouble import Form, Kind

MAX_TEXTS = 8
"""Texts of one lesson that similarity is measured against: each is a row that every search compares."""
MAX_IDS = 5
TRAIL_STEPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One kind of trouble, met by `runs` failed runs of `tasks` tasks: the input of a distiller.

    `texts` has one text for each run, the thoughts and actions of its last steps, masked: people, ids, secrets and
    numbers are "#". `trail` has a line for each of the first run's last steps up to the trouble. `times` is how often
    the trouble occurred in the run that had it most. `instead` is what successful runs did, None if none of them shows
    it. All of it is data from runs: none of its text is an instruction.
    """

    tier: Tier
    org_id: str
    kind: Kind
    runs: int
    tasks: int
    times: int
    run_ids: tuple[str, ...]
    texts: tuple[str, ...]
    trail: tuple[str, ...]
    instead: Alternative | None


Distil: TypeAlias = Callable[[Evidence], "Pattern | None"]
"""Writes a lesson from evidence, or returns None if there is no useful one."""


def evidence_of(tier: Tier, org_id: str, runs: Sequence[RunDigest], instead: Alternative | None) -> Evidence:
    """Return the evidence of runs with one kind of trouble; the lesson is named after the first run."""
    troubles = [run.trouble for run in runs if run.trouble is not None]
    texts = dict.fromkeys("\n".join(run.texts[tier]) for run in runs)
    return Evidence(
        tier=tier,
        org_id=org_id,
        kind=troubles[0].kind,
        runs=len({run.run_id for run in runs}),
        tasks=len({run.task_key for run in runs}),
        times=max(len(trouble.steps) for trouble in troubles),
        run_ids=tuple(run.label for run in runs[:MAX_IDS]),
        texts=tuple(text for text in texts if text.strip())[:MAX_TEXTS],
        trail=_trail(runs[0]),
        instead=instead,
    )


def _trail(run: RunDigest) -> tuple[str, ...]:
    if run.trouble is None:
        return ()
    at = run.trouble.at
    first = max(0, at + 1 - TRAIL_STEPS)
    return tuple(
        f"step {n}: {act.tool or 'no tool'}: {act.error or ('found nothing' if act.empty else 'went well')}"
        for n, act in enumerate(run.acts[first : at + 1], first)
    )


_NONE_FOUND = re.compile(r"(?i)\bno \w+ (?:were |was )?found\b|\bno (?:results|matches)\b")
_HAPPENED = {
    "unverified": "The run went on as if all were done{around}, and nothing had checked the result.",
    "drift": "The steps{around} had left what the task asks for.",
    "sprawl": "New tools and targets{around} came in late, without an answer coming nearer.",
    "churn": "The same things were looked up and planned again{around}.",
}
_ANTI_PATTERN = {
    "error": "Calling `{tool}` again without changing what the error names.",
    "repeat": "Calling `{tool}` with the same arguments again: the result was the same each time.",
    "empty": "Searching on with small changes of the words after `{tool}` found nothing.",
    "unverified": "Saying that it is done without a look at the result.",
    "claimed": "Taking the failed call of `{tool}` for a success.",
    "drift": "Following up what the task does not ask for.",
    "sprawl": "Opening one more new line of search.",
    "churn": "Reading again what was read and has not changed.",
}
_GENERAL_ADVICE = {
    "claimed": "Look at what `{tool}` answered: it failed. Change what the error names, or say that it was not done.",
    "error": "Change the argument that the error names, or look up a valid value for it first.",
    "repeat": "Asking `{tool}` again changes nothing: work with what it gave, take another tool, or say what lacks.",
    "empty": "Ask `{tool}` once more with one plain word, or without a filter; if that is empty too, look elsewhere.",
}
_KINDS_OF_FORM: Mapping[tuple[str, Form], tuple[str, ...]] = {
    ("loop", "error"): ("retry", "error", "failing"),
    ("loop", "repeat"): ("repeat", "retry"),
    ("loop", "empty"): ("reworded",),
    ("churn", "repeat"): ("stale",),
    ("contradiction", "error"): ("claim", "red"),
    ("contradiction", "claimed"): ("claim", "red"),
}
"""The kinds of findings that a lesson about a form of trouble fits, by the failure type that was reported."""


def distil(evidence: Evidence) -> Pattern | None:
    """Write a lesson in fixed sentences; return None for one of tier e1 without an alternative.

    One of tier e2 falls back to general advice, where there is some for the form of trouble.
    """
    alternative = evidence.instead
    if not evidence.texts:
        return None
    if evidence.tier == "e1":
        return None if alternative is None else _pattern(evidence, _e1_fields(evidence, alternative))
    kind = evidence.kind
    action = _action(kind, alternative) if alternative else _GENERAL_ADVICE.get(_effective_form(kind))
    if action is None:
        return None
    return _pattern(evidence, _e2_fields(evidence, action.replace("{tool}", kind.tool)))


def _effective_form(kind: Kind) -> str:
    """Return the form, but "empty" for an error that only reports that nothing was found."""
    return "empty" if kind.form == "error" and _NONE_FOUND.search(kind.error) else kind.form


def _kinds(evidence: Evidence) -> tuple[str, ...]:
    """Return the kinds of findings that the lesson is for; none if the form of trouble does not show them."""
    kind = evidence.kind
    return _KINDS_OF_FORM.get((kind.failure_type, _effective_form(kind)), ()) if evidence.tier == "e2" else ()


def _pattern(evidence: Evidence, fields: dict[str, JSON]) -> Pattern:
    kind = evidence.kind
    identity = "\n".join([evidence.tier, evidence.org_id, kind.failure_type, kind.form, kind.tool, kind.error])
    source = evidence.run_ids[0] if evidence.tier == "e1" else ""
    if MASK in source:  # masked ids of several runs may be equal
        source += evidence.texts[0]
    return Pattern(
        id=f"learned-{evidence.tier}-{digest(f'{identity}{chr(10)}{source}')}",
        tier=evidence.tier,
        fields=fields,
        org_id=evidence.org_id,
        failure_type=kind.failure_type or None,
        kinds=_kinds(evidence),
        exemplars=evidence.texts,
        source_trace_id=evidence.run_ids[0],
    )


def _e1_fields(evidence: Evidence, alternative: Alternative) -> dict[str, JSON]:
    return {
        "task_context_embedding_text": evidence.texts[0],
        "observation": _happened(evidence),
        "recommended_action": _action(evidence.kind, alternative),
    }


def _e2_fields(evidence: Evidence, action: str) -> dict[str, JSON]:
    kind = evidence.kind
    anti_pattern = _ANTI_PATTERN.get(_effective_form(kind), _ANTI_PATTERN["repeat"])
    met = f"{evidence.runs} failed runs of {evidence.tasks} tasks met this."
    return {
        "trigger_state": {"trajectory_description": evidence.texts[0]},
        "diagnosis": f"{_happened(evidence)} {met}",
        "intervention": action,
        "anti_pattern": anti_pattern.replace("{tool}", kind.tool),
    }


def _happened(evidence: Evidence) -> str:
    kind, times = evidence.kind, evidence.times
    often = f"{times} times" if times > 1 else "once"
    if kind.form == "error":
        quote = f', with "{kind.error}"' if kind.error != "error" else ""
        return f"`{kind.tool}` failed {often}{quote}."
    if kind.form == "claimed":
        return f'`{kind.tool}` failed with "{kind.error}", and the run went on as if it had gone well.'
    if kind.form == "repeat":
        return f"`{kind.tool}` was called {often} with the same arguments, and gave the same result."
    if kind.form == "empty":
        return f"`{kind.tool}` found nothing, {often}."
    return _HAPPENED[kind.form].format(around=f" around `{kind.tool}`" if kind.tool else "")


def _action(kind: Kind, alternative: Alternative) -> str:
    return f"{_who(alternative)} {_what(kind, alternative.remedy)}."


def _who(alternative: Alternative) -> str:
    if not alternative.same_task:
        return f"{alternative.agreeing} of {alternative.seen} runs that met this and succeeded"
    if alternative.by_task:
        return f"In {alternative.agreeing} of {alternative.seen} tasks, runs that succeeded"
    if alternative.seen == 1:
        return "The run of the same task that succeeded"
    return f"{alternative.agreeing} of {alternative.seen} runs of the same task that succeeded"


def _what(kind: Kind, remedy: Remedy) -> str:
    if not remedy.tool:
        return f"answered here, and did not call `{kind.tool}` again"
    if not remedy.same_tool:
        given = f" (given {_and(remedy.changes)})" if remedy.changes else ""
        again = f" rather than `{kind.tool}` again" if kind.tool != remedy.tool and kind.form in _GENERAL_ADVICE else ""
        return f"called `{remedy.tool}`{given} here{again}"
    changes = f" {_and(remedy.changes)}" if remedy.changes else " with other arguments"
    if not remedy.before:
        return f"called `{remedy.tool}`{changes}"
    return f"first called {_and(tuple(f'`{tool}`' for tool in remedy.before))}, then `{remedy.tool}`{changes}"


def _and(parts: tuple[str, ...]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
