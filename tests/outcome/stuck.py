"""Agents that get stuck, and what becomes of their runs: how many get stuck, and how many could still be won."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from _outcome.arms import ARMS
from _outcome.backend import Backend, Query
from _outcome.environment import Call
from _outcome.policies import RandomBackend, calls_in, close, outcome, reference_wins
from _outcome.run import Point, Run, Setting
from _outcome.tasks import FAMILIES


class StubbornBackend(RandomBackend):
    """An agent that repeats its last failing call with the probability `repeats`, and else calls at random.

    A call fails if it is refused, or if it gives what the same call has given before.
    """

    model = "stubborn"

    def __init__(self, seed: int = 0, *, repeats: float) -> None:
        super().__init__(seed)
        self._stubborn = repeats

    def next_call(self, query: Query) -> Call:
        """Return the call that answers this query."""
        made = [*zip(calls_in(query.messages), [text["content"] for text in query.messages if text["role"] == "tool"])]
        failing = [
            call for at, (call, text) in enumerate(made) if text.startswith("Error: ") or (call, text) in made[:at]
        ]
        rng = Random(f"stubborn {query.seed} {len(query.messages)}")
        return failing[-1] if failing and rng.random() < self._stubborn else super().next_call(query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Counts of unsteered runs: all, won, stuck, and stuck where the reference policy still wins in the steps left."""

    runs: int
    won: int
    stuck: int
    winnable: int


def measured(family: str, agent: Backend, seeds: Iterable[int]) -> Stuck:
    """Play a family without steering, and return how many runs get stuck and how many of those could be won."""
    played = [_played(family, agent, seed) for seed in seeds]
    winnable = [_winnable(family, seed, point) for seed, _, point in played if point is not None]
    return Stuck(runs=len(played), won=sum(won for _, won, _ in played), stuck=len(winnable), winnable=sum(winnable))


def _played(family: str, agent: Backend, seed: int) -> tuple[int, bool, Point | None]:
    run = Run(Setting(family=family, seed=seed, factory=FAMILIES[family], model=agent.model), ARMS["off"], 0, "shadow")
    try:
        while not run.over:
            run.take(agent.complete([run.query(0)])[0])
        return seed, run.environment.success(), run.point
    finally:
        run.close()


def _winnable(family: str, seed: int, point: Point) -> bool:
    environment = FAMILIES[family]()
    try:
        environment.reset(seed)
        for made in point.calls:
            outcome(environment, Call(made.name, made.arguments))
        return reference_wins(environment, environment.max_steps - len(point.calls))
    finally:
        close(environment)
