"""The messages of a request as token saving sees them, and their sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

PartKind: TypeAlias = "Literal['answer', 'result', 'other']"

NOTE_CHARS = 64
"""Characters that the note of a shortened text takes at most."""

_PIECE = re.compile(r"[^\W\d_]+|\d{1,3}")
"""The runs of letters and digits at whose ends tokenizers split before anything else: a text has at least as many
tokens."""


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
    """Return a number of tokens that a text has at least, with any provider's tokenizer."""
    return len(_PIECE.findall(text))


def utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
