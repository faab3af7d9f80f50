"""The rules by which a thread is decided: the catalogue, the policies above it, and what its organisation has."""

from __future__ import annotations

from dataclasses import dataclass

from .catalogue import Catalogue
from .policy import strictest
from .values import Policy, Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Everything that a decision depends on beside the thread and the command.

    `ancestors` are the policies of parent, grandparent and so on. `cleaned` are the kinds of causes that have a
    cleaner. `inferencer` is the name of the one that infers.
    """

    catalogue: Catalogue
    installation: Policy
    ancestors: tuple[Policy, ...] = ()
    cleaned: frozenset[str] = frozenset()
    notified: bool = False
    inferencer: str = "rules"

    def above(self) -> Policy:
        """Return the strictest of the installation's policy and the ancestors'."""
        return strictest(self.installation, *self.ancestors)

    def in_force(self, thread: Thread) -> Policy:
        """Return the policy that holds for a thread: per axis the strictest of all that apply."""
        return strictest(self.installation, *self.ancestors, thread.policy)

    def exhausted(self, thread: Thread) -> str | None:
        """Return a sentence if the budget admits no further call, else None."""
        budget, spent = self.in_force(thread).budget, thread.spent
        if spent.calls >= budget.calls:
            return f"the budget of {budget.calls} calls is spent"
        if spent.tokens >= budget.tokens:
            return f"the budget of {budget.tokens:,} tokens is spent"
        if not spent.usd < budget.usd:
            return f"the budget of {budget.usd:.2f} USD is spent"
        return None
