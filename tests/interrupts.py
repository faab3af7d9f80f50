"""Interrupts an operation where CPython may do so, and looks for locks that stay held."""

from __future__ import annotations

import _weakrefset
import concurrent.futures._base
import contextlib
import dis
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

from tests.whole import WHOLE

BOUND_S = 8.0
"""The most seconds that an operation may take after an interrupt: more than a store waits for another process."""
QUICK = 12
"""The places of an operation that are interrupted at every commit, chosen at random; with `WHOLE`, all."""
SEED = 20_240_917
STDLIB = {module.__file__ for module in (threading, contextlib, concurrent.futures._base, _weakrefset)}
CHECKED = ("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_JUMP")
"""The starts of the names of instructions behind which CPython looks for signals; some only in some versions."""
NOT_CHECKED = ("CALL_INTRINSIC",)

Place = tuple[CodeType, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operation on a new object, and what has to work after its interrupt, in any thread and in a forked process."""

    operation: Callable[[], object]
    works: Callable[[], object]
    close: Callable[[], object]


@cache
def _checked_behind(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions behind which a signal may be handled.

    The signal's error belongs to the instruction, that of the tracer to the next one. Therefore those at the end of a
    block, whose handler the next one does not have, cannot be tried.
    """
    found = [*dis.get_instructions(code)]
    entries = getattr(dis.Bytecode(code), "exception_entries", ())  # from Python 3.11 on; before, the block ends later

    def handler(offset: int) -> int | None:
        return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)

    return frozenset(
        one.offset
        for one, after in pairwise(found)
        if one.opname.startswith(CHECKED)
        and not one.opname.startswith(NOT_CHECKED)
        and ("CALL" not in one.opname or handler(one.offset) == handler(after.offset))
    )


class _Tracer:
    """Counts the places of this thread where CPython looks for signals, and raises at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.places: list[Place] = []
        self._at = at
        self._next: dict[int, bool] = {}
        """Whether the next instruction of a frame, by its id, follows such a look."""

    def call(self, frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if event != "call" or not (f"{os.sep}reasonblocks" in name or name in STDLIB):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._next[id(frame)] = True  # at its begin
        return self._local

    def _local(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "exception":  # what follows is its handler, which is entered without a look
            self._next[id(frame)] = False
        elif event == "opcode":
            looks = self._next[id(frame)]
            self._next[id(frame)] = frame.f_lasti in _checked_behind(frame.f_code)
            if looks:
                self.places.append((frame.f_code, frame.f_lasti))
                if self._at == len(self.places) - 1:
                    raise KeyboardInterrupt
        return self._local


@contextmanager
def _traced(tracer: _Tracer) -> Iterator[None]:
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks at this when tracing begins
    sys.settrace(tracer.call)
    try:
        yield
    finally:
        sys.settrace(before)


def places_of(made: Callable[[], Case]) -> list[int]:
    """Return the numbers of the places to interrupt: the first of each instruction, a part of them unless `WHOLE`."""
    case, tracer = made(), _Tracer()
    with _traced(tracer):
        case.operation()
    case.close()
    first = {place: number for number, place in reversed([*enumerate(tracer.places)]) for place in [place]}
    found = sorted(first.values())
    assert found, "nothing was traced"
    return found if WHOLE else sorted(random.Random(SEED).sample(found, min(QUICK, len(found))))


def left_held(made: Callable[[], Case]) -> tuple[int, list[str]]:
    """Return how many interrupts were tried, and those after which something did not work."""
    found = []
    places = places_of(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside other threads
        warnings.simplefilter("ignore", ResourceWarning)  # of a file that an interrupt closes by dropping it
        for number in places:
            if problem := _after(made(), number):
                found.append(problem)
    return len(places), found


def _after(case: Case, number: int) -> str | None:
    tracer, kept = _Tracer(number), []
    try:
        with _traced(tracer):
            case.operation()
    except BaseException as exc:  # noqa: BLE001 - kept with its frames, as an interactive interpreter does
        kept.append(exc)
    code, offset = tracer.places[min(number, len(tracer.places) - 1)]
    where = f"{os.path.basename(code.co_filename)}:{code.co_name}+{offset}"
    found = _problem(case.works)
    if found is None:
        case.close()
    kept.clear()
    return found and f"{where}: {found}"


def _problem(works: Callable[[], object]) -> str | None:
    """Return what does not work: in another thread, in a process that it forks, or in this one."""
    found: list[str] = ["it hangs"]

    def look() -> None:
        try:
            works()
            found[0] = "it hangs in a forked process"
            found[0] = _forked(works)
        except BaseException as exc:  # noqa: BLE001 - the thread's edge
            found[0] = f"{type(exc).__name__}: {exc}"

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(BOUND_S)
    if not found[0]:
        works()
    return found[0] or None


def _forked(works: Callable[[], object]) -> str:
    if not hasattr(os, "fork"):
        return ""
    child = os.fork()
    if not child:
        signal.alarm(int(BOUND_S))
        try:
            works()
        except BaseException:  # noqa: BLE001 - the process's edge
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return f"a forked process ended with {status}" if status else ""
