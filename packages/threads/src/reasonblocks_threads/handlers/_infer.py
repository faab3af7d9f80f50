"""Inference: asks for a proposal of the present stage within its budget, and reports a usable answer or a failure."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..codec import encode
from ..engine.described import describe_error
from ..engine.lost import RESERVED_TOKENS, RESERVED_USD
from ..errors import ReadOnly, Refused
from ..phases import CATEGORIES, Phase, Stage, Trigger
from ..ports import Ask, Inferred
from ._ask import Checked, ask_of, check, usable
from ._calls import call_within, deadline, report_late

if TYPE_CHECKING:
    from ..engine import Engine
    from ..rules import Rules
    from ..values import Thread, Work

INFER_S = 58.0
"""Seconds of an inference with its repair: its lease of 60 s is not over when the answer is written."""
PRECONDITIONS_S = 20.0
_UNKNOWN = (RESERVED_TOKENS, RESERVED_USD)
MOST = 10**12
"""The largest number that a cost is booked with."""
DETAIL_CHARS = 800
CALLS = 2
"""Of one inference: the question, and its repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """An inference of a thread at its present stage. `until` is when its answer has to be there."""

    engine: Engine
    work: Work
    thread: Thread
    rules: Rules
    until: float

    @property
    def call_id(self) -> str:
        return f"{self.work.id}.{self.work.attempts}"

    @property
    def lost(self) -> _Cost:
        """The cost of attempts that were lost with their processes: each may have made its call."""
        number = 0 if self.thread.phase is Phase.AWAITING_INFERENCE else self.work.attempts - 1
        return _Cost(calls=number, tokens=number * RESERVED_TOKENS, usd=number * RESERVED_USD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """The cost of the calls of a job so far; a repair is a second call."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, tokens: int, usd: float) -> _Cost:
        return _Cost(calls=self.calls + 1, tokens=self.tokens + tokens, usd=self.usd + usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The outcome of a job: usable proposals, or the `code` and `detail` of its failure."""

    cost: _Cost
    proposals: tuple[Checked, ...] = ()
    code: str = ""
    detail: str = ""


def infer(engine: Engine, work: Work) -> None:
    """Infer the present stage of a thread: from a stored proposal without a call, else by a call."""
    job = _job(engine, work)
    if job is None:
        return
    stored = job.thread.proposals.get(job.thread.stage)
    checked = check(stored, job.thread, job.rules.catalogue) if stored is not None else Checked()
    if checked.proposal is not None:
        if _start(job):
            _done(job, _Answer(cost=_Cost(), proposals=(checked,)), stored=True)
        return
    if refusal := _exhausted(job, _Cost()):
        _refuse(job, refusal)
    elif _start(job):
        answer = _ask(job, checked.faults)
        if answer.proposals:
            _done(job, answer)
        else:
            _failed(job, answer)


def _job(engine: Engine, work: Work) -> _Job | None:
    with engine.store.read() as reading:
        thread = reading.head(work.thread_id)
        if thread is None:
            return None
        queued = thread.phase is Phase.AWAITING_INFERENCE and thread.entered == work.entered
        if not queued and CATEGORIES[thread.phase] != "inferring":
            return None
        rules = engine.rules(reading, thread)
    until = deadline(engine, work, INFER_S)
    return _Job(engine=engine, work=work, thread=thread, rules=rules, until=until)


def _exhausted(job: _Job, more: _Cost) -> str | None:
    """Return why the budget admits no call after those that were booked, those that were lost, and these, or None."""
    spent, lost = job.thread.spent, job.lost
    counted = replace(
        spent,
        calls=spent.calls + lost.calls + more.calls,
        tokens=spent.tokens + lost.tokens + more.tokens,
        usd=spent.usd + lost.usd + more.usd,
    )
    why = job.rules.exhausted(replace(job.thread, spent=counted))
    if why is None:
        return None
    used = f"{counted.calls} calls, {counted.tokens:,} tokens and {counted.usd:.2f} USD are used"
    return f"{why[:1].upper()}{why[1:]}: {used}."


def _refuse(job: _Job, detail: str) -> None:
    """Report that the budget admits no call."""
    queued = job.thread.phase is Phase.AWAITING_INFERENCE
    trigger = Trigger.INFERENCE_REJECTED if queued else Trigger.INFERENCE_FAILED
    data: dict[str, object] = {"code": "budget", "detail": detail}
    job.engine.report(job.work, trigger, data if queued else {**data, "call": _booked(job, _Cost())}, detail=detail)


def _start(job: _Job) -> bool:
    """Log that the inference begins, unless an earlier attempt did. Returns False if the thread has moved on."""
    if job.thread.phase is not Phase.AWAITING_INFERENCE:
        return True
    return job.engine.report(job.work, Trigger.INFERENCE_STARTED, {"work": job.work.id}) is not None


def _ask(job: _Job, errors: tuple[str, ...]) -> _Answer:
    """Ask the inferencer, and once more with the errors of its answer if the budget admits that."""
    inferencer = job.engine.inferencer
    with job.engine.store.read() as reading:
        ask = ask_of(reading, job.thread, job.rules, seconds=max(0.0, job.until - job.engine.now()), errors=errors)
    cost, code, faults = _Cost(), "", [""]
    proposals: tuple[Checked, ...] = ()
    while faults and cost.calls < CALLS and not (cost.calls and _exhausted(job, cost)):
        outcome = call_within(
            _call(job, ask), f"the inferencer {inferencer.name}", clock=job.engine.now, until=job.until
        )
        if outcome.late is not None:
            outcome.late.add_done_callback(_late(job))
            detail = f"{inferencer.name} did not answer in time, and was given up."
            return _Answer(cost=cost.plus(*_UNKNOWN), code="deadline", detail=detail)
        if outcome.error is not None:
            cost, code = cost.plus(*_UNKNOWN), "error"
            faults = [f"it raised {describe_error(outcome.error)}"]
        else:
            cost, code = cost.plus(*_cost(outcome.value)), "invalid"
            proposals, faults = _usable(job, outcome.value)
        ask = replace(ask, errors=tuple(faults), seconds=max(0.0, job.until - job.engine.now()))
    if faults:
        detail = f"{inferencer.name} gave no usable answer: {'; '.join(faults)}"[:DETAIL_CHARS]
        return _Answer(cost=cost, code=code, detail=detail)
    return _Answer(cost=cost, proposals=proposals)


def _usable(job: _Job, answer: object) -> tuple[tuple[Checked, ...], list[str]]:
    try:
        return usable(answer, job.thread, job.rules.catalogue, job.engine.inferencer.name)
    except Exception as exc:  # noqa: BLE001 - values of the caller's may raise whenever they are touched
        return (), [f"it could not be checked: {describe_error(exc)}"]


def _call(job: _Job, ask: Ask) -> Callable[[], object]:
    return lambda: job.engine.inferencer.infer(ask)


def _cost(answer: object) -> tuple[int, float]:
    """Return the tokens and USD of an answer, as far as they are numbers."""
    if not isinstance(answer, Inferred):
        return _UNKNOWN
    return int(_amount(answer.tokens)), _amount(answer.usd)


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(value, MOST)) if value > 0 else 0.0  # NaN is not above 0


