"""Reads a copy of one answer: its output tokens and the seals of its thinking."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from reasonblocks.messages.anthropic import seals_of, usage_of

EVENTS = (b'"message_delta"', b'"signature_delta"', b'"redacted_thinking"', b'"message_stop"')
"""The only events that are parsed; nearly all others are deltas of text."""
ZIPPED = frozenset({"gzip", "deflate"})


class Meter:
    """Measures one answer, which is `complete` once it has arrived. An encoding other than `ZIPPED` is not measured."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.output_tokens: int | None = None
        self.seals: list[str] = []
        self.complete = False
        encoding = headers.get("content-encoding", "identity").lower()
        self._readable = encoding == "identity" or encoding in ZIPPED
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ZIPPED else None
        self._is_stream = headers.get("content-type", "").startswith("text/event-stream")
        self._left = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes. Raises `ValueError` or `zlib.error` if they are malformed."""
        if not self._readable:
            return
        self._left += self._unzip.decompress(chunk) if self._unzip else chunk
        if self._is_stream:
            *lines, rest = bytes(self._left).split(b"\n")
            self._left = bytearray(rest)
            for line in lines:
                self._line(line)

    def ended(self) -> None:
        """Read the end of the connection."""
        if self._readable and not self._is_stream and self._left:
            answer = json.loads(bytes(self._left))
            self._usage(answer.get("usage"))
            self.seals += seals_of(answer.get("content") or ())
        if not self._readable or not self._is_stream:
            self.complete = True

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:") or not any(name in line for name in EVENTS):
            return
        event: dict[str, Any] = json.loads(line[len(b"data:") :])
        kind = event.get("type")
        if kind == "message_delta":
            self._usage(event.get("usage"))
        elif kind == "content_block_start":
            self.seals += seals_of([event.get("content_block") or {}])
        elif kind == "content_block_delta" and (event.get("delta") or {}).get("type") == "signature_delta":
            self.seals.append(str(event["delta"].get("signature")))
        elif kind == "message_stop":
            self.complete = True

    def _usage(self, usage: Any) -> None:
        if (tokens := usage_of(usage).output) is not None:
            self.output_tokens = tokens
