"""Implements `reasonblocks learn`: proposes lessons from runs, and stores the accepted ones as patterns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.files import STORE

from .files import ORG, PROPOSALS, home_path, in_home, runs_of
from .options import OPTIONS, FlagError, Format, Json, Settings, exclusive, expand_options
from .output import OK, PROBLEM, printable, say, warn

if TYPE_CHECKING:
    from reasonblocks.types import JSON

    from ..learning import Proposal
    from ..traces import RecordedRun

SHOWN = ("observation", "recommended_action", "diagnosis", "intervention", "anti_pattern")
"""The fields that an agent reads."""
_BASIS = {
    "same task": "shown by runs of the same task",
    "other tasks": "shown by runs of other tasks",
    "kind of trouble": "said of this kind of trouble",
}


def proposal_lines(number: int, proposal: Proposal) -> Iterator[str]:
    """Yield the lines that show one proposal."""
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


def review(pending: Mapping[int, Proposal]) -> list[Proposal]:
    """Ask about each proposal until the user quits; return the accepted and refused ones, as edited."""
    decided: list[Proposal] = []
    for number, proposal in pending.items():
        for line in proposal_lines(number, proposal):
            say(line)
        answer = _answer()
        while answer == "e":
            proposal = _edited(proposal)
            for line in proposal_lines(number, proposal):
                say(line)
            answer = _answer()
        if answer == "q":
            break
        decided.append(proposal.with_status("accepted" if answer == "y" else "rejected"))
    return decided


def _answer() -> str:
    """Ask until the answer is one of the four; explain them after a wrong one. The end of the input means q."""
    while True:
        try:
            answer = input("accept? y/n/e/q ").strip().lower()[:1]
        except EOFError:
            return "q"
        if answer in ("y", "n", "e", "q"):
            return answer
        say("y: store it; n: refuse it for good; e: change its texts; q: leave it and the rest pending")


def _edited(proposal: Proposal) -> Proposal:
    """Return the proposal with the user's texts, or unchanged if these are invalid; an empty line keeps a text."""
    from reasonblocks.patterns import check_pattern

    pattern = proposal.pattern
    fields: dict[str, JSON] = dict(pattern.fields)
    for name in SHOWN:
        if isinstance(fields.get(name), str):
            try:
                fields[name] = input(f"   {name} (Enter keeps it): ").strip() or fields[name]
            except EOFError:
                break
    try:
        return replace(proposal, pattern=check_pattern(replace(pattern, fields=fields)))
    except ConfigError as error:
        warn(f"kept as it was: {error}")
        return proposal


class Judging(Settings):
    """The settings that define trouble."""

    OPTIONS = tuple(option for option in OPTIONS if option.setting in ("task_profile", "tool_roles", "calibration"))


@expand_options
def learn(
    settings: Judging,
    runs: Annotated[list[str] | None, Argument(metavar="RUNS")] = None,
    format: Format = None,
    org: Annotated[
        str | None,
        Option(
            metavar="ORG",
            help=f"the org that owns the new lessons ({ORG}); with it, only its proposals are listed and decided",
        ),
    ] = None,
    store: Annotated[str | None, Option(metavar="PATH", help=f"where accepted patterns go ({in_home(STORE)})")] = None,
    out: Annotated[str | None, Option(metavar="FILE", help=f"where proposals are kept ({in_home(PROPOSALS)})")] = None,
    as_json: Json = False,
    accept: Annotated[str | None, Option(metavar="N,M|all", help="store these of the listed proposals")] = None,
    reviews: Annotated[bool, Option("--review", help="ask about each: y(es), n(o), e(dit), q(uit)")] = False,
) -> int:
    """Compare where failed runs got into trouble with what successful runs did instead, and propose patterns.

    Proposals are kept until you accept or refuse them; without RUNS the pending ones are listed. RUNS are files that
    `replay` reads; runs with an unknown outcome teach nothing.
    """
    from ..learning import read_proposals, together, write_proposals

    exclusive({"--accept": accept is not None, "--review": reviews})
    accepted = None if accept is None else _numbers(accept)
    path = home_path(out, PROPOSALS, "--out FILE")
    known = read_proposals(path)
    if runs:
        found = _found(runs_of(runs, format), settings.given, org)
        if found is None:
            warn("reasonblocks learn: no run could be read")
            return PROBLEM
        known = together(known, found)
        if known:
            write_proposals(path, known)
    pending = _pending(known, org)
    decided = review(pending) if reviews else [] if accepted is None else _accepted(accepted, pending, org)
    if decided:
        _store(store, decided)
        by_id = {proposal.pattern.id: proposal for proposal in decided}
        write_proposals(path, [by_id.get(proposal.pattern.id, proposal) for proposal in known])
    if as_json:
        numbers = {proposal.pattern.id: number for number, proposal in pending.items()}
        for proposal in decided or pending.values():
            say(json.dumps({"number": numbers[proposal.pattern.id], **proposal.as_json()}, separators=(",", ":")))
    elif decided or reviews or accept is not None:
        stored = sum(proposal.status == "accepted" for proposal in decided)
        say(f"{stored} accepted, {len(decided) - stored} refused, {len(pending) - len(decided)} pending")
    else:
        for number, proposal in pending.items():
            for line in proposal_lines(number, proposal):
                say(line)
        say(f"{len(pending)} pending" if pending else "nothing is proposed")
    return OK


