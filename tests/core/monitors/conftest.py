"""Steps and runs written by hand, for all tests of the monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from reasonblocks.account.observe import observe
from reasonblocks.monitors import evaluate, resolve_weights
from reasonblocks.monitors.patience import after_step
from reasonblocks.monitors.sightings import OWN_MEMORY, gather
from reasonblocks.monitors.suite import SuiteSettings
from reasonblocks.requests import Evaluate
from reasonblocks.types import Account, Evaluation, Injected, Memories, Observed, Patience, Step
from tests.core.steps import acted

TASK = "Fix the date parser so that leap years are accepted"
NO_ROLES: Mapping[str, str] = MappingProxyType({})


def act(name: str, result: str, *, is_error: bool | None = None, thought: str = "", **arguments: str | int) -> Step:
    """One step with one tool call."""
    return acted(name, dict(arguments), result, is_error=is_error, thought=thought)


def requests(
    steps: Sequence[Step],
    injected: tuple[Injected, ...] = (),
    task: str = TASK,
    patience: Patience | None = None,
    roles: Mapping[str, str] = NO_ROLES,
    observed: Sequence[Observed] = (),
) -> list[Evaluate]:
    """The engine's request after each step of a run; `observed` has what a caller's monitors found, by step."""
    account, patience, made = Account(), patience or Patience(), []
    memories: Memories = {}
    for index, step in enumerate(steps):
        account = observe(step, account, index, roles)
        patience = after_step(patience, index, None, dead=account.did.dead)
        memories = {OWN_MEMORY: gather(step, index, account, memories.get(OWN_MEMORY), roles)}
        made.append(
            Evaluate(
                step=step,
                index=index,
                memories=memories,
                injected=tuple([told for told in injected if told.step <= index]),
                task=task,
                profile="coding",
                weights=resolve_weights("coding"),
                account=account,
                patience=patience,
                observed=observed[index] if index < len(observed) else (),
            )
        )
    return made


def play(
    steps: Sequence[Step],
    injected: tuple[Injected, ...] = (),
    task: str = TASK,
    patience: Patience | None = None,
    roles: Mapping[str, str] = NO_ROLES,
    observed: Sequence[Observed] = (),
) -> list[Evaluation]:
    """The evaluation of each step of a run."""
    return [settle(one, roles) for one in requests(steps, injected, task, patience, roles, observed)]


def settle(request: Evaluate, roles: Mapping[str, str] = NO_ROLES) -> Evaluation:
    """The evaluation that answers a request."""
    return evaluate(request, SuiteSettings(tool_roles=roles))[0]
