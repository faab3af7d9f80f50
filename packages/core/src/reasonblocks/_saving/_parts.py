"""The messages of a request as token saving sees them, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PartKind: TypeAlias = "Literal['answer', 'result', 'other']"

NOTE_CHARS = 64
"""Characters that the note of a shortened text takes at most."""

_KINDS = bytes(
    ord("d" if 48 <= byte < 58 else "a" if byte > 127 or chr(byte).isalpha() else " ") for byte in range(256)
)
"""Translates every byte into the kind of its character: a letter, a digit, or another one."""
_STARTS = (b" a", b"da", b" d", b"ad")
"""The kinds at the start of a run of letters or digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPart:
    """One message of a request, without the system prompt.

    - `kind`: "answer" is one of the model's, "result" a tool's output.
    - `key`: the message's name, the same in every request. A result without a key, or with one that occurs twice, is
      never shortened. A message that is in this request only has none.
    - `texts`: its texts; a result's are shortened one by one.
    - `other_bytes`: the size of everything else in it, such as the arguments of tool calls.
    - `is_error`: True for a result that reports an error; it is never shortened.
    - `blocks`: its content blocks, as the provider counts them.
    """

    kind: PartKind = "other"
    key: str | None = None
    texts: tuple[str, ...] = ()
    other_bytes: int = 0
    is_error: bool = False
    blocks: int = 1


def least_tokens(text: str) -> int:
    """Return a number of tokens that a text has at least: its words, and its numbers, four digits at a time.

    Tokenizers split where letters, digits and other characters meet, before anything else, and take at most 3 digits.
    """
    kinds = b" " + text.encode("utf-8", "surrogatepass").translate(_KINDS)
    return sum(map(kinds.count, _STARTS)) + kinds.count(b"dddd")


def utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