def _late(job: _Job) -> Callable[[Future[object]], None]:
    """Return what notes an answer that came after its inference was given up, and its cost."""

    def note(future: Future[object]) -> None:
        error = future.exception()
        if error is None:
            tokens, usd = _cost(future.result())
            said = f"answered too late, for {tokens:,} tokens and {usd:.2f} USD"
        else:
            said = f"raised {describe_error(error)}"
        name = f"work:{job.work.id}:late:{job.work.attempts}"
        report_late(job.engine, job.thread.id, name, "inference", f"{job.engine.inferencer.name} {said}")

    return note


def _done(job: _Job, answer: _Answer, *, stored: bool = False) -> None:
    asked = answer.proposals[0]
    data: dict[str, object] = {
        "proposals": [encode(each.proposal) for each in answer.proposals if each.proposal is not None],
        "call": None if stored else _booked(job, answer.cost),
        "stored": stored,
        "preconditions": _preconditions(job, asked) if job.thread.stage is Stage.ACTION else None,
    }
    try:
        job.engine.report(job.work, Trigger.INFERENCE_DONE, data, detail="an answer")
    except Refused as exc:
        if isinstance(exc, ReadOnly):
            raise
        _failed(job, replace(answer, code="invalid", detail=f"The proposal is refused: {exc.why}"[:DETAIL_CHARS]))


def _failed(job: _Job, answer: _Answer) -> None:
    data: dict[str, object] = {"code": answer.code, "detail": answer.detail, "call": _booked(job, answer.cost)}
    job.engine.report(job.work, Trigger.INFERENCE_FAILED, data, detail=answer.detail)


def _booked(job: _Job, cost: _Cost) -> dict[str, object]:
    lost = job.lost
    return {
        "id": job.call_id,
        "calls": lost.calls + cost.calls,
        "tokens": lost.tokens + cost.tokens,
        "usd": lost.usd + cost.usd,
    }


def _preconditions(job: _Job, asked: Checked) -> list[dict[str, object]] | None:
    """Return each precondition of the proposed action with its result; None if they could not be checked."""
    bound = asked.bound
    if bound is None:
        return None
    outcome = call_within(
        lambda: job.rules.catalogue.preconditions(bound, job.thread),
        f"the preconditions of {bound.action}",
        clock=job.engine.now,
        until=deadline(job.engine, job.work, PRECONDITIONS_S),
    )
    return None if outcome.value is None else [dict(each) for each in outcome.value]
