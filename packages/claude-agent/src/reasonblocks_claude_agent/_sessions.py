"""Keeps the runs of one session of the CLI: which agent's is which, and what an unfinished one leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from reasonblocks._client import ReasonBlocks
from reasonblocks.adapters import Newest, RunOptions, Runs
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import AdapterCaps

from ._agents import AgentRun
from ._convert import kept_of, step_kept, task_done
from ._delivery import Delivery
from ._stream import Stream

FRAMEWORK = "claude-agent"
MAX_AGENTS = 256
MAX_SESSIONS = 1_024
"""Sessions whose unfinished runs a client remembers; an older one begins a new run when it is resumed."""
Snapshots = MutableMapping[str, Any]
"""The state of a session's unfinished run, by the session's id: plain JSON."""


class SessionRuns:
    """The main agent's run, one a prompt, and those of its subagents."""

    def __init__(
        self,
        rb: ReasonBlocks,
        options: RunOptions,
        *,
        model: str | None,
        caps: AdapterCaps,
        delivery: Delivery,
        snapshots: Snapshots | None,
    ) -> None:
        self.all: Runs[AgentRun] = Runs(options.run_id)
        self.children: Runs[AgentRun] = Runs()
        self._rb = rb
        self._options = options
        self._caps = caps
        self._delivery = delivery
        self._snapshots = snapshots if snapshots is not None else kept_by(rb)
        self.connected(model)

    def connected(self, model: str | None) -> None:
        """Another session of the CLI begins here: nothing of the one before is under way in it."""
        self.own_model = model
        self.stream = Stream()
        self.main: AgentRun | None = None
        self._session_id: str | None = None
        self._subagents: Newest[str, AgentRun] = Newest(MAX_AGENTS)
        self._starters: Newest[str, AgentRun] = Newest(MAX_AGENTS)

    def own_model_is(self, model: str | None) -> None:
        """What the agent asks where nothing is routed, from now on."""
        self.own_model = model
        if self.main is not None and model is not None:
            self.main.own_model = model

    def prompted(self, session_id: str | None, prompt: str) -> AgentRun:
        """A prompt begins a run; while one is open in this session, it goes on.

        What a background task's end says belongs to the run that started the task, though another came between.
        """
        self._session_id = session_id
        task_id = task_done(prompt) or ""
        self.stream.prompted(task_id)
        starter = self._starters.get(task_id)
        if starter is not None:
            self.main = starter
        elif self.main is None or self.main.over or self.main.waiting:
            self.main = self._begun(prompt)
        return self.main

    def resumed(self, session_id: str | None) -> AgentRun | None:
        """The run that the session which is resumed left unfinished."""
        if self.main is None and session_id is not None and session_id in self._snapshots:
            self._session_id = session_id
            self.main = self._begun("")
        return self.main

    def of(self, given: Mapping[str, Any]) -> AgentRun | None:
        """The run of the agent that a hook tells of."""
        agent_id = given.get("agent_id")
        if not agent_id:
            return self.main
        return self._subagents.get(str(agent_id)) or self.subagent(given)

    def subagent(self, given: Mapping[str, Any]) -> AgentRun:
        """A subagent begins, within the main agent's run."""
        agent_id, kind = str(given.get("agent_id") or ""), str(given.get("agent_type") or "")
        options = replace(self._options, run_id=None, agent_name=None, task=None, model=None)
        session = options.session(
            self._rb,
            framework=FRAMEWORK,
            agent_name=kind,
            model=self.own_model,
            caps=replace(self._caps, routing="none"),
            parent_run_id=self.main.run_id if self.main else None,
            parent_call_id=self.stream.caller_of(agent_id),
            session_id=self._session_id,
        )
        run = AgentRun(session, self.stream, self.own_model or "", kind, self._delivery)
        self._subagents.keep(agent_id, self.children.add(run))
        self.starts(agent_id)
        return run

    def starts(self, task_id: str) -> None:
        """The main agent has started a task, which may outlast its turn: an agent's id is that of its task."""
        if self.main is not None and task_id not in self._starters:
            self._starters.keep(task_id, self.main)

    def waits(self, run: AgentRun) -> bool:
        """Whether tasks of this run are at work in the background, or have ended there and the run is to be told."""
        return any(self._starters.get(task_id) is run for task_id in self.stream.to_come)

    def stopped(self, agent_id: str) -> AgentRun | None:
        """A subagent is done."""
        return self._subagents.pop(agent_id, None)

    @property
    def open_subagents(self) -> Iterable[AgentRun]:
        return tuple(self._subagents.values())

    @property
    def waiting(self) -> Iterable[AgentRun]:
        """The runs whose turn is over, though a task of theirs is not."""
        return tuple(run for run in {id(run): run for run in self._starters.values()}.values() if run.waiting)

    def keep(self) -> None:
        """The unfinished run's state, for whoever resumes this session; nothing of a finished one."""
        if self.main is None or self._session_id is None:
            return
        if self.main.over:
            self._snapshots.pop(self._session_id, None)
            return
        session, step = self.main.session, self.main.left_at
        kept = {
            "snapshot": session.trace.snapshot(),
            "task": session.run.task,
            "step": None if step is None else kept_of(step),
        }
        self._snapshots[self._session_id] = kept

    def _begun(self, prompt: str) -> AgentRun:
        """A run of this session: the one that a client before left unfinished, or a new one."""
        kept = self._snapshots.get(self._session_id or "") if self.main is None else None
        session = self._options.session(
            self._rb,
            framework=FRAMEWORK,
            run_id=None if kept else self.all.new_id(),
            task=kept["task"] if kept else prompt,
            model=self.own_model,
            caps=self._caps,
            snapshot=kept["snapshot"] if kept else None,
            session_id=self._session_id,
        )
        run = AgentRun(session, self.stream, self.own_model or "", self._options.agent_name, self._delivery)
        if kept and kept.get("step"):
            run.judged = step_kept(kept["step"])
        return self.all.add(run)


_KEPT: WeakKeyDictionary[ReasonBlocks, Newest[str, Any]] = WeakKeyDictionary()


def kept_by(rb: ReasonBlocks) -> Snapshots:
    """Where a client keeps the states of its newest sessions, unless its caller has a place of his own."""
    return _KEPT.setdefault(rb, Newest(MAX_SESSIONS))


def check(rb: ReasonBlocks, options: RunOptions, caps: AdapterCaps) -> None:
    """Refuse run options where they are given. Raises `ConfigError`."""
    if options.placement is not None and options.placement not in caps.placements:
        have = ", ".join(sorted(caps.placements))
        raise ConfigError("placement", options.placement, f'this mode has {have}; mode="gateway" has system and tail')
    replace(options, placement=None).check(rb)
