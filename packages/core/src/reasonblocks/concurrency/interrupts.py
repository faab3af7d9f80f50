"""Context managers and a condition variable that an interrupt never leaves entered.

CPython raises `KeyboardInterrupt` after any call that Python code makes, and before the first line of any Python
function. Therefore these may keep a lock for ever: `lock.acquire()` in front of its `try`, a `threading.Condition`, a
generator of `contextlib`, and an `__exit__` written in Python. Nothing comes between the steps of what is written in
C: `with lock` for a lock of `threading`, `with connection` of sqlite3, and the first call of a `finally`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from functools import partial, wraps
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar, cast
from weakref import ref

__all__ = ["Condition", "hold", "holding"]

T = TypeVar("T")
P = ParamSpec("P")


def holding(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """Make a context manager of a generator, as `contextlib.contextmanager` does; its `finally` runs in any case.

    The generator may not handle an error of the block.
    """

    @wraps(function)
    def entered(*args: P.args, **keywords: P.kwargs) -> AbstractContextManager[T]:
        found: Any = _Holding(function(*args, **keywords))  # a context manager whose `__exit__` is a slot
        return cast("AbstractContextManager[T]", found)

    return entered


class _Holding(Generic[T]):
    """A generator's context manager, for one `with`.

    If an interrupt comes before the first line of `_leave`, the statement drops the only reference to the generator,
    whose `finally` then runs at once. A traceback keeps frames, so that of `_leave` has no name for the generator.
    """

    __slots__ = ("__exit__", "_generator")

    def __init__(self, generator: Iterator[T]) -> None:
        self._generator = generator
        self.__exit__ = _Exit(_leave, ref(generator))
        self.__exit__.generator = generator

    def __enter__(self) -> T:
        generator: Any = self._generator
        del self._generator, self.__exit__  # the statement has it already
        try:
            value: T = next(generator)
        except BaseException:
            generator.close()
            raise
        return value


class _Exit(partial["bool | None"]):
    """Calls `_leave`, which gets a weak reference, and keeps the generator alive until then."""

    generator: object


def _leave(
    generator: Callable[[], Generator[object, None, None]], _: object, error: BaseException | None, trace: Any
) -> bool | None:
    if error is None:
        for _more in generator():
            raise RuntimeError("a context manager may yield once only")
        return None
    try:
        generator().throw(error)
    except BaseException as raised:
        if raised is not error and not (isinstance(error, StopIteration) and raised.__cause__ is error):
            raise
        error.__traceback__ = trace
        return False
    raise RuntimeError("a context manager may not handle the error of its block")


@holding
def hold(lock: threading.RLock, seconds: float, error: Exception | type[Exception]) -> Iterator[None]:
    """Hold a lock, which this thread may hold already. Raises `error` if it is not free within `seconds`."""
    try:
        if not lock.acquire(timeout=seconds):
            raise error
        yield
    finally:
        try:  # noqa: SIM105 - `suppress` would be called first
            lock.release()
        except RuntimeError:  # it was not acquired
            pass


class Condition(threading.Condition):
    """A condition variable with its own lock, which `wait` always reacquires, whatever it raises.

    A waiting thread must not hold the lock twice. `notify` wakes all waiting threads.
    """

    __slots__ = ("__enter__", "__exit__", "_rlock", "_sleepers")  # the lock's own: those of `threading` are in Python

    def __init__(self) -> None:
        self._rlock: Any = threading.RLock()  # the methods that conditions use are not part of its type
        super().__init__(self._rlock)
        self.__enter__ = self._rlock.__enter__  # type: ignore[method-assign]  # slots of this class
        self.__exit__ = self._rlock.__exit__  # type: ignore[method-assign]  # likewise
        self._sleepers: set[SimpleQueue[None]] = set()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._rlock._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        sleeper: SimpleQueue[None] = SimpleQueue()
        own = (1, threading.get_ident())
        self._sleepers.add(sleeper)
        try:
            self._rlock._release_save()
            sleeper.get(timeout is None or timeout > 0, timeout)
            return True
        except Empty:
            return False
        finally:
            self._rlock._acquire_restore(own)  # in C, and no signal ends it
            self._sleepers.discard(sleeper)

    def notify(self, n: int = 1) -> None:
        for sleeper in self._sleepers:
            sleeper.put(None)
        self._sleepers.clear()
