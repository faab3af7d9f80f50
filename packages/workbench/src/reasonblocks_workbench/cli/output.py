"""Prints to the terminal: plain lines anywhere, colour if the output is a terminal.

Foreign texts (ids, runs, files, errors) may contain escape sequences, so everything passes through `clean`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

OK, PROBLEM, USAGE = 0, 1, 2
BAR_CELLS = 24
BAR_EVERY = 0.1
"""Seconds between two drawings of the bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a title; the first column names what the others describe."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def say(text: str = "") -> None:
    """Print a line on stdout. Characters missing from its encoding are escaped. JSON from `json.dumps` is unchanged."""
    print(safe(text))


def safe(text: str) -> str:
    """Return the text as one line that stdout can print; characters missing from its encoding are escaped."""
    return _encodable(clean(text), sys.stdout)


def say_data(text: str, *, toml: bool = False) -> None:
    """Print the lines of a JSON or TOML file on stdout; control characters are escaped, so the data is the same."""
    for line in text.rstrip("\n").split("\n"):
        say("".join(char if char.isprintable() else _escaped(char, toml) for char in line))


def warn(text: str) -> None:
    """Print a line on stderr."""
    print(_encodable(clean(text).strip(), sys.stderr), file=sys.stderr)


def show(table: Table) -> None:
    """Print the table on stdout, in colour if stdout is a terminal."""
    shown = Table(
        title=clean(table.title),
        head=[clean(cell) for cell in table.head],
        rows=[[clean(cell) for cell in row] for row in table.rows],
    )
    if sys.stdout.isatty():
        _show_rich(shown)
    else:
        say(shown.title)
        for line in columns([shown.head, *shown.rows] if any(shown.head) else shown.rows):
            say(f"  {line}")
    say()


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each row as one line with aligned columns; the last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def clean(text: str) -> str:
    """Return the text as one line of the same length, without control, bidi and invisible characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text)


def printable(text: str) -> str:
    """Return the text as `clean` does, without blanks at its ends."""
    return clean(text).strip()


def _escaped(char: str, toml: bool) -> str:
    """Return the JSON or TOML escape: beyond 16 bits, TOML has eight digits and JSON a surrogate pair."""
    return f"\\U{ord(char):08x}" if toml and ord(char) > 0xFFFF else json.dumps(char)[1:-1]


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _show_rich(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text  # does not interpret markup

    drawn = RichTable(title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    drawn.show_header = any(table.head)
    for index, name in enumerate(table.head):
        drawn.add_column(Text(name), style="cyan" if index == 0 else None)
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)


class _Once(logging.Handler):
    """Prints each warning once, in one line, whatever run it comes from."""

    def __init__(self, bar: Bar) -> None:
        super().__init__(logging.WARNING)
        self.bar, self.seen = bar, set[object]()

    def emit(self, record: logging.LogRecord) -> None:
        reason = record.args[-1] if isinstance(record.args, tuple) and record.args else record.msg
        if reason not in self.seen:
            self.seen.add(reason)
            self.bar.clear()
            warn(record.getMessage())


@contextmanager
def warnings_once(bar: Bar) -> Iterator[None]:
    """Print the library's log to stderr, each warning once without its traceback: many runs may have the same fault."""
    logger, handler = logging.getLogger("reasonblocks"), _Once(bar)
    propagate, handlers = logger.propagate, logger.handlers
    logger.propagate, logger.handlers = False, [handler]  # a nested handler replaces the outer one
    try:
        yield
    finally:
        logger.propagate, logger.handlers = propagate, handlers


@dataclass(slots=True)
class Bar:
    """A progress bar in one line on stderr, shown if that is a terminal."""

    total: int
    active: bool = field(default_factory=lambda: sys.stderr.isatty())
    drawn_at: float = 0.0

    def at(self, done: int, text: str) -> None:
        now = time.monotonic()
        if not self.active or now - self.drawn_at < BAR_EVERY:
            return
        self.drawn_at = now
        share = min(1.0, done / self.total) if self.total else 0.0
        cells = ("#" * round(share * BAR_CELLS)).ljust(BAR_CELLS, ".")
        self._write(f"\r\x1b[K[{cells}] {share:4.0%}  {text}")

    def clear(self) -> None:
        """Erase the bar, so that other lines can be printed."""
        if self.active and self.drawn_at:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
