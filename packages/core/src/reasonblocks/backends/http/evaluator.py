"""Requests the evaluation of each step from a server, and keeps the operators' notes in its answers."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...concurrency.forks import on_fork
from ...exceptions import BadAnswer
from ...ports import Evaluate
from ...types import JSON, Evaluation, Memories, Note
from ...wire import EvaluateResponse, evaluate_request
from ._connections import Ask, json_object
from ._exchange import NO_DEADLINE_SECONDS, Exchange
from .texts import Redaction, bounded_step, evaluate_with

BACKEND = "the evaluator"
RUNS_KEPT = 1_024
"""Runs whose notes are kept; the notes of the run that has not been evaluated for the longest time are dropped."""
NOTES_KEPT = 16
"""Notes of one run that are kept."""
MOST_ENTRIES = 64
"""Entries of a list or an object in an answer: scores, notes, patterns, and the fields of a pattern."""
MOST_VALUES = 2_000
"""Values of an answer in all: a validation lists each wrong one, on the caller's event loop."""
JSON_BODY = {"content-type": "application/json"}

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class HttpEvaluator:
    """Evaluates steps on a server: sends each step alone, with the account of the run up to it.

    The caller's own monitors run in this process, and their memories are not sent. `weights` and `tool_roles` are those
    that the caller gave, None for the server's own.
    """

    inline = True
    """It keeps the deadline itself and blocks no event loop."""
    remote = True
    """Its answers come from another process, so they are validated."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        weights: Mapping[str, float] | None = None,
        tool_roles: Mapping[str, str] | None = None,
        failure_types: Mapping[str, str] | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._exchange, self._redaction = exchange, redaction
        self._given: dict[str, Any] = {
            "weights": weights or None,
            "tool_roles": tool_roles or None,
            "failure_types": failure_types,
        }
        self._notes: OrderedDict[str, tuple[Note, ...]] = OrderedDict()
        self._new_lock()
        on_fork(self._new_lock)

    def _new_lock(self) -> None:
        self._lock = threading.Lock()

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        """Ask the server until `request.ends`. Raises `Unavailable`, and `BadAnswer` for an unreadable answer."""
        self._exchange.check(BACKEND)
        sent = request
        if self._redaction is not None:
            sent = self._redaction.applied(partial(evaluate_with, request), seconds_left(request.ends))
        answer = self._exchange.ask(BACKEND, self._ask(sent), request.ends, self._read)
        return self._answered(request, answer)

    async def aevaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        """Ask the server without blocking the event loop."""
        self._exchange.check(BACKEND)
        sent = request
        if self._redaction is not None:
            sent = await self._redaction.aapplied(partial(evaluate_with, request), seconds_left(request.ends))
        answer = await self._exchange.aask(BACKEND, self._ask(sent), request.ends, self._read)
        return self._answered(request, answer)

    def waiting(self, run_id: str) -> tuple[Note, ...]:
        """Return the notes that wait for a run, as of the last answer."""
        with self._lock:
            return self._notes.get(run_id, ())

    def close(self) -> None:
        self._exchange.close()

    def _ask(self, request: Evaluate) -> Ask:
        body = evaluate_request(replace(request, step=bounded_step(request.step)), **self._given)
        return Ask(path="/monitors/evaluate", body=body.model_dump_json(exclude_none=True).encode(), headers=JSON_BODY)

    def _read(self, body: bytes) -> EvaluateResponse:
        return read_answer(EvaluateResponse, self._exchange.address.shown, body)

    def _answered(self, request: Evaluate, answer: EvaluateResponse) -> tuple[Evaluation, Memories]:
        if request.takes_notes:
            self._keep_notes(request, answer)
        return answer.evaluation(), request.memories

    def _keep_notes(self, request: Evaluate, answer: EvaluateResponse) -> None:
        """Replace the run's notes by those of the answer that it has not been told."""
        told = {*request.notes_told}
        notes = tuple([note for note in answer.notes_of()[:NOTES_KEPT] if note.id not in told])
        with self._lock:
            self._notes.pop(request.run_id, None)
            if notes:
                self._notes[request.run_id] = notes
            while len(self._notes) > RUNS_KEPT:
                self._notes.popitem(last=False)


def seconds_left(ends: float | None) -> float:
    """Return the seconds until a deadline."""
    return NO_DEADLINE_SECONDS if ends is None else ends - time.monotonic()


def read_answer(model: type[AnswerT], server: str, body: bytes) -> AnswerT:
    """Read an answer. Raises `BadAnswer` with the first field that is wrong."""
    answer = json_object(server, body)
    _check_size(server, [*answer.values()])
    return validate_answer(model, server, answer)


def validate_answer(model: type[AnswerT], server: str, answer: Mapping[str, Any]) -> AnswerT:
    """Return a parsed answer as its model. Raises `BadAnswer` with the first field that is wrong."""
    try:
        return model.model_validate(answer)
    except ValidationError as exc:
        wrong = exc.errors(include_url=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        raise BadAnswer(f"{server}: {where}", wrong["input"], wrong["msg"]) from None


def _check_size(server: str, values: list[JSON]) -> None:
    """Raise `BadAnswer` for an answer with too many values."""
    left = MOST_VALUES
    while values:
        value = values.pop()
        if not isinstance(value, (dict, list)):
            continue
        left -= len(value)
        if len(value) > MOST_ENTRIES or left < 0:
            rule = f"at most {MOST_ENTRIES} entries of a field and {MOST_VALUES} values in all are read"
            raise BadAnswer(server, f"{len(value)} entries", rule)
        values += value.values() if isinstance(value, dict) else value
