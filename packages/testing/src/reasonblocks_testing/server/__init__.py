"""A scripted model provider on 127.0.0.1, for testing with the real client of any framework.

It implements the OpenAI Responses, OpenAI Chat Completions and Anthropic Messages APIs, each streamed and whole.
"""

from __future__ import annotations

from ._asked import Asked, ProviderError
from ._server import Answer, ScriptedServer

__all__ = ["Answer", "Asked", "ProviderError", "ScriptedServer"]
