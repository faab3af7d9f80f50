"""Describes the messages of a request for token saving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from reasonblocks.exceptions import ConfigError

PartKind: TypeAlias = Literal["answer", "result", "other"]

KINDS: tuple[PartKind, ...] = get_args(PartKind)
NOTE_CHARS = 64
"""The maximum length of the note in a shortened text, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPart:
    """One message of a request, without the system prompt.

    - `kind`: "answer" for an answer of the model, "result" for a tool's output.
    - `key`: the id of the message, the same in every request; None for a message that is only in this request. A result
      without a key, or with a key that occurs twice, is never shortened.
    - `texts`: the texts of the message; each text of a result is shortened separately.
    - `other_bytes`: the size of everything else in the message, such as the arguments of tool calls: no less than what
      is sent, and at least 2.5 bytes for each token of an image or a file.
    - `is_error`: True for a result that reports an error; it is never shortened.
    - `blocks`: the number of content blocks, as the provider counts them.

    Raises `ConfigError` for an unknown kind.
    """

    kind: PartKind = "other"
    key: str | None = None
    texts: tuple[str, ...] = ()
    other_bytes: int = 0
    is_error: bool = False
    blocks: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError.unknown("kind", self.kind, KINDS)