def _numbers(text: str) -> tuple[int, ...]:
    """Return the listed numbers; an empty tuple stands for all."""
    if text == "all":
        return ()
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = (0,)
    if min(numbers) < 1:
        raise FlagError("--accept", f"{text!r} is neither all nor numbers like 1,3")
    return numbers


def _pending(known: Sequence[Proposal], org: str | None) -> Mapping[int, Proposal]:
    """Return the pending proposals of an org, or of all, with numbers that are the same in both lists."""
    pending = [proposal for proposal in known if proposal.status == "pending"]
    return {number: one for number, one in enumerate(pending, 1) if org in (None, one.pattern.org_id)}


def _found(recorded: Iterable[RecordedRun], settings: Mapping[str, Any], org: str | None) -> Sequence[Proposal] | None:
    """Return what the runs teach; None if there is none."""
    from reasonblocks.client import ReasonBlocks

    from ..learning import learn as learn_from

    seen: Counter[str] = Counter()
    with closing(ReasonBlocks(e_traces_enabled=False, base_url="", **settings)) as rb:
        runs = _runs(recorded, seen, task_profile=settings.get("task_profile"))
        found = learn_from(runs, rb=rb, org_id=org or ORG, tool_roles=settings.get("tool_roles"))
    if seen["runs"] and seen["unknown outcome"]:
        warn(f"reasonblocks learn: left out for an unknown outcome: {seen['unknown outcome']}")
    return found if seen["runs"] else None


def _runs(found: Iterable[RecordedRun], seen: Counter[str], task_profile: str | None) -> Iterator[RecordedRun]:
    """Yield the runs as they are judged, and count those with an unknown outcome in `seen`."""
    for run in found:
        seen.update(["runs"] if run.has_outcome else ["runs", "unknown outcome"])
        yield replace(run, task_profile=None) if task_profile else run


def _accepted(numbers: Sequence[int], pending: Mapping[int, Proposal], org: str | None) -> list[Proposal]:
    """Return the pending proposals of these numbers, or all without one, as accepted ones."""
    for number in numbers:
        if number not in pending:
            of = "" if org is None else f" of the org {org!r}"
            known = ", ".join(map(str, pending)) or "none"
            raise ConfigError("--accept", number, f"is the number of no pending proposal{of} (there are: {known})")
    return [pending[number].with_status("accepted") for number in dict.fromkeys(numbers or pending)]


def _store(path: str | None, decided: Sequence[Proposal]) -> None:
    """Add the accepted ones to the store: all of them or, after an error, none."""
    from reasonblocks.backends.local_store import LocalStore

    accepted = [proposal.pattern for proposal in decided if proposal.status == "accepted"]
    if accepted:
        with LocalStore(home_path(path, STORE, "--store PATH")) as store:
            store.add(accepted)
