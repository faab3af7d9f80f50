"""The ways in which LangChain ends a run early, asks a person, and continues a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.types import interrupt

from reasonblocks.types import JSON, StepDecision

from ._channel import STEPS_LEFT, Carried

SHORTEST = 3
"""The fewest supersteps of a round with tools, and also of the last call and the agent's end."""
DECISIONS_KEPT = 2
"""The number of decisions whose supersteps the channel has."""
QUESTION = "reasonblocks"
"""The `type` of our interrupts' values, and the key of our last message's metadata: other middlewares have others."""
CHECKPOINTER = "__pregel_checkpointer"
"""The key under which LangGraph gives a node its checkpointer, None without one."""
SPARE = 4
"""Supersteps that a second look leaves free for the `after_agent` hooks of middlewares listed before ours: they run
after it, so that they cannot be counted."""


def stop_message(reason: str) -> AIMessage:
    """Return the last message of a run that `stop_when` has ended, marked for an application to recognise it."""
    return AIMessage(f"Stopped by ReasonBlocks: {reason}", response_metadata={QUESTION: {"stopped": reason}})


def stopped_by(message: AIMessage | None) -> str | None:
    """Return the reason if this is a `stop_message`, perhaps that of another middleware."""
    ours = message.response_metadata.get(QUESTION) if message else None
    reason = ours.get("stopped") if isinstance(ours, Mapping) else None
    return None if reason is None else str(reason)


def superstep(config: RunnableConfig) -> int:
    """Return the number of the current superstep, which counts from the start of the thread."""
    return int(config.get("metadata", {}).get("langgraph_step", 0))


def has_room(state: Mapping[str, Any], carried: Carried, config: RunnableConfig) -> bool:
    """Return True if one more call, and the agent's end, fit into the `recursion_limit`.

    They take at most the supersteps since the decision before the last one, or since the start of the run: these are a
    whole round of the agent's nodes, and the way from its last call to its end.
    """
    since = carried.get("supersteps", [0])[0]
    left: int = state.get(STEPS_LEFT, 0)
    return left > superstep(config) - since + SPARE


def calls_left(state: Mapping[str, Any], carried: Carried, config: RunnableConfig) -> int | None:
    """Return the most calls that the `recursion_limit` leaves, this one included, whose answer it lets through.

    A round takes as many supersteps as the last one, and at least those of our hook, the model and the tools; the end
    takes at least those of our hook, the model and our last hook. None if the state does not have what is left.
    """
    left: int | None = state.get(STEPS_LEFT)
    if left is None:
        return None
    seen = carried.get("supersteps", [])
    took = superstep(config) - seen[-1] if len(seen) == DECISIONS_KEPT else 0
    return max(0, (left - SHORTEST) // max(took, SHORTEST) + 1)


def question(run_id: str, decision: StepDecision) -> dict[str, JSON]:
    """Return the value of the interrupt that asks a person what to do before a call."""
    return {
        "type": QUESTION,
        "reason": decision.interrupt,
        "run_id": run_id,
        "step": decision.step,
        "state": decision.fsm_state.value,
        "monitors_fired": list(decision.monitors_fired),
        "failure_type": decision.failure_type,
        "thought": decision.thought_preview,
    }


def can_wait(config: RunnableConfig) -> bool:
    """Return True if the agent has a checkpointer, without which LangGraph ends an interrupted run for good."""
    return config.get("configurable", {}).get(CHECKPOINTER) is not None


def answer_to(value: dict[str, JSON], config: RunnableConfig) -> Any:
    """Return a person's answer. Raises `GraphInterrupt` until there is one, which ends the invocation."""
    with set_config_context(config) as context:  # on Python 3.10 LangGraph sets none for coroutines
        return context.run(interrupt, value)
