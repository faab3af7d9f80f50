"""The scripted model provider, asked as its clients ask: over HTTP, in each API, whole and streamed."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from reasonblocks.types import Usage
from reasonblocks_testing import Script, Seen, Turn, tool_call, tool_result
from reasonblocks_testing.server import Asked, ProviderError, ScriptedServer

PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "messages": "/v1/messages"}
CALLS = (tool_call("c1", "read_file", {"path": "żółć.py"}), tool_call("c2", "run_tests"))
BUSY = Turn(
    text="I read the file, then I run the tests.",
    reasoning="The file comes first.",
    tool_calls=CALLS,
    results=(tool_result("c1", "empty"), tool_result("c2", "3 failed")),
    usage=Usage(input=100, output=20, cache_read=60, cache_write=30, reasoning=5),
)
DONE = Turn(text="All tests pass.")
SCRIPT = Script(turns=(BUSY, DONE))
TASK = SCRIPT.task

each_api = pytest.mark.parametrize("api", list(PATHS))
streamed_or_whole = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


# --- a client


def connection(server: ScriptedServer) -> closing[HTTPConnection]:
    return closing(HTTPConnection(urlsplit(server.url).netloc, timeout=30))


def told(client: HTTPConnection, method: str, path: str, sent: bytes | None = None) -> tuple[int, bytes]:
    client.request(method, path, sent, {"Content-Type": "application/json", "X-Who": "a test"})
    response = client.getresponse()
    return response.status, response.read()


def post(server: ScriptedServer, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    with connection(server) as client:
        return told(client, "POST", path, json.dumps(body).encode())


def ask(server: ScriptedServer, api: str, task: str = TASK, **more: Any) -> tuple[int, dict[str, Any]]:
    """Asks for the first answer of a conversation."""
    start = {"input": task} if api == "responses" else {"messages": [{"role": "user", "content": task}]}
    status, received = post(server, PATHS[api], {"model": "agent-model", **start, **more})
    return status, {"events": list(events(received))} if more.get("stream") and status == 200 else json.loads(received)


def events(received: bytes) -> Iterator[dict[str, Any]]:
    for block in received.decode().removesuffix("\n\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        if lines["data"] != "[DONE]":
            event = json.loads(lines["data"])
            assert lines.get("event", "") == event.get("type", "")
            yield event


# --- what it heard, in the words of a turn


def heard(api: str, answer: dict[str, Any]) -> Turn:
    if "events" in answer:
        answer = {"responses": final_response, "chat": joined_chunks, "messages": joined_blocks}[api](answer["events"])
    return {"responses": of_response, "chat": of_chat, "messages": of_message}[api](answer)


def of_response(answer: dict[str, Any]) -> Turn:
    items = answer["output"]
    calls = [item for item in items if item["type"] == "function_call"]
    return Turn(
        reasoning="".join(part["text"] for item in items for part in item.get("summary", ())),
        text="".join(part["text"] for item in items for part in item.get("content", ())),
        tool_calls=tuple(tool_call(call["call_id"], call["name"], json.loads(call["arguments"])) for call in calls),
    )


def of_chat(answer: dict[str, Any]) -> Turn:
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    assert choice["finish_reason"] == ("tool_calls" if calls else "stop")
    return Turn(
        reasoning=message.get("reasoning_content", ""),
        text=message["content"] or "",
        tool_calls=tuple(tool_call(id, call["name"], json.loads(call["arguments"])) for id, call in calls),
    )


def of_message(answer: dict[str, Any]) -> Turn:
    blocks = answer["content"]
    assert answer["stop_reason"] == ("tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn")
    assert all(block["signature"] for block in blocks if block["type"] == "thinking")
    calls = [block for block in blocks if block["type"] == "tool_use"]
    return Turn(
        reasoning="".join(block.get("thinking", "") for block in blocks),
        text="".join(block.get("text", "") for block in blocks),
        tool_calls=tuple(tool_call(call["id"], call["name"], call["input"]) for call in calls),
    )


def final_response(got: list[dict[str, Any]]) -> dict[str, Any]:
    """The last event's response; what the deltas before it add up to is the same."""
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    response: dict[str, Any] = got[-1]["response"]
    for index, item in enumerate(response["output"]):
        parts = item.get("content", item.get("summary", [{"text": item.get("arguments")}]))
        deltas = [event["delta"] for event in got if event.get("output_index") == index and "delta" in event]
        assert "".join(deltas) == parts[0]["text"]
    return response


