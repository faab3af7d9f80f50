"""The order of messages that leaves is one that each provider accepts, stated here without a look at the code."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.render import has_tail, steered_request
from reasonblocks.types import FSMState, StepDecision

quick = settings(derandomize=True, deadline=None, database=None, max_examples=60)
GUIDANCE = "[REASONBLOCKS]\nStep 3 failed as step 2 did."
Message = dict[str, Any]
Request = Sequence[Mapping[str, Any]]


# ------------------------------------------------------------ the rules of the providers, each as a refusal


def chat(messages: Request) -> str | None:
    """OpenAI Chat Completions: results follow the answer that called, one for each call, before anything else."""
    open_calls: set[str] = set()
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result without its call"
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            return "a call without its result"
        if role == "assistant":
            open_calls = {call["id"] for call in message.get("tool_calls", ())}
        content = message.get("content")
        if role == "tool" and not isinstance(content, (str, list)):
            return "a result's content is text, or text parts"
        if role == "tool" and isinstance(content, list) and any(part["type"] != "text" for part in content):
            return "a result's parts are text"
    return "a call without its result" if open_calls else None


def mistral(messages: Request) -> str | None:
    """Mistral: as above; after a result comes a result or an answer, and a request ends with a user's or a tool's."""
    for before, after in itertools.pairwise(messages):
        if before["role"] == "tool" and after["role"] not in ("tool", "assistant"):
            return f"unexpected role {after['role']!r} after role 'tool'"
    return chat(messages) or (None if messages[-1]["role"] in ("user", "tool") else "the last role is wrong")


def alternating(messages: Request) -> str | None:
    """Chat templates of Devstral, Gemma and vLLM: users and answers alternate, but for calls and their results."""
    turns = [message["role"] for message in messages if message["role"] != "tool" and "tool_calls" not in message]
    alternate = all(role == ("user", "assistant")[at % 2] for at, role in enumerate(turns))
    after_tool = any(one["role"] == "tool" and two["role"] == "user" for one, two in itertools.pairwise(messages))
    return None if alternate and not after_tool else "roles must alternate"


def anthropic(messages: Request) -> str | None:
    """Anthropic: roles alternate; a message with results begins with all of them; a result's content has no call."""
    roles = [message["role"] for message in messages]
    if any(one == two for one, two in itertools.pairwise(roles)) or roles[0] != "user":
        return "roles must alternate, from the user on"
    calls: set[str] = set()
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [at for at, block in enumerate(blocks) if block["type"] == "tool_result"]
        if results != list(range(len(results))):
            return "tool results come first"
        if {blocks[at]["tool_use_id"] for at in results} != calls:
            return "each call has its result in the next message"
        calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "a text block must not be empty"
    return None


def responses(items: Request) -> str | None:
    """OpenAI Responses: each output has a call before it, and each call an output; `input_` parts on our side."""
    calls: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            calls.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in calls:
                return "an output without its call"
            calls.discard(item["call_id"])
        parts = item.get("output", item.get("content"))
        ours = item.get("role") != "assistant"
        if ours and isinstance(parts, list) and any(not part["type"].startswith("input_") for part in parts):
            return "parts of an input are input_text"
    return "a call without its output" if calls else None


def gemini(contents: Request) -> str | None:
    """Gemini: a turn of function calls is followed by as many responses and nothing else; roles alternate."""
    roles = [content["role"] for content in contents]
    if any(one == two for one, two in itertools.pairwise(roles)) or roles[0] != "user":
        return "roles must alternate"
    calls = 0
    for content in contents:
        answered = [part for part in content["parts"] if "functionResponse" in part]
        if calls and (len(answered) != calls or len(content["parts"]) != calls):
            return "as many function responses as calls, and nothing else"
        calls = sum("functionCall" in part for part in content["parts"])
    return None


# ------------------------------------------------------------ conversations that they accept

words = st.text("abcdefg \n", min_size=1, max_size=12).map(lambda text: f"w{text}")
rounds = st.lists(st.tuples(words, st.lists(words, max_size=3)), max_size=4)
"""Each round is the agent's text and what its tools returned; a round without results ends a turn of the user's."""


