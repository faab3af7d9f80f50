"""The opening of a thread, and of its children: policies and budgets come from above."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import floor
from typing import Any

from reasonblocks.util.text import cut_with_hash
from reasonblocks.util.text import size as text_size

from .. import codec
from ..codec import encode, size
from ..errors import Refused
from ..log.limits import (
    CHILDREN,
    DEPTH,
    EVIDENCE_CHARS,
    EVIDENCE_KEPT,
    EVIDENCE_TEXT_BYTES,
    LABEL_BYTES,
    LABEL_CHARS,
    NAME_BYTES,
    NAME_CHARS,
    POLICY_BYTES,
    TITLE_CHARS,
)
from ..phases import Stage
from ..policy import looser_axes, policy_json, policy_of
from ..rules import Rules
from ..values import (
    JSON,
    Budget,
    Cause,
    Command,
    Evidence,
    Malformed,
    Policy,
    Thread,
    ThreadEvent,
    digest,
    thread_id_of,
)
from ._draft import Draft, clean, event_of, shortened, usable

USD_DIGITS = 6
MOST_USD = 1e6
"""The most that children share of a budget without a limit."""


def opening_event(command: Command, rules: Rules) -> tuple[ThreadEvent, ...]:
    """Return the first event of a new thread."""
    data = command.data
    org_id, cause = codec.text(data, "org_id"), _cause(data, command)
    _check_name("organisation", org_id)
    _check_name("predecessor", codec.maybe_text(data, "follows"))
    wanted = thread_id_of(org_id, cause.key)
    if command.thread_id != wanted:
        raise Malformed(f"the key {cause.key!r} belongs to the thread {wanted!r}")
    ancestors = [*codec.texts(data, "ancestors")]
    parent = codec.maybe_text(data, "parent")
    if ancestors[:1] != ([] if parent is None else [parent]) or len(ancestors) > DEPTH:
        raise Malformed(
            f"the parent is {parent!r} and the ancestors are {ancestors!r}; valid: at most {DEPTH}, the parent first"
        )
    first = {
        "org_id": org_id,
        "cause": encode(cause),
        "policy": policy_json(_policy_at_opening(data, rules)),
        "proposals": _proposals(command),
        "parent": parent,
        "ancestors": ancestors,
        "rule": codec.rule(data, "rule", "all_of"),
        "follows": codec.maybe_text(data, "follows"),
        "run": codec.run(data, "run", "unknown"),
    }
    return (event_of(command, 1, "thread_opened", first),)


def _cause(data: Mapping[str, Any], command: Command) -> Cause:
    cause = codec.cause(data, "cause")
    for name in ("kind", "key", "family", "run_id"):
        _check_name(f"cause's {name}", getattr(cause, name))
    title = cause.title.strip() or cause.key
    if command.actor.is_human and len(title) > TITLE_CHARS:
        raise Malformed(f"the title has {len(title):,} characters; at most {TITLE_CHARS}: shorten it")
    title = shortened(title, TITLE_CHARS, NAME_BYTES)
    return replace(cause, title=title, evidence=newest(cause.evidence))


def _check_name(name: str, value: str | None) -> None:
    """Refuse a name that is missing, or that a cut would make another one."""
    if value is None:
        return
    if not value or len(value) > NAME_CHARS or text_size(value) > NAME_BYTES or clean(value) != value:
        limits = f"1 to {NAME_CHARS} characters and {NAME_BYTES} bytes that can be stored"
        raise Malformed(f"the {name} is {value[:80]!r}; it must have {limits}")


def kept(evidence: Evidence) -> Evidence:
    """Return the evidence within the limits."""
    return replace(
        evidence,
        id=cut_with_hash(clean(evidence.id), LABEL_CHARS) or digest({"label": evidence.label, "text": evidence.text}),
        label=shortened(evidence.label, LABEL_CHARS, LABEL_BYTES),
        text=shortened(evidence.text, EVIDENCE_CHARS, EVIDENCE_TEXT_BYTES),
        blob=evidence.blob and clean(evidence.blob)[:LABEL_CHARS],
    )


def newest(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the newest pieces within the limits, one of each id."""
    return tuple({each.id: each for each in map(kept, evidence)}.values())[-EVIDENCE_KEPT:]


def _policy_at_opening(data: Mapping[str, Any], rules: Rules) -> Policy:
    """Return the thread's policy, by default the one above it. Raises `Malformed` for one looser than an ancestor's."""
    if data.get("policy") is None:
        return checked_policy(policy_json(rules.above()))
    policy = checked_policy(data["policy"])
    for ancestor in rules.ancestors:
        if loose := looser_axes(policy, ancestor):
            raise Malformed(
                f"the policy of a child may not be looser than that of an ancestor, but it is in {', '.join(loose)}"
            )
    return policy


