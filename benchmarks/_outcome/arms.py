"""Arms of the experiment: what an agent is told at a branch point, in which words, where, and how often."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from reasonblocks.engine.gates import first_sentence
from reasonblocks.monitors.excerpts import call_line
from reasonblocks.monitors.untried import Alternatives
from reasonblocks.render import FRAME
from reasonblocks.types import StepDecision
from reasonblocks.types.steering import SecondLook

from .backend import Message
from .environment import Environment, Solvable, names

Place: TypeAlias = Literal["tail", "message", "system"]
"""The end of the last message, a user's message of its own at the end of the request, or the end of the system
message."""
Rules: TypeAlias = Literal["none", "shipped", "all"]
"""No standing rules, those that the starter library tells by default, or all that it has."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The material of a wording: the decision, and the environment as the agent left it.

    `alternatives` are those that the library takes for untried, and `used` the tools that the agent has called.
    """

    decision: StepDecision
    environment: Environment
    alternatives: Alternatives = field(default_factory=Alternatives)
    used: frozenset[str] = frozenset()

    @property
    def texts(self) -> list[str]:
        """The texts of the injections, as the library renders them."""
        return [injection.text for injection in self.decision.injections]

    @property
    def evidence(self) -> str:
        """The first sentence of the monitor's text; "" if no monitor speaks."""
        said = [item.text for item in self.decision.injections if item.source == "MonitorSteeringInjection"]
        return first_sentence(said[0]) if said else ""

    @property
    def untried(self) -> str:
        """The sentence about what was not tried yet; "" without any."""
        return next((found[0] for text in self.texts if (found := _UNTRIED.search(text))), "")


Wording: TypeAlias = Callable[[Moment], str]
"""Makes the text of an injection; "" says nothing this time."""

_UNTRIED = re.compile(r"(?<!\S)Not tried yet(?: after this result)?: [^\n]+\.\Z")
_ENDS = re.compile(r",? or (?:finish|give the answer|report that it is blocked)(?=[.,])|: say what .{0,40}answer(?=\.)")
"""Advice that an agent may take for a reason to give up."""
REPEATING = "You are repeating yourself. Try something different."


def _shipped(moment: Moment) -> str:
    return "\n\n".join(moment.texts)


def _generic(moment: Moment) -> str:
    return REPEATING


def _named(moment: Moment) -> str:
    return f"{moment.evidence} Make a call that you have not made yet.".strip()


def _untried(moment: Moment) -> str:
    return moment.untried or REPEATING


def _untried_only(moment: Moment) -> str:
    return moment.untried


def _names(moment: Moment) -> str:
    if not (moment.untried and moment.alternatives.names):
        return _shipped(moment)
    source = "the last result" if moment.alternatives.newest else "an earlier result"
    found = ", ".join(moment.alternatives.names)
    return f"{moment.evidence} Named in {source} and not tried yet: {found}.".strip()


def _no_end(moment: Moment) -> str:
    return _ENDS.sub("", _shipped(moment))


def _next_call(moment: Moment) -> str:
    calls = _as_calls(moment)
    return f"{moment.evidence} Next: {calls[0]}.".strip() if calls else _shipped(moment)


def _tools(moment: Moment) -> str:
    left = [name for name in names(moment.environment.tools) if name not in moment.used]
    if moment.untried or not left:
        return _shipped(moment)
    return f"{moment.evidence} Tools that you have not used yet: {', '.join(left)}.".strip()


def _as_calls(moment: Moment) -> list[str]:
    form = moment.alternatives.form
    return [call_line([form.call(name)]) for name in moment.alternatives.names] if form and moment.untried else []


def _question(moment: Moment) -> str:
    return f"{moment.evidence} What have you not tried yet? {moment.untried}".strip()


def _reference(moment: Moment) -> str:
    call = moment.environment.reference() if isinstance(moment.environment, Solvable) else None
    if call is None:
        return _shipped(moment)
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"Your next call: {call.name}({arguments})."


WORDINGS: Mapping[str, Wording] = {
    "shipped": _shipped,
    "generic": _generic,
    "named": _named,
    "untried": _untried,
    "untried-only": _untried_only,
    "names": _names,
    "no-end": _no_end,
    "next-call": _next_call,
    "tools": _tools,
    "question": _question,
    "reference": _reference,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to steer.

    `wait` is the number of steps by which everything is said later, `most` the number of injections in a run.
    `lessons` adds tiers E1 and E2, `rules` the standing rules at the first call of a whole run. `patience` is the rung
    at which monitors speak, None for the default. `second_look` takes back an agent's own end of the task once,
    `budget` tells the steps that a task has, `escalate` sends the calls after a first text to the stronger model, and
    `advisor` asks that for advice at the end of each text; without one, the agent's own.
    """

    name: str
    steers: bool = True
    wording: str = "shipped"
    place: Place = "tail"
    wait: int = 0
    most: int | None = None
    lessons: bool = False
    rules: Rules = "none"
    second_look: SecondLook | None = None
    budget: Literal["marks", "every call"] | None = None
    escalate: bool = False
    advisor: bool = False
    patience: str | None = None

    @property
    def only_whole(self) -> bool:
        """True for an arm that differs from `off` only at the first call, and so only in whole runs."""
        levers = self.second_look or self.budget or self.escalate
        return self.rules != "none" and not (self.steers or self.lessons or levers)

    def text(self, moment: Moment) -> str:
        """Return the guidance that this arm shows; "" for none."""
        said = WORDINGS[self.wording](moment)
        return f"{FRAME}\n{said}" if said else ""


_TABLE = (
    Arm(name="off", steers=False),
    Arm(name="shipped"),
    Arm(name="shipped-message", place="message"),
    Arm(name="shipped-system", place="system"),
    *[Arm(name=name, wording=name) for name in WORDINGS if name != "shipped"],
    Arm(name="untried-message", wording="untried", place="message"),
    Arm(name="later", wait=2),
    Arm(name="once", most=1),
    Arm(name="lessons", lessons=True),
    *[Arm(name=f"look-{ends}", steers=False, second_look=ends) for ends in get_args(SecondLook)],
    Arm(name="budget", steers=False, budget="marks"),
    Arm(name="budget-every-call", steers=False, budget="every call"),
    Arm(name="escalate", steers=False, escalate=True),
    Arm(name="advisor", advisor=True),
    *[Arm(name=f"patience {name}", patience=name) for name in ("2 of 3", "3 of 5", "6 of 7")],
    Arm(name="default", lessons=True, rules="shipped"),
    Arm(name="rules", steers=False, rules="shipped"),
    Arm(name="all-rules", steers=False, rules="all"),
)
ARMS: Mapping[str, Arm] = {arm.name: arm for arm in _TABLE}
"""All arms by name. `off` tells nothing, and every other arm is compared with it."""


def placed(messages: Sequence[Message], text: str, place: Place) -> list[Message]:
    """Return the messages of one request with the guidance in its place; the history stays as it is.

    After a user's message, `message` places it as `tail` does: there are never two of them in a row.
    """
    if not text:
        return [*messages]
    at = 0 if place == "system" else len(messages) - 1
    if place == "message" and messages[at]["role"] != "user":
        return [*messages, {"role": "user", "content": text}]
    said: dict[str, Any] = {**messages[at], "content": f"{messages[at].get('content') or ''}\n\n{text}"}
    return [*messages[:at], said, *messages[at + 1 :]]
