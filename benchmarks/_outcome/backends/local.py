"""A GGUF file behind llama.cpp's server, on this machine's processor.

Small models know no tool calls, so calls are written as text, `go {"door": "attic"}`, and a grammar lets the model
write nothing else: a tool's name, and its arguments as JSON, from the valid values where the environment knows them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from reasonblocks.exceptions import ExtraMissing

from ..backend import BackendError, Message, Query, Reply
from ..environment import Call, Tool
from .shortened import without_oldest_call

__all__ = ["LocalBackend", "as_text", "grammar", "manual", "read"]

LANE_TOKENS = 6_144
"""Context of each lane, in tokens."""
CALL_TOKENS = 160
"""Longest call, in tokens."""
TIMEOUT_SECONDS = 600.0
ERRORS = 1
"""llama.cpp's verbosity that logs errors only: the usual one has some lines for each request."""
ERROR_CHARS = 300
"""Characters of an error of the server that are shown."""
TOO_LONG = "exceed_context_size_error"
"""The type of the server's error for a conversation that exceeds the context."""
VALUES: Mapping[str, str] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
"""The grammar's rule for each type of an argument; other types are written as text."""
# `char*` and no limit: llama.cpp takes seconds to read a rule that is repeated some hundred times
RULES = r'''
char ::= [^"\\\x00-\x1f] | "\\" ["\\/nt]
text ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]*)
number ::= integer ("." [0-9]+)?
boolean ::= "true" | "false"'''


def _say(text: str) -> None:
    print(text, file=sys.stderr)


class LocalBackend:
    """A model in a GGUF file. Every lane keeps its own cache of the prompt.

    A conversation that is longer than the context loses its oldest calls, which `say` is told once. With `guided`,
    arguments are limited to the values that the environment knows to be valid.

    Raises `ExtraMissing` without the package `xllamacpp`, `BackendError` for a file that is no model.
    """

    in_rounds = False

    def __init__(
        self,
        path: Path,
        *,
        lanes: int = 8,
        temperature: float = 0.3,
        threads: int | None = None,
        guided: bool = False,
        say: Callable[[str], None] = _say,
    ) -> None:
        if find_spec("xllamacpp") is None:
            raise ExtraMissing("a model in a GGUF file", "xllamacpp", "", ("xllamacpp",))
        if not path.is_file():
            raise BackendError(str(path), "there is no such file", "name a GGUF file")
        self.model, self.lanes, self._temperature = path.stem, lanes, temperature
        self._say, self._has_dropped, self._guided = say, False, guided
        self._server = _server(path, lanes, threads)
        self._client = httpx.Client(base_url=self._server.listening_address, timeout=TIMEOUT_SECONDS, trust_env=False)

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries, one after another: the lanes ask from their own threads. Raises `BackendError`."""
        return [self._answer(query) for query in queries]

    def close(self) -> None:
        """Stop the server."""
        self._client.close()
        self._server = None  # the server has no method for it: it stops when nothing refers to it

    def _answer(self, query: Query) -> Reply:
        messages = query.messages
        while not (response := self._sent(query, messages)).is_success:
            shorter = without_oldest_call(messages) if TOO_LONG in response.text else None
            if shorter is None:
                problem = f"HTTP {response.status_code}: {response.text[:ERROR_CHARS]}"
                too_long = "shorten the task's messages and results"
                hint = too_long if TOO_LONG in response.text else "take a model that knows chat messages"
                raise BackendError(self.model, problem, hint, query.lane)
            if not self._has_dropped:
                self._has_dropped = True
                self._say(f"{self.model}: a conversation exceeds {LANE_TOKENS} tokens: oldest calls are dropped")
            messages = shorter
        return read(response.json())

    def _sent(self, query: Query, messages: Sequence[Message]) -> httpx.Response:
        body = {
            "messages": as_text(messages, query.tools) if query.tools else messages,
            "max_tokens": CALL_TOKENS,
            "temperature": self._temperature,
            "seed": query.seed,
            **({"grammar": grammar(query.tools, query.choices if self._guided else {})} if query.tools else {}),
            "cache_prompt": True,
            "id_slot": query.lane,
        }
        try:
            return self._client.post("/v1/chat/completions", json=body)
        except httpx.HTTPError as error:
            hint = "lower --concurrency, or take a smaller model"
            raise BackendError(self.model, f"{type(error).__name__}: {error}", hint, query.lane) from error


def _server(path: Path, lanes: int, threads: int | None) -> Any:
    """Start llama.cpp's server on a free port of 127.0.0.1."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_parallel = LANE_TOKENS * lanes, lanes
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.use_jinja = True
    settings.kv_unified = False
    settings.verbosity = ERRORS
    for cores in (settings.cpuparams, settings.cpuparams_batch):
        cores.poll = 0  # a thread that waits must not take the core from the one that it waits for
        if threads:
            cores.n_threads = threads
    try:
        return xllamacpp.Server(settings)
    except RuntimeError as error:
        raise BackendError(str(path), str(error), "name a GGUF file of a model that llama.cpp knows") from error


def read(answer: Mapping[str, Any]) -> Reply:
    """Return the reply of a chat completion; a call that was cut at its longest, or is none, is text."""
    said = answer["choices"][0]["message"]["content"] or ""
    usage = answer["usage"]
    call = _call_in(said)
    return Reply(
        text="" if call else said,
        call=call,
        prompt=usage["prompt_tokens"],
        completion=usage["completion_tokens"],
        cached=answer.get("timings", {}).get("cache_n"),
    )


def _call_in(said: str) -> Call | None:
    name, _, arguments = said.strip().partition(" ")
    try:
        given = json.loads(arguments)
    except ValueError:
        return None
    return Call(name, given) if name and isinstance(given, dict) else None


def as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Return the messages with calls as text, results as the user's messages, and the tools in the system message."""
    shown: list[Message] = [{**messages[0], "content": f"{messages[0]['content']}\n\n{manual(tools)}"}]
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
        arguments = {name: f"<{about.get('description', name)}>" for name, about in _properties(item).items()}
        lines.append(f"{function['name']} {_json(arguments)}  ({function.get('description', '')})")
    return "\n".join([*lines, "Reply with one call and nothing else."])


def grammar(tools: Sequence[Tool], choices: Mapping[str, Sequence[str]]) -> str:
    """Return the grammar (GBNF) of one call, with all arguments of its tool in the order of their declaration."""
    return f"root ::= {' | '.join([_call(item, choices) for item in tools])}{RULES}"


def _call(item: Tool, choices: Mapping[str, Sequence[str]]) -> str:
    name = item["function"]["name"]
    parts = [_literal(f"{name} {{")]
    for at, (argument, about) in enumerate(_properties(item).items()):
        parts.append(_literal(f"{', ' if at else ''}{_json(argument)}: "))
        known = choices.get(f"{name}.{argument}") or about.get("enum")
        options = [_literal(_json(value)) for value in known or ()]
        parts.append(f"({' | '.join(options)})" if options else VALUES.get(about.get("type"), VALUES["string"]))
    return " ".join([*parts, _literal("}")])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(text: str) -> str:
    """Return the text in quotes: the grammar's escapes are those of JSON."""
    return _json(text)


def _properties(item: Tool) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = item["function"]["parameters"].get("properties", {})
    return properties
