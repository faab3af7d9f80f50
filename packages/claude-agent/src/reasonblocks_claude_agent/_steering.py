"""Steers one session of the CLI from its hooks and its message stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, TaskStartedMessage

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import RunOptions, RunView, SteeringHandle
from reasonblocks.messages.anthropic import tool_name
from reasonblocks.messages.claude_code import prompt_text, task_done
from reasonblocks.types import AdapterCaps, Step, StepDecision

from ._sessions import AgentRun, SessionRuns, Snapshots
from ._stream import MAIN
from .convert import HookOutput, denying, ending_of, is_interrupted, result_told, stopping
from .hooks import Callback, Delivery, HookDelivery, Input, Work, guest, hook_seconds, merged

THOUGHT_SECONDS = 0.25
"""Time that a step waits for its thought to appear on the stream (ADAPTERS section 4)."""
RESULT_SECONDS = 1.0
"""Time that a prompt waits for the previous run's result, in addition to the time to judge that run's last step."""
ROUTE_SECONDS = 1.0
"""Time limit of a model switch; 6 to 75 ms were measured."""
HOOKS_CAPS = AdapterCaps(
    ephemeral=False,
    placements=frozenset({"context"}),
    max_guidance_chars=9_500,
    advisor=False,
    tool_limits=True,
)
SetModel = Callable[["str | None"], Awaitable[None]]


class Steering(SteeringHandle[AgentRun]):
    """Handles the hooks and the messages of one session. Belongs to the session's event loop."""

    def __init__(
        self,
        rb: ReasonBlocks,
        run_options: RunOptions,
        options: ClaudeAgentOptions,
        *,
        set_model: SetModel | None = None,
        caps: AdapterCaps = HOOKS_CAPS,
        delivery: Delivery | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._rb = rb
        self._limits_tools = rb.limits_tools(run_options)
        self._delivery = delivery or HookDelivery()
        self._set_model = set_model
        self._model = options.model
        """The model that the CLI uses now."""
        self._session = SessionRuns(
            rb,
            run_options,
            model=options.model,
            caps=caps,
            delivery=self._delivery,
            snapshots=snapshots,
            max_turns=options.max_turns,
        )
        self._runs = self._session.all
        self.options = options if rb.disabled else replace(options, hooks=merged(rb, options, self.callbacks))
        """The caller's options, with our hooks after his."""

    def children(self, run_id: str | None = None) -> list[RunView]:
        """Return the runs of subagents within a run, the oldest first, at most the newest 256.

        The run is `run_id`, by default the one started last.
        """
        if run_id is None:
            run_id = self._runs.newest.run_id if self._runs.newest else ""
        return [view for view in self._session.children.values() if view.run.parent_run_id == run_id]

    # ------------------------------------------------------------ what is hung into the CLI

    @property
    def callbacks(self) -> dict[str, Callback]:
        """Our hooks, by event."""
        work_by_event: dict[str, Work] = {
            "UserPromptSubmit": self._prompted,
            "PostToolUse": self._tool_ended,
            "PostToolUseFailure": self._tool_ended,
            "PostToolBatch": self._batch_ended,
            "Stop": self._stopped,
            "SubagentStart": self._subagent_started,
            "SubagentStop": self._subagent_stopped,
        }
        if self._limits_tools:  # only then: the CLI waits for it before each tool
            work_by_event["PreToolUse"] = self._tool_begins
        most = hook_seconds(self._rb)
        return {event: guest(self._rb, event, work, most) for event, work in work_by_event.items()}

    # ------------------------------------------------------------ the hooks

    async def _prompted(self, given: Input) -> HookOutput:
        """Decide the first request of a prompt: of a new run, or of one that is open, as after an interruption."""
        before, prompt = self._session.main, str(given.get("prompt") or "")
        if before is not None and before.turn_ended and self._session.stream.is_read:
            await _at_most(RESULT_SECONDS + self._rb.step_deadline_seconds, before.resulted.wait())
        run = self._session.prompted(given.get("session_id"), prompt)
        decision = None if run.stop is not None else await self._first_of_turn(run, prompt)
        if run.stop is not None and task_done(prompt) is not None:
            return self._end_turn(run, "UserPromptSubmit", given)
        if run.stop is not None:  # the user goes on with another run
            run = self._session.prompted(given.get("session_id"), prompt)
            decision = await run.begin_turn(None)
        self._session.keep()
        return self._delivery.deliver("UserPromptSubmit", given, decision)

    async def _first_of_turn(self, run: AgentRun, prompt: str) -> StepDecision | None:
        """Decide the first request of a turn. Its prompt is the task of a new run, the CLI's own, or new user text."""
        answer = self._session.stream.newest(MAIN)
        done = run.heard(answer) if answer is not None and run.calls else run.left_at or Step()
        if not run.calls:
            return await run.begin_turn(None)
        return await run.begin_turn(done, said="" if task_done(prompt) is not None else prompt_text(prompt))

    def _end_turn(self, run: AgentRun, event: str, given: Input) -> HookOutput:
        """End the turn of a run that `stop_when` has ended. A subagent hands what it has to the agent above it."""
        self._delivery.deliver(event, given, None)
        if run is self._session.main:
            run.resulted.clear()
            run.turn_ended = True
            self._session.keep()
        else:
            self._session.stopped(str(given.get("agent_id") or ""))
        return stopping(run.stop or "")

    async def _tool_begins(self, given: Input) -> HookOutput:
        """Refuse the call of a tool that is used up."""
        run = self._session.of(given)
        if run is None:
            return {}
        text = run.tool_refusal(tool_name(str(given.get("tool_name"))), str(given.get("tool_use_id")))
        return {} if text is None else denying(text)

    async def _tool_ended(self, given: Input) -> HookOutput:
        """Note how long a tool took, and whether it failed. The stream has its text, as the model reads it."""
        self._session.stream.tells(result_told(given))
        return {}

    async def _batch_ended(self, given: Input) -> HookOutput:
        """Decide the next request: all tools of an answer are done."""
        run = self._session.of(given)
        if run is None:
            return {}
        calls = list(given.get("tool_calls") or ())
        answer = await self._session.stream.wait_for({str(call.get("tool_use_id")) for call in calls}, THOUGHT_SECONDS)
        decision = await run.decide(run.heard(answer, calls))
        if run.stop is not None:
            return self._end_turn(run, "PostToolBatch", given)
        if run is self._session.main:
            await self._route(run, decision)
            self._session.keep()
        return self._delivery.deliver("PostToolBatch", given, decision)

    async def _stopped(self, given: Input) -> HookOutput:
        """Note the end of the turn, or take a second look. It ends the run, if nobody passes on the messages."""
        run, is_read = self._session.main, self._session.stream.is_read
        if run is None or run.over:
            return {}
        run.turn_ended, looks = is_read, self._may_look(run)
        if is_read and not looks:
            return {}
        answer = await run.last_answer(THOUGHT_SECONDS) if is_read else None
        step = run.heard(answer, said=str(given.get("last_assistant_message") or ""))
        decision = await run.look_again(step) if looks else None
        if decision is not None:
            await self._route(run, decision)
        elif not is_read:
            await run.ended("success", step)
        self._session.keep()
        return self._delivery.deliver("Stop", given, decision) if decision is not None else {}

    def _may_look(self, run: AgentRun) -> bool:
        """Return True if the run may have a second look: its work is done, and the CLI allows another request."""
        has_room = run.calls_left is None or run.calls_left > 0
        return run.session.wants_second_look and has_room and not self._session.waits(run)

    async def _subagent_started(self, given: Input) -> HookOutput:
        decision = await self._session.subagent(given).decide(None)
        return self._delivery.deliver("SubagentStart", given, decision)

    async def _subagent_stopped(self, given: Input) -> HookOutput:
        agent_id = str(given.get("agent_id") or "")
        run, stream = self._session.stopped(agent_id), self._session.stream
        if run is not None:
            caller = stream.caller_of(agent_id)
            answer = stream.newest(caller) if caller else None
            await run.ended("success", None if answer is None else run.heard(answer))
        return {}

    # ------------------------------------------------------------ the stream

    async def saw(self, message: object) -> None:
        """Handle a message of the session, before its user sees it."""
        with self._rb.guard("reading a message"):
            self._session.stream.saw(message)
            if isinstance(message, SystemMessage) and message.subtype == "init":
                self._began(message.data.get("model"))
            elif isinstance(message, TaskStartedMessage):
                self._session.starts(message.task_id)
            elif isinstance(message, ResultMessage):
                await self._result(message)

    def _began(self, model: str | None) -> None:
        """Note the session's model, which is the agent's own if its user named none."""
        if self._session.own_model is None:
            self._session.own_model_is(model)
        self._model = self._model or self._session.own_model

    async def _result(self, message: ResultMessage) -> None:
        run, answer = self._session.main, self._session.stream.newest(MAIN)
        if run is None:
            return
        if run.over:
            run.resulted.set()
            return
        step = run.heard(answer) if answer is not None else None
        outcome = ending_of(message, run.error)
        if is_interrupted(message):
            run.session.pause()  # the next prompt continues it
        elif self._session.waits(run):
            run.waiting = outcome
        else:
            await run.ended(outcome, step)
        run.resulted.set()
        self._session.keep()

    async def disconnected(self) -> None:
        """Pause the main run until the session is resumed, and end the others: subagents do not outlive the CLI."""
        for run in self._session.open_subagents:
            await run.ended("failure: abandoned", None)
        for run in self._session.waiting:
            await run.ended(run.waiting or "success", None)
        main = self._session.main
        if main is not None:
            self._session.keep()
        if main is not None and not main.over:
            main.session.pause()
        self._model = self.options.model
        self._session.connected(self.options.model)

    # ------------------------------------------------------------ routing

    async def before_prompt(self) -> None:
        """Switch to the model of the next run's first request: inside `UserPromptSubmit` a switch is ignored."""
        with self._rb.guard("switching the model"):
            run = self._session.resumed(self.options.resume)
            if run is None or run.over:
                await self._switch(self._session.own_model)
            elif (unanswered := run.unanswered) is not None:
                await self._route(run, unanswered)

    def own_model_is(self, model: str | None) -> None:
        """Set the agent's own model: the caller has switched it."""
        self._session.own_model_is(model)
        self._model = model

    async def _route(self, run: AgentRun, decision: StepDecision | None) -> None:
        routed = False
        if decision is not None and decision.route is not None:
            with run.session.routing(decision.route):  # the CLI may refuse a model that it does not find
                await self._switch(_named(self._rb.model_routing[decision.route]))
                routed = True
        if not routed:
            with run.session.guard("switching the model"):
                await self._switch(self._session.own_model)
        run.asked_model = self._model or run.own_model

    async def _switch(self, model: str | None) -> None:
        if self._set_model is not None and model != self._model:
            await asyncio.wait_for(self._set_model(model), ROUTE_SECONDS)
            self._model = model


async def _at_most(seconds: float, awaited: Awaitable[object]) -> None:
    with suppress(asyncio.TimeoutError, TimeoutError):
        await asyncio.wait_for(awaited, seconds)


def _named(model: object) -> str:
    if not isinstance(model, str):
        raise TypeError(f"{model!r} is no name of a model: the CLI takes names")
    return model
