"""The arguments of calls, as one text and as words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from ..types import JSON, ToolCall
from ..util.text import EDGE, clip, words
from .outcome import hash_of

MAX_WORDS = 128
"""Different words of one step's arguments that are kept: the first ones."""
WORDS_HEAD = 3_000
"""Characters of each call's arguments in which words are looked for."""
GIST_HEAD = 60
"""Words of the arguments that the gist is taken from: the first ones."""
MAX_GIST = 8
"""Words of a gist."""
NEAR = 0.75
"""Share of the shorter query's words that two queries share if one is the other reworded."""
MIN_SHARED = 2
"""Words that two queries share at least if they ask for the same thing."""
STEM = 4
"""Letters of a word's stem: "vali" for "validate" and "validation"."""
SHORTEST_WORD = 4
"""Letters of the shortest word that is kept: shorter ones are in every text."""
DEEPEST = 20
"""Levels of nested arguments that are read."""
FEW = 16
"""Arguments up to which the short way applies."""
_TEXTS = frozenset({str})
_COMMAND_KEYS = ("command", "cmd", "input", "code", "query", "script")
_COLLAPSED = frozenset(("query", "q", "question", "search_query"))
"""Arguments that ask for something, in which any white space means the same."""
_STRIPPED = frozenset(("command", "cmd", "input", ""))
"""Arguments whose outer white space means nothing; "" is the key of arguments that are a plain text."""


def flattened(value: JSON) -> str:
    """Return arguments as one bounded text, with sorted keys.

    White space inside a text counts, because indentation is code: a rejected edit often differs from its correction in
    nothing else.
    """
    return _of_texts(value) if _is_short(value) else _of_parts(value)


def _is_short(value: JSON) -> TypeGuard[Mapping[str, str]]:
    """Return True for the arguments of most calls, which need no recursion: a few names with short strings."""
    return (
        type(value) is dict
        and 0 < len(value) <= FEW
        and {*map(type, value), *map(type, value.values())} == _TEXTS
        and sum(map(len, value)) + sum(map(len, value.values())) <= EDGE
    )


def _of_texts(value: Mapping[str, str]) -> str:
    items = [f"{key}= {_plain(key, value[key])}" for key in sorted(value)]
    return f"{' '.join(items)} ;"


def _plain(key: str, text: str) -> str:
    """Return a text without the white space that means nothing under this key."""
    if key in _COLLAPSED:
        return " ".join(text.split())
    return text.strip() if key in _STRIPPED else text


def _of_parts(value: JSON) -> str:
    parts: list[str] = []
    size = 0
    for part in _parts(value, 0):
        parts.append(part)
        size += len(part) + 1
        if size > 2 * EDGE:
            break
    return " ".join(parts)


def _parts(value: JSON, depth: int, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield _plain(name, clip(value))
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for key in sorted(value, key=str):
            yield f"{key}="
            yield from _parts(value[key], depth + 1, key)
        yield ";"
    elif isinstance(value, (list, tuple)) and depth < DEEPEST:
        for item in value:
            yield from _parts(item, depth + 1, name)
        yield ";"
    else:
        yield "..." if depth >= DEEPEST else _shown(value)


def _shown(value: JSON) -> str:
    try:
        return repr(value)
    except ValueError:  # an int of more digits than Python prints
        return type(value).__name__


def values_of(calls: Sequence[tuple[ToolCall, str, str]]) -> tuple[str, ...]:
    """Return the words of the calls' arguments, without the arguments' names."""
    return words(" ".join([_values(call.arguments, flat) for call, flat, _ in calls]))


def _values(given: JSON, flat: str) -> str:
    if _is_short(given):
        return " ".join([given[key] for key in sorted(given)])[:WORDS_HEAD]
    return " ".join([part for part in flat[:WORDS_HEAD].split() if part[-1] != "="])


def gist_of(values: Sequence[str]) -> tuple[int, ...]:
    """Return hashes of the first few words' stems, each once, in an order that does not depend on theirs."""
    stems = {word[:STEM] for word in values[:GIST_HEAD] if len(word) > 2 or not word.isascii()}
    return tuple(sorted(map(hash_of, stems))[:MAX_GIST])


def is_reworded(words: Sequence[int], others: Sequence[int]) -> bool:
    """Return True if two gists share so many words that one is the other reworded."""
    shared = len({*words} & {*others})
    return shared >= MIN_SHARED and shared >= NEAR * min(len(words), len(others))


def longer_words(text: str) -> frozenset[str]:
    """Return the first 128 different words of at least four letters in a text."""
    return longer(words(text[:WORDS_HEAD]))


def longer(found: Sequence[str]) -> frozenset[str]:
    """Return the first 128 different ones of at least four letters."""
    return frozenset(list(dict.fromkeys([word for word in found if len(word) >= SHORTEST_WORD]))[:MAX_WORDS])


def command_of(call: ToolCall) -> str:
    """Return a shell's command, without the "!" that starts it in a notebook; "" if no argument has such a name."""
    given = call.arguments
    if isinstance(given, (dict, Mapping)):  # `dict` first: the abstract class takes ten times as long to check
        given = _command(given)
    if not isinstance(given, str):
        return ""
    return clip(given) if given[:1] != "!" else clip(given)[1:].replace("\n!", "\n")


def _command(arguments: Mapping[str, JSON]) -> JSON:
    for key in _COMMAND_KEYS:
        if key in arguments:
            return arguments[key]
    return ""
