"""Names the calls of a run, so that each is decided once: by the answer that came before."""

from __future__ import annotations

from dataclasses import replace

from reasonblocks._text import digest
from reasonblocks.types import StepInput

START = "start"
"""The key of a run's first call."""
KEY_LENGTH = 64
AGAIN = " again at "


def step_key(answer: str | None, last: str | None) -> str:
    """What names the call that follows an answer: its id, in a bounded form; or `last`, if that was made of it."""
    name = START if answer is None else answer if len(answer) <= KEY_LENGTH else digest(answer)
    return last if last is not None and last.startswith(f"{name}{AGAIN}") else name


def renamed(given: StepInput, call: int) -> StepInput:
    """An answer can have the id of an earlier one, or be put back: before call `call` it is a new step."""
    name, _, _ = (given.key or START).partition(AGAIN)
    return replace(given, key=f"{name}{AGAIN}{call}")
