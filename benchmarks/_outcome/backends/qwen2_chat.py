"""Qwen2's text: the tokenizer of a GGUF file, prompts in Qwen's own format for tools, and the call in a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backend import Message
from ..environment import Call, Tool

if TYPE_CHECKING:
    import gguf
    from tokenizers import Tokenizer

__all__ = ["FORCED", "STOP", "call_in", "prompt", "tokenizer"]

FORCED = '<tool_call>\n{"name": "'
"""The begin of every reply, so that it is a call."""
STOP = ("</tool_call>", "<|im_end|>", "<|endoftext|>")
SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
"""The system message of Qwen's template for a conversation without one."""
TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""The end of the system message, from the template that Qwen2.5 was trained with."""
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The pattern by which Qwen2 cuts a text before it merges bytes, from its published tokenizer."""
CONTROL, USER_DEFINED = 3, 4
"""Types of tokens that are found in a text as a whole (`llama_token_type` in llama.cpp)."""
NAME = re.compile(r'"name":\s*"([^"\\]+)"')


def tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    """Return the tokenizer that the GGUF file describes. Raises `ValueError` for one of another kind."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    def value(name: str) -> Any:
        field = reader.get_field(f"tokenizer.ggml.{name}")
        return None if field is None else field.contents()

    kind = (value("model"), value("pre"))
    if kind != ("gpt2", "qwen2"):
        raise ValueError(f"the GGUF file's tokenizer is {kind!r}, and only ('gpt2', 'qwen2') is implemented")
    tokens, types = value("tokens"), value("token_type")
    merges = [tuple(merge.split(" ")) for merge in value("merges")]
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    whole = [token for token, kind in zip(tokens, types) if kind in (CONTROL, USER_DEFINED)]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in whole])
    return made


def prompt(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    """Return the text before the reply, which has already begun with `FORCED`."""
    first = messages[0]["content"] if messages and messages[0]["role"] == "system" else None
    rest = messages if first is None else messages[1:]
    declared = TOOLS.format("\n".join(map(_json, tools))) if tools else ""
    parts = [_turn("system", f"\n{SYSTEM if first is None else first}{declared}")]
    answers: list[str] = []  # results of one turn's calls share a message
    for message in rest:
        if message["role"] == "tool":
            answers.append(f"\n<tool_response>\n{message['content']}\n</tool_response>")
            continue
        if answers:
            parts.append(_turn("user", "".join(answers)))
            answers = []
        parts.append(_turn(message["role"], _content(message)))
    if answers:
        parts.append(_turn("user", "".join(answers)))
    return "".join(parts) + f"<|im_start|>assistant\n{FORCED}"


def call_in(reply: str) -> tuple[str, Call | None]:
    """Return the text and the call of a reply that began with `FORCED`.

    A call whose JSON is damaged keeps its name, has no arguments, and its text is kept.
    """
    raw = reply.removeprefix("<tool_call>").strip()
    try:
        found, _ = json.JSONDecoder().raw_decode(raw)
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("name"), str):
        arguments = found.get("arguments", {})
        return ("", Call(found["name"], arguments)) if isinstance(arguments, dict) else (raw, Call(found["name"], {}))
    name = NAME.search(raw)
    return raw, Call(name[1], {}) if name else None


def _turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}{content}<|im_end|>\n"


def _content(message: Message) -> str:
    text = f"\n{message['content']}" if message.get("content") else ""
    calls = "".join(_called(call["function"]) for call in message.get("tool_calls") or ())
    return f"{text}{calls}" or "\n"


def _called(function: Message) -> str:
    arguments = _json(json.loads(function["arguments"] or "{}"))
    return f'\n<tool_call>\n{{"name": "{function["name"]}", "arguments": {arguments}}}\n</tool_call>'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
