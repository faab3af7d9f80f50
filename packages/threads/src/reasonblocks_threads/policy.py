"""The gates of a policy, which alone decide whether a stage may pass without a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan
from typing import Any, get_args

from .catalogue import ActionSpec, is_grave
from .phases import Stage
from .values import GRADES, Amplifier, Budget, Gate, Grade, Policy, Proposal

HANDS_OFF = Policy(auto_advance=frozenset())
"""A person confirms each stage."""
PLAN_THEN_REVIEW = Policy()
"""Intent and context may pass; a person approves the action."""
END_TO_END = Policy(auto_advance=frozenset(Stage))
"""Every stage may pass if its gates do."""
_PRESETS = {"hands_off": HANDS_OFF, "plan_then_review": PLAN_THEN_REVIEW, "end_to_end": END_TO_END}
_GRADES = frozenset(GRADES)


def preset(name: str) -> Policy:
    """Return a built-in policy by its name. Raises ValueError for another name."""
    if name not in _PRESETS:
        raise ValueError(f"{name!r} is not a preset; valid: {', '.join(_PRESETS)}")
    return _PRESETS[name]


def strictest(first: Policy, *others: Policy) -> Policy:
    """Return the policy that takes the strictest value of each axis. An empty set allows nothing."""
    found = _readable(first)
    for other in map(_readable, others):
        found = _stricter(found, other)
    return found


def _readable(policy: Policy) -> Policy:
    """Return the policy with the strictest value in place of each invalid grade and NaN."""
    grades = {policy.irreversibility, policy.regret, policy.review_above}
    if grades <= _GRADES and not isnan(policy.floor) and not isnan(policy.budget.usd):
        return policy
    usd = 0.0 if isnan(policy.budget.usd) else policy.budget.usd
    return replace(
        policy,
        floor=inf if isnan(policy.floor) else policy.floor,
        irreversibility=_grade(policy.irreversibility),
        regret=_grade(policy.regret),
        review_above=_grade(policy.review_above),
        budget=replace(policy.budget, usd=usd),
    )


def _stricter(one: Policy, two: Policy) -> Policy:
    return Policy(
        auto_advance=one.auto_advance & two.auto_advance,
        floor=max(one.floor, two.floor),
        consent_for=one.consent_for | two.consent_for,
        kinds=_both(one.kinds, two.kinds),
        actions=_both(one.actions, two.actions),
        irreversibility=min(one.irreversibility, two.irreversibility, key=GRADES.index),
        regret=min(one.regret, two.regret, key=GRADES.index),
        amplifiers=one.amplifiers & two.amplifiers,
        review_above=min(one.review_above, two.review_above, key=GRADES.index),
        budget=Budget(
            calls=min(one.budget.calls, two.budget.calls),
            tokens=min(one.budget.tokens, two.budget.tokens),
            usd=min(one.budget.usd, two.budget.usd),
        ),
    )


def _both(one: frozenset[str] | None, two: frozenset[str] | None) -> frozenset[str] | None:
    """Return the names that both allow; None allows all."""
    if one is None or two is None:
        return two if one is None else one
    return one & two


def looser_axes(new: Policy, old: Policy) -> tuple[str, ...]:
    """Return the axes in which `new` allows something that `old` does not; () if it is at least as strict."""
    wanted, least = _axes(_readable(new)), _axes(strictest(new, old))
    return tuple(axis for axis in wanted if wanted[axis] != least[axis])


def _axes(policy: Policy) -> dict[str, object]:
    names = (name for name in Policy.__dataclass_fields__ if name != "budget")
    budget = {f"budget.{name}": getattr(policy.budget, name) for name in Budget.__dataclass_fields__}
    return {**{name: getattr(policy, name) for name in names}, **budget}


def policy_json(policy: Policy) -> dict[str, object]:
    """Return the policy as plain JSON, with sorted sets; a number that JSON lacks becomes its name."""
    return {
        "auto_advance": sorted(stage.value for stage in policy.auto_advance),
        "floor": _number(policy.floor),
        "consent_for": sorted(policy.consent_for),
        "kinds": None if policy.kinds is None else sorted(policy.kinds),
        "actions": None if policy.actions is None else sorted(policy.actions),
        "irreversibility": policy.irreversibility,
        "regret": policy.regret,
        "amplifiers": sorted(policy.amplifiers),
        "review_above": policy.review_above,
        "budget": {"calls": policy.budget.calls, "tokens": policy.budget.tokens, "usd": _number(policy.budget.usd)},
    }


def policy_of(data: object) -> Policy:
    """Return the policy of plain JSON. A missing or unreadable axis gets its strictest value."""
    given: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    found = given.get("budget")
    budget: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    return Policy(
        auto_advance=frozenset(stage for stage in Stage if stage.value in _names(given.get("auto_advance"))),
        floor=_float(given.get("floor"), inf),
        consent_for=_names(given.get("consent_for")),
        kinds=_allowed(given, "kinds"),
        actions=_allowed(given, "actions"),
        irreversibility=_grade(given.get("irreversibility")),
        regret=_grade(given.get("regret")),
        amplifiers=frozenset(each for each in get_args(Amplifier) if each in _names(given.get("amplifiers"))),
        review_above=_grade(given.get("review_above")),
        budget=Budget(
            calls=_int(budget.get("calls")), tokens=_int(budget.get("tokens")), usd=_float(budget.get("usd"), 0.0)
        ),
    )


def _number(value: float) -> float | str:
    return value if isfinite(value) else str(value)


def _float(value: object, strictest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return strictest
    try:
        return float(value)
    except (ValueError, OverflowError):
        return strictest


def _int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _names(value: object) -> frozenset[str]:
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else frozenset()
    )


def _allowed(given: Mapping[str, Any], axis: str) -> frozenset[str] | None:
    return None if given.get(axis, ()) is None else _names(given.get(axis))


def _grade(value: object) -> Grade:
    return next((grade for grade in GRADES if grade == value), GRADES[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The result of a gate, with the value that it found and the limit as texts."""

    gate: Gate
    passed: bool
    value: str
    limit: str


