"""Measures texts and JSON values for token saving.

Long texts are read in pieces, because one operation on a whole text would hold the interpreter's lock, and so every
other thread, for many milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from json import dumps

PIECE_CHARS = 1 << 16
ESCAPE_BYTES = 4
"""Bytes added to each escape such as \\u6587, which has 6 bytes and at most four tokens."""
NODE_CHARS = 20
"""Characters whose reading takes as long as one step into a JSON value."""

_KINDS = bytes(
    ord("d" if 48 <= byte < 58 else "a" if byte > 127 or chr(byte).isalpha() else " ") for byte in range(256)
)
"""Translates each byte into the kind of its character: a letter, a digit, or another character."""
_STARTS = (b" a", b"da", b" d", b"ad")
"""The pairs of kinds at the start of a sequence of letters or digits."""


def least_tokens(text: str, start: int = 0, end: int | None = None) -> int:
    """Return a lower bound of a text's tokens: its words and numbers, plus one for each group of four digits.

    Tokenizers first split a text where letters, digits and other characters meet, and a token has at most 3 digits.
    Some keep the ending of a contraction with its word, so apostrophes count as nothing.
    """
    total, before = 0, b" "
    for piece in _pieces(text, start, end):
        kinds = before + piece.encode("utf-8", "surrogatepass").translate(_KINDS, b"'")
        total += sum(map(kinds.count, _STARTS)) + kinds.count(b"dddd", 1)
        before = kinds[-1:]
    return total


def utf8(text: str, start: int = 0, end: int | None = None) -> int:
    if text.isascii():
        return len(range(*slice(start, end).indices(len(text))))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in _pieces(text, start, end))


def json_bytes(value: object) -> int:
    """Return an upper bound of the bytes of a value as JSON, as clients write it: with or without escapes."""
    if isinstance(value, str):
        return 2 + sum(map(_escaped, _pieces(value)))
    if isinstance(value, Mapping):
        return 2 + sum(json_bytes(key) + json_bytes(item) + 4 for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return 2 + sum(json_bytes(item) + 2 for item in value)
    if isinstance(value, (bytes, bytearray)):
        return 6 + len(value) * 4 // 3  # base64
    if isinstance(value, float):
        return max(len(repr(value)), len("-Infinity"))  # as Python writes it, which is no JSON
    return json_bytes(str(value))


def is_longer(value: object, chars: int) -> bool:
    """Return True if reading a JSON value takes longer than reading a text of this length."""
    rest = [value]
    while rest and chars >= 0:
        item = rest.pop()
        if isinstance(item, (str, bytes)):
            chars -= len(item)
        elif isinstance(item, Mapping):
            rest += islice(item.values(), chars + 1)
        elif isinstance(item, Sequence):
            rest += item[: chars + 1]
        chars -= NODE_CHARS
    return chars < 0


def _pieces(text: str, start: int = 0, end: int | None = None) -> Iterator[str]:
    last = len(text) if end is None else end
    return (text[at : min(at + PIECE_CHARS, last)] for at in range(start, last, PIECE_CHARS))


def _escaped(text: str) -> int:
    written = dumps(text)
    return len(written) - 2 + ESCAPE_BYTES * written.count("\\u")
