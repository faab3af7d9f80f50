"""Removes from guidance, which is data, all that a model could take for our frame, a role, or the chat template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..util.folding import fold, origins, places, visible

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
_BETWEEN = r"(?:[^\w|\[\](){}<>]|_)"
"""A character that may separate letters. A bar may be an L, so that one at most is read: more would take long."""
_WORD_GAP = r"(?:[^\w\[\](){}<>:,;\"'=]|_)*"
"""Separates the two words of our name, but not those of a list or of a mapping."""
_NAME = rf"{_spaced('reason', _BETWEEN + '*[|]?')}{_WORD_GAP}{_spaced('blocks', _BETWEEN + '*[|]?')}"
_APART = _spaced("reasonblocks", rf"(?:{_BETWEEN}{{1,4}}|[|])")
_FRAME = rf"{_WORD_GAP}(?:{_NAME}|{_APART}){_WORD_GAP}[\])>}}]"
_IN_CALL = rf"{_SLASH}{_spaced('reason', _ANY)}[\s_-]*{_spaced('blocks', _ANY)}\s*[\])>}}]"
_FRAME_IN_PARENTHESES = rf"(?:{_IN_CALL}|(?<!\w\(){_FRAME})"
"""Our frame, and not the call `f(reason.blocks)`."""
_TOOL_SYNTAX = _any_of(
    "tool call", "tool calls", "tool use", "tool uses", "tool result", "tool results", "tool response",
    "tool responses", "tool output", "tool outputs", "tool code", "available tools", "function call", "function calls",
    "function result", "function results", "function response", "function responses", "redacted thinking",
    "system reminder", "start of turn", "end of turn", "start of image", "end of image",
)  # fmt: skip
"""Tags of Anthropic, Qwen, Hermes, DeepSeek, Gemma and GLM: they are no ordinary words, so `>` may be missing."""
_WORD_TAGS = _any_of(
    "tools", "invoke", "think", "thinking", "thought", "thoughts", "scratchpad", "instruction", "instructions", "gmask",
    "im start", "im end", "im sep", "start header id", "end header id", "eot id", "eom id", "arg key", "arg value",
)  # fmt: skip
_EDGES = _any_of("start", "end", "begin", "beginning")
_SPANS = _any_of(
    "turn", "utterance", "text", "sentence", "message", "response", "role", "prompt", "header", "conversation", "image",
    "audio", "video", "speech", "thought", "thinking", "think", "reasoning", "solution", "answer", "instruction",
    "system", "user", "assistant", "human", "model", "tool",
)  # fmt: skip
_FUNCTIONS = _any_of("function call", "function calls", "function declaration", "function response")
_EDGE_TAGS = rf"(?:{_EDGES})[\s_-]*(?:{_spaced('of')}[\s_-]*(?:{_SPANS})|(?:{_FUNCTIONS}))"
"""<end_of_utterance>, <begin_of_text>, <endofturn>, <start_function_call>"""
_NAMED = rf"[a-z][a-z0-9]{{1,15}}[_:](?:{_TOOL_SYNTAX}|{_any_of('think', 'thinking')}|bos|eos)"
"""Tags with the name of their model: <minimax:tool_call>, <longcat_think>, <seed:bos>"""
_NUMBERED = r"(?:extra_id_|unused|special_|reserved_(?:special_token_)?)[0-9]+"
_PLAIN_TAGS = (
    rf"(?:s|bos|eos|sop|eop|eot|eom|eoh|eoa|pad|unk|{_NUMBERED}|{_EDGE_TAGS}|{_NAMED}|{_WORD_TAGS}|"
    rf"(?:{_ROLES})(?:_prompt|_message)?)"
)
"""Tags that are also ordinary words: they need their `>`."""
_BRACKETED = _any_of(
    "inst", "sys", "system", "system prompt", "tool call", "tool calls", "tool result", "tool results",
    "tool content", "available tools", "model settings", "call id", "think", "gmask",
)  # fmt: skip
"""Tags of Llama 2, Mistral and GLM."""
_PREFIX = rf"(?:{_spaced('antml')}{_GAP}:{_GAP})?"
_HALVES = f"{_ROLES}|{_TOOL_SYNTAX}|" + _any_of(
    "turn", "channel", "image", "audio", "video", "think", "message", "start", "end", "call", "return"
)
_NEWER = r"[a-z][\w-]+"
_HALF_TAG = (
    rf"\s*\|(?:{_GAP}(?:{_HALVES})|(?:{_HALVES}){_GAP})>"  # and not `view <| model > 3`
    rf"|(?:{_SLASH}(?:{_HALVES})|/?(?:{_HALVES}){_GAP})\|{_GAP}>"
    rf"|(?<![\w)\]]<)(?:\|{_NEWER}|/?{_NEWER}\|)>(?!\w)"  # and not `f(x<limit|>g())`
)
"""Tags of Gemma 4, with one bar: <|turn> begins what <turn|> ends."""
_IN_TAG = (
    r"\s*\|[^|<>\n]*\|\s*>"  # <|im_start|>, <|eot_id|>, < | x | >, with DeepSeek's wide bars
    rf"|{_HALF_TAG}"
    rf"|{_SLASH}{_PREFIX}(?:{_TOOL_SYNTAX})(?![a-z0-9])(?:[^<>\n]*>)?"
    rf"|{_SLASH}{_PREFIX}(?:{_any_of('parameter', 'invoke')})(?:\s+name)?\s*=[^<>\n]*>?"
    rf"|{_SLASH}{_PREFIX}{_PLAIN_TAGS}(?:[\s=/][^<>\n]*)?>"
    rf"|\s*<{_SLASH}{_spaced('sys')}\s*>\s*>"
)
_MINIMAX = rf"\]{_spaced('minimax')}\[>\[?"
TOKEN = re.compile(
    rf"<(?:{_IN_TAG}|{_MINIMAX}|{_FRAME})"
    rf"|\]<{_MINIMAX}"
    rf"|\[(?:{_SLASH}(?:{_BRACKETED})\s*\]|\s*\|\s*(?:{_ROLES}|{_EDGE_TAGS})\s*\|\s*\]|{_FRAME})"
    rf"|\({_FRAME_IN_PARENTHESES}"
    rf"|\{{{_FRAME}"
)
_BEFORE = r"(?:[^\S\n]|[#*_>+\-~|`(\[<]|\[[ x]\]|[^\w\s\x00-\x7f]|[0-9]{1,4}[.)])*"
"""Matches the characters before a marker: quotes, bullets, numbers, emphasis, brackets, pictures, in any order."""
_AFTER = r"(?:[^\S\n]|[*_~`)\]}>]|[^\w\s\x00-\x7f])*"
_MARKER = rf"(?:{_ROLES})(?:[\s_-]{{0,9}}(?:prompt|message|instructions?))?{_AFTER}:[*_~`]{{0,3}}{_GAP}"
ROLE_LINE = re.compile(rf"\n((?:{_BEFORE}{_MARKER})+)")


LONGEST = 8_192
"""Characters of a text that are read: the rest would not fit into an injection."""
MAX_PASSES = 8
"""Levels of nested frames: nothing is shown of a text with more, which was not written in good faith."""


def sanitise(text: str) -> str:
    """Remove control, bidi and zero-width characters, frames, role markers, template tokens and tool syntax.

    The text is compared as a model may read it (look-alike letters, marks and entities folded); the rest is unchanged.
    This is repeated until nothing changes, so that a removal never joins two halves of a token.
    """
    plain = visible(text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(MAX_PASSES):
        spans = _spans(fold(plain))
        if not spans:
            return plain.strip()
        plain = _without(plain, spans, origins(plain))
    return ""


def _spans(read: str) -> list[tuple[int, int]]:
    """Return the hostile spans of a folded text, in order; skip a search whose required characters are missing."""
    spans = [match.span() for match in TOKEN.finditer(read)] if any(char in read for char in OPENING) else []
    if ":" in read:  # the line break before a marker stays; the first line has none
        spans += [(match.start(1) - 1, match.end(1) - 1) for match in ROLE_LINE.finditer(f"\n{read}")]
    return sorted(spans)


def _without(text: str, spans: Iterable[tuple[int, int]], origin: Sequence[int]) -> str:
    kept, at = [], 0
    for start, end in spans:
        if origin[start] > at:
            kept.append(text[at : origin[start]])
        at = max(at, origin[end])
    return "".join((*kept, text[at:]))


_forged = re.compile(rf"[<\[({{](?:(?<!\(){_FRAME}|(?<=\(){_FRAME_IN_PARENTHESES})")


def defuse(text: str) -> str:
    """Return a foreign text, of any length, with quotes for the brackets of all that looks like our frame.

    Everything else is unchanged, since it is what a tool returned or a user wrote.
    """
    spans = [match.span() for match in _forged.finditer(fold(text))]
    if not spans:
        return text
    edges, kept, at = places(text, [edge for span in spans for edge in span]), list[str](), 0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        kept += [text[at:start], '"REASONBLOCKS"']
        at = end
    return "".join((*kept, text[at:]))
