"""Answers the requests of the HTTP API for evaluations and lessons, without I/O, for any server of the API.

A server stores nothing of a run's monitors: it seals their memory, and the client sends it back with the next step.
Forks and restored runs therefore continue exactly, and any worker can answer.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reasonblocks.backends.local import LocalEvaluator
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.engine.scoring import score_text
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import BY_NAME, WEIGHTS, resolve_weights
from reasonblocks.monitors.calibration import SHIPPED_LEVEL, calibration_of
from reasonblocks.options import tool_roles_of
from reasonblocks.patterns import NAME_BYTES
from reasonblocks.ports import Evaluator, PatternStore
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.types import JSON, Evaluation, Memories, Note, Observed
from reasonblocks.util.json import compact, evolve
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
    own_level_of,
    retrieve_response,
)

MEMORY_VERSION = 1
"""Incremented when today's monitors would misread the memories of an earlier version."""
DEFAULT_PROFILE = "coding"
MAX_OBSERVED = 32
"""The most monitors of a client; an evaluation has at most 64 scores."""
EVALUATORS = 256
"""Evaluators that are kept, one for each set of a client's settings."""
SETTINGS_CHARS = 65_536
"""Characters of a client's settings, at most, because they are kept with their evaluator."""


class Seal:
    """Seals the memories of monitors with an HMAC-SHA256 of the server's secret, and opens what it has sealed.

    The monitors trust the form of their memories, so only memories that this secret sealed may reach them. A seal binds
    them to a version of the memories, to an org, to a run and to a number of steps. All forks of a run have its id, and
    each continues with the memory of the step from which it starts.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, memories: Memories, *, org: str, run_id: str, steps: int) -> dict[str, JSON]:
        """Return the memories after the first `steps` steps of a run, as JSON that only this secret opens.

        The memories are a text, so that a client in any language returns them as they were: JavaScript, for instance,
        would write 1.0 as 1.
        """
        sealed: dict[str, JSON] = {
            "version": MEMORY_VERSION,
            "org": org,
            "of": {"run_id": run_id, "steps": steps},
            "memories": compact(memories),
        }
        return {**sealed, "mac": self._mac(sealed)}

    def open(self, blob: object, *, org: str, run_id: str, before: int) -> Memories | None:
        """Return the memories if they are of this run of the org, and of steps before `before`; None otherwise.

        They may end before that step: a step without an evaluation is a gap in the monitors' memory.
        """
        if not isinstance(blob, Mapping) or not self._is_ours(blob):
            return None
        of = blob["of"]
        if (blob["version"], blob["org"], of["run_id"]) != (MEMORY_VERSION, org, run_id) or of["steps"] > before:
            return None
        return json.loads(blob["memories"])  # type: ignore[no-any-return]  # as sealed

    def _is_ours(self, blob: Mapping[str, Any]) -> bool:
        mac = blob.get("mac")
        if not isinstance(mac, str) or not mac.isascii():
            return False
        try:
            expected = self._mac({name: value for name, value in blob.items() if name != "mac"})
        except (TypeError, ValueError, RecursionError):  # not JSON, or a text that is not UTF-8
            return False
        return hmac.compare_digest(mac, expected)

    def _mac(self, sealed: Mapping[str, JSON]) -> str:
        return hmac.digest(self._secret, _SEALED.encode(sealed).encode(), "sha256").hex()


_SEALED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
"""Writes every value in one way only, whatever a client's JSON library did to spaces and the order of keys."""


class Evaluations:
    """Evaluates completed steps by the settings of each request, with the memory that came with it."""

    def __init__(self, seal: Seal, evaluator: Evaluator | None = None) -> None:
        """`evaluator` replaces the built-in monitors and the settings of requests."""
        self._seal, self._evaluator = seal, evaluator

    def answer(self, request: EvaluateRequest, *, org: str, notes: Sequence[Note] = ()) -> EvaluateResponse:
        """Return the evaluation of a request's last step. Raises `ConfigError` for an invalid field.

        The answer is `partial` if the run has steps before `from_step`, and the request no usable memory of them.
        """
        _check_name("run_id", request.run_id)
        start = request.from_step
        opened = self._seal.open(request.memory, org=org, run_id=request.run_id, before=start)
        memories = opened or {}
        evaluator = self._evaluator or _evaluator_of(request)
        evaluation = Evaluation()
        for asked in _steps_of(request):
            evaluation, memories = evaluator.evaluate(evolve(asked, memories=memories))
        sealed = self._seal.seal(
            _without_observed(memories, request),
            org=org,
            run_id=request.run_id,
            steps=start + len(request.steps),
        )
        return evaluation_response(evaluation, sealed, partial=start > 0 and opened is None, notes=notes)


def _steps_of(request: EvaluateRequest) -> Iterator[Evaluate]:
    """Yield the steps without memories. The client's own monitors observed the last one."""
    last = len(request.steps) - 1
    task_profile = request.task_profile if request.task_profile in WEIGHTS else DEFAULT_PROFILE
    observed = _observed_of(request)
    weights = resolve_weights(task_profile, request.weights, [name for name, *_ in observed])
    injected, own_level = injected_of(request), own_level_of(request)
    for number, given in enumerate(request.steps):
        yield Evaluate(
            step=given.step(),
            index=request.from_step + number,
            memories={},
            injected=injected,
            task=request.task,
            profile=task_profile,
            weights=weights,
            observed=observed if number == last else (),
            own_level=own_level,
            run_id=request.run_id,
        )


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


def _without_observed(memories: Memories, request: EvaluateRequest) -> Memories:
    own = {item.name for item in request.observed}
    return {name: memory for name, memory in memories.items() if name not in own}


def _evaluator_of(request: EvaluateRequest) -> Evaluator:
    """Return the monitors with a request's settings. Raises `ConfigError`."""
    types = {item.name: item.failure_type or item.name for item in request.observed}
    try:
        settings = _SEALED.encode([request.calibration, request.tool_roles, types])
    except (TypeError, ValueError, RecursionError) as exc:
        raise ConfigError("calibration", type(exc).__name__, "must be finite numbers") from exc
    if len(settings) > SETTINGS_CHARS:
        raise ConfigError("tool_roles", f"{len(settings):,} characters", f"at most {SETTINGS_CHARS:,} with calibration")
    return _evaluator(settings)


@lru_cache(maxsize=EVALUATORS)
def _evaluator(settings: str) -> LocalEvaluator:
    calibration, tool_roles, failure_types = json.loads(settings)
    return LocalEvaluator(calibration_of(calibration), tool_roles_of(tool_roles), failure_types)


def retrieved(store: PatternStore, request: RetrieveRequest, *, org: str) -> RetrieveResponse:
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


def scored(request: ScoreRequest) -> ScoreResponse:
    """Return the difficulty of a text by the shipped level."""
    return ScoreResponse(difficulty=score_text(request.text, SHIPPED_LEVEL))
