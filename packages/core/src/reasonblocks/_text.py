"""Text as the pure rooms see it: bounded, cut into words, hashed. Nothing here knows what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import TypeVar

T = TypeVar("T")

EDGE = 8_000
"""Characters looked at from each end of a text (BEHAVIOUR section 3)."""

WIDEST = 6
"""Bytes that one character takes in compact JSON, at most: a control character's escape."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORD_BYTES = bytes(byte if chr(byte).isalnum() or byte == ord("'") else ord(" ") for byte in range(128)).ljust(256)
"""Every ASCII character that no word holds becomes a blank."""
_ESCAPED_SHORT = b'"\\\n\r\t\f\b'
"""What compact JSON escapes in two bytes; other control characters take `WIDEST`."""
_AS_THEY_ARE = bytes(byte for byte in range(32, 128) if byte not in _ESCAPED_SHORT)


def clip(text: str) -> str:
    """The first and last 8,000 characters: bounded input bounds our time."""
    return text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"


def ends(items: tuple[T, ...], each: int) -> tuple[T, ...]:
    """The first and last so many of a sequence, all of a short one."""
    return items if len(items) <= 2 * each else (*items[:each], *items[-each:])


def words(text: str) -> tuple[str, ...]:
    """Lower-cased words, contractions whole ("couldn't" holds no "could"). The text must be clipped already.

    Plain ASCII is cut by a table of bytes, in a fifth of the pattern's time.
    """
    text = text.lower()
    if not text.isascii():
        return tuple(_WORD.findall(text))
    cut_up = text.replace("''", "  ").encode().translate(_WORD_BYTES)
    if b"'" in cut_up:  # each of them alone now: those at the edge of a word are quotes
        cut_up = b" %b " % cut_up
        cut_up = cut_up.replace(b" '", b" ").replace(b"' ", b" ")
    return tuple(cut_up.decode().split())


def collapse(text: str) -> str:
    """White space runs as one blank, none at the ends."""
    return " ".join(text.split())


def digest(text: str) -> str:
    """16 hex characters that stand for a text of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def size(text: str) -> int:
    """Bytes that a text takes in compact JSON, quotes aside: UTF-8 with its escapes."""
    if not text.isascii():
        return len(encode_basestring(text).encode("utf-8", "replace")) - 2
    escaped = text.encode().translate(None, _AS_THEY_ARE)
    return len(text) + len(escaped) + (WIDEST - 2) * len(escaped.translate(None, _ESCAPED_SHORT))


def cut(text: str, limit: int) -> str:
    """The longest start of a text that takes at most `limit` bytes in compact JSON."""
    text = text[:limit]
    while (over := size(text)) > limit:
        text = text[: min(len(text) - 1, len(text) * limit // over)]
    return text


def whole(text: str) -> str:
    """The text without halves of surrogate pairs, which no file and no wire takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def bounded(text: str, limit: int) -> str:
    """At most `limit` bytes in compact JSON; what was cut is stood for by "#" and the hash of the whole."""
    if not text.isascii():
        text = whole(text)
    if len(text) * WIDEST <= limit or (len(text) <= limit and size(text) <= limit):
        return text
    mark = f" #{digest(text)}"
    return cut(text, limit - len(mark)) + mark


def nearest(name: object, valid: Iterable[str]) -> str | None:
    """The valid name that was meant, as it seems, in whatever case it was written."""
    from difflib import get_close_matches  # for whoever made a mistake

    names = {one.casefold(): one for one in valid}
    near = get_close_matches(str(name).casefold(), names, n=1)
    return names[near[0]] if near else None


def preview(text: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    line = collapse(whole(text[: 2 * limit]))
    return line if len(line) <= limit else line[: limit - 1] + "…"
