"""What calls are given, as text and as words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from .._text import EDGE, clip, words
from ..types import JSON, ToolCall
from .outcome import hash_of

MAX_WORDS = 128
"""Words of the arguments that are told apart in one step; the first ones."""
WORDS_HEAD = 3_000
"""Characters of them within which they are looked for."""
GIST_HEAD = 60
"""Words of the arguments that tell what a call is about."""
MAX_GIST = 8
STEM = 4
"""Letters of a word that carry it: "vali" of "validate" and "validation"."""
SHORTEST_WORD = 4
"""Letters that such a word has at least: shorter ones are in everything."""
DEEPEST = 20
"""Levels of arguments that are looked at."""
FEW = 16
"""Arguments that are shown the short way."""
_TEXTS = frozenset({str})
_COMMAND_KEYS = ("command", "cmd", "input", "code", "query", "script")


def flattened(value: JSON) -> str:
    """Arguments as one text: keys sorted, white space collapsed, bounded."""
    return _of_texts(value) if _is_short(value) else _of_parts(value)


def _is_short(value: JSON) -> TypeGuard[Mapping[str, str]]:
    """The arguments of most calls: a few names with texts, of which nothing is cut."""
    return (
        type(value) is dict
        and 0 < len(value) <= FEW
        and {*map(type, value), *map(type, value.values())} == _TEXTS
        and sum(map(len, value)) + sum(map(len, value.values())) <= EDGE
    )


def _of_texts(value: Mapping[str, str]) -> str:
    items = [f"{key}= {' '.join(value[key].split())}" for key in sorted(value)]
    return f"{' '.join(items)} ;"


def _of_parts(value: JSON) -> str:
    parts: list[str] = []
    size = 0
    for part in _parts(value, 0):
        parts.append(part)
        size += len(part) + 1
        if size > 2 * EDGE:
            break
    return " ".join(parts)


def _parts(value: JSON, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(clip(value).split())
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for key in sorted(value, key=str):
            yield f"{key}="
            yield from _parts(value[key], depth + 1)
        yield ";"
    elif isinstance(value, (list, tuple)) and depth < DEEPEST:
        for item in value:
            yield from _parts(item, depth + 1)
        yield ";"
    else:
        yield "..." if depth >= DEEPEST else _shown(value)


def _shown(value: JSON) -> str:
    try:
        return repr(value)
    except ValueError:  # an int of more digits than Python prints
        return type(value).__name__


def values_of(calls: Sequence[tuple[ToolCall, str, str]]) -> tuple[str, ...]:
    """The words that the calls are given, without the names of the arguments."""
    given = " ".join([flat[:WORDS_HEAD] for _, flat, _ in calls])
    return words(" ".join([part for part in given.split() if part[-1] != "="]))


def gist_of(values: Sequence[str]) -> tuple[int, ...]:
    """The first few, each once, in an order that does not depend on theirs."""
    stems = {word[:STEM] for word in values[:GIST_HEAD] if len(word) > 2 or not word.isascii()}
    return tuple(sorted(map(hash_of, stems))[:MAX_GIST])


def longer_words(text: str) -> frozenset[str]:
    """The first 128 different words of at least four letters."""
    return longer(words(text[:WORDS_HEAD]))


def longer(said: Sequence[str]) -> frozenset[str]:
    return frozenset(list(dict.fromkeys([word for word in said if len(word) >= SHORTEST_WORD]))[:MAX_WORDS])


def command_of(call: ToolCall) -> str:
    """What a shell is told to do, "" where no argument is named like that."""
    given = call.arguments
    if isinstance(given, (dict, Mapping)):  # the first answers at once
        given = _named(given)
    return clip(given) if isinstance(given, str) else ""


def _named(arguments: Mapping[str, JSON]) -> JSON:
    for key in _COMMAND_KEYS:
        if key in arguments:
            return arguments[key]
    return ""
