"""Formats values of threads as JSON and as terminal lines, for all commands."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import TypeVar

from ..render import render_text
from ..values import Card, Thread, ThreadEvent
from ._output import say

Word = TypeVar("Word", bound=Enum)
DATA_CHARS = 300
"""Characters of an event's data in a line."""


def plain(value: object) -> object:
    """Return a value of ours as plain JSON; functions are left out."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: plain(each) for name, each in found.items() if not callable(each)}
    if isinstance(value, Mapping):
        return {str(plain(name)): plain(each) for name, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, map(plain, value)))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def say_json(value: object) -> None:
    """Print a value as one JSON object on a line."""
    say(json.dumps(plain(value)))


def say_card(card: Card) -> None:
    for line in render_text(card).split("\n"):
        say(line)


def time_of(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def line_of(event: ThreadEvent) -> str:
    """Return an event as one line, with the start of its data."""
    data = json.dumps(plain(event.data), ensure_ascii=False) if event.data else ""
    short = data if len(data) <= DATA_CHARS else f"{data[: DATA_CHARS - 1]}…"
    who = f"{event.actor.kind} {event.actor.name}" if event.actor.kind != "system" else "system"
    return f"{event.seq:>4}  {time_of(event.at)}  {event.kind}  {who}  {short}".rstrip()


def summary_of(thread: Thread) -> str:
    """Return the phase of a thread and its reason as one line."""
    why = f": {thread.reason}" if thread.reason else ""
    return f"{thread.id}  {thread.phase.value}{why}"


def card_id_of(thread: Thread) -> str | None:
    """Return the id of the card that is open in the thread's phase."""
    return f"{thread.id}.{thread.entered}" if thread.phase.waits else None


def thread_id_of(id: str) -> str:
    """Return the thread's id from its own or that of one of its cards."""
    thread, dot, seq = id.rpartition(".")
    return thread if dot and seq.isdigit() else id


def one_of(words: type[Word]) -> Callable[[str], Word]:
    """Return a reader of an option that takes one of these words."""

    def read(text: str) -> Word:
        try:
            return words(text)
        except ValueError:
            valid = ", ".join(word.value for word in words)
            raise ArgumentTypeError(f"{text!r} is unknown; valid: {valid}") from None

    return read