def as_chat(task: str, made: Any, *, parts: bool) -> Iterator[Message]:
    yield {"role": "user", "content": task}
    for number, (text, outputs) in enumerate(made):
        calls = [{"id": f"c{number}-{at}", "type": "function"} for at, _ in enumerate(outputs)]
        yield {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        for call, output in zip(calls, outputs, strict=True):
            content = [{"type": "text", "text": output}] if parts else output
            yield {"role": "tool", "tool_call_id": call["id"], "content": content}
        if not outputs:
            yield {"role": "user", "content": text}


def as_anthropic(task: str, made: Any, *, parts: bool) -> Iterator[Message]:
    yield {"role": "user", "content": [{"type": "text", "text": task}] if parts else task}
    for number, (text, outputs) in enumerate(made):
        uses = [{"type": "tool_use", "id": f"c{number}-{at}"} for at, _ in enumerate(outputs)]
        yield {"role": "assistant", "content": [{"type": "text", "text": text}, *uses]}
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": output}
            for use, output in zip(uses, outputs, strict=True)
        ]
        yield {"role": "user", "content": results or text}


def as_responses(task: str, made: Any, *, parts: bool) -> Iterator[Message]:
    yield {"role": "user", "content": [{"type": "input_text", "text": task}] if parts else task}
    for number, (text, outputs) in enumerate(made):
        yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        for at, _ in enumerate(outputs):
            yield {"type": "function_call", "call_id": f"c{number}-{at}", "name": "look", "arguments": "{}"}
        for at, output in enumerate(outputs):
            content = [{"type": "input_text", "text": output}] if parts else output
            yield {"type": "function_call_output", "call_id": f"c{number}-{at}", "output": content}
        if not outputs:
            yield {"role": "user", "content": text}


def as_gemini(task: str, made: Any, *, parts: bool) -> Iterator[Message]:
    name = "output" if parts else "result"
    yield {"role": "user", "parts": [{"text": task}]}
    for text, outputs in made:
        yield {"role": "model", "parts": [{"text": text}, *({"functionCall": {"name": "look"}} for _ in outputs)]}
        told = [{"functionResponse": {"name": "look", "response": {name: output}}} for output in outputs]
        yield {"role": "user", "parts": told or [{"text": text}]}


Refusal = Callable[[Request], "str | None"]
APIS: dict[str, tuple[Refusal, Callable[..., Iterator[Message]]]] = {
    "OpenAI Chat": (chat, as_chat),
    "Mistral": (mistral, as_chat),
    "alternating templates": (alternating, as_chat),
    "Anthropic": (anthropic, as_anthropic),
    "OpenAI Responses": (responses, as_responses),
    "Gemini": (gemini, as_gemini),
}


def decided(placement: Any) -> StepDecision:
    return StepDecision(step=1, fsm_state=FSMState.NORMAL, guidance=GUIDANCE, placement=placement)


def read(part: Any) -> str:
    """Everything that a model reads of a request, in order."""
    if isinstance(part, str):
        return f"{part}\n"
    if isinstance(part, Mapping):
        return "".join(read(value) for name, value in part.items() if name not in ("role", "type", "id", "call_id"))
    return "".join(map(read, part)) if isinstance(part, (list, tuple)) else ""


@pytest.mark.parametrize("api", APIS)
@quick
@given(task=words, made=rounds, parts=st.booleans())
def test_an_accepted_request_stays_accepted_with_its_guidance_at_the_end(
    api: str, task: str, made: Any, parts: bool
) -> None:
    refusal, write = APIS[api]
    messages = list(write(task, made, parts=parts))
    assert refusal(messages) is None, "the conversation itself is one that the provider accepts"
    before = copy.deepcopy(messages)
    system, request = steered_request(decided("tail"), "You fix bugs.", messages)
    assert messages == before, "the history is untouched"
    assert refusal(request) is None
    assert len(request) == len(messages)
    assert [one.get("role", one.get("type")) for one in request] == [
        one.get("role", one.get("type")) for one in messages
    ]
    assert request[:-1] == messages[:-1]
    assert read(request[-1]).rstrip().endswith(GUIDANCE)
    assert read(request[-1]).startswith(read(messages[-1]).rstrip("\n"))
    assert system == "You fix bugs."


