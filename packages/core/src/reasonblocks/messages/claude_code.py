"""Reads what Claude Code, and so the Claude Agent SDK, adds to Anthropic messages, live and in its transcripts.

The source of the rules is the CLI itself, version 2.1.330.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..types import ToolResult
from . import anthropic

SYNTHETIC = "<synthetic>"
"""The model of messages that the CLI itself writes."""
INTERRUPTED = "[Request interrupted by user"
"""The beginning of the user message that the CLI writes when its user has interrupted the agent."""
_nothing = re.compile(r"\A(?:\([^\n()]+ completed with no output\)|Command failed with no output)\Z")
_notification = re.compile(r"\A\s*<task-notification>\s*<task-id>([^<]+)</task-id>")
_command = re.compile(r"<command-name>([^<]*)</command-name>")
_command_arguments = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
NOT_ASKED = ("<local-command-", "<bash-")
"""The beginnings of the user messages that report commands which the user ran; no answer follows them."""


def result_of(block: Any) -> ToolResult:
    """Return a tool's result as the model reads it, without the CLI's placeholder for an empty one."""
    result = anthropic.result_of(block)
    return replace(result, output=without_placeholder(result.output))


def without_placeholder(output: str) -> str:
    """Return a tool's output; "" for the text that the CLI puts in the place of an empty one."""
    return _nothing.sub("", output)


def task_done(prompt: str) -> str | None:
    """Return the id of the background task whose end the CLI's own prompt announces; None for a user's prompt."""
    found = _notification.match(prompt)
    return found.group(1).strip() if found else None


def prompt_text(prompt: str) -> str:
    """Return a prompt as its user typed it: a command is saved with tags around its parts."""
    name = _command.search(prompt) if prompt.startswith("<command-") else None
    if name is None:
        return prompt
    arguments = _command_arguments.search(prompt)
    return f"{name.group(1)} {arguments.group(1) if arguments else ''}".strip()
