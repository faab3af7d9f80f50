"""Listens on 127.0.0.1 and serves each connection in a thread of its own, for the scripted servers."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

CLOSING_SECONDS = 1.0
"""Seconds that closing waits for unfinished answers."""
POLL_SECONDS = 0.02
"""Seconds between the accepting thread's checks for the end."""


class Listener(ThreadingTCPServer):
    """Accepts connections, each in its own thread. Not an `HTTPServer`, which asks DNS for the host's name."""

    daemon_threads = True
    allow_reuse_address = True  # a server that was stopped may listen again at the same port
    request_queue_size = 128  # the default of 5 makes a client of many tasks wait for a second

    def __init__(self, handler: Callable[[Any, Any, Any], BaseRequestHandler], port: int = 0) -> None:
        self._sockets: set[Any] = set()
        self._workers: list[threading.Thread] = []
        super().__init__(("127.0.0.1", port), handler)
        self._accepting = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in list(self._sockets):
            _hang_up(connection)
        ends = time.monotonic() + CLOSING_SECONDS
        for thread in [self._accepting, *self._workers]:
            thread.join(max(0.0, ends - time.monotonic()))

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
