"""Guards the agent against faults of steering: each is counted, logged once per kind and run, and not propagated."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..exceptions import BadAnswer, ProtocolError, Refused, RunStopped, StoreError, Unavailable

logger = logging.getLogger("reasonblocks")


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - a foreign exception's __str__ may raise anything
        return "it cannot say what"


def not_built(state: str, exc: BaseException) -> str:
    """Return the message for a mapped model that cannot be used."""
    return f"the model for {state} cannot be used ({_message(exc)}); the agent's model is used"


class Faults:
    """Counts and logs the faults of one run. With `strict`, faults are raised; an unavailable backend never is."""

    __slots__ = ("_logged", "_strict", "counts", "owner")

    def __init__(self, owner: str, *, strict: bool) -> None:
        self.owner = owner
        self.counts: Counter[str] = Counter()
        self._strict = strict
        self._logged: set[str] = set()

    @contextmanager
    def guard(self, kind: str | Callable[[], str]) -> Iterator[None]:
        """Guard our code, or a caller's: no exception leaves the block. `kind` names what is to blame.

        Only an adapter's own mistake and the end that the user asked for are raised, and what ends the program.
        """
        try:
            yield
        except (ProtocolError, RunStopped):
            raise
        except Exception as exc:  # noqa: BLE001 - all errors of steering end here
            self.report(kind if isinstance(kind, str) else kind(), exc)

    @contextmanager
    def diverted(self, handle: Callable[[Exception], None]) -> Iterator[None]:
        """Run code whose failure is expected: `handle` gets the exception, which is not propagated."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - what a provider's package raises can be anything
            handle(exc)

    def report(self, kind: str, exc: Exception) -> None:
        """Count a fault, and log it the first time."""
        if self._strict and not isinstance(exc, Unavailable):
            raise exc
        self.counts[kind] += 1
        self.say(
            kind,
            f"{kind} failed ({type(exc).__name__}: {_message(exc)}); the agent continues (logged once per run)",
            exc,
        )

    def say(self, kind: str, text: str, exc: Exception | None = None) -> None:
        """Log a warning once per kind and run."""
        if kind in self._logged:
            return
        self._logged.add(kind)
        plain = exc is None or isinstance(exc, (Refused, Unavailable, StoreError))  # a traceback adds nothing
        plain = plain or (isinstance(exc, BadAnswer) and exc.__cause__ is None)  # nor to a value and its rule
        trace = None if plain or exc is None else (type(exc), exc, exc.__traceback__)
        logger.warning("%s: %s", self.owner, text, exc_info=trace)
