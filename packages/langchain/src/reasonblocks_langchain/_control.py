"""The ways in which LangChain ends a run early, asks a person, and continues a run that has ended."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.types import interrupt

from reasonblocks.types import JSON, StepDecision

QUESTION = "reasonblocks"
"""The `type` of our interrupts' values, and the key of our last message's metadata: other middlewares have others."""
CHECKPOINTER = "__pregel_checkpointer"
"""The key under which LangGraph gives a node its checkpointer, None without one."""


def stop_message(reason: str) -> AIMessage:
    """Return the last message of a run that `stop_when` has ended, marked for an application to recognise it."""
    return AIMessage(f"Stopped by ReasonBlocks: {reason}", response_metadata={QUESTION: {"stopped": reason}})


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