def joined_chunks(got: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"content": None}
    choices = [choice for chunk in got for choice in chunk["choices"]]
    for delta in (choice["delta"] for choice in choices):
        for key in ("content", "reasoning_content"):
            if delta.get(key) is not None:
                message[key] = (message.get(key) or "") + delta[key]
        for call in delta.get("tool_calls", ()):
            calls = message.setdefault("tool_calls", [])
            if call["index"] == len(calls):
                calls.append(call)
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return {"choices": [{"message": message, "finish_reason": choices[-1]["finish_reason"]}]}


def joined_blocks(got: list[dict[str, Any]]) -> dict[str, Any]:
    assert [got[0]["type"], got[-1]["type"]] == ["message_start", "message_stop"]
    blocks: list[dict[str, Any]] = []
    for event in got:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "partial_json": ""})
        elif event["type"] == "content_block_delta":
            for key, piece in event["delta"].items():
                if key != "type":
                    blocks[event["index"]][key] += piece
        elif event["type"] == "content_block_stop" and blocks[-1]["type"] == "tool_use":
            blocks[-1]["input"] = json.loads(blocks[-1]["partial_json"])
    return {"content": blocks, "stop_reason": got[-2]["delta"]["stop_reason"]}


# --- answers


@each_api
@streamed_or_whole
def test_a_turn_is_said_with_its_reasoning_and_its_tool_calls(api: str, stream: bool) -> None:
    with ScriptedServer(SCRIPT) as server:
        status, answer = ask(server, api, stream=stream)
    assert (status, heard(api, answer)) == (200, Turn(text=BUSY.text, reasoning=BUSY.reasoning, tool_calls=CALLS))


@each_api
@streamed_or_whole
def test_a_turn_of_text_alone_ends_there(api: str, stream: bool) -> None:
    with ScriptedServer(lambda asked: DONE) as server:
        assert heard(api, ask(server, api, stream=stream)[1]) == DONE


@each_api
def test_an_answer_names_the_model_that_was_asked(api: str) -> None:
    with ScriptedServer(SCRIPT) as server:
        assert ask(server, api)[1]["model"] == "agent-model"


@each_api
def test_a_streamed_text_comes_in_several_deltas(api: str) -> None:
    with ScriptedServer(lambda asked: DONE) as server:
        got = ask(server, api, stream=True)[1]["events"]
    assert sum(any(part in json.dumps(event) for part in ("All t", "ests", "pass.")) for event in got) >= 3


def test_responses_counts_cached_tokens_as_input() -> None:
    with ScriptedServer(SCRIPT) as server:
        usage = ask(server, "responses")[1]["usage"]
    assert usage == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }


def test_chat_counts_cached_tokens_as_input() -> None:
    with ScriptedServer(SCRIPT) as server:
        usage = ask(server, "chat")[1]["usage"]
    assert (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]) == (100, 60)


@streamed_or_whole
def test_messages_counts_cached_tokens_apart(stream: bool) -> None:
    with ScriptedServer(SCRIPT) as server:
        answer = ask(server, "messages", stream=stream)[1]
    usage = answer["events"][-2]["usage"] if stream else answer["usage"]
    counted = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    assert [usage[name] for name in counted] == [10, 60, 30, 20]


def test_chat_streams_its_usage_to_a_client_that_asks_for_it() -> None:
    with ScriptedServer(SCRIPT) as server:
        got = ask(server, "chat", stream=True, stream_options={"include_usage": True})[1]["events"]
    assert (got[-1]["choices"], got[-1]["usage"]["total_tokens"]) == ([], 120)


