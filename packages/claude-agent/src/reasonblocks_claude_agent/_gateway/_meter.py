"""Reads a copy of one answer as it passes: how many tokens were written, and which thinking was signed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from ._request import seals

TOLD = (b'"message_delta"', b'"signature_delta"', b'"redacted_thinking"', b'"message_stop"')
"""The events that say what is wanted; the rest, nearly all, is not parsed."""
ZIPPED = frozenset({"gzip", "deflate"})


class Meter:
    """One answer. `complete` says that nothing more of it will come; what it cannot decode, it does not measure."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.output_tokens: int | None = None
        self.seals: list[str] = []
        self.complete = False
        encoding = headers.get("content-encoding", "identity").lower()
        self._readable = encoding == "identity" or encoding in ZIPPED
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ZIPPED else None
        self._events = headers.get("content-type", "").startswith("text/event-stream")
        self._left = bytearray()

    def feed(self, chunk: bytes) -> None:
        """More of it. Raises `ValueError` or `zlib.error` for what no provider sends."""
        if not self._readable:
            return
        self._left += self._unzip.decompress(chunk) if self._unzip else chunk
        if self._events:
            *lines, rest = bytes(self._left).split(b"\n")
            self._left = bytearray(rest)
            for line in lines:
                self._line(line)

    def ended(self) -> None:
        """The connection says that this was all."""
        if self._readable and not self._events and self._left:
            answer = json.loads(bytes(self._left))
            self._usage(answer.get("usage"))
            self.seals += seals(answer.get("content") or ())
        if not self._readable or not self._events:
            self.complete = True

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:") or not any(name in line for name in TOLD):
            return
        event: dict[str, Any] = json.loads(line[len(b"data:") :])
        kind = event.get("type")
        if kind == "message_delta":
            self._usage(event.get("usage"))
        elif kind == "content_block_start":
            self.seals += seals([event.get("content_block") or {}])
        elif kind == "content_block_delta" and (event.get("delta") or {}).get("type") == "signature_delta":
            self.seals.append(str(event["delta"].get("signature")))
        elif kind == "message_stop":
            self.complete = True

    def _usage(self, usage: Any) -> None:
        tokens = usage.get("output_tokens") if isinstance(usage, Mapping) else None
        if isinstance(tokens, int):
            self.output_tokens = tokens
