"""The one guard between steering and the agent: a fault is said once per kind and run, counted, and goes no further."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from ..exceptions import BadAnswer, ProtocolError, StoreError, Unavailable

logger = logging.getLogger("reasonblocks")

NOT_ITS_OWN = "it may not end its thread, its generator or its task"


@contextmanager
def tamed(source: str) -> Iterator[None]:
    """What would end a thread, or pass for the end of a generator, becomes an error like any other."""
    try:
        yield
    except (StopIteration, StopAsyncIteration, CancelledError) as exc:
        raise BadAnswer(source, type(exc).__name__, NOT_ITS_OWN) from exc
    except ProtocolError as exc:  # the guard lets an adapter's own through
        raise BadAnswer(source, str(exc), "it may not raise ProtocolError, which is for adapters") from exc
    except Exception:
        raise
    except BaseException as exc:
        raise BadAnswer(source, type(exc).__name__, NOT_ITS_OWN) from exc


def _said(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - an exception that cannot even say what it is
        return "it cannot say what"


def not_built(state: str, exc: BaseException) -> str:
    """Return the message for a mapped model that cannot be used."""
    return f"the model for {state} cannot be built ({_said(exc)}); the agent's model is used"


class Faults:
    """What went wrong in one run. With `strict`, faults are raised; an unavailable backend never is."""

    __slots__ = ("_said", "_strict", "counts", "owner")

    def __init__(self, owner: str, *, strict: bool) -> None:
        self.owner = owner
        self.counts: Counter[str] = Counter()
        self._strict = strict
        self._said: set[str] = set()

    def guard(self, kind: str | Callable[[], str]) -> Guard:
        """Run our code, or a caller's, as a guest: whatever it raises ends here. `kind` is what is to blame."""
        return Guard(self, kind)

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
        self.say(kind, f"{kind} failed ({type(exc).__name__}: {_said(exc)}); the agent goes on (said once a run)", exc)

    def say(self, kind: str, text: str, exc: Exception | None = None) -> None:
        """One warning per kind and run."""
        if kind in self._said:
            return
        self._said.add(kind)
        plain = exc is None or isinstance(exc, (Unavailable, StoreError))  # a traceback adds nothing
        trace = None if plain or exc is None else (type(exc), exc, exc.__traceback__)
        logger.warning("%s: %s", self.owner, text, exc_info=trace)


class Guard:
    """The one place where every error ends. A class, since each step enters it: a generator takes twice its time."""

    __slots__ = ("_faults", "_kind")

    def __init__(self, faults: Faults, kind: str | Callable[[], str]) -> None:
        self._faults, self._kind = faults, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> bool:
        if not isinstance(exc, Exception) or isinstance(exc, ProtocolError):
            return False  # nothing, the end of the program, or the adapter's own mistake: it asked for what cannot be
        self._faults.report(self._kind if isinstance(self._kind, str) else self._kind(), exc)
        return True
