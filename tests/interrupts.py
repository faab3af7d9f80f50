"""Interrupts an operation where CPython may do so, and looks for locks that stay held."""

from __future__ import annotations

import _weakrefset
import concurrent.futures._base
import contextlib
import dis
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

from reasonblocks.concurrency import interrupts
from tests.whole import WHOLE

BOUND_S = 8.0
"""The most seconds that an operation may take after an interrupt: more than a store waits for another process."""
MOST = 100 if WHOLE else 8
"""The places of an operation that are interrupted, chosen at random: half of them in what makes locks and blocks."""
SEED = 20_240_917
LOCKS = {module.__file__ for module in (threading, contextlib, concurrent.futures._base, _weakrefset, interrupts)}
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
def _looks_behind(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions behind which CPython looks for signals."""
    return frozenset(
        one.offset
        for one in dis.get_instructions(code)
        if one.opname.startswith(CHECKED) and not one.opname.startswith(NOT_CHECKED)
    )


@cache
def _handler(code: CodeType, offset: int) -> int | None:
    """Return the handler of an error at an instruction, from Python 3.11 on."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)


class _Tracer:
    """Counts the places of this thread where CPython looks for signals, and raises at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.places: list[Place] = []
        self._at = at
        self._last: dict[int, int | None] = {}
        """The offset of the last instruction of a frame, by its id; None at its begin, -1 at the one of a handler."""

    def call(self, frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if event != "call" or not (f"{os.sep}reasonblocks" in name or name in LOCKS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last[id(frame)] = None
        return self._local

    def _local(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "exception":  # what follows is its handler, which is entered without a look
            self._last[id(frame)] = -1
        elif event == "opcode":
            last, self._last[id(frame)] = self._last[id(frame)], frame.f_lasti
            if last is None or (last in _looks_behind(frame.f_code) and self._is_alike(frame, last)):
                self.places.append((frame.f_code, frame.f_lasti))
                if self._at == len(self.places) - 1:
                    raise KeyboardInterrupt
        return self._local

    def _is_alike(self, frame: FrameType, last: int) -> bool:
        """Return True unless a block ends between two instructions.

        The error of a signal belongs to the instruction that looks for it, that of the tracer to the next one.
        """
        return _handler(frame.f_code, last) == _handler(frame.f_code, frame.f_lasti)


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
    """Return the numbers of the places to interrupt: the first of each instruction, at most `MOST` of them."""
    case, tracer = made(), _Tracer()
    with _traced(tracer):
        case.operation()
    case.close()
    first = {place: number for number, place in reversed([*enumerate(tracer.places)])}
    assert first, "nothing was traced"
    shuffled = random.Random(SEED).sample(sorted(first.values()), len(first))
    near = [number for number in shuffled if tracer.places[number][0].co_filename in LOCKS][: MOST // 2]
    return sorted([*near, *[number for number in shuffled if number not in near][: MOST - len(near)]])


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
        if sys.version_info >= (3, 13):  # which warns of an open SQLite connection that is dropped
            _wait_for_threads()
        gc.collect()  # while its warnings are ignored
    return len(places), found


def _wait_for_threads() -> None:
    """Wait for the threads that an interrupt left at work, which open again what was closed."""
    until = time.monotonic() + BOUND_S
    for thread in threading.enumerate():
        if thread.name.startswith("reasonblocks") and thread.is_alive():
            thread.join(max(0.0, until - time.monotonic()))


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