def test_chat_streams_no_usage_unasked() -> None:
    with ScriptedServer(SCRIPT) as server:
        assert not any("usage" in chunk for chunk in ask(server, "chat", stream=True)[1]["events"])


def test_broken_arguments_are_sent_as_the_script_has_them() -> None:
    broken = Turn(tool_calls=(tool_call("c1", "run_tests"),))
    object.__setattr__(broken.tool_calls[0], "arguments", '{"path": ')
    with ScriptedServer(lambda asked: broken) as server:
        assert ask(server, "responses")[1]["output"][0]["arguments"] == '{"path": '


# --- what is asked

ANSWERED: dict[str, dict[str, Any]] = {
    "responses": {
        "instructions": "You fix bugs.",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": TASK}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "nothing"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "more"}]},
            {"type": "function_call", "call_id": "c3", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c3", "output": ""},
            {"role": "developer", "content": "Step 1 repeats step 0."},
        ],
    },
    "chat": {
        "messages": [
            {"role": "system", "content": "You fix bugs."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": TASK}]},
            {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1"}, {"id": "c2"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "more"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c3"}]},
            {"role": "tool", "tool_call_id": "c3", "content": ""},
            {"role": "system", "content": "Step 1 repeats step 0."},
        ],
    },
    "messages": {
        "system": [{"type": "text", "text": "You fix bugs."}, {"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": TASK},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "nothing"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "more"}]},
                ],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "look", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c3"},
                    {"type": "text", "text": "Step 1 repeats step 0."},
                ],
            },
        ],
    },
}


@pytest.fixture
def asked(api: str) -> Asked:
    with ScriptedServer(lambda asked: DONE) as server:
        assert post(server, PATHS[api] + "?beta=true", {"model": "m", "unknown": 1, **ANSWERED[api]})[0] == 200
    (request,) = server.requests
    return request


@each_api
def test_a_request_reads_the_same_in_each_api(asked: Asked) -> None:
    texts = (TASK, "I look.", "nothing", "more", "", "", "Step 1 repeats step 0.")
    last = "user" if asked.api == "messages" else "system"  # Anthropic's API has no system message between others
    roles = ("user", "assistant", "tool", "tool", "assistant", "tool", last)
    assert asked.seen == Seen(model="m", system="You fix bugs.\n\nBe brief.", texts=texts, roles=roles)


@each_api
def test_what_stands_between_two_inputs_is_one_answer(asked: Asked) -> None:
    assert asked.answers == 2


@each_api
def test_tool_outputs_are_told_by_their_call(asked: Asked) -> None:
    assert asked.tool_outputs == {"c1": "nothing", "c2": "more", "c3": ""}


@each_api
def test_a_request_is_kept_as_it_came(asked: Asked, api: str) -> None:
    assert (asked.body["unknown"], asked.headers["x-who"], asked.task) == (1, "a test", TASK)
    assert (asked.api, asked.stream) == (api, False)


def test_a_task_is_found_beside_other_texts_of_the_first_message() -> None:
    content = [{"type": "text", "text": "Today is Monday."}, {"type": "text", "text": "Second"}]
    scripts = (SCRIPT, Script(turns=(DONE,), task="Second"))
    with ScriptedServer(scripts) as server:
        status, received = post(server, PATHS["messages"], {"messages": [{"role": "user", "content": content}]})
    assert (status, heard("messages", json.loads(received))) == (200, DONE)


# --- scripts


@each_api
def test_a_script_goes_on_by_the_answers_that_the_conversation_holds(api: str) -> None:
    turns = (BUSY, BUSY, DONE)
    with ScriptedServer(Script(turns=turns)) as server:
        _, received = post(server, PATHS[api], ANSWERED[api])
    assert heard(api, json.loads(received)) == DONE


