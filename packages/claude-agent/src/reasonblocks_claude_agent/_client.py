"""A steered client of the CLI, which reads the messages of its sessions before its user does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, Transport

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import RunFields, RunOptions, split_keywords
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import Mode as RunMode

from ._sessions import Snapshots, check
from ._steering import HOOKS_CAPS, Steering
from .gateway import GATEWAY_CAPS, Gateway

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Mode = Literal["hooks", "gateway", "steer", "observe"]
RUN_MODES: dict[Mode, RunMode] = {"steer": "steer", "observe": "observe"}
"""The modes that set the run's own mode, with hooks for the guidance. The others leave it to the client `rb`."""


class SteeredClaudeClient(ClaudeSDKClient):
    """A steered `ClaudeSDKClient`, with the SDK's arguments, results and errors. Runs on asyncio.

    A prompt begins a run, and its `ResultMessage` ends it. Use `client.steering` to read step logs, traces and
    outcomes, and to mark failures. A resumed session continues the run that it left unfinished, if `snapshots` has its
    state: a mapping of yours by session id, such as a `shelve`; without one, the client `rb` keeps them in memory.

    With `mode="gateway"` guidance goes into a single request on its way to the provider and is in no transcript; the
    CLI's hooks alone leave it there. The mode needs aiohttp and certifi, and the provider at the CLI's
    `ANTHROPIC_BASE_URL`: not Bedrock, Vertex or Foundry. With `mode="observe"` steering is recorded and nothing is
    shown; with `mode="steer"` it is shown through hooks, even if `rb` observes. Raises `ConfigError` for a wrong
    option, and `ExtraMissing` for `mode="gateway"` without its packages.
    """

    def __init__(
        self,
        rb: ReasonBlocks,
        options: ClaudeAgentOptions | None = None,
        transport: Transport | None = None,
        *,
        mode: Mode = "hooks",
        snapshots: Snapshots | None = None,
        **run: Unpack[RunFields],
    ) -> None:
        if mode not in get_args(Mode):
            raise ConfigError.unknown("mode", mode, get_args(Mode))
        run_options = _run_options(mode, run)
        caps = GATEWAY_CAPS if mode == "gateway" else HOOKS_CAPS
        check(rb, run_options, caps)
        own = options or ClaudeAgentOptions()
        leaves_alone = rb.disabled or rb.run_mode(run_options) == "observe"
        self._rb = rb
        self._gateway = None if leaves_alone or mode != "gateway" else _gateway_of(rb, own, transport)
        self.steering = Steering(
            rb,
            run_options,
            own,
            set_model=None if leaves_alone else super().set_model,
            caps=caps,
            delivery=self._gateway.pending if self._gateway else None,
            snapshots=snapshots,
        )
        super().__init__(self.steering.options, transport)
        self._unread: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        await self._connect(prompt)
        if not self._rb.disabled:
            self._unread = asyncio.Queue()
            self._reader = asyncio.create_task(self._read())

    async def _connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None) -> None:
        if self._gateway is None:
            return await super().connect(prompt)
        gateway_env: dict[str, str] = {}
        with self._rb.guard("opening the gateway"):
            gateway_env = await self._gateway.open()
        env = {**self.steering.options.env, **gateway_env}
        self.options = replace(self.options, env=env)
        try:
            await super().connect(prompt)
        except BaseException:
            await self._gateway.close()
            raise

    async def _read(self) -> None:
        """Read ahead of the user, so that a step's thought is known when its hook runs.

        This also serves a slow user: behind a hundred unread messages the SDK would not receive the CLI's hooks, and
        the CLI ends a session whose hook does not answer.
        """
        try:
            async for message in super().receive_messages():
                await self.steering.saw(message)
                self._unread.put_nowait(message)
        except Exception as exc:  # noqa: BLE001 - the SDK's own, for whoever reads
            self._unread.put_nowait(exc)
        finally:
            self._unread.put_nowait(None)

    async def receive_messages(self) -> AsyncIterator[Message]:
        if self._reader is None:
            async for message in super().receive_messages():
                yield message
            return
        unread = self._unread
        while (item := await unread.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
        unread.put_nowait(None)  # the next reader has to see the end, too

    async def query(self, prompt: str | AsyncIterable[dict[str, Any]], session_id: str = "default") -> None:
        await self.steering.before_prompt()
        await super().query(prompt, session_id)

    async def as_own(self, prompts: AsyncIterable[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        """Yield prompts for `connect`; before each, switch to the model that its run begins with."""
        async for prompt in prompts:
            await self.steering.before_prompt()
            yield prompt

    async def set_model(self, model: str | None = None) -> None:
        """Set the agent's own model from now on; routing returns to it."""
        await super().set_model(model)
        self.steering.own_model_is(model)

    async def disconnect(self) -> None:
        try:
            await super().disconnect()
        finally:
            if self._gateway is not None:
                await self._gateway.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        await self.steering.disconnected()


def _run_options(mode: Mode, run: RunFields) -> RunOptions:
    given, _ = split_keywords("SteeredClaudeClient", run, ["options", "transport", "snapshots"])
    return replace(given, mode=RUN_MODES.get(mode))


def _gateway_of(rb: ReasonBlocks, options: ClaudeAgentOptions, transport: Transport | None) -> Gateway:
    if transport is not None:
        raise ConfigError("mode", "gateway", "not with a transport of your own: it starts the CLI")
    return Gateway(rb.guard, options.env)


async def messages_of(
    client: SteeredClaudeClient, prompt: str | AsyncIterable[dict[str, Any]]
) -> AsyncIterator[Message]:
    """Yield all messages until the prompts and their background tasks are done; then disconnect the client.

    Even a single prompt is passed as a stream, because the SDK ends the session of a stream by itself.
    """
    await client.connect(client.as_own(_one(prompt) if isinstance(prompt, str) else prompt))
    try:
        async for message in client.receive_messages():
            yield message
    finally:
        await client.disconnect()


async def _one(prompt: str) -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None, "session_id": ""}
