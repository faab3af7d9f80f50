"""Plays a task with a real agent of a framework, as its users run it, on an OpenAI-compatible endpoint.

One run is one row of the phase "whole". The agent, its loop and its client are the framework's own; the tools are the
environment's. The run ends as `Task.over` says, or when the agent answers without a call. Sampling is not seeded: a
user's agent sends no seed either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError

from ..environment import Environment
from ..rows import Row
from .task import Endpoint, Task

__all__ = ["ARMS", "FRAMEWORKS", "Endpoint", "play_through"]

ERROR_CHARS = 500
"""Characters of an error that a row keeps."""
ARMS = ("off", "steer")
"""Without our adapter, and with it."""

Play: TypeAlias = Callable[[Task, Endpoint, "ReasonBlocks | None"], None]
"""Plays the task to its end, steered if there is a client. Raises whatever ended the run too early."""


def play_through(
    environment: Environment,
    seed: int,
    arm: str,
    *,
    through: str,
    endpoint: Endpoint,
    rb: ReasonBlocks,
    family: str,
    sample: int = 0,
) -> Row:
    """Play the task of `seed` with an agent of the framework `through`, and return its row.

    An error that ends the run, such as one of the endpoint, is the row's `error`, beside all that was done before.
    The arm "off" runs the agent without our adapter, "steer" with it and the settings of `rb`. `environment` is reset,
    and not closed. Raises `ConfigError` for an unknown arm or framework, and `ImportError` with a hint if the framework
    is not installed.
    """
    if arm not in ARMS:
        raise ConfigError.unknown("arm", arm, ARMS)
    play = player(through)
    task = Task(environment, seed, family=family, run_id=f"{family}-{seed}-{arm}-{sample}")
    error = failure(lambda: play(task, endpoint, rb if arm == "steer" else None), endpoint.key)
    told = task.told[0] if task.told else None
    return Row(
        model=endpoint.model,
        through=through,
        phase="whole",
        family=family,
        seed=seed,
        arm=arm,
        sample=sample,
        won=environment.success(),
        ended=environment.done or task.stopped,
        steps=task.steps,
        point=told.step if told else None,
        kind=told.kind if told else None,
        monitor=told.monitor if told else None,
        **task.tokens(),
        told=tuple(task.told),
        calls=tuple(task.calls),
        error=error,
    )


def failure(run: Callable[[], None], key: str) -> str | None:
    """Call `run` and return the error that it raised, without the key; None if it raised none."""
    try:
        run()
    except ImportError:
        raise
    except Exception as exc:  # noqa: BLE001 - whatever ends a run is part of its row
        text = f"{type(exc).__name__}: {exc}"
        return (text.replace(key, "***") if key else text)[:ERROR_CHARS]
    return None


def _langchain() -> Play:
    from .langchain import play

    return play


def _openai_agents() -> Play:
    from .openai_agents import play

    return play


FRAMEWORKS: Mapping[str, Callable[[], Play]] = {"langchain": _langchain, "openai-agents": _openai_agents}
"""The names of `--through` beside the benchmark's own loop, and how each is loaded."""


def player(through: str) -> Play:
    """Return the function that plays with this framework."""
    if through not in FRAMEWORKS:
        raise ConfigError.unknown("through", through, FRAMEWORKS)
    return FRAMEWORKS[through]()