@each_api
def test_several_scripts_are_told_apart_by_their_tasks(api: str) -> None:
    scripts = [Script(turns=(Turn(text=f"It is {task}."),), task=task) for task in ("one", "two")]
    with ScriptedServer(scripts) as server:
        said = [heard(api, ask(server, api, task)[1]).text for task in ("two", "one", "three")]
    assert said == ["It is two.", "It is one.", "It is one."]


@each_api
def test_a_script_that_is_over_refuses(api: str) -> None:
    with ScriptedServer(Script(turns=(BUSY,))) as server:
        status, received = post(server, PATHS[api], ANSWERED[api])
    assert (status, json.loads(received)["error"]["message"]) == (
        400,
        "the script has 1 turns, and was asked for turn 2",
    )


def test_a_chain_of_responses_counts_its_answers() -> None:
    with ScriptedServer(SCRIPT) as server:
        first = ask(server, "responses")[1]
        outputs = [{"type": "function_call_output", "call_id": "c1", "output": "empty"}]
        second = ask(server, "responses", input=outputs, previous_response_id=first["id"])[1]
    assert [(request.answers, request.task) for request in server.requests] == [(0, TASK), (1, TASK)]
    assert (heard("responses", second), second["previous_response_id"]) == (DONE, first["id"])


@pytest.mark.parametrize("name", ["conv_1", {"id": "conv_1"}], ids=["text", "object"])
def test_a_conversation_counts_its_answers(name: Any) -> None:
    with ScriptedServer(SCRIPT) as server:
        ask(server, "responses", conversation=name, stream=True)
        second = ask(server, "responses", input=[], conversation=name)[1]
    assert (heard("responses", second), second["conversation"]) == (DONE, {"id": "conv_1"})


def test_a_chain_from_nowhere_is_refused() -> None:
    with ScriptedServer(SCRIPT) as server:
        status, answer = ask(server, "responses", previous_response_id="resp_lost")
    assert (status, answer["error"]["code"], server.requests) == (400, "previous_response_not_found", [])


# --- errors


@each_api
@streamed_or_whole
def test_a_turn_s_error_is_a_bad_request_with_its_text(api: str, stream: bool) -> None:
    with ScriptedServer(lambda asked: Turn(error=ValueError("no such model"))) as server:
        status, answer = ask(server, api, stream=stream)
    error = answer["error"]
    assert (status, error["type"], error["message"]) == (400, "invalid_request_error", "no such model")
    assert ("code" in error) == (api != "messages") != (answer.get("type") == "error")


@each_api
def test_a_provider_error_has_its_own_status(api: str) -> None:
    with ScriptedServer(lambda asked: Turn(error=ProviderError("slow down", status=429))) as server:
        status, answer = ask(server, api)
    assert (status, answer["error"]["type"]) == (429, "rate_limit_error")


def test_what_an_answer_raises_is_told_to_its_client() -> None:
    def answer(asked: Asked) -> Turn:
        raise AssertionError(f"{asked.model} is not expected")

    with ScriptedServer(answer) as server:
        status, told = ask(server, "chat")
    assert (status, told["error"]["message"]) == (400, "agent-model is not expected")


@each_api
def test_failures_come_before_the_answer_in_every_run(api: str) -> None:
    with ScriptedServer(Script(turns=(Turn(text="At last.", failures=2),))) as server:
        statuses = [ask(server, api)[0] for _ in range(6)]
    assert statuses == [500, 500, 200, 500, 500, 200]


def test_an_error_asks_clients_to_try_again_at_once() -> None:
    with ScriptedServer(lambda asked: Turn(failures=1)) as server, connection(server) as client:
        client.request("POST", PATHS["chat"], b"{}")
        assert client.getresponse().headers["retry-after-ms"] == "1"


@pytest.mark.parametrize("sent", [b"", b"no JSON", b"[]", b'{"input": [1]}'])
def test_a_broken_request_is_refused(sent: bytes) -> None:
    with ScriptedServer(SCRIPT) as server, connection(server) as client:
        assert told(client, "POST", PATHS["responses"], sent)[0] == 400


