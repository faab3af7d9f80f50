"""How a proposal is shown in the terminal, and what a reader answers to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..exceptions import ConfigError
from ._output import printable, say, warn

if TYPE_CHECKING:
    from ..learning import Proposal
    from ..types import JSON

__all__ = ["listed", "review"]

SHOWN = ("observation", "recommended_action", "diagnosis", "intervention", "anti_pattern")
"""Fields that an agent reads."""
_BASIS = {
    "same task": "shown by runs of the same task",
    "other tasks": "shown by runs of other tasks",
    "kind of trouble": "said of this kind of trouble",
}


def listed(number: int, proposal: Proposal) -> Iterator[str]:
    """The lines of one proposal."""
    pattern = proposal.pattern
    kind = f"{pattern.failure_type or 'no failure type'}, {proposal.form}"
    met = f"{proposal.runs} failed run{'s' * (proposal.runs != 1)}, {proposal.tasks} task{'s' * (proposal.tasks != 1)}"
    basis = _BASIS.get(proposal.basis, proposal.basis)
    yield printable(f"{number}. {pattern.tier} of {pattern.org_id}: {kind}; {met}; {basis}")
    for name in SHOWN:
        if isinstance(text := pattern.fields.get(name), str):
            yield f"   {printable(f'{name}: {text}')}"
    yield f"   from {printable(', '.join(proposal.run_ids))}"
    yield ""


def review(pending: Sequence[Proposal]) -> list[Proposal]:
    """Those that were accepted, edited or refused, until the reader has enough."""
    decided: list[Proposal] = []
    for number, proposal in enumerate(pending, 1):
        for line in listed(number, proposal):
            say(line)
        answer = _answer()
        while answer == "e":
            proposal = _edited(proposal)
            for line in listed(number, proposal):
                say(line)
            answer = _answer()
        if answer == "q":
            break
        decided.append(proposal.with_status("accepted" if answer == "y" else "rejected"))
    return decided


def _answer() -> str:
    """Asked again until it is one of the four, which are then explained; the end of the input is as q."""
    while True:
        try:
            said = input("accept? y/n/e/q ").strip().lower()[:1]
        except EOFError:
            return "q"
        if said in ("y", "n", "e", "q"):
            return said
        say("y: store it; n: refuse it for good; e: change its texts; q: leave it and the rest pending")


def _edited(proposal: Proposal) -> Proposal:
    """The proposal with what the reader wrote; an empty line keeps a text, a text that cannot be stored is said."""
    from ..patterns import checked

    pattern = proposal.pattern
    fields: dict[str, JSON] = dict(pattern.fields)
    for name in SHOWN:
        if isinstance(fields.get(name), str):
            try:
                fields[name] = input(f"   {name} (Enter keeps it): ").strip() or fields[name]
            except EOFError:
                break
    try:
        return replace(proposal, pattern=checked(replace(pattern, fields=fields)))
    except ConfigError as error:
        warn(f"kept as it was: {error}")
        return proposal
