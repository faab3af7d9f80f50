"""Asks the caller's advisor: what it is told of a stuck run, and what of its answer is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from inspect import isawaitable, iscoroutinefunction
from typing import TypeAlias

from ..account.observe import calls_with_results
from ..concurrency.workers import contain_faults, in_daemon
from ..engine import MOST_ADVICE
from ..exceptions import BadAnswer
from ..monitors.excerpts import call_line, one_line
from ..monitors.roles import trust_of
from ..ports import Advisor
from ..render.sanitise import sanitise
from ..requests import Advise
from ..types import Advice, AdviceRequest, Step
from ..util.text import whole

Redact: TypeAlias = Callable[[str], str]
ADVISOR = "the advisor"
ADVISOR_SECONDS = 15.0
"""The time of an advisor, beside that of the step."""
STEPS = 12
"""The number of newest steps that an advisor is told."""
STEP_CHARS = 500
"""Characters of a step that an advisor is told."""
ADVICE_CHARS = 400
"""Characters of an advisor's answer, at most."""
READ_CHARS = 4_000
"""Characters of an answer that are read."""
WITHHELD = "(left out: somebody else may have written it)"


class Consultation:
    """The questions to an advisor in one run: keeps the newest steps for them, and counts them."""

    def __init__(self, tool_roles: Mapping[str, str], redact: Redact | None) -> None:
        self.redact = redact
        self._tool_roles = tool_roles
        self._recent: deque[Step] = deque(maxlen=STEPS - 1)
        self._asked = 0

    def keep(self, step: Step) -> None:
        """Keep a completed step, for the questions of later ones."""
        self._recent.append(step)

    def ask(self, request: Advise, task: str) -> AdviceRequest | None:
        """Return what the advisor is told; None if it was asked often enough, also by steps that were cancelled."""
        if self._asked >= MOST_ADVICE:
            return None
        self._asked += 1
        return AdviceRequest(
            task=task,
            steps=tuple([_told(step, self._tool_roles) for step in (*self._recent, request.step)]),
            fact=request.fact,
            hint=request.hint,
            text=request.text,
        )


def is_async(advisor: Advisor) -> bool:
    """Return True for an advisor that is awaited on an event loop: a coroutine function, or one with `aadvise`."""
    if hasattr(advisor, "aadvise"):
        return True
    return iscoroutinefunction(advisor) or iscoroutinefunction(getattr(advisor, "__call__", None))  # noqa: B004


def _redacted(request: AdviceRequest, redact: Redact | None) -> AdviceRequest:
    """Return the request as the caller wants it to be seen by others."""
    if redact is None:
        return request
    return AdviceRequest(
        task=redact(request.task),
        steps=tuple(map(redact, request.steps)),
        fact=redact(request.fact),
        hint=redact(request.hint),
        text=redact(request.text),
    )


def _told(step: Step, tool_roles: Mapping[str, str]) -> str:
    """Return a step in few characters: what the agent thought, its calls, and what came back."""
    lines = [_cut(one_line(step.scored_text), STEP_CHARS // 4)]
    found = calls_with_results(step)
    room = (STEP_CHARS - len(lines[0])) // max(1, len(found)) - 1  # the line break
    for call, result in found:
        shown = call_line([call])
        output = "" if result is None else one_line(result.output[:READ_CHARS])
        if output and trust_of(call, tool_roles) != "full":
            output = WITHHELD
        lines.append(_cut(f"{shown} -> {_cut(output, max(0, room - len(shown) - 4))}", room))
    return "\n".join([line for line in lines if line])


def _cut(text: str, limit: int) -> str:
    """Return a text in at most `limit` characters: its start and its end, where an error often stands."""
    if len(text) <= limit:
        return text
    head = max(0, (limit - 1) // 2)
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}" if limit > 0 else ""


def advice_of(advisor: Advisor, request: AdviceRequest, redact: Redact | None) -> Advice | None:
    """Ask the advisor in this thread, also one that has to be awaited. Raises `BadAnswer`."""
    answer = advisor(_redacted(request, redact))
    if isawaitable(answer):
        import asyncio  # only here: a run without an event loop

        async def awaited() -> object:
            return await answer

        return _read(asyncio.run(awaited()))
    return _read(answer)


async def aadvice_of(advisor: Advisor, request: AdviceRequest, redact: Redact | None) -> Advice | None:
    """Ask an advisor that has to be awaited, on the caller's event loop. Raises `BadAnswer`."""
    told = request if redact is None else await in_daemon(lambda: _redacted(request, redact))
    with contain_faults(ADVISOR):
        answer = getattr(advisor, "aadvise", advisor)(told)
        return _read(await answer if isawaitable(answer) else answer)


def _read(answer: object) -> Advice | None:
    """Return the answer in one line of at most 400 characters, without anything that a model could take for a frame."""
    given = Advice(text=answer) if isinstance(answer, str) else answer
    if given is None:
        return None
    if not isinstance(given, Advice) or not isinstance(given.text, str):
        raise BadAnswer(ADVISOR, answer, "must return a text, an Advice, or None for no advice")
    tokens: object = given.tokens
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0):
        raise BadAnswer(ADVISOR, tokens, "tokens must be an int, at least 0, or None")
    text = " ".join(sanitise(whole(given.text[:READ_CHARS])).split())
    return Advice(
        text=text if len(text) <= ADVICE_CHARS else f"{text[: ADVICE_CHARS - 1].rstrip()}…", tokens=given.tokens
    )
