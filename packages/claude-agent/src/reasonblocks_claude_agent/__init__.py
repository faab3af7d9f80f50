"""Steers sessions of the Claude Agent SDK: a client, a `query`, and `rb.claude_hooks(...)` for a client of your own.

`memory_server` gives any session the tools of codebase memory.

The options of a run, `run_id, agent_name, task, model, codebase_id, org_id, project_id, task_profile, metadata,
placement, traceparent, experiment_id, unit_id, on_fraction`, are those of every adapter: `task` defaults to the prompt,
`model` to the session's own. `mode` is "steer" or "observe" as in every adapter; a client and `query` also take "hooks"
and "gateway".
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reasonblocks.adapters import RunFields, RunKeywords, split_keywords

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Message, Transport
    from typing_extensions import Unpack

    from reasonblocks import ReasonBlocks

    from ._client import Mode, SteeredClaudeClient
    from ._memory import memory_server
    from ._sessions import Snapshots
    from ._steering import Steering

__all__ = ["SteeredClaudeClient", "Steering", "claude_hooks", "memory_server", "query"]

_HOMES = {"SteeredClaudeClient": "_client", "Steering": "_steering", "memory_server": "_memory"}


def query(
    rb: ReasonBlocks,
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: ClaudeAgentOptions | None = None,
    transport: Transport | None = None,
    mode: Mode = "hooks",
    snapshots: Snapshots | None = None,
    **run: Unpack[RunFields],
) -> AsyncIterator[Message]:
    """Run the SDK's `query`, steered: yield the messages of a session that ends when the prompts are answered.

    It uses a `SteeredClaudeClient`, whose modes it takes, because the SDK's own `query` offers no way to switch the
    model.
    """
    from ._client import SteeredClaudeClient, messages_of

    split_keywords("query", run, ["prompt", "options", "transport", "snapshots"])  # an error names this function
    client = SteeredClaudeClient(rb, options, transport, mode=mode, snapshots=snapshots, **run)
    return messages_of(client, prompt)


def claude_hooks(
    rb: ReasonBlocks,
    options: ClaudeAgentOptions | None = None,
    *,
    snapshots: Snapshots | None = None,
    **run: Unpack[RunKeywords],
) -> Steering:
    """Return steering for a client of your own: connect it with `hooks.options`, your options with our hooks after
    yours.

    Hooks see neither thoughts nor tokens, and cannot switch the model: pass every message to `await hooks.saw(message)`
    for the first, and use `SteeredClaudeClient` for the second. Use one object per session. Raises `ConfigError` for a
    wrong value.
    """
    from claude_agent_sdk import ClaudeAgentOptions

    from ._sessions import check
    from ._steering import HOOKS_CAPS, Steering

    own, _ = split_keywords("claude_hooks", run, ["options", "snapshots"])
    caps = replace(HOOKS_CAPS, routing="none")
    check(rb, own, caps)
    return Steering(rb, own, options or ClaudeAgentOptions(), snapshots=snapshots, caps=caps)


def __getattr__(name: str) -> object:
    """Load the names whose modules import the SDK when they are first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


if "claude_agent_sdk" in sys.modules:  # then loading the rest is cheap, and must not happen in an event loop
    from . import _client as _client
