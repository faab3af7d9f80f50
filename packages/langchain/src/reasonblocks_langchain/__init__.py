"""Steers agents made by LangChain's `create_agent`: `rb.middleware(...)`, which calls `middleware` here.

The options of a run, `run_id, agent_name, task, model, codebase_id, org_id, project_id, task_profile, metadata,
placement, mode, traceparent, experiment_id, unit_id, on_fraction`, are those of every adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from reasonblocks.adapters import RunKeywords, RunView, split_keywords

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from typing_extensions import Unpack

    from reasonblocks import ReasonBlocks
    from reasonblocks.memory import CodebaseMemory

    from .saving import RequestPart, SavingPlan, TokenSaving
    from .saving.middleware import TokenSavingMiddleware
    from .steering_middleware import SteeringMiddleware

__all__ = [
    "RequestPart",
    "SavingPlan",
    "SteeringMiddleware",
    "TokenSaving",
    "TokenSavingMiddleware",
    "memory_tools",
    "middleware",
]

_HOMES = {
    "RequestPart": "saving",
    "SavingPlan": "saving",
    "SteeringMiddleware": "steering_middleware",
    "TokenSaving": "saving",
    "TokenSavingMiddleware": "saving.middleware",
}
"""The module of each name that is loaded when it is first used, because the middlewares import LangChain."""


def middleware(
    rb: ReasonBlocks,
    *,
    interrupt_when: Literal["stalled", "over_budget"] | Callable[[RunView], str | None] | None = None,
    **options: Unpack[RunKeywords],
) -> SteeringMiddleware:
    """Return a middleware for `create_agent(..., middleware=[mw])`. It may serve several agents and runs at once.

    `run_id` names the first run, later ones "run_id.2", "run_id.3"; `config={"metadata": {"reasonblocks_run_id": ...}}`
    names one. `agent_name` also distinguishes two middlewares of one agent; it defaults to the name passed to
    `create_agent`. `task` defaults to the first user message of each run, `model` to the agent's own.

    `interrupt_when` is a condition like `stop_when`, for which LangGraph's `interrupt` asks a person: the answer,
    `Command(resume="text")`, is told with the call that waits. It needs a checkpointer. Raises `ConfigError` for a
    wrong value.
    """
    own, _ = split_keywords("middleware", options, ["interrupt_when"])
    own.check(rb, interrupt_when=interrupt_when)
    from ._lifecycle import Lifecycle
    from .steering_middleware import LimitingMiddleware, SteeringMiddleware

    kind = LimitingMiddleware if rb.limits_tools(own) else SteeringMiddleware
    return kind(Lifecycle(rb, own, interrupt_when))


def memory_tools(memory: CodebaseMemory) -> list[BaseTool]:
    """Return the tools of a codebase's memory for `create_agent(..., tools=[...])`, synchronous and asynchronous.

    They are `memory_recall`, `memory_store` and `memory_forget`. A failed call returns an error message to the model.
    """
    from reasonblocks.memory import memory_tools

    from ._memory import langchain_tool

    return [langchain_tool(tool) for tool in memory_tools(memory)]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
