"""Answers the requests of the HTTP API's monitors and lessons, for every server of it: nothing here does I/O.

A server keeps nothing of a run's monitors: their memory travels with the client, sealed, and comes back with the next
step. So forks and restored runs are exact, and any worker may answer.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ._calibration_file import calibration_of
from ._config import tool_roles_of
from ._gates import TIERS as TIER_RULES
from ._monitors.builtin import BY_NAME, WEIGHTS, resolve_weights
from ._requests import Evaluate, Retrieve
from ._scoring import SHIPPED_LEVEL, score_text
from .backends._local import LocalEvaluator
from .exceptions import ConfigError
from .ports import Evaluator, PatternStore
from .types import JSON, Evaluation, Memories, Note, Observed
from .wire import (
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
"""Monitors of a client, at most: an evaluation has at most 64 scores."""
EVALUATORS = 256
"""Evaluators that are kept, one for each set of a client's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The memories of a sealed memory, and the number of steps of the run that they follow."""

    memories: Memories
    steps: int


NOTHING = Opened(memories={}, steps=0)
"""The memories before a run's first step."""


class Seal:
    """Seals the memories of monitors with an HMAC-SHA256 of the server's secret, and opens what it has sealed.

    The monitors trust the form of their memories, so none that another secret sealed may reach them. A seal binds
    them to a version of the memories, to an org, and to what they are of: a run and a number of steps. All forks of a
    run have its id, and each goes on with the memory of the step that it starts from.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, memories: Memories, *, org: str, run_id: str, steps: int) -> dict[str, JSON]:
        """Return the memories after the first `steps` steps of a run, as JSON that only this secret opens."""
        sealed: dict[str, JSON] = {
            "version": MEMORY_VERSION,
            "org": org,
            "of": {"run_id": run_id, "steps": steps},
            "memories": memories,
        }
        return {**sealed, "mac": self._mac(sealed)}

    def open(self, blob: object, *, org: str, run_id: str, before: int) -> Opened | None:
        """Return the memories if they are of this org's run, of steps before step `before`; None otherwise.

        They may end before that step: a step without an evaluation is a gap in the monitors' memory.
        """
        if not isinstance(blob, Mapping) or not self._is_ours(blob):
            return None
        of = blob["of"]
        if (blob["version"], blob["org"], of["run_id"]) != (MEMORY_VERSION, org, run_id) or of["steps"] > before:
            return None
        return Opened(memories=blob["memories"], steps=of["steps"])

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
    """Evaluates completed steps by a request's own settings, with the memory that came with it."""

    def __init__(self, seal: Seal, evaluator: Evaluator | None = None) -> None:
        """`evaluator` replaces the monitors of this package."""
        self._seal, self._evaluator = seal, evaluator

    def answer(self, request: EvaluateRequest, *, org: str, notes: Sequence[Note] = ()) -> EvaluateResponse:
        """Return the evaluation of the request's last step. Raises `ConfigError` with the invalid field.

        The steps begin at `from_step`. If the memory is not of all steps before that one, the answer is `partial`.
        """
        known = self._known(request, org)
        partial = known.steps < request.from_step
        evaluation, memories = Evaluation(), known.memories
        asked = evaluates(request, memories)
        evaluator = self._evaluator or _evaluator_of(_settings_of(request))
        for step in asked:
            evaluation, memories = evaluator.evaluate(_with(step, memories))
        after = request.from_step + len(request.steps)
        own = {name: memory for name, memory in memories.items() if name not in _names(request)}
        sealed = self._seal.seal(own, org=org, run_id=request.run_id, steps=after)
        return evaluation_response(evaluation, sealed, partial=partial, notes=notes)

    def _known(self, request: EvaluateRequest, org: str) -> Opened:
        opened = self._seal.open(request.memory, org=org, run_id=request.run_id, before=request.from_step)
        return opened or NOTHING
