"""The scripted rb-api, and the switches of its faults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.ports import Evaluator, FindingStore, PatternStore
from reasonblocks.types import Note

from ..loopback import Listener
from ._connection import Connection, Faults
from ._faults import Fault
from ._records import Body, QueuedNote, Received, Requests
from ._routes import Api

KEY = "rbk_scripted_key"
"""The key that a scripted rb-api accepts by default."""


class ScriptedRbApi:
    """An rb-api on 127.0.0.1, within its `with` block, whose faults can be switched on while it runs.

    It evaluates with the built-in monitors, or with `evaluator`, and searches `store` (without one, no pattern
    is found). `findings` has the findings of codebases, by default in memory. `keys` maps each valid key to its org.
    Every route is served with and without `/v1`:

    - `GET /health` (without a key), `POST /monitors/evaluate`, `POST /traces/retrieve`, `POST /score`
    - `POST /monitor/runs`, `POST /monitor/runs/{run_id}/steps`, `POST /monitor/runs/{run_id}/finish`,
      `POST /monitor/events`, `GET /monitor/runs?limit=`
    - `GET /monitor/agents/profile?agent_name=&task_profile=&but=`, `POST /monitor/agents/profile`
    - `GET /findings`, `GET /findings/{id}?after=&limit=`, `POST /findings/{id}`, `POST /findings/{id}/search`,
      `POST /findings/{id}/invalidate`, `DELETE /findings/{id}`

    Errors are `{"detail": reason}` with 400 (no JSON object), 401 (key), 404, 413 (over 5 MB, or over 8 MB without its
    gzip), 422 (a field) and 409 (a codebase with too many findings).

    >>> with ScriptedRbApi() as api:
    ...     api.misbehave(Slow(seconds=2), at="/monitors/evaluate")
    ...     run_an_agent(base_url=api.url, api_key=api.key)
    ...     api.behave()
    """

    def __init__(
        self,
        *,
        keys: Mapping[str, str] | None = None,
        store: PatternStore | None = None,
        evaluator: Evaluator | None = None,
        findings: FindingStore | None = None,
    ) -> None:
        self._api = Api(keys or {KEY: "default"}, store or LocalStore(), evaluator, findings or LocalFindings())
        self._requests, self._faults = Requests(), Faults()
        self._listener: Listener | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address `http://127.0.0.1:PORT`, which is kept while the port is closed. Raises `RuntimeError` before."""
        if not self._port:
            raise RuntimeError("the server is not running: use it as a context manager")
        return f"http://127.0.0.1:{self._port}"

    @property
    def key(self) -> str:
        """The first valid key. Raises `RuntimeError` if all are revoked."""
        if not self._api.keys:
            raise RuntimeError("all keys of the server are revoked")
        return next(iter(self._api.keys))

    @property
    def requests(self) -> list[Received]:
        """All requests so far, in order of arrival, those without an answer too."""
        return self._requests.all()

    @property
    def events(self) -> list[Body]:
        """The events of all runs, in order of arrival, one for each run start, finish, and step of a run."""
        return self._api.runs.events()

    @property
    def notes(self) -> list[QueuedNote]:
        """All notes so far, in the order in which they were added."""
        return self._api.runs.notes()

    def add_note(self, run_id: str, text: str) -> Note:
        """Queue an operator's note to a run.

        It is in the answers to evaluations with `notes: true`, after older notes have been told, until its id is in
        `notes_told` of an evaluation or in `metadata.note_ids` of a step event.
        """
        return self._api.runs.add_note(run_id, text)

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
        del self._api.keys[self.key if key is None else key]

    def forget(self) -> None:
        """Forget all events, notes and profiles, as a server whose database was lost."""
        self._api.forget()

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
            self._listener = Listener(partial(Connection, self._api, self._requests, self._faults), self._port)
            self._port = self._listener.port

    def __enter__(self) -> ScriptedRbApi:
        self.open_port()
        return self

    def __exit__(self, *_: object) -> None:
        self.close_port()
