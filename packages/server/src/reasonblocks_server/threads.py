"""Opens the threads of each org, and does in a daemon what is due, even while the agents' own processes are away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ConfigError, ReasonBlocksError
from reasonblocks.util.extras import folder_of, pip_install
from reasonblocks.util.secret import shown_url

from .errors import ApiError, StorageUnavailable
from .settings import POSTGRES_URLS

if TYPE_CHECKING:
    from reasonblocks_threads import Threads
    from reasonblocks_threads.ports import Store

logger = logging.getLogger("reasonblocks.server")

PACKAGE = "reasonblocks-threads"
POLL_S = 1.0
"""Seconds between two looks for due works; after an answer, the daemon looks at once."""
ORGS_S = 30.0
"""Seconds for which the list of orgs is used."""
SETTLE_S = 0.5
"""Seconds for which an answer waits for what follows from it."""
JOIN_S = 2.0
"""Seconds for which the end waits for running works; later ones are abandoned to their leases."""


class OrgThreads:
    """The threads of all orgs, in one store. `orgs` returns the orgs whose due works a daemon does."""

    def __init__(self, store: Store, orgs: Callable[[], Collection[str]]) -> None:
        self._store = store
        self._orgs = orgs
        self._known: Collection[str] = ()
        self._listed = float("-inf")
        self._of: dict[str, Threads] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._failing = False
        self._daemon = threading.Thread(target=self._serve, name="reasonblocks-threads", daemon=True)
        self._daemon.start()

    @contextmanager
    def of(self, org_id: str) -> Iterator[Threads]:
        """Yield the threads of an org. Raises `ApiError`: 404 for an unknown id, 503 without the database."""
        from reasonblocks_threads import StoreUnavailable, UnknownCard, UnknownThread

        try:
            yield self._threads(org_id)
        except (UnknownThread, UnknownCard) as error:
            raise ApiError(404, "this org has no such thread or card") from error
        except StoreUnavailable as error:
            raise ApiError(503, "the database of the threads is not available: try again in a moment") from error

    def settle(self, org_id: str, thread_id: str) -> None:
        """Wait shortly until the thread needs a person again or has ended: the daemon does what is due."""
        self._wake.set()
        with suppress(ReasonBlocksError):  # the answer is stored
            self._threads(org_id).wait(
                thread_id, SETTLE_S, until=lambda thread: thread.phase.waits or thread.phase.is_terminal
            )

    def close(self) -> None:
        self._ended = True
        self._wake.set()
        self._daemon.join(JOIN_S)
        self._store.close()

    def _threads(self, org_id: str) -> Threads:
        from reasonblocks_threads import Threads

        with self._lock:
            if org_id not in self._of:
                self._of[org_id] = Threads(self._store, org_id=org_id)
            return self._of[org_id]

    def _serve(self) -> None:
        while not self._ended:
            self._wake.clear()  # before the look: what is set during it is not lost
            try:
                self._drain()
            except Exception as error:  # noqa: BLE001 - the thread's edge: it has to try again
                self._log(error)
            else:
                self._failing = False
            self._wake.wait(POLL_S)

    def _drain(self) -> None:
        if monotonic() - self._listed >= ORGS_S:
            self._known, self._listed = self._orgs(), monotonic()
        for org_id in {*self._known, *self._of}:
            if not self._ended:
                self._threads(org_id).drain()

    def _log(self, error: Exception) -> None:
        """Log the first of several errors in a row."""
        if not self._failing:
            known = isinstance(error, ReasonBlocksError | StorageUnavailable)
            logger.warning("cannot do what is due in threads now: %s", error, exc_info=None if known else error)
        self._failing = True


def store_of(url: str) -> Store:
    """Return the store of a path or a PostgreSQL URL, without connecting.

    Raises `ConfigError` for a file that does not exist, for a wrong URL, and if the package of threads is missing.
    """
    try:
        from reasonblocks_threads.stores import open_store
    except ImportError as error:
        install = pip_install((folder_of("reasonblocks-core"), folder_of(PACKAGE)))
        rule = f"needs {PACKAGE}, which is on no package index yet; in a clone of ReasonBlocks: {install}"
        raise ConfigError("threads_url", place_of(url), rule) from error
    if url.startswith(POSTGRES_URLS):
        try:
            return open_store(url)
        except ConfigError as error:
            raise ConfigError("threads_url", "postgresql://...", error.rule) from error
    if not Path(url).exists():  # a mistyped path must not make an empty database
        rule = "does not exist; give the file that your agents' `Threads` use, and start an agent first: it creates it"
        raise ConfigError("threads_url", url, rule)
    return open_store(url)


def place_of(url: str) -> str:
    """Return where the threads are, without a password."""
    return shown_url(url) if url.startswith(POSTGRES_URLS) else url
