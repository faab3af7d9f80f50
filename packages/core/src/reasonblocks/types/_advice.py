"""A question to an advisor, a model that is asked only when a run is stuck, and its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRequest:
    """The situation of a stuck run, as texts.

    `task` is cut to 2,000 characters. `steps` has the newest 12 completed steps, the oldest first, cut to 6,000
    characters in all; results that somebody else may have written are left out. `fact` is what is known of the
    trouble, `hint` the way on that the run has shown, "" for none, and `text` what the agent would be told without
    advice.
    """

    task: str
    steps: tuple[str, ...]
    fact: str
    hint: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """An advisor's answer with the tokens that it cost, input and output together; None if they are not known."""

    text: str
    tokens: int | None = None
