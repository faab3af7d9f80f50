"""Tells all processes of a store the actions, the inferencer and the cleaners that some process has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..catalogue import Action, Catalogue, spec_json
from ..policy import PLAN_THEN_REVIEW, policy_json, policy_of
from ..ports import Reading
from ..values import Policy

ACTION = "action:"
CLEANER = "cleaner:"
INFERENCER = "inferencer"
POLICY = "policy"
NOTIFIER = "notifier"
RULES = "rules"
"""The name of the inferencer that every process has."""


def offers_of(
    actions: Iterable[Action],
    inferencer: str | None,
    cleaners: Iterable[str],
    notifier: bool,
    policy: Policy | None,
) -> dict[str, str]:
    """Return what a process tells the others of its organisation."""
    offers = {f"{ACTION}{action.name}": spec_json(action.spec) for action in actions}
    offers |= {f"{CLEANER}{kind}": "1" for kind in cleaners}
    if inferencer is not None:
        offers[INFERENCER] = inferencer
    if notifier:
        offers[NOTIFIER] = "1"
    if policy is not None:
        offers[POLICY] = json.dumps(policy_json(policy), sort_keys=True)
    return offers


def has_of(offers: Mapping[str, str]) -> frozenset[str]:
    """Return the needs of works that a process with these offers can meet."""
    own = {name for name in offers if name.startswith((ACTION, CLEANER)) or name == NOTIFIER}
    named = {f"{INFERENCER}:{offers[INFERENCER]}"} if INFERENCER in offers else set()
    return frozenset({"", f"{INFERENCER}:{RULES}", *own, *named})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The offers of all processes of an organisation, with the catalogue that follows from them."""

    catalogue: Catalogue
    cleaned: frozenset[str]
    notified: bool
    inferencer: str
    policy: Policy
    """The installation's: this process's own, else that of the process that was last given one."""


class Offers:
    """Reads and writes the offers of an organisation's processes, rows of the store's meta.

    They are parsed again only when they have changed.
    """

    def __init__(self, org_id: str, actions: Sequence[Action], own: Mapping[str, str]) -> None:
        self._actions = tuple(actions)
        self.own = dict(own)
        self._prefix = f"offer:{json.dumps(org_id)}:"
        Catalogue.of(self._actions)  # raises for two actions of one name
        self._last: tuple[Mapping[str, str], Offered] | None = None

    def of(self, reading: Reading) -> Offered:
        """Return the offers as they are in this transaction."""
        meta = reading.meta(self._prefix)
        last = self._last  # read once: another thread may replace it
        if last is not None and last[0] == meta:
            return last[1]
        offered = self._parsed({**{key.removeprefix(self._prefix): text for key, text in meta.items()}, **self.own})
        self._last = (dict(meta), offered)
        return offered

    def untold(self, reading: Reading) -> dict[str, str]:
        """Return the rows of this process's offers that the store does not have."""
        known = reading.meta(self._prefix)
        own = {f"{self._prefix}{name}": text for name, text in self.own.items()}
        return {key: text for key, text in own.items() if known.get(key) != text}

    def _parsed(self, meta: Mapping[str, str]) -> Offered:
        described = (text for name, text in meta.items() if name.startswith(ACTION))
        return Offered(
            catalogue=Catalogue.of(self._actions, described),
            cleaned=frozenset(name.removeprefix(CLEANER) for name in meta if name.startswith(CLEANER)),
            notified=NOTIFIER in meta,
            inferencer=meta.get(INFERENCER, RULES),
            policy=_policy_of(meta.get(POLICY)),
        )


def _policy_of(text: str | None) -> Policy:
    """Return the installation's policy; what cannot be read has its strictest value."""
    if text is None:
        return PLAN_THEN_REVIEW
    try:
        return policy_of(json.loads(text))
    except ValueError:
        return policy_of(None)
