"""Bounds, splits and hashes text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import TypeVar

T = TypeVar("T")

EDGE = 8_000
"""Characters looked at from each end of a text (BEHAVIOUR section 3)."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORD_BYTES = bytes(byte if chr(byte).isalnum() or byte == ord("'") else ord(" ") for byte in range(128)).ljust(256)
"""Translates every ASCII character that is not part of a word to a blank."""


def clip(text: str) -> str:
    """Return the first and last 8,000 characters, because bounded input bounds our time."""
    return text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"


def ends(items: tuple[T, ...], each: int) -> tuple[T, ...]:
    """Return the first and last `each` items of a sequence, or all of a short one."""
    return items if len(items) <= 2 * each else (*items[:each], *items[-each:])


def words(text: str) -> tuple[str, ...]:
    """Return the lower-cased words of a clipped text. Contractions are single words: "couldn't" contains no "could".

    ASCII is split by a table of bytes, which takes a fifth of the pattern's time.
    """
    text = text.lower()
    if not text.isascii():
        return tuple(_WORD.findall(text))
    cut_up = text.replace("''", "  ").encode().translate(_WORD_BYTES)
    if b"'" in cut_up:  # an apostrophe at the edge of a word is a quote
        cut_up = b" %b " % cut_up
        cut_up = cut_up.replace(b" '", b" ").replace(b"' ", b" ")
    return tuple(cut_up.decode().split())


def collapse(text: str) -> str:
    """Return the text with every run of white space as one blank, and none at the ends."""
    return " ".join(text.split())


def digest(text: str) -> str:
    """Return a hash of the text as 16 hex characters."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def size(text: str) -> int:
    """Return the bytes that a text takes in compact JSON without the quotes."""
    return len(encode_basestring(text).encode("utf-8", "replace")) - 2


def cut_to_bytes(text: str, limit: int) -> str:
    """Return the longest start of the text that takes at most `limit` bytes in compact JSON."""
    text = text[:limit]
    while (over := size(text)) > limit:
        text = text[: min(len(text) - 1, len(text) * limit // over)]
    return text


def whole(text: str) -> str:
    """Return the text without unpaired surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable_text(text: str) -> str:
    """Return the text with U+FFFD in place of NUL, and "?" in place of unpaired surrogates: any database stores it."""
    return whole(text.replace("\0", "\ufffd"))


def count_noun(count: int, noun: str) -> str:
    """Return the number with the noun, in the plural unless it is one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def cut_with_hash(text: str, limit: int) -> str:
    """Return at most `limit` bytes in compact JSON; a cut text ends in "#" and the hash of the whole."""
    text = whole(text)
    if size(text) <= limit:
        return text
    mark = f" #{digest(text)}"
    return cut_to_bytes(text, limit - len(mark)) + mark


def nearest(name: object, valid: Iterable[str]) -> str | None:
    """Return the valid name that is most similar, ignoring case, if any is near."""
    from difflib import get_close_matches  # for errors only

    names = {known.casefold(): known for known in valid}
    near = get_close_matches(str(name).casefold(), names, n=1)
    return names[near[0]] if near else None


def preview(text: str, limit: int) -> str:
    """Return the start of the text as one line of at most `limit` characters."""
    line = collapse(whole(text[: 2 * limit]))
    return line if len(line) <= limit else line[: limit - 1] + "…"
