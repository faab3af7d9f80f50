"""What a folded text may not hold: our frame, tokens of chat templates, tool syntax, and lines that begin as a role's.

Gaps are never beside each other in one pattern: matching takes a time that grows with the text, not its square.
"""

from __future__ import annotations

import re

__all__ = ["OPENING", "ROLE_LINE", "TOKEN"]

OPENING = "<[({"
"""Each token begins with one of these."""
_GAP = r"[^\S\n]*"
_ANY = r"\s*"
_SLASH = r"\s*(?:/\s*)?"
_LOOKS = {"i": "[il1|]", "l": "[il1|]", "o": "[o0]", "m": "(?:m|rn)"}
"""ASCII letters that are read as each other in most fonts."""


def _spaced(word: str, gap: str = _GAP) -> str:
    """The word, a gap allowed between its letters; a blank stands for any joint: tool_call, tool-calls, toolCall."""
    joint = r"[\s_-]*"
    return joint.join(gap.join(_letters(part)) for part in word.split())


def _letters(part: str) -> list[str]:
    """A word of two letters is taken as it is: Al is a name."""
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
"""Of Anthropic, Qwen, Hermes, DeepSeek, Gemma and GLM: not words of a language, so that `>` may be missing."""
_WORD_TAGS = _any_of(
    "tools", "invoke", "think", "thinking", "thought", "thoughts", "scratchpad", "instruction", "instructions", "gmask"
)
_PLAIN_TAGS = rf"(?:s|bos|eos|sop|eop|extra_id_[0-9]+|{_WORD_TAGS}|(?:{_ROLES})(?:_prompt|_message)?)"
"""Names that are words, too: taken for tags only when they end as one."""
_BRACKETED = _any_of(
    "inst", "sys", "system", "system prompt", "tool call", "tool calls", "tool result", "tool results",
    "tool content", "available tools", "call id", "think", "gmask",
)  # fmt: skip
"""Of Llama 2, Mistral and GLM."""
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
"""Of a marker: quotes, bullets, numbers, emphasis, brackets, pictures, in any order and number."""
_AFTER = r"(?:[^\S\n]|[*_~`)\]}>]|[^\w\s\x00-\x7f])*"
_MARKER = rf"(?:{_ROLES})(?:[\s_-]{{0,9}}(?:prompt|message|instructions?))?{_AFTER}:[*_~`]{{0,3}}{_GAP}"
ROLE_LINE = re.compile(rf"\n((?:{_BEFORE}{_MARKER})+)")
