"""A GGUF file behind llama.cpp's server, on this machine's processor.

Small models know no tool calls, so calls are written as text, `go {"door": "attic"}`, and a grammar lets the model
write nothing else: a tool's name, and its arguments as JSON, from the valid values where the environment knows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from ..backend import Message, Query, Reply
from ..environment import Call, Tool

LANE_TOKENS = 6_144
"""Context of each lane, in tokens."""
CALL_TOKENS = 160
"""Longest call, in tokens."""
TIMEOUT_SECONDS = 600.0


class LocalBackend:
    """A model in a GGUF file. Needs the package `xllamacpp`. Every lane keeps its own cache of the prompt."""

    in_rounds = False

    def __init__(self, path: Path, *, lanes: int = 8, temperature: float = 0.3, threads: int | None = None) -> None:
        try:
            import xllamacpp
        except ImportError as error:
            raise SystemExit(f"outcome: a GGUF file needs llama.cpp: pip install xllamacpp ({error})") from error
        if not path.is_file():
            raise SystemExit(f"outcome: no such file: {path}")
        settings = xllamacpp.CommonParams()
        settings.model.path = str(path)
        settings.n_ctx, settings.n_parallel = LANE_TOKENS * lanes, lanes
        settings.hostnames, settings.port = ["127.0.0.1"], 0
        settings.use_jinja = True
        settings.kv_unified = False
        for cores in (settings.cpuparams, settings.cpuparams_batch):
            cores.poll = 0  # a thread that waits must not take the core from the one that it waits for
            if threads:
                cores.n_threads = threads
        self.model, self.lanes, self._temperature = path.stem, lanes, temperature
        self._server = xllamacpp.Server(settings)
        self._client = httpx.Client(base_url=self._server.listening_address, timeout=TIMEOUT_SECONDS, trust_env=False)
        self._threads = ThreadPoolExecutor(lanes)

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries at the same time."""
        return [*self._threads.map(self._answer, queries)]

    def close(self) -> None:
        """Stop the server."""
        self._threads.shutdown()
        self._client.close()
        self._server.stop() if hasattr(self._server, "stop") else None

    def _answer(self, query: Query) -> Reply:
        body = {
            "messages": as_text(query.messages, query.tools),
            "max_tokens": CALL_TOKENS,
            "temperature": self._temperature,
            "seed": query.seed,
            "grammar": grammar(query.tools, query.choices),
            "cache_prompt": True,
            "id_slot": query.lane,
        }
        answer = self._client.post("/v1/chat/completions", json=body)
        answer.raise_for_status()
        given = answer.json()
        said = given["choices"][0]["message"]["content"] or ""
        usage, timings = given["usage"], given.get("timings", {})
        name, _, arguments = said.strip().partition(" ")
        call, text = None, ""
        try:
            call = Call(name, json.loads(arguments or "{}", strict=False))
        except ValueError:  # cut at its longest
            text = said
        return Reply(
            text=text,
            call=call,
            prompt=usage["prompt_tokens"],
            completion=usage["completion_tokens"],
            cached=timings.get("cache_n"),
        )


def as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Return the messages with calls as text, results as the user's messages, and the tools in the system message."""
    shown = [{**messages[0], "content": f"{messages[0]['content']}\n\n{manual(tools)}"}]
    for message in messages[1:]:
        calls = message.get("tool_calls")
        if calls:
            function = calls[0]["function"]
            said = filter(None, (message["content"], f"{function['name']} {function['arguments']}"))
            shown.append({"role": "assistant", "content": "\n".join(said)})
        else:
            role = "user" if message["role"] == "tool" else message["role"]
            shown.append({"role": role, "content": message["content"]})
    return shown


def manual(tools: Sequence[Tool]) -> str:
    """Return the tools as text, one a line."""
    lines = ["Your tools:"]
    for item in tools:
        function = item["function"]
        arguments = {name: f"<{about['description']}>" for name, about in _properties(item).items()}
        lines.append(f"{function['name']} {json.dumps(arguments)}  ({function['description']})")
    return "\n".join([*lines, "Reply with one call and nothing else."])


def grammar(tools: Sequence[Tool], choices: Mapping[str, Sequence[str]]) -> str:
    """Return the grammar (GBNF) of one call."""
    calls = [_call(item, choices) for item in tools]
    # `char*` and no limit: llama.cpp takes seconds to read a rule that is repeated some hundred times
    free = 'char ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/nt]\nvalue ::= "\\"" char* "\\""'
    return f"root ::= {' | '.join(calls)}\n{free}"


def _call(item: Tool, choices: Mapping[str, Sequence[str]]) -> str:
    name = item["function"]["name"]
    parts = [_literal(f"{name} {{")]
    for at, argument in enumerate(_properties(item)):
        known = choices.get(f"{name}.{argument}")
        parts.append(_literal(f'{", " if at else ""}"{argument}": '))
        parts.append(f"({' | '.join(_literal(json.dumps(value)) for value in known)})" if known else "value")
    return " ".join([*parts, _literal("}")])


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _properties(item: Tool) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = item["function"]["parameters"]["properties"]
    return properties
