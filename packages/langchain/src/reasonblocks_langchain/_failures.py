"""Watches how a run's chain ends where LangChain calls no middleware hook: a tool that raises, an interrupt, a
cancellation.

One callback handler for the whole process follows the chains and notifies the runs of each. It sees chains inside `with
mw:` and of agents from `mw.watch(agent)`.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

MAX_CHAINS = 20_000
"""Chains followed at once; beyond, the oldest is forgotten, because it never reported its end."""
MAX_LEFT = 1_024


class Watched(Protocol):
    """A run that is notified when its chain ends. Each method may be called at any time, and more than once."""

    async def afailed(self, error: Exception) -> None: ...
    def paused(self) -> None: ...
    @property
    def run_id(self) -> str: ...
    @property
    def agent_name(self) -> str: ...
    @property
    def over(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The run whose tool called another agent, and the id of that call."""

    run: Watched
    call_id: str | None


@dataclass(slots=True)
class _Chain:
    parent: UUID | None
    call_id: str | None = None
    place: tuple[str, str] | None = None
    """Thread and name: the same for a graph that is resumed."""
    runs: list[Watched] = field(default_factory=list)


class ChainWatch(BaseCallbackHandler):
    """Follows chains and tools, nothing else. What it does inline takes microseconds."""

    run_inline = True

    def __init__(self) -> None:
        self._chains: dict[UUID, _Chain] = {}
        self._left: dict[tuple[str, str], list[Watched]] = {}
        self._lock = threading.Lock()

    @property
    def ignore_llm(self) -> bool:
        return True

    @property
    def ignore_chat_model(self) -> bool:
        return True

    @property
    def ignore_retriever(self) -> bool:
        return True

    @property
    def ignore_custom_event(self) -> bool:
        return True

    @property
    def ignore_retry(self) -> bool:
        return True

    @property
    def following(self) -> int:
        """Return the number of chains and tools under way."""
        return len(self._chains)

    def attach(self, config: RunnableConfig, run: Watched) -> None:
        """Notify `run` when the graph ends that a node with this config belongs to."""
        with self._lock:
            graph = self._graph(config)
            if graph is not None and run not in graph.runs:
                graph.runs.append(run)

    def caller(self, config: RunnableConfig) -> Caller | None:
        """Return the caller of the graph that a node with this config belongs to: the nearest run above it."""
        with self._lock:
            graph, call_id = self._graph(config), None
            above = graph.parent if graph else None
            while above is not None and (chain := self._chains.get(above)) is not None:
                call_id = call_id or chain.call_id
                if chain.runs:
                    return Caller(chain.runs[-1], call_id)
                above = chain.parent
        return None

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str = "",
        **kwargs: Any,
    ) -> None:
        thread = (metadata or {}).get("thread_id")
        place = (str(thread), name) if thread is not None else None
        given: object = inputs
        goes_on = not (isinstance(given, dict) and given)  # None or a Command: a new run has an input
        with self._lock:
            runs = self._left.pop(place, []) if place and goes_on else []
            self._follow(run_id, _Chain(parent_run_id, place=place, runs=runs))

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tool_call_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        with self._lock:
            self._follow(run_id, _Chain(parent_run_id, call_id=tool_call_id))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._ended(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._ended(run_id)

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, waits=True)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Fail the chain's runs. A coroutine, because finishing a run may call user code, which must not block."""
        if isinstance(error, GraphBubbleUp) or not isinstance(error, Exception):
            self._end(run_id, waits=isinstance(error, GraphBubbleUp))
            return
        chain = self._ended(run_id)
        for run in chain.runs if chain else ():
            await run.afailed(error)

    def _end(self, run_id: UUID, *, waits: bool) -> None:
        """Keep the unfinished runs of a graph that ended, because the graph may be resumed at the same place.

        A run that `waits` is paused. One that was cut off (a cancelled task, a stream that nobody reads) stays open.
        """
        chain = self._ended(run_id)
        left = [run for run in chain.runs if not run.over] if chain else []
        for run in left:
            if waits:
                run.paused()
        with self._lock:
            if left and chain and chain.place:
                self._left[chain.place] = left
                _forget(self._left, MAX_LEFT)
            if not waits:
                self._drop_orphans()

    def _ended(self, run_id: UUID) -> _Chain | None:
        with self._lock:
            return self._chains.pop(run_id, None)

    def _graph(self, config: RunnableConfig) -> _Chain | None:
        """Return the graph's chain: a node's own chain is between its config and the graph's."""
        callbacks = config.get("callbacks")
        node = callbacks.parent_run_id if isinstance(callbacks, BaseCallbackManager) else None
        chain = self._chains.get(node) if node else None
        return self._chains.get(chain.parent) if chain and chain.parent else None

    def _follow(self, run_id: UUID, chain: _Chain) -> None:
        if chain.parent not in self._chains:
            chain.parent = None
        self._chains[run_id] = chain
        _forget(self._chains, MAX_CHAINS)

    def _drop_orphans(self) -> None:
        """Drop chains whose parent is gone: a cancelled chain does not always report its end.

        Parents precede children here.
        """
        kept: dict[UUID, _Chain] = {}
        for run_id, chain in self._chains.items():
            if chain.parent is None or chain.parent in kept:
                kept[run_id] = chain
        self._chains = kept


def _forget(held: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries until at most `most` are left."""
    while len(held) > most:
        del held[next(iter(held))]


WATCH = ChainWatch()
_watching: ContextVar[ChainWatch | None] = ContextVar("reasonblocks_watching", default=None)
register_configure_hook(_watching, inheritable=True)


def watch_here(on: bool) -> None:
    """Set whether chains that start from now on are followed: in this thread or task, and in those that it starts."""
    _watching.set(WATCH if on else None)