@pytest.mark.parametrize("api", APIS)
@quick
@given(task=words, made=rounds, parts=st.booleans())
def test_a_second_look_is_accepted_as_a_users_message_after_the_answer(
    api: str, task: str, made: Any, parts: bool
) -> None:
    refusal, write = APIS[api]
    messages = list(write(task, [*made, ("It is done.", [])], parts=parts))[:-1]
    _, request = steered_request(decided("message"), None, messages)
    assert request[:-1] == messages
    assert (request[-1]["role"], read(request[-1]).strip()) == ("user", GUIDANCE)
    assert refusal(request) is None


@pytest.mark.parametrize("api", ["Mistral", "alternating templates"])
def test_a_message_of_its_own_after_a_result_is_what_they_refuse(api: str) -> None:
    refusal, write = APIS[api]
    messages = list(write("Fix it.", [("I look.", ["nothing"])], parts=False))
    _, request = steered_request(decided("message"), None, messages)
    assert refusal(request) is not None


PICTURE = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}
UNHOLDABLE: list[list[Any]] = [
    [],
    [{"role": "assistant", "content": "I will"}],
    [{"role": "model", "parts": [{"text": "I will"}]}],
    [PICTURE],
    [{"type": "local_shell_call_output", "id": "c", "output": "{}"}, PICTURE],
    [{"type": "local_shell_call_output", "id": "c", "output": '{"stdout": ""}'}],
    [{"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"found": 3}}}]}],
    [object()],
    [{"role": "user", "parts": [{"functionResponse": {"name": "look", "response": ["a"]}}]}],
    [{"role": "user", "content": [{"toolResult": {"toolUseId": "c"}}]}],
]


@pytest.mark.parametrize("messages", UNHOLDABLE)
def test_where_the_last_message_cannot_hold_a_text_guidance_is_in_the_system_message(messages: list[Any]) -> None:
    system, request = steered_request(decided("tail"), "You fix bugs.", messages)
    assert (system, request) == (f"You fix bugs.\n\n{GUIDANCE}", messages)
    assert not has_tail(messages)


def test_a_part_that_was_written_with_its_empty_fields_is_read() -> None:
    asked = {"role": "user", "parts": [{"text": "x", "function_response": None}]}
    _, request = steered_request(decided("tail"), None, [asked])
    assert request == [{"role": "user", "parts": [*asked["parts"], {"text": GUIDANCE}]}]


def test_a_recording_is_no_sign_of_the_responses_api() -> None:
    asked = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]}
    request: list[Any] = steered_request(decided("tail"), None, [asked])[1]
    assert request[0]["content"][-1] == {"type": "text", "text": GUIDANCE}


def test_all_text_of_a_function_s_response_is_defused() -> None:
    response = {"output": "[REASONBLOCKS]", "data": "[REASONBLOCKS]"}
    told = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": response}}]}
    request: list[Any] = steered_request(decided("tail"), None, [told])[1]
    assert request[0]["parts"][0]["functionResponse"]["response"] == {
        "output": f'"REASONBLOCKS"\n\n{GUIDANCE}',
        "data": '"REASONBLOCKS"',
    }


def test_a_result_before_a_message_of_its_own_is_defused_too() -> None:
    _, request = steered_request(decided("message"), None, [{"role": "tool", "content": "[REASONBLOCKS]"}])
    assert request == [{"role": "tool", "content": '"REASONBLOCKS"'}, {"role": "user", "content": GUIDANCE}]


def test_an_answer_before_a_message_of_its_own_stays_as_it_is() -> None:
    thought = {"type": "thinking", "thinking": "[REASONBLOCKS] says so.", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Done."}]}
    _, request = steered_request(decided("message"), None, [answer])
    assert request == [answer, {"role": "user", "content": GUIDANCE}]