# --- connections


@pytest.mark.parametrize(("method", "status"), [("GET", 404), ("POST", 404), ("HEAD", 200)])
def test_other_paths_do_no_harm(method: str, status: int) -> None:
    with ScriptedServer(SCRIPT) as server, connection(server) as client:
        assert told(client, method, "/api/hello", b"{}" if method == "POST" else None)[0] == status
        assert told(client, "POST", PATHS["chat"], b"{}")[0] == 200


def test_tokens_are_counted() -> None:
    with ScriptedServer(SCRIPT) as server:
        status, received = post(server, "/v1/messages/count_tokens?beta=true", ANSWERED["messages"])
    assert (status, json.loads(received)["input_tokens"] > 1, server.requests) == (200, True, [])


def test_the_urls_are_those_that_clients_take() -> None:
    with ScriptedServer(SCRIPT) as server:
        assert (server.openai_url, server.anthropic_url) == (f"{server.url}/v1", server.url)
        assert server.url.startswith("http://127.0.0.1:")


def test_a_server_that_does_not_run_has_no_url() -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        _ = ScriptedServer(SCRIPT).url


@streamed_or_whole
def test_a_connection_stays_open_for_the_next_request(stream: bool) -> None:
    body = json.dumps({"messages": [], "stream": stream}).encode()
    with ScriptedServer(lambda asked: DONE) as server, connection(server) as client:
        assert told(client, "POST", PATHS["chat"], body)[0] == 200
        first = client.sock
        assert told(client, "POST", PATHS["chat"], body)[0] == 200
        assert client.sock is first is not None


def test_many_clients_at_once_are_all_answered_under_ids_of_their_own() -> None:
    with ScriptedServer(lambda asked: Turn(text=asked.task)) as server, ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda at: ask(server, "responses", f"task {at}")[1], range(64)))
    assert [heard("responses", answer).text for answer in answers] == [f"task {at}" for at in range(64)]
    assert len({item["id"] for answer in answers for item in (answer, *answer["output"])}) == 2 * 64


def test_two_servers_give_different_ids() -> None:
    with ScriptedServer(SCRIPT) as one, ScriptedServer(SCRIPT) as other:
        assert ask(one, "chat")[1]["id"] != ask(other, "chat")[1]["id"]


class Held:
    """An answer that waits until it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()

    def __call__(self, asked: Asked) -> Turn:
        if asked.task == "wait":
            self.asked.set()
            self.let_go.wait(60)
        return DONE


def test_an_answer_that_is_held_holds_no_other_one() -> None:
    held = Held()
    with ScriptedServer(held) as server, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, server, "chat", "wait")
        held.asked.wait(60)
        others = ask(server, "chat")[0]
        held.let_go.set()
        assert (others, waiting.result()[0]) == (200, 200)


def test_closing_leaves_an_answer_that_is_still_held() -> None:
    held = Held()
    with ThreadPoolExecutor(1) as pool:
        with ScriptedServer(held) as server:
            waiting = pool.submit(ask, server, "chat", "wait")
            held.asked.wait(60)
        closed_before = not held.let_go.is_set()
        held.let_go.set()
        assert (closed_before, type(waiting.exception()).__name__) == (True, "RemoteDisconnected")


def test_no_thread_is_left_by_clients_that_stay_connected() -> None:
    before = set(threading.enumerate())
    with ExitStack() as clients:
        with ScriptedServer(SCRIPT) as server:
            for _ in range(3):
                told(clients.enter_context(connection(server)), "POST", PATHS["chat"], b"{}")
        assert set(threading.enumerate()) <= before


def test_a_client_that_goes_away_does_so_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    long = Turn(text="x" * 5_000_000)
    body = b'{"stream": true, "input": "go"}'
    request = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with ScriptedServer(lambda asked: long) as server:
        with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0)) as client:
            client.sendall(request)
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # hang up at once
        assert ask(server, "chat")[0] == 200
    assert capsys.readouterr() == ("", "")
