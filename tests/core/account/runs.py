"""Plays runs by hand: each step is a call and what came back."""

from __future__ import annotations

from reasonblocks.account.observe import observe
from reasonblocks.types import JSON, Step, ToolCall, ToolResult
from reasonblocks.types.account import Account


def step(
    name: str, arguments: JSON, output: str, *, is_error: bool | None = None, user_text: str = "", call_id: str = ""
) -> Step:
    """Return a step with one call and its result."""
    call = ToolCall(id=call_id, name=name, arguments=arguments)
    result = ToolResult(call_id=call_id, name=name, output=output, is_error=is_error)
    return Step(tool_calls=(call,), tool_results=(result,), user_text=user_text)


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
