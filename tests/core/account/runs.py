"""Plays runs by hand: each step is a call and what came back."""

from __future__ import annotations

from typing import Any

from reasonblocks.account.observe import observe
from reasonblocks.types import JSON, Step
from reasonblocks.types.account import Account
from tests.core.steps import acted


def step(tool: str, arguments: JSON, output: str, **more: Any) -> Step:
    """Return a step with one call and its result."""
    return acted(tool, arguments, output, **{"call_id": "", **more})


def bash(command: str, output: str, *, is_error: bool | None = None) -> Step:
    """Return a step with a shell's command."""
    return step("bash", {"command": command}, output, is_error=is_error)


def after(*steps: Step, roles: dict[str, str] | None = None) -> Account:
    """Return the account after these steps."""
    account = Account()
    for index, one in enumerate(steps):
        account = observe(one, account, index, roles or {})
    return account


def letters(*steps: Step, roles: dict[str, str] | None = None) -> str:
    """Return the letters of these steps, in upper case."""
    return after(*steps, roles=roles).letters.upper()
