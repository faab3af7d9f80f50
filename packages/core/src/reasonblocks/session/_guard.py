"""The one guard between steering and the agent: a fault is said once per kind and run, counted, and goes no further."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..exceptions import BadAnswer, ProtocolError, Unavailable

logger = logging.getLogger("reasonblocks")


@contextmanager
def tamed(source: str) -> Iterator[None]:
    """What would end a thread, or pass for the end of a generator, becomes an error like any other."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, StopAsyncIteration) as exc:
        raise BadAnswer(source, exc, "it may not ask its thread to end") from exc


class Faults:
    """What went wrong in one run. With `strict`, faults are raised; an unavailable backend never is."""

    __slots__ = ("_said", "_strict", "counts", "owner")

    def __init__(self, owner: str, *, strict: bool) -> None:
        self.owner = owner
        self.counts: Counter[str] = Counter()
        self._strict = strict
        self._said: set[str] = set()

    @contextmanager
    def guard(self, kind: str | Callable[[], str]) -> Iterator[None]:
        """Run our code, or a caller's, as a guest: whatever it raises ends here. `kind` is what is to blame."""
        try:
            yield
        except ProtocolError:
            raise  # the adapter's own mistake: it asked for what cannot be
        except Exception as exc:  # noqa: BLE001 - the one place
            self.report(kind if isinstance(kind, str) else kind(), exc)

    @contextmanager
    def diverted(self, handle: Callable[[Exception], None]) -> Iterator[None]:
        """Run code whose failure is foreseen: it is handled, and goes no further."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - what a provider's package raises can be anything
            handle(exc)

    def report(self, kind: str, exc: Exception) -> None:
        """Count a fault and say it, the first time."""
        if self._strict and not isinstance(exc, Unavailable):
            raise exc
        self.counts[kind] += 1
        self.say(kind, f"{kind} failed ({type(exc).__name__}: {exc}); the agent goes on without it", exc)

    def say(self, kind: str, text: str, exc: Exception | None = None) -> None:
        """One warning per kind and run."""
        if kind in self._said:
            return
        self._said.add(kind)
        trace = (type(exc), exc, exc.__traceback__) if exc and not isinstance(exc, Unavailable) else None
        logger.warning("%s: %s", self.owner, text, exc_info=trace)
