"""Runs the server's application in this process, on an event loop of its own, without a socket."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.types import Note, Pattern
from reasonblocks_server import Settings, create_app
from reasonblocks_server.server import Server
from reasonblocks_server.settings import DATABASE_FILE
from reasonblocks_server.values import NoteRow, RunFilter

from ._records import QueuedNote

NOTE_SECONDS = 3_600.0
"""Seconds after which a note that no call has contained expires."""
UNLIMITED: Mapping[str, Any] = {"rate_per_second": 1e6, "burst": 1_000_000}


class App:
    """The application with its data in a folder, from `start` to `stop`. May be called from any thread."""

    def __init__(self, folder: Path, keys: Mapping[str, str], patterns: Sequence[Pattern]) -> None:
        self.keys = dict(keys)
        self._folder, self._notes = folder, list[tuple[str, str, str]]()
        if patterns:
            with LocalStore(self._settings.patterns_file) as store:
                store.add(patterns)

    @property
    def _settings(self) -> Settings:
        keys = tuple([f"{key}@{org}" for key, org in self.keys.items()])
        return Settings(data=self._folder, static_keys=keys, **UNLIMITED)

    def start(self) -> None:
        app, self._running = create_app(self._settings), ExitStack()
        self._portal = self._running.enter_context(start_blocking_portal())
        self._running.enter_context(self._portal.wrap_async_context_manager(app.router.lifespan_context(app)))
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._server: Server = app.state.server

    def stop(self) -> None:
        self._running.close()

    def forget(self) -> None:
        """Start again with an empty database. The patterns and the findings are kept in files of their own."""
        self.stop()
        self._notes = []
        for path in self._folder.glob(f"{DATABASE_FILE}*"):
            path.unlink()
        self.start()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        """Return the application's answer to a request. `target` is the path with the query, as it was sent."""
        url = httpx.URL("http://rb-api").copy_with(raw_path=target.encode("latin-1"))
        return self._portal.call(self._answer, httpx.Request(method, url, headers=headers, content=body))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        await response.aread()
        return response

    def events(self) -> list[dict[str, Any]]:
        """Return the stored events: those of each run together, the runs in order of their start."""
        return [event for org in dict.fromkeys(self.keys.values()) for event in self._events_of(org)]

    def _events_of(self, org: str) -> list[dict[str, Any]]:
        found, runs = list[dict[str, Any]](), self._server.storage.runs
        rows, _ = runs.list(org, RunFilter(), limit=10_000, cursor=None)
        for row in reversed(rows):
            if (whole := runs.get(org, row.run_id)) and whole.body:
                found.append(dict(whole.body))
            after, more = -1, True
            while more:
                steps, more = runs.page(org, row.run_id, after=after, limit=500)
                found += steps
                after = steps[-1]["step_index"] if steps else after
            if finish := runs.finish_body(org, row.run_id):
                found.append(dict(finish))
        return found

    def add_note(self, run_id: str, text: str) -> Note:
        now, org = time.time(), next(iter(self.keys.values()))
        self._server.storage.runs.takes_notes(org, run_id, now)  # the run may start later
        expires = now + NOTE_SECONDS
        row = self._server.storage.notes.add(org, run_id, text, key_id="scripted", now=now, expires=expires)
        self._server.live.note_added(row)
        self._notes.append((org, run_id, row.note_id))
        return Note(id=row.note_id, text=row.text)

    def notes(self) -> list[QueuedNote]:
        rows = [self._server.storage.notes.get(*place) for place in self._notes]
        return [
            QueuedNote(run_id=row.run_id, note=Note(id=row.note_id, text=row.text), told=self._is_told(row))
            for row in rows
            if row is not None
        ]

    def _is_told(self, row: NoteRow) -> bool:
        """Return whether the client has reported a note. The database learns of it later, from a thread."""
        if row.state != "queued":
            return row.state == "told"
        waiting = self._server.live.waiting(row.org_id, row.run_id)  # the oldest, and notes are told in their order
        ids = [note_id for *_, note_id in self._notes]
        return not waiting or ids.index(row.note_id) < ids.index(waiting[0].id)
