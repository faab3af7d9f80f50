"""Splits a stream into numbered lines; skips series of blank lines at once and does not store overlong lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import TypeAlias

__all__ = ["Line", "TooMuch", "split"]

BLOCK = 256 * 1024
"""The number of bytes read at once."""
Line: TypeAlias = "tuple[int, bytes]"
"""The 1-based number of a line that is not blank, and its bytes."""
NEWLINE = ord("\n")
_blank = re.compile(rb"\s+")


class TooMuch(Exception):
    """The stream has more than `most` bytes; the lines before them were read."""

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
    """Yield the lines that are not blank, numbered from `number`; a longer one is cut to `longest` + 1 bytes.

    `progress` is called after each block. Raises `TooMuch` if the stream has more than `most` bytes.
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
    """Return where the blank lines that begin at `at` end; 0 if there is none."""
    blank = _blank.match(block, at)
    return block.rfind(b"\n", at, blank.end()) + 1 if blank else 0
