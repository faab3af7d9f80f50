"""Listens on 127.0.0.1 and serves each connection in a thread of its own, for the scripted servers."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

CLOSING_SECONDS = 1.0
"""Seconds that closing waits for unfinished answers."""


class Listener(ThreadingTCPServer):
    """Accepts connections, each in its own thread. Not an `HTTPServer`, which asks DNS for the host's name."""

    daemon_threads = True
    allow_reuse_address = True  # a server that was stopped may listen again at the same port
    request_queue_size = 128  # the default of 5 makes a client of many tasks wait for a second

    def __init__(self, handler: Callable[[Any, Any, Any], BaseRequestHandler], port: int = 0) -> None:
        self._sockets: set[Any] = set()
        self._workers: list[threading.Thread] = []
        self._stopped = False
        super().__init__(("127.0.0.1", port), handler)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def stop(self) -> None:
        ends = time.monotonic() + CLOSING_SECONDS
        self._wake()
        self._accepting.join(CLOSING_SECONDS)
        self.server_close()
        for connection in list(self._sockets):
            _hang_up(connection)
        for thread in list(self._workers):
            thread.join(max(0.0, ends - time.monotonic()))

    def _accept(self) -> None:
        while not self._stopped:
            self.handle_request()

    def _wake(self) -> None:
        """End the accepting thread at once: it waits for a connection, which is one of ours now."""
        self._stopped = True
        with suppress(OSError):  # no room for another one: then one of those that wait wakes it
            socket.create_connection(("127.0.0.1", self.port), CLOSING_SECONDS).close()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Accept nothing that comes after the end."""
        return not self._stopped

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._workers = [worker for worker in self._workers if worker.is_alive()] + [thread]
        self._sockets.add(request)
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        self._sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # gone already
        return