def judge(
    stage: Stage,
    proposal: Proposal,
    policy: Policy,
    *,
    spec: ActionSpec | None = None,
    preconditions: tuple[Mapping[str, object], ...] | None = None,
) -> tuple[GateResult, ...]:
    """Judge all gates of a stage. If every gate passes, no person needs to be asked.

    `spec` describes the proposed action. `preconditions` has `{"name", "ok", "detail"}` for each one; it is None if
    they are not known, and () if the action has none. A missing, unknown or invalid value does not pass its gate.
    """
    results = [_stage_gate(stage, proposal, policy), _confidence(proposal, policy)]
    if stage is Stage.ACTION:
        name = proposal.body.get("action")
        results += [_consent_for(name, policy), _kind(spec, policy), _name(name, spec, policy)]
        results += [
            _risk("irreversibility", spec.risk.irreversibility if spec else None, policy.irreversibility),
            _risk("regret", spec.risk.regret if spec else None, policy.regret),
            _amplifiers(spec, policy),
            _preconditions(preconditions),
            _auto(spec),
        ]
    return tuple(results)


def _stage_gate(stage: Stage, proposal: Proposal, policy: Policy) -> GateResult:
    passed = stage in policy.auto_advance and proposal.stage is stage
    return GateResult(gate="auto_advance", passed=passed, value=stage.value, limit=_listed(policy.auto_advance))


def _confidence(proposal: Proposal, policy: Policy) -> GateResult:
    value: object = proposal.confidence
    number = isinstance(value, int | float) and not isinstance(value, bool)
    passed = number and 0.0 <= proposal.confidence <= 1.0 and proposal.confidence >= policy.floor
    shown = f"{proposal.confidence:.3g}" if number else "missing"
    return GateResult(gate="confidence", passed=passed, value=shown, limit=f"at least {policy.floor:.3g}")


def _consent_for(name: object, policy: Policy) -> GateResult:
    passed = isinstance(name, str) and name not in policy.consent_for
    limit = f"not {_listed(policy.consent_for)}" if policy.consent_for else "any"
    return GateResult(gate="consent_for", passed=passed, value=_shown(name), limit=limit)


def _kind(spec: ActionSpec | None, policy: Policy) -> GateResult:
    passed = spec is not None and (policy.kinds is None or spec.kind in policy.kinds)
    limit = "any" if policy.kinds is None else _listed(policy.kinds)
    return GateResult(gate="kind", passed=passed, value=spec.kind if spec else "unknown", limit=limit)


def _name(name: object, spec: ActionSpec | None, policy: Policy) -> GateResult:
    known = spec is not None and name == spec.name
    passed = known and (policy.actions is None or name in policy.actions)
    limit = "any known" if policy.actions is None else _listed(policy.actions)
    return GateResult(gate="name", passed=passed, value=_shown(name) if known else "unknown", limit=limit)


def _risk(gate: Gate, value: Grade | None, limit: Grade) -> GateResult:
    passed = value in GRADES and limit in GRADES and GRADES.index(value) <= GRADES.index(limit)
    return GateResult(gate=gate, passed=passed, value=str(value or "unknown"), limit=f"at most {limit}")


def _amplifiers(spec: ActionSpec | None, policy: Policy) -> GateResult:
    passed = spec is not None and spec.risk.amplifiers <= policy.amplifiers
    value = _listed(spec.risk.amplifiers) if spec else "unknown"
    return GateResult(gate="amplifiers", passed=passed, value=value, limit=_listed(policy.amplifiers))


def _preconditions(found: tuple[Mapping[str, object], ...] | None) -> GateResult:
    failed = [_shown(each.get("detail") or each.get("name")) for each in found or () if each.get("ok") is not True]
    value = "unknown" if found is None else "; ".join(failed) or "hold"
    return GateResult(gate="preconditions", passed=found is not None and not failed, value=value, limit="all hold")


def _auto(spec: ActionSpec | None) -> GateResult:
    """Judge the rule that no policy can loosen."""
    passed = spec is not None and spec.auto is True and not is_grave(spec.risk)
    value = "unknown" if spec is None else "allowed" if passed else "not allowed"
    return GateResult(gate="auto", passed=passed, value=value, limit="the catalogue allows it without a person")


def _shown(value: object) -> str:
    return value[:200] if isinstance(value, str) else "missing"


def _listed(names: frozenset[Any]) -> str:
    return ", ".join(sorted(getattr(name, "value", name) for name in names)) or "none"
