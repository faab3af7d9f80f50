"""Defines what a folded text may not contain: our frame, chat template tokens, tool syntax, and role markers.

No pattern has two adjacent gaps, so that matching time grows with the text's length and not with its square.
"""

from __future__ import annotations

import re

__all__ = ["OPENING", "ROLE_LINE", "TOKEN"]

OPENING = "<[({"
"""The characters with which every token begins."""
_GAP = r"[^\S\n]*"
_ANY = r"\s*"
_SLASH = r"\s*(?:/\s*)?"
_LOOKS = {"i": "[il1|]", "l": "[il1|]", "o": "[o0]", "m": "(?:m|rn)"}
"""ASCII letters that look like each other in most fonts."""


def _spaced(word: str, gap: str = _GAP) -> str:
    """Return a pattern of the word with gaps between letters; a blank matches any joint: tool_call or toolCall."""
    joint = r"[\s_-]*"
    return joint.join(gap.join(_letters(part)) for part in word.split())


def _letters(part: str) -> list[str]:
    """Return each letter's pattern; a word of two letters must match exactly, because Al is a name."""
    return [re.escape(char) if len(part) <= 2 else _LOOKS.get(char, re.escape(char)) for char in part]


def _any_of(*words: str) -> str:
    return "|".join(map(_spaced, words))


_ROLES = _any_of("system", "assistant", "developer", "user", "human", "tool", "function", "model", "ai", "ipython")
_FRAME = rf"{_SLASH}{_spaced('reason', _ANY)}[\s_-]*{_spaced('blocks', _ANY)}\s*[\])>}}]"
_TOOL_SYNTAX = _any_of(
    "tool call", "tool calls", "tool use", "tool uses", "tool result", "tool results", "tool response",
    "tool responses", "tool output", "tool outputs", "tool code", "available tools", "function call", "function calls",
    "function result", "function results", "function response", "function responses", "redacted thinking",
    "system reminder", "start of turn", "end of turn", "start of image", "end of image",
)  # fmt: skip
"""Tags of Anthropic, Qwen, Hermes, DeepSeek, Gemma and GLM: they are no ordinary words, so `>` may be missing."""
_WORD_TAGS = _any_of(
    "tools", "invoke", "think", "thinking", "thought", "thoughts", "scratchpad", "instruction", "instructions", "gmask"
)
_PLAIN_TAGS = rf"(?:s|bos|eos|sop|eop|extra_id_[0-9]+|{_WORD_TAGS}|(?:{_ROLES})(?:_prompt|_message)?)"
"""Tags that are also ordinary words: they need their `>`."""
_BRACKETED = _any_of(
    "inst", "sys", "system", "system prompt", "tool call", "tool calls", "tool result", "tool results",
    "tool content", "available tools", "call id", "think", "gmask",
)  # fmt: skip
"""Tags of Llama 2, Mistral and GLM."""
_PREFIX = rf"(?:{_spaced('antml')}{_GAP}:{_GAP})?"
_IN_TAG = (
    r"\s*\|[^|<>\n]*\|\s*>"  # <|im_start|>, <|eot_id|>, < | x | >, with DeepSeek's wide bars
    rf"|{_SLASH}{_PREFIX}(?:{_TOOL_SYNTAX})(?![a-z0-9])(?:[^<>\n]*>)?"
    rf"|{_SLASH}{_PREFIX}(?:{_any_of('parameter', 'invoke')})(?:\s+name)?\s*=[^<>\n]*>?"
    rf"|{_SLASH}{_PREFIX}{_PLAIN_TAGS}(?:[\s=/][^<>\n]*)?>"
    rf"|\s*<{_SLASH}{_spaced('sys')}\s*>\s*>"
)
TOKEN = re.compile(
    rf"<(?:{_IN_TAG}|{_FRAME})"
    rf"|\[(?:{_SLASH}(?:{_BRACKETED})\s*\]|{_FRAME})"
    rf"|\((?:{_FRAME})"
    rf"|\{{(?:{_FRAME})"
)
_BEFORE = r"(?:[^\S\n]|[#*_>+\-~|`(\[<]|\[[ x]\]|[^\w\s\x00-\x7f]|[0-9]{1,4}[.)])*"
"""Matches the characters before a marker: quotes, bullets, numbers, emphasis, brackets, pictures, in any order."""
_AFTER = r"(?:[^\S\n]|[*_~`)\]}>]|[^\w\s\x00-\x7f])*"
_MARKER = rf"(?:{_ROLES})(?:[\s_-]{{0,9}}(?:prompt|message|instructions?))?{_AFTER}:[*_~`]{{0,3}}{_GAP}"
ROLE_LINE = re.compile(rf"\n((?:{_BEFORE}{_MARKER})+)")