def checked_policy(value: object) -> Policy:
    """Return the policy of plain JSON. Raises `Malformed` if an axis is missing or unreadable."""
    data = codec.mapping.of(value, "the policy")
    policy = policy_of(data)
    plain = policy_json(policy)
    if wrong := [axis for axis in {**plain, **data} if axis not in plain or _sorted(data.get(axis)) != plain[axis]]:
        raise Malformed(f"the policy's {wrong[0]} is {data.get(wrong[0])!r}, which cannot be read")
    if size(plain) > POLICY_BYTES:
        raise Malformed(f"the policy has {size(plain):,} bytes; at most {POLICY_BYTES:,}: name fewer actions")
    return policy


def _sorted(value: object) -> object:
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(each, str) for each in value):
        return sorted({*value})
    return value


def _proposals(command: Command) -> list[JSON]:
    given = codec.proposals(command.data, "proposals")
    found: dict[Stage, JSON] = {}
    for proposal in map(usable, given):
        if proposal.author in ("person", "operator") and not command.actor.is_human:
            proposal = replace(proposal, author=command.actor.kind)
        id = f"{command.thread_id}.p1.{proposal.stage.value}"
        found[proposal.stage] = encode(replace(proposal, id=id))
    if len(found) < len(given):
        raise Malformed("each stage may have only one proposal")
    return [*found.values()]


def opening_of_children(draft: Draft) -> JSON:
    """Return the data of the event with which a thread opens its children."""
    opens = child_opens(draft.thread, draft.command, draft.rules)
    budgets = [policy_of(each["policy"]).budget for each in opens]
    carved = {
        "calls": sum(each.calls for each in budgets),
        "tokens": sum(each.tokens for each in budgets),
        "usd": round(sum(each.usd for each in budgets), USD_DIGITS),
    }
    children = [
        {
            "id": thread_id_of(draft.thread.org_id, cause["key"]),
            "key": cause["key"],
            "title": cause["title"],
        }
        for cause in [each["cause"] for each in opens]
    ]
    rule = codec.rule(draft.data, "rule", draft.thread.rule)
    return {"children": children, "rule": rule, "budget": carved}


def child_opens(thread: Thread, command: Command, rules: Rules) -> tuple[JSON, ...]:
    """Return the data of the commands that open the children of a command, as `children_opened` lists them.

    `thread` is the parent before the command. Each child has the parent's policy in force or a stricter one, and its
    share of the budget that is left. Raises `Refused`.
    """
    try:
        return _child_opens(thread, command, rules)
    except Malformed as exc:
        raise Refused(thread.id, command.trigger.value, str(exc)) from exc


def _child_opens(thread: Thread, command: Command, rules: Rules) -> tuple[JSON, ...]:
    given = codec.mappings(command.data, "children")
    most = CHILDREN - len(thread.children)
    if not 1 <= len(given) <= most:
        raise Malformed(f"it has {len(given)} children; valid: 1 to {most}")
    if len(thread.ancestors) >= DEPTH:
        raise Malformed(f"the thread has {DEPTH} ancestors, so it cannot have children")
    opens = [_child(thread, each, command, rules) for each in given]
    ids = [thread_id_of(thread.org_id, each["cause"]["key"]) for each in opens]
    taken = {thread.id, *thread.ancestors, *(child.id for child in thread.children)}
    if len({*ids}) < len(ids) or taken & {*ids}:
        raise Malformed("each child needs a different key, which no relative has")
    return _carved(thread, rules, opens)


def _child(thread: Thread, data: Mapping[str, Any], command: Command, rules: Rules) -> JSON:
    cause, above = _cause(data, command), rules.in_force(thread)
    policy = above if data.get("policy") is None else checked_policy(data["policy"])
    if loose := [axis for axis in looser_axes(policy, above) if not axis.startswith("budget.")]:
        raise Malformed(f"the child {cause.key!r} may not be looser than its parent, but it is in {', '.join(loose)}")
    same_run = thread.run if cause.run_id == thread.cause.run_id else "unknown"
    return {
        "org_id": thread.org_id,
        "cause": encode(cause),
        "policy": policy_json(policy),
        "proposals": [*codec.items(data, "proposals")],
        "parent": thread.id,
        "ancestors": [thread.id, *thread.ancestors],
        "rule": "all_of",
        "follows": codec.maybe_text(data, "follows"),
        "run": codec.run(data, "run", same_run),
    }


def _carved(thread: Thread, rules: Rules, opens: list[JSON]) -> tuple[JSON, ...]:
    """Give each child at most an equal share of the budget that is left."""
    budget, spent, carved = rules.in_force(thread).budget, thread.spent, thread.carved
    calls = max(0, budget.calls - spent.calls - carved.calls)
    tokens = max(0, budget.tokens - spent.tokens - carved.tokens)
    usd = min(MOST_USD, max(0.0, budget.usd - spent.usd - carved.usd))
    found, n = [], len(opens)
    for place, each in enumerate(opens):
        policy = policy_of(each["policy"])
        share = Budget(
            calls=min(policy.budget.calls, calls // n + (place < calls % n)),
            tokens=min(policy.budget.tokens, tokens // n),
            usd=min(policy.budget.usd, floor(usd / n * 10**USD_DIGITS) / 10**USD_DIGITS),
        )
        found.append({**each, "policy": policy_json(replace(policy, budget=share))})
    return tuple(found)
