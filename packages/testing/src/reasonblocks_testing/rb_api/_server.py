"""The scripted rb-api, and the switches of its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reasonblocks.types import Note, Pattern

from ..loopback import Listener
from ._app import App
from ._connection import Connection, Faults
from ._faults import Fault
from ._records import QueuedNote, Received, Requests

KEY = "rbk_scripted_key"
"""The key that a scripted rb-api accepts by default."""


class ScriptedRbApi:
    """The real server on 127.0.0.1, within its `with` block, whose faults can be switched on while it runs.

    Its data is in a temporary folder, and its rates are unlimited. `keys` maps each valid key, of at least 16
    characters, to its org; `patterns` are those that it retrieves. Every route is served but streams (501), and bodies
    need a `Content-Length` (411).

    >>> with ScriptedRbApi() as api:
    ...     api.misbehave(Slow(seconds=2), at="/monitors/evaluate")
    ...     run_an_agent(base_url=api.url, api_key=api.key)
    ...     api.behave()
    """

    def __init__(self, *, keys: Mapping[str, str] | None = None, patterns: Sequence[Pattern] = ()) -> None:
        self._keys, self._patterns = keys or {KEY: "default"}, patterns
        self._requests, self._faults = Requests(), Faults()
        self._running = ExitStack()
        self._app: App | None = None
        self._listener: Listener | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address `http://127.0.0.1:PORT`, which is kept while the port is closed. Raises `RuntimeError` before."""
        if not self._port:
            raise _not_running()
        return f"http://127.0.0.1:{self._port}"

    @property
    def key(self) -> str:
        """The first valid key. Raises `RuntimeError` if all are revoked."""
        keys = self._keys if self._app is None else self._app.keys
        if not keys:
            raise RuntimeError("all keys of the server are revoked")
        return next(iter(keys))

    @property
    def requests(self) -> list[Received]:
        """All requests so far, in order of arrival, those without an answer too."""
        return self._requests.all()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The stored events: one for each run start, step and finish, those of a run together."""
        return self._used.events()

    @property
    def notes(self) -> list[QueuedNote]:
        """All notes so far, in the order in which they were added."""
        return self._used.notes()

    def add_note(self, run_id: str, text: str) -> Note:
        """Queue an operator's note to a run of the first key's org, which may start later.

        It is in the answers to evaluations with `notes: true`, after older notes have been told, until its id is in
        `notes_told` of an evaluation or in `metadata.note_ids` of a step event. A run has at most 3 waiting notes.
        """
        return self._used.add_note(run_id, text)

    def misbehave(self, fault: Fault, *, at: str = "", times: int | None = None) -> None:
        """Switch a fault on, in place of an earlier one.

        `at` limits it to routes that begin with this path (without `/v1`), and `times` to so many requests.
        """
        self._faults.set(fault, at, times)

    def behave(self) -> None:
        """End the fault. Answers that wait for its end are sent, and hanging connections are closed."""
        self._faults.set(None, "", None)

    def revoke(self, key: str | None = None) -> None:
        """Refuse a key (by default the first one) from now on, with 401. Raises `KeyError` if it is unknown."""
        app = self._used
        del app.keys[self.key if key is None else key]
        app.stop()
        app.start()

    def forget(self) -> None:
        """Forget all events, notes and profiles, as a server whose database was lost."""
        self._used.forget()

    def restart(self) -> None:
        """Close all connections and listen again at the same port."""
        self.close_port()
        self.open_port()

    def close_port(self) -> None:
        """Close all connections, and refuse new ones until `open_port`."""
        self._faults.wake()
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    def open_port(self) -> None:
        """Listen again at the port that was closed."""
        if self._listener is None:
            self._listener = Listener(partial(Connection, self._used, self._requests, self._faults), self._port)
            self._port = self._listener.port

    @property
    def _used(self) -> App:
        if self._app is None:
            raise _not_running()
        return self._app

    def __enter__(self) -> ScriptedRbApi:
        folder = self._running.enter_context(TemporaryDirectory(prefix="reasonblocks-"))
        self._app = App(Path(folder), self._keys, self._patterns)
        self._app.start()
        self._running.callback(self._app.stop)
        self.open_port()
        self._running.callback(self.close_port)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()
        self._app = None


def _not_running() -> RuntimeError:
    return RuntimeError("the server is not running: use it as a context manager")
