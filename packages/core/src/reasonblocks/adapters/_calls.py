"""A steered model call: its key, its record, and the models that routing names."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from ..engine.routing import attribute, is_identifier
from ..session import InThread, SteeringFlow, SteeringSession, ms_since
from ..types import StepDecision, StepOutcome, TraceState


@dataclass(slots=True, eq=False, kw_only=True)
class OpenCall:
    """A decided model call until its outcome is recorded: an answer once, an error once per attempt."""

    session: SteeringSession
    decision: StepDecision
    model: str
    """The name of the model that is called."""
    started: float = field(default_factory=time.perf_counter)
    first_event: float | None = None
    answered: bool = False
    recorded: bool = False
    """True if the outcome of this attempt is recorded."""
    error: str | None = None
    """The type of the exception that the newest attempt raised."""
    withdrawn: bool = False
    """True after a refusal with a status of `REFUSALS`: a retry has no guidance."""

    def start(self) -> None:
        """Begin an attempt: the first one, or a retry."""
        self.started, self.first_event, self.recorded = time.perf_counter(), None, False

    def saw_event(self) -> None:
        """Note the time of a stream's first event."""
        self.first_event = self.first_event or time.perf_counter()

    @property
    def latency_ms(self) -> float:
        """Milliseconds since the attempt began."""
        return ms_since(self.started)

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the start to a stream's first event."""
        return None if self.first_event is None else round((self.first_event - self.started) * 1000, 3)

    def record(self, outcome: Callable[[], StepOutcome]) -> bool:
        """Record the answer, which `outcome` reads under the session's guard. Return False after a fault.

        Only the first answer is recorded.
        """
        if self.answered:
            return True
        self.answered = self.recorded = True
        with self.session.guard("recording an answer"):
            self.session.end_step(self.decision, outcome())
            return True
        return False

    def failed(self, error: BaseException) -> None:
        """Record what the call raised, unless this attempt's outcome is recorded. The error is the user's to handle."""
        if self.recorded:
            return
        self.recorded, self.error = True, type(error).__name__
        with self.session.guard("recording an error"):
            outcome = failure_of(error, model=self.model, latency_ms=self.latency_ms)
            self.session.end_step(self.decision, outcome)
            if (status := status_of(error)) in REFUSALS:
                self.withdrawn = True
                self.session.withdraw(self.decision, status)


def failure_of(error: BaseException, *, model: str, latency_ms: float) -> StepOutcome:
    """Return the outcome of a call that raised. `model` is the model that was called."""
    text, name = "", type(error).__name__
    with suppress(Exception):  # its own `__str__` may raise, and must not hide it
        text = str(error)
    return StepOutcome(model=model, latency_ms=latency_ms, error=f"{name}: {text}" if text else name)


REFUSALS = frozenset({400, 422})
"""The HTTP statuses with which a provider refuses the form of a request (BEHAVIOUR section 7)."""
_STATUS = ("status_code", "http_status", "status", "code")
"""The attributes in which providers' clients keep the status of an answer, the clearest name first."""
MAX_CAUSES = 8


def status_of(error: BaseException) -> int:
    """Return the HTTP status that a provider's client raised, or that is the cause of the error; 0 without one."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            break
        response = attribute(found, "response")
        if isinstance(response, Mapping):  # botocore's
            response = response.get("ResponseMetadata")
            if isinstance(response, Mapping) and isinstance(status := response.get("HTTPStatusCode"), int):
                return status
        values = (attribute(holder, name) for holder in (found, response) for name in _STATUS)
        if (status := next((value for value in values if isinstance(value, int) and 100 <= value < 600), 0)) != 0:
            return status
        found = found.__cause__ or found.__context__
    return 0


def call_key(state: TraceState) -> str:
    """Return the next call's key for a framework without one: the number of answered steps so far.

    A repeated call that was never answered has the same key. Not for auxiliary calls.
    """
    return f"call-{state.steps_begun - (state.steps_begun > 0 and state.pending is None)}"


_PREFIX = re.compile(r"^(?:[a-z_-]+:)?(?:.*/)?")
_RELEASE = re.compile(r"[-@](latest|\d{8}|\d{4}-\d{2}-\d{2})$")


def same_model(one: str, other: str) -> bool:
    """Return True if two names mean one model: "anthropic:claude-x" is "claude-x-20250101"."""
    return _bare(one) == _bare(other)


@lru_cache(maxsize=256)
def _bare(name: str) -> str:
    return _RELEASE.sub("", _PREFIX.sub("", name.lower()))


ModelT = TypeVar("ModelT")


class RoutedModels(Generic[ModelT]):
    """Uses mapped model objects as they are, and builds each identifier once. Safe to share between threads.

    `check` returns a model that the framework can call, and raises `TypeError` for anything else.
    """

    def __init__(self, check: Callable[[Any], ModelT]) -> None:
        self._check = check
        self._built: dict[str, ModelT] = {}
        self._lock = threading.Lock()

    def model(
        self, session: SteeringSession, state: str | None, mapping: Mapping[str, object], build: Callable[[str], object]
    ) -> SteeringFlow[ModelT | None]:
        """Return the model to which `mapping` sends calls in `state`; None keeps the agent's own.

        If a model cannot be built, the session logs it once and closes the route.
        """
        if state is None:
            return None
        with session.routing(state):
            wanted = mapping.get(state)
            if not is_identifier(wanted):
                return self._check(wanted)
            if wanted not in self._built:
                yield InThread(partial(self._build, wanted, build))  # it may import a provider's package
            return self._built[wanted]
        return None

    def built(self) -> list[ModelT]:
        """Return the models that were built here, which nobody else closes."""
        return list(self._built.values())

    def _build(self, name: str, build: Callable[[str], object]) -> None:
        with self._lock:
            if name not in self._built:
                self._built[name] = self._check(build(name))
