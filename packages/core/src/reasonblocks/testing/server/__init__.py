"""For tests: a model provider on 127.0.0.1 that says what a script says, to the real client of any framework.

It speaks OpenAI Responses, OpenAI Chat Completions and Anthropic Messages, each streamed and whole.
"""

from __future__ import annotations

from ._asked import Asked, ProviderError
from ._server import Answer, ScriptedServer

__all__ = ["Answer", "Asked", "ProviderError", "ScriptedServer"]
