"""A model in a GGUF file writes calls as text: the grammar lets it write nothing else, and the text is read again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from _outcome.backend import BackendError, Message, Query
from _outcome.backends import local
from _outcome.backends.local import LocalBackend, as_text, grammar, manual, read
from _outcome.environment import Call, Tool, tool
from _outcome.tasks.claim import Claim
from _outcome.tasks.house import House

MODEL = os.environ.get("REASONBLOCKS_GGUF", "")
GO = tool("go", "Go through a door", door="the room behind it")
TOOLS = (
    GO,
    tool("set", "Set a value", name="the setting", value="the new value"),
    tool("run_checks", "Run the checks"),
)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[\w-]+|::=|[|()*+?]')


def rules(text: str) -> dict[str, list[str]]:
    """The tokens of each rule of a grammar, by its name."""
    lines = [line.split(" ::= ", 1) for line in text.splitlines()]
    return {name: TOKEN.findall(rule) for name, rule in lines}


def pattern(given: Mapping[str, list[str]], name: str = "root") -> str:
    """The grammar as a regular expression: none of its rules refers to itself."""
    parts = []
    for token in given[name]:
        if token.startswith('"'):
            parts.append(f"(?:{re.escape(json.loads(token))})")
        elif token[0] in "[|()*+?":
            parts.append(token)
        else:
            parts.append(f"(?:{pattern(given, token)})")
    return "".join(parts)


def accepts(tools: Sequence[Tool], text: str, choices: Mapping[str, Sequence[str]] | None = None) -> bool:
    return re.fullmatch(pattern(rules(grammar(tools, choices or {}))), text) is not None


# --- the grammar


@pytest.mark.parametrize(
    "call",
    [
        'go {"door": "attic"}',
        'go {"door": ""}',
        'go {"door": "the \\"red\\" one\\n, é"}',
        'set {"name": "region", "value": "a\\\\b/c"}',
        "run_checks {}",
    ],
)
def test_the_grammar_accepts_calls_which_are_read_as_they_were_written(call: str) -> None:
    assert accepts(TOOLS, call)
    name, _, arguments = call.partition(" ")
    assert read(answer(call)).call == Call(name, json.loads(arguments))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I go.",
        "go",
        'go {"door": "attic"} ',
        'go {"door": "attic}',
        'go {"door": 5}',
        'go {"room": "attic"}',
        'go {"door": "a\nb"}',
        'go {"door": "a\\qb"}',
        'set {"value": "x", "name": "region"}',
        'set {"name": "region"}',
        'run_checks {"now": "yes"}',
        'fly {"door": "attic"}',
    ],
)
def test_the_grammar_accepts_nothing_else(text: str) -> None:
    assert not accepts(TOOLS, text)


def test_known_values_are_the_only_ones_and_others_stay_free() -> None:
    choices = {"go.door": ["attic", 'the "é" hall'], "set.name": ["region"], "set.value": []}
    assert accepts(TOOLS, 'go {"door": "attic"}', choices)
    assert accepts(TOOLS, 'go {"door": "the \\"é\\" hall"}', choices)
    assert accepts(TOOLS, 'set {"name": "region", "value": "anything"}', choices)
    assert not accepts(TOOLS, 'go {"door": "cellar"}', choices)
    assert not accepts(TOOLS, 'set {"name": "mode", "value": "x"}', choices)


def test_values_have_the_types_of_their_declaration() -> None:
    types = {"count": "integer", "share": "number", "deep": "boolean", "rest": "array"}
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in types.items()}
    properties["unit"] = {"type": "string", "enum": ["kg", "m"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]
    assert accepts(tools, 'f {"count": -12, "share": 0.5, "deep": true, "rest": "a", "unit": "kg"}')
    assert not accepts(tools, 'f {"count": 01, "share": 0.5, "deep": true, "rest": "a", "unit": "kg"}')
    assert not accepts(tools, 'f {"count": 1, "share": 0.5, "deep": true, "rest": "a", "unit": "cm"}')
    assert manual(tools).startswith('Your tools:\nf {"count": "<count>"')


@pytest.mark.parametrize("environment", [House(), Claim()])
def test_the_reference_policies_of_tasks_write_what_the_grammar_accepts(environment: House | Claim) -> None:
    environment.reset(3)
    while not environment.done:
        call = environment.reference()
        assert call is not None
        said = f"{call.name} {json.dumps(call.arguments)}"
        assert accepts(environment.tools, said, environment.choices())
        environment.call(call.name, call.arguments)


# --- the conversation


def test_a_conversation_as_text_has_the_calls_as_the_model_writes_them() -> None:
    function = {"name": "go", "arguments": '{"door": "attic"}'}
    messages: list[Message] = [
        {"role": "system", "content": "You walk."},
        {"role": "user", "content": "Find the exit."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call-0", "function": function}]},
        {"role": "tool", "tool_call_id": "call-0", "content": "An attic."},
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "Call one of the tools."},
    ]
    assert as_text(messages, [GO]) == [
        {"role": "system", "content": f"You walk.\n\n{manual([GO])}"},
        {"role": "user", "content": "Find the exit."},
        {"role": "assistant", "content": 'go {"door": "attic"}'},
        {"role": "user", "content": "An attic."},
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "Call one of the tools."},
    ]


def test_the_manual_has_a_line_for_each_tool() -> None:
    assert manual(TOOLS).splitlines() == [
        "Your tools:",
        'go {"door": "<the room behind it>"}  (Go through a door)',
        'set {"name": "<the setting>", "value": "<the new value>"}  (Set a value)',
        "run_checks {}  (Run the checks)",
        "Reply with one call and nothing else.",
    ]


# --- the answer


def answer(said: str | None, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {"choices": [{"message": {"content": said}}], "usage": usage, **more}


@pytest.mark.parametrize(
    "said", ['go {"door": "att', "go", "", 'go ["attic"]', ' {"door": "attic"}', "I go to the attic"]
)
def test_a_call_that_was_cut_or_is_none_is_text(said: str) -> None:
    reply = read(answer(said))
    assert (reply.call, reply.text) == (None, said)


def test_an_answer_without_text_is_empty() -> None:
    assert (read(answer(None)).call, read(answer(None)).text) == (None, "")


def test_the_tokens_of_the_cache_are_known_if_the_server_says_so() -> None:
    assert read(answer("run_checks {}", timings={"cache_n": 15})).cached == 15
    reply = read(answer("run_checks {}"))
    assert (reply.prompt, reply.completion, reply.cached) == (20, 5, None)


# --- the backend


class Served(LocalBackend):
    """The backend with a server played by hand."""

    def __init__(self, serve: httpx.MockTransport, *, guided: bool = False) -> None:
        self._guided = guided
        self.model, self.lanes, self._temperature = "tiny", 1, 0.3
        self.said: list[str] = []
        self._say, self._has_dropped, self._server = self.said.append, False, None
        self._client = httpx.Client(base_url="http://127.0.0.1:1", transport=serve)


def conversation(turns: int) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You walk."}, {"role": "user", "content": "Go."}]
    for at in range(turns):
        call = {"id": f"call-{at}", "function": {"name": "run_checks", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{at}", "content": f"result {at}"},
        ]
    return messages


def query(turns: int) -> Query:
    return Query(messages=conversation(turns), tools=TOOLS, lane=0, seed=7)


def test_a_conversation_beyond_the_context_loses_its_oldest_calls_and_this_is_said_once() -> None:
    def serve(request: httpx.Request) -> httpx.Response:
        messages = json.loads(request.content)["messages"]
        if len(messages) > 6:
            return httpx.Response(400, json={"error": {"code": 400, "type": local.TOO_LONG}})
        return httpx.Response(200, json=answer(f"go {json.dumps({'door': messages[-1]['content']})}"))

    backend = Served(httpx.MockTransport(serve))
    for turns in (4, 5):
        (reply,) = backend.complete([query(turns)])
        assert reply.call == Call("go", {"door": f"result {turns - 1}"})
    assert backend.said == [f"tiny: a conversation exceeds {local.LANE_TOKENS} tokens: oldest calls are dropped"]


def test_a_single_turn_that_is_too_long_is_an_error_that_names_the_lane() -> None:
    refusal = httpx.Response(400, json={"error": {"type": local.TOO_LONG}})
    backend = Served(httpx.MockTransport(lambda request: refusal))
    with pytest.raises(BackendError, match=r"tiny: HTTP 400: .*exceed_context_size_error") as caught:
        backend.complete([query(1)])
    assert caught.value.lane == 0


def test_a_server_that_is_gone_is_an_error_of_the_backend() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(BackendError, match="tiny: ConnectError: refused"):
        Served(httpx.MockTransport(gone)).complete([query(0)])


def test_a_request_has_the_seed_the_lane_and_the_grammar() -> None:
    asked: list[dict[str, Any]] = []

    def serve(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json=answer("run_checks {}"))

    choices = {"go.door": ["attic"]}
    for guided in (False, True):
        Served(httpx.MockTransport(serve), guided=guided).complete([replace(query(0), choices=choices)])
    free, limited = asked
    assert (free["seed"], free["id_slot"], free["temperature"]) == (7, 0, 0.3)
    assert free["grammar"] == grammar(TOOLS, {})
    assert limited["grammar"] == grammar(TOOLS, choices) != free["grammar"]


def test_without_a_file_or_its_package_the_error_names_what_to_do(tmp_path: Path) -> None:
    with pytest.raises((BackendError, ImportError), match=r"no such file|pip install"):
        LocalBackend(tmp_path / "none.gguf")


@pytest.mark.skipif(not MODEL, reason="REASONBLOCKS_GGUF names no model")
def test_a_real_model_plays_a_house() -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    backend = LocalBackend(Path(MODEL), lanes=1, threads=1)
    house = House()
    try:
        messages: list[Message] = [
            {"role": "system", "content": house.system},
            {"role": "user", "content": house.reset(1)},
        ]
        asked = Query(messages=messages, tools=house.tools, lane=0, seed=7, choices=house.choices())
        first, second = (backend.complete([asked])[0] for _ in range(2))
    finally:
        backend.close()
    assert first.call == second.call
    assert first.call is not None
    assert first.call.arguments["door"] in house.choices()["go.door"]
    assert (second.cached or 0) > (first.cached or 0)
