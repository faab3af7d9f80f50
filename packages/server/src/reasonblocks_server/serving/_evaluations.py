"""Answers the requests of the HTTP API for evaluations and lessons, without I/O, for any server of the API.

An evaluation is a function of its request alone: a client sends the account of the run with each step, or all steps.
Forks and restored runs therefore continue exactly, and any worker can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from reasonblocks.account.observe import observe
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.engine.scoring import score_text
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors import suite
from reasonblocks.monitors.builtin import BY_NAME, WEIGHTS, resolve_weights
from reasonblocks.monitors.calibration import SHIPPED_LEVEL
from reasonblocks.monitors.patience import after_step
from reasonblocks.monitors.sightings import OWN_MEMORY, gather
from reasonblocks.monitors.suite import SuiteSettings
from reasonblocks.monitors.untried import memory_in
from reasonblocks.options.config import tool_roles_of
from reasonblocks.patterns import NAME_BYTES
from reasonblocks.ports import PatternStore
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.types import JSON, Account, Evaluation, Note, Observed, Patience, Step
from reasonblocks.util.text import size, whole
from reasonblocks.wire import (
    EvaluateRequest,
    EvaluateResponse,
    RetrieveRequest,
    RetrieveResponse,
    ScoreRequest,
    ScoreResponse,
    evaluation_response,
    injected_of,
    retrieve_response,
)

DEFAULT_PROFILE = "coding"
MAX_OBSERVED = 32
"""The most monitors of a client; an evaluation has at most 64 scores."""


class Evaluations:
    """Evaluates the newest completed step of each request, by the settings of the request."""

    def answer(
        self, request: EvaluateRequest, *, notes: Sequence[Note] = (), go_on: Callable[[], None] = lambda: None
    ) -> EvaluateResponse:
        """Return the evaluation of a request's last step. Raises `ConfigError` for an invalid field.

        The answer is `partial` if the run has steps before `from_step`, and the request no account of them. `go_on` is
        called before each step that has to be observed, and may raise.
        """
        settings = _settings_of(request)
        asked = _asked(request, settings, go_on)
        evaluation = Evaluation() if asked is None else suite.evaluate(asked, settings=settings)[0]
        partly = request.account is None and request.from_step > 0
        return evaluation_response(evaluation, partial=partly, notes=notes)


def _settings_of(request: EvaluateRequest) -> SuiteSettings:
    types = {item.name: item.failure_type or item.name for item in request.observed}
    return SuiteSettings(tool_roles=tool_roles_of(request.tool_roles), failure_types=types)


def _asked(request: EvaluateRequest, settings: SuiteSettings, go_on: Callable[[], None]) -> Evaluate | None:
    """Return the question about the last step; None for a request without steps."""
    _check_name("run_id", request.run_id)
    observed = _observed_of(request)
    task_profile = request.task_profile if request.task_profile in WEIGHTS else DEFAULT_PROFILE
    weights = resolve_weights(task_profile, request.weights, [name for name, *_ in observed])
    steps, index = [given.step() for given in request.steps], request.from_step + len(request.steps) - 1
    if request.account is not None and len(steps) != 1:
        raise ConfigError("steps", f"{len(steps)} steps", "must have the newest one alone, with an account")
    if not steps:
        return None
    run = _sent(request) or _replayed(request, steps, settings, go_on)
    return Evaluate(
        step=steps[-1],
        index=index,
        memories={} if run.sightings is None else {OWN_MEMORY: run.sightings},
        injected=injected_of(request),
        task=request.task,
        profile=task_profile,
        weights=weights,
        account=run.account,
        patience=run.patience,
        observed=observed,
        run_id=request.run_id,
    )


class _Run(NamedTuple):
    """A run after its newest step, as the monitors know it."""

    account: Account
    patience: Patience
    sightings: JSON


def _sent(request: EvaluateRequest) -> _Run | None:
    """Return the run by the account that the client sent; None without one."""
    if request.account is None:
        return None
    return _Run(request.account, request.patience, memory_in(request.sightings))


def _replayed(
    request: EvaluateRequest, steps: Sequence[Step], settings: SuiteSettings, go_on: Callable[[], None]
) -> _Run:
    """Return the run by the steps that the client sent."""
    account, patience = Account(), request.patience
    sightings: JSON = None
    injected = [told.step for told in injected_of(request)]
    for index, step in enumerate(steps, request.from_step):
        go_on()
        account = observe(step, account, index, settings.tool_roles)
        told = max([at for at in injected if at <= index], default=None)
        patience = after_step(patience, index, told, dead=account.did.dead)
        sightings = gather(step, index, account, sightings, settings.tool_roles)
    return _Run(account, patience, sightings)


def _observed_of(request: EvaluateRequest) -> Observed:
    """Return the observations of the client's monitors, whose memories stay with the client."""
    last = request.from_step + len(request.steps) - 1
    given = request.observed
    if len(given) > MAX_OBSERVED:
        raise ConfigError("observed", f"{len(given)} monitors", f"at most {MAX_OBSERVED}")
    if len({item.name for item in given}) < len(given):
        raise ConfigError("observed", [item.name for item in given], "each monitor once")
    for item in given:
        _check_name("observed.name", item.name)
        _check_name("observed.failure_type", item.failure_type)
        if not item.name or item.name in BY_NAME or item.name.startswith("_"):
            raise ConfigError("observed.name", item.name, "must be the name of a monitor of the client's own")
        if not all(0 <= step <= last for step in item.evidence):
            raise ConfigError("observed.evidence", item.evidence, f"must be steps from 0 to {last}")
    return tuple([(item.name, item.score, None, tuple(item.evidence)) for item in given])


def _check_name(field: str, value: str) -> None:
    """Refuse a name that the answer could not contain."""
    if size(value) > NAME_BYTES or whole(value) != value:
        raise ConfigError(field, value, f"must be a text of at most {NAME_BYTES} bytes, in whole characters")


def answer_retrieve(store: PatternStore, request: RetrieveRequest, *, org: str) -> RetrieveResponse:
    """Return the patterns of a store for a request of this org."""
    rule = TIER_RULES[request.tier]
    texts = tuple(request.texts) if request.texts is not None else (request.context,)
    asked = Retrieve(
        tier=request.tier,
        texts=() if request.tier == "e3" else texts,
        top_k=request.top_k,
        similarity=rule.similarity if request.similarity is None else request.similarity,
        org_id=org,
        failure_type=request.failure_type,
        model=request.model,
        kind=request.kind,
    )
    return retrieve_response(store.search(asked))


def answer_score(request: ScoreRequest) -> ScoreResponse:
    """Return the difficulty of a text by the shipped level."""
    return ScoreResponse(difficulty=score_text(request.text, SHIPPED_LEVEL))
