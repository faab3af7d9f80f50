"""Splits a stream into lines with their numbers; runs of blank lines are passed over at once, long lines not held."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import TypeAlias

__all__ = ["Line", "TooMuch", "split"]

BLOCK = 256 * 1024
"""Bytes read at once."""
Line: TypeAlias = "tuple[int, bytes]"
"""The number of a line that is not blank, 1-based, and its bytes."""
NEWLINE = ord("\n")
_blank = re.compile(rb"\s+")


class TooMuch(Exception):
    """More than `most` bytes; the lines before are read."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(most)


def split(
    stream: BufferedIOBase,
    longest: int,
    *,
    number: int = 1,
    most: int | None = None,
    progress: Callable[[], None] | None = None,
) -> Iterator[Line]:
    """The lines that are not blank, from `number` on; of one with more than `longest` bytes `longest` + 1.

    `progress` is called after each block. Raises `TooMuch` where the stream holds more than `most` bytes.
    """
    line, total = bytearray(), 0
    while block := stream.read1(BLOCK):
        total += len(block)
        if progress:
            progress()
        if most is not None and total > most:
            raise TooMuch(most)
        at = 0
        while at < len(block):
            if not line and (passed := _blank_lines(block, at)):
                number += block.count(b"\n", at, passed)
                at = passed
                continue
            end = block.find(b"\n", at) + 1 or len(block)
            fits = len(line) <= longest
            line += block[at:end] if fits else b""
            at = end
            if fits and len(line) > longest:
                yield number, bytes(line[: longest + 1])
                del line[longest + 1 :]
            if block[end - 1] == NEWLINE:
                if len(line) <= longest and not line.isspace():
                    yield number, bytes(line)
                line.clear()
                number += 1
    if 0 < len(line) <= longest and not line.isspace():
        yield number, bytes(line)


def _blank_lines(block: bytes, at: int) -> int:
    """Where the blank lines end that begin there; 0 where there is none."""
    blank = _blank.match(block, at)
    return block.rfind(b"\n", at, blank.end()) + 1 if blank else 0
